//! A million random and mutated datagrams: no panic, and parsed datagrams round-trip.

use std::collections::BTreeMap;

use silvan_core::stream::SplitMix64;
use silvan_mad::{Class, MAD_LEN, MadError, Packet};

use crate::from_hex;
use crate::law::check;

struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next()
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self) -> [u8; MAD_LEN] {
        let mut bytes = [0; MAD_LEN];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        bytes
    }
}

/// A datagram with some bytes changed: bits flipped, bytes drawn, runs of zeros and ones, and parts of
/// another datagram in its place.
fn mutate(random: &mut Random, seeds: &[[u8; MAD_LEN]]) -> [u8; MAD_LEN] {
    let mut bytes = seeds[random.below(seeds.len())];
    for _ in 0..=random.below(6) {
        let at = random.below(MAD_LEN);
        let end = (at + 1 + random.below(16)).min(MAD_LEN);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at..end].fill(0),
            3 => bytes[at..end].fill(0xff),
            4 => bytes[at..end].copy_from_slice(&seeds[random.below(seeds.len())][at..end]),
            // The header decides how the rest is read.
            _ => bytes[random.below(24)] = random.next() as u8,
        }
    }
    bytes
}

#[test]
fn a_million_random_and_mutated_datagrams() {
    let seeds: Vec<[u8; MAD_LEN]> = include_str!("../vectors/captured.txt")
        .lines()
        .map(|line| from_hex(line.split_once(' ').unwrap().1))
        .collect();
    let mut random = Random(SplitMix64::new(1));
    let mut classes: BTreeMap<Class, u32> = BTreeMap::new();
    let mut text = 0;
    for round in 0..1_000_000u32 {
        let mut bytes = if round % 4 == 0 {
            random.bytes()
        } else {
            mutate(&mut random, &seeds)
        };
        if round % 8 == 0 {
            // Random bytes hardly ever have a header that anything is read from.
            let (class, version) = [(0x01, 1), (0x81, 1), (0x04, 1), (0x21, 2)][random.below(4)];
            bytes[..3].copy_from_slice(&[1, class, version]);
            bytes[16] = 0;
            bytes[17] &= 0x3f;
        }
        if let Ok(mad) = check(&bytes) {
            *classes.entry(mad.class()).or_default() += 1;
        }
        if round % 64 == 0 {
            text += Packet::new(&bytes).to_string().len();
        }
    }
    // The test would be worth little if it hardly got past the header.
    for class in [
        Class::SUBNET_LID,
        Class::SUBNET_DIRECTED,
        Class::PERFORMANCE,
        Class::CONGESTION_CONTROL,
    ] {
        assert!(classes[&class] > 30_000, "{classes:?}");
    }
    assert!(text > 0);
}

#[test]
fn other_lengths_are_refused() {
    for length in [0, 1, 24, 255, 257, 288, 2048] {
        let bytes = vec![1; length];
        assert_eq!(Packet::new_checked(&bytes), Err(MadError::Length(length)));
    }
}

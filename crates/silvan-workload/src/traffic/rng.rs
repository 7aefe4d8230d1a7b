//! Streams of random numbers per source and host, in integers: a seed gives equal traffic on every machine.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro128PlusPlus;
use silvan_core::stream::SplitMix64;
use silvan_core::{Bytes, HostId, Rate, Span};

/// A stream; 16 bytes of state.
pub type Stream = Xoshiro128PlusPlus;

/// Purpose of a stream; entries count per kind, so that a new entry leaves other kinds' streams.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Placement of V, C and B nodes.
    Roles,
    /// Places of the hotspots, by time slot.
    Hotspots,
    /// Messages of the V, C and B nodes, by host.
    Nodes,
    /// Destinations of a uniform entry, by host.
    UniformDestinations(usize),
    /// Gaps of a uniform entry, by host.
    UniformGaps(usize),
    /// Senders of a uniform entry.
    UniformSenders(usize),
    /// The receivers of a permutation.
    Permutation(usize),
    /// Gaps of a permutation, by host.
    PermutationGaps(usize),
    /// Senders of an incast.
    IncastSenders(usize),
    /// Gaps of an incast, by host.
    IncastGaps(usize),
    /// Start of a saturating host, by host.
    StartOffset,
    /// Times on and off of a source of an incast, by host.
    IncastOnOff(usize),
    /// Times on and off of a flow.
    FlowOnOff(usize),
    /// Choices of message-passing programs.
    Programs(usize),
    /// Draws of a kind of traffic, by a name such as `KIND.gaps` and the position of the entry.
    Named(&'static str, usize),
}

impl Purpose {
    fn key(self) -> u64 {
        let (kind, entry) = match self {
            Self::Roles => (1, 0),
            Self::Hotspots => (2, 0),
            Self::Nodes => (3, 0),
            Self::UniformDestinations(entry) => (4, entry),
            Self::UniformGaps(entry) => (5, entry),
            Self::UniformSenders(entry) => (6, entry),
            Self::Permutation(entry) => (7, entry),
            Self::PermutationGaps(entry) => (8, entry),
            Self::IncastSenders(entry) => (9, entry),
            Self::IncastGaps(entry) => (10, entry),
            Self::StartOffset => (11, 0),
            Self::IncastOnOff(entry) => (12, entry),
            Self::FlowOnOff(entry) => (13, entry),
            Self::Programs(entry) => (14, entry),
            Self::Named(name, entry) => (named(name), entry),
        };
        (kind << 32) | entry as u64
    }
}

/// FNV-1a with the highest bit set, beyond other purposes.
const fn named(name: &str) -> u64 {
    let mut hash: u32 = 0x811c_9dc5;
    let (bytes, mut place) = (name.as_bytes(), 0);
    while place < bytes.len() {
        hash = (hash ^ bytes[place] as u32).wrapping_mul(0x0100_0193);
        place += 1;
    }
    (hash | 1 << 31) as u64
}

/// The stream of `purpose` and `index` (a host or a time slot) under `seed`.
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Stream {
    let key = mix(mix(mix(seed) ^ purpose.key()) ^ index);
    let mut state = [0; 16];
    state[..8].copy_from_slice(&mix(key).to_le_bytes());
    state[8..].copy_from_slice(&mix(key.wrapping_add(GOLDEN)).to_le_bytes());
    Stream::from_seed(state)
}

/// The start of a saturating host after its entry's, random within a message's time: hosts must not inject in lockstep.
pub fn start_offset(seed: u64, host: HostId, message: Bytes, injection: Rate) -> Span {
    let time = injection.span_for(message).as_ps();
    let draw = stream(seed, Purpose::StartOffset, host.index() as u64).next_u32();
    Span::from_ps(((u128::from(time) * u128::from(draw)) >> 32) as u64)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) fn mix(value: u64) -> u64 {
    SplitMix64::nth(value, 0)
}

/// A number below `bound`, all equally likely (Lemire, ACM TOMACS 29:3, 2019). `bound` must not be 0.
#[inline]
pub fn below(stream: &mut Stream, bound: u32) -> u32 {
    let mut product = u64::from(stream.next_u32()) * u64::from(bound);
    if (product as u32) < bound {
        let threshold = bound.wrapping_neg() % bound;
        while (product as u32) < threshold {
            product = u64::from(stream.next_u32()) * u64::from(bound);
        }
    }
    (product >> 32) as u32
}

/// Nearly normal with mean 0 and variance 1, below 6: the sum of twelve uniform numbers less its mean.
pub fn normal(stream: &mut Stream) -> f64 {
    let sum: u64 = (0..12).map(|_| u64::from(stream.next_u32())).sum();
    sum as f64 / (1u64 << 32) as f64 - 6.0
}

/// Exponential with mean 1, in units of 2^-32, by von Neumann's method (1951): no platform's logarithm.
pub fn exponential(stream: &mut Stream) -> u64 {
    let mut whole = 0;
    loop {
        let first = stream.next_u32();
        let mut last = first;
        let mut falling_run = 1;
        loop {
            let next = stream.next_u32();
            if next >= last {
                break;
            }
            last = next;
            falling_run += 1;
        }
        if falling_run % 2 == 1 {
            return (whole << 32) | u64::from(first);
        }
        whole += 1;
    }
}

/// Puts `items` in random order, all orders equally likely (Fisher and Yates).
pub fn shuffle<T>(stream: &mut Stream, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(stream, last as u32 + 1) as usize);
    }
}

/// `count` different numbers below `bound`, in random order; `count` must not exceed `bound`.
pub fn distinct(stream: &mut Stream, count: usize, bound: usize) -> Vec<u32> {
    let mut taken = vec![false; bound];
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let candidate = below(stream, bound as u32);
        if !std::mem::replace(&mut taken[candidate as usize], true) {
            chosen.push(candidate);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_draws_are_uniform() {
        // Chi-square with 12 degrees of freedom: above 32.9 with probability 0.001.
        let mut stream = stream(1, Purpose::Nodes, 0);
        let mut counts = [0_u32; 13];
        let draws = 130_000;
        for _ in 0..draws {
            counts[below(&mut stream, 13) as usize] += 1;
        }
        let expected = f64::from(draws) / 13.0;
        let chi_square: f64 = counts
            .iter()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        assert!(chi_square < 32.9, "{chi_square}");
    }

    #[test]
    fn exponential_has_the_distribution_of_its_name() {
        // Kolmogorov-Smirnov against 1 - e^-x: the distance exceeds 1.95 / sqrt(n) with probability 0.001.
        let mut stream = stream(1, Purpose::UniformGaps(0), 0);
        let n = 100_000;
        let mut sample: Vec<f64> = (0..n)
            .map(|_| exponential(&mut stream) as f64 / f64::from(u32::MAX))
            .collect();
        sample.sort_by(f64::total_cmp);
        let distance = sample
            .iter()
            .enumerate()
            .map(|(rank, &x)| {
                let cdf = -(-x).exp_m1();
                (cdf - rank as f64 / f64::from(n)).abs()
            })
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / f64::from(n).sqrt(), "{distance}");
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let purposes = [
            (1, Purpose::Nodes, 0),
            (2, Purpose::Nodes, 0),
            (1, Purpose::Nodes, 1),
            (1, Purpose::UniformGaps(0), 0),
            (1, Purpose::UniformGaps(1), 0),
            (1, Purpose::UniformDestinations(0), 0),
            (1, Purpose::Named("a.gaps", 0), 0),
            (1, Purpose::Named("a.gaps", 1), 0),
            (1, Purpose::Named("b.gaps", 0), 0),
        ];
        let mut starts: Vec<u64> = purposes
            .iter()
            .map(|&(seed, purpose, index)| stream(seed, purpose, index).next_u64())
            .collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), purposes.len());
    }

    #[test]
    fn distinct_numbers_cover_the_range_when_all_are_wanted() {
        let mut all = distinct(&mut stream(7, Purpose::Roles, 0), 100, 100);
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}

//! Permutations and incasts: who sends to whom.

use proptest::prelude::*;
use silvan_core::document::Limit;
use silvan_core::{Bytes, Sl, Span, Time};
use silvan_workload::traffic::{
    Incast, Load, Pattern, Permutation, Selection, Spacing, Traffic, TrafficSection,
};

use crate::mock::{MockHost, environment, given, host, refs};

fn of(pattern: Pattern) -> Permutation {
    Permutation {
        pattern,
        ..Permutation::default()
    }
}

fn shift(shift: u32) -> Permutation {
    Permutation {
        shift: Some(shift),
        ..of(Pattern::Shift)
    }
}

/// The receiver of every host, as the hosts send.
fn receivers(permutation: Permutation, hosts: usize, seed: u64) -> Vec<usize> {
    let spec = TrafficSection {
        permutation: vec![permutation],
        ..TrafficSection::default()
    };
    let mut traffic = Traffic::new(&spec, &environment(hosts, seed)).unwrap();
    let of_host = |index| {
        let mut mock = MockHost::unthrottled(index);
        mock.send_packets(&mut traffic, 4);
        let dst = mock.log[0].offer.dst;
        assert!(mock.log.iter().all(|sent| sent.offer.dst == dst));
        dst.index()
    };
    (0..hosts).map(of_host).collect()
}

proptest! {
    #[test]
    fn a_random_permutation_is_a_derangement(seed: u64, hosts in 2_usize..200) {
        let mut receivers = receivers(of(Pattern::Random), hosts, seed);
        for (sender, &receiver) in receivers.iter().enumerate() {
            prop_assert_ne!(sender, receiver);
        }
        receivers.sort_unstable();
        prop_assert_eq!(receivers, (0..hosts).collect::<Vec<_>>());
    }
}

#[test]
fn random_derangements_are_equally_likely() {
    // 4 hosts have 9 derangements. Chi-square with 8 degrees of freedom: above 26.1 with
    // probability 0.001.
    let mut counts = std::collections::BTreeMap::new();
    let draws = 1800;
    for seed in 0..draws {
        *counts
            .entry(receivers(of(Pattern::Random), 4, seed))
            .or_insert(0.0) += 1.0;
    }
    assert_eq!(counts.len(), 9);
    let expected = draws as f64 / 9.0;
    let chi_square: f64 = counts
        .values()
        .map(|count: &f64| (count - expected).powi(2) / expected)
        .sum();
    assert!(chi_square < 26.1, "{chi_square}");
}

#[test]
fn shift_and_bit_complement_are_their_formulas() {
    assert_eq!(receivers(shift(3), 5, 0), [3, 4, 0, 1, 2]);
    assert_eq!(receivers(shift(8), 5, 0), [3, 4, 0, 1, 2]);
    let complement: Vec<usize> = (0..16_usize).map(|sender| !sender & 15).collect();
    assert_eq!(receivers(of(Pattern::BitComplement), 16, 0), complement);
    let given = [2, 0, 1];
    let permutation = Permutation {
        to: Some(refs(given)),
        ..of(Pattern::Given)
    };
    assert_eq!(receivers(permutation, 3, 0), given);
}

fn incast(from: Selection, bytes: Limit<Bytes>) -> Traffic {
    let spec = TrafficSection {
        incast: vec![Incast {
            name: Some("into 5".to_owned()),
            from,
            to: host(5).into(),
            bytes,
            load: Load::Saturating,
            spacing: Spacing::default(),
            start: Span::ZERO,
            end: Limit::Unlimited,
            on_off: None,
            message: None,
            sl: Sl::ZERO,
        }],
        ..TrafficSection::default()
    };
    Traffic::new(&spec, &environment(32, 1)).unwrap()
}

/// The hosts that send anything, after checking that it is `bytes` bytes to host 5.
fn senders(mut traffic: Traffic, bytes: u64) -> Vec<usize> {
    let sends = |&index: &usize| {
        let mut mock = MockHost::unthrottled(index);
        mock.run(&mut traffic, Time::MAX);
        assert!(mock.log.iter().all(|sent| sent.offer.dst == host(5)));
        let sent = mock.bytes_of_class(0);
        assert!(sent == 0 || sent == bytes);
        sent > 0
    };
    (0..32).filter(sends).collect()
}

#[test]
fn an_incast_sends_from_the_selected_hosts_to_one() {
    let bytes = Limit::At(Bytes::from_bytes(10_000));
    let all: Vec<usize> = (0..32).filter(|&index| index != 5).collect();
    assert_eq!(senders(incast(Selection::All, bytes), 10_000), all);
    let given = given([9, 2]);
    assert_eq!(senders(incast(given, bytes), 10_000), [2, 9]);
    let random = senders(incast(Selection::Random(12), bytes), 10_000);
    assert_eq!(random.len(), 12);
    assert!(!random.contains(&5));
}

//! Queue pairs never block each other inside a host, and each keeps its order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use silvan_traffic::{NodesSpec, Traffic, TrafficSpec};
use silvan_units::{Bytes, Sl, Span, Time};

use crate::mock::{MTU, MockHost, Weather, environment, host, injection_time, nodes, only_nodes};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Packets carry no message number, so the order shows in their sizes: with messages of two full
    /// packets and a short one, any mix-up within a queue pair breaks the pattern.
    #[test]
    fn messages_of_a_queue_pair_do_not_mix(
        seed: u64,
        throttle_percent in 0_u64..100,
        close_percent in 0_u64..50,
        amnesty_percent in 0_u64..10,
        moves: bool,
    ) {
        let message = 2 * MTU + 904;
        let spec = only_nodes(NodesSpec {
            message: Some(Bytes::from_bytes(message)),
            hotspot_lifetime: moves.then_some(Span::from_us(100)),
            ..nodes(0.0, 0.0, 1.0, 0.5)
        });
        let mut traffic = Traffic::new(&spec, &environment(16, seed)).unwrap();
        let weather = Weather {
            throttle_percent,
            throttle: Span::from_us(200),
            close_percent,
            close: Span::from_us(20),
            amnesty_percent,
        };
        let mut mock = MockHost::new(3, weather, seed);
        mock.run(&mut traffic, Time::ZERO + Span::from_ms(2));
        let mut queue_pairs: BTreeMap<_, u64> = BTreeMap::new();
        for sent in &mock.log {
            let offer = sent.offer;
            let done = queue_pairs.entry((offer.dst, offer.class)).or_default();
            prop_assert_eq!(u64::from(offer.bytes), MTU.min(message - *done));
            *done += u64::from(offer.bytes);
            prop_assert_eq!(offer.last, *done == message);
            *done %= message;
        }
    }
}

#[test]
fn a_throttled_destination_costs_a_v_node_nothing() {
    let spec = only_nodes(nodes(1.0, 0.0, 0.0, 0.0));
    let mut traffic = Traffic::new(&spec, &environment(64, 1)).unwrap();
    let mut mock = MockHost::unthrottled(0);
    for index in 1..9 {
        mock.throttled.insert((host(index), Sl::ZERO), Time::MAX);
    }
    mock.send_packets(&mut traffic, 4000);
    let last = mock.log.last().unwrap();
    assert_eq!(last.at, Time::ZERO + injection_time(MTU) * 3999);
}

#[test]
fn held_back_messages_go_first_and_no_more_of_them_than_the_backlog() {
    let spec = TrafficSpec {
        backlog: 5,
        ..only_nodes(NodesSpec {
            hotspots: silvan_traffic::Hotspots::Random(0),
            ..nodes(1.0, 0.0, 0.0, 0.0)
        })
    };
    let mut traffic = Traffic::new(&spec, &environment(3, 1)).unwrap();
    let mut mock = MockHost::unthrottled(0);
    let release = Time::ZERO + Span::from_us(500);
    mock.throttled.insert((host(1), Sl::ZERO), release);
    mock.run(&mut traffic, release + Span::from_ms(5));
    let before = mock.log.iter().take_while(|sent| sent.at < release);
    assert!(before.clone().all(|sent| sent.offer.dst == host(2)));
    let after = &mock.log[before.count()..];
    // A message to the other host may be in progress; then come the five, whole.
    let rest = usize::from(after[0].offer.dst == host(2));
    let backlog = &after[rest..rest + 10];
    assert!(backlog.iter().all(|sent| sent.offer.dst == host(1)));
    // From then on both destinations are equally likely: four standard deviations.
    let drawn: Vec<bool> = after[rest + 10..]
        .iter()
        .filter(|sent| sent.offer.last)
        .map(|sent| sent.offer.dst == host(1))
        .collect();
    let n = drawn.len() as f64;
    let to_first = drawn.iter().filter(|&&first| first).count() as f64;
    assert!(
        (to_first - n / 2.0).abs() < 4.0 * (n / 4.0).sqrt(),
        "{to_first} of {n}"
    );
}

#[test]
fn a_message_throttled_in_the_middle_lets_others_pass_and_is_finished_first() {
    let spec = only_nodes(nodes(1.0, 0.0, 0.0, 0.0));
    let mut traffic = Traffic::new(&spec, &environment(64, 1)).unwrap();
    let mut mock = MockHost::unthrottled(0);
    mock.send_packets(&mut traffic, 1);
    let first = mock.log[0].offer;
    assert!(!first.last);
    let release = mock.now + Span::from_us(30);
    mock.throttled.insert((first.dst, Sl::ZERO), release);
    mock.run(&mut traffic, release + Span::from_us(10));
    let link_is_full = mock
        .log
        .windows(2)
        .all(|pair| pair[1].at.since(pair[0].at) == injection_time(MTU));
    assert!(link_is_full);
    let second = mock.log[1..]
        .iter()
        .find(|sent| sent.offer.dst == first.dst)
        .unwrap();
    assert!(second.offer.last);
    // At most the rest of the message in progress comes before it.
    assert!(second.at >= release && second.at < release + injection_time(MTU) * 2);
}

#[test]
fn with_all_destinations_throttled_the_host_waits_for_the_earliest() {
    let spec = only_nodes(nodes(1.0, 0.0, 0.0, 0.0));
    let mut traffic = Traffic::new(&spec, &environment(16, 1)).unwrap();
    let mut mock = MockHost::unthrottled(0);
    for index in 1..16 {
        let release = Time::ZERO + Span::from_us(10 + index as u64);
        mock.throttled.insert((host(index), Sl::ZERO), release);
    }
    mock.send_packets(&mut traffic, 1);
    let sent = mock.log[0];
    // It waits for one of those it has drawn, and takes the earliest of them.
    assert_eq!(mock.throttled[&(sent.offer.dst, Sl::ZERO)], sent.at);
}

//! Queue pairs never block each other inside a host, and each keeps its order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use silvan_cc::workload::Workload;
use silvan_core::document::Limit;
use silvan_core::{Bytes, Sl, Span, Time};
use silvan_workload::traffic::{Nodes, Traffic, TrafficSection};

use crate::mock::{
    MTU, MockHost, Sent, Weather, environment, host, injection_time, nodes, only_nodes,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Packets carry no message number, so the order shows in their sizes. With messages of two full packets and a
    /// short packet, any mix-up within a queue pair breaks the pattern.
    #[test]
    fn messages_of_a_queue_pair_do_not_mix(
        seed: u64,
        throttle_percent in 0_u64..100,
        close_percent in 0_u64..50,
        amnesty_percent in 0_u64..10,
        moves: bool,
    ) {
        let message = 2 * MTU + 904;
        let spec = only_nodes(Nodes {
            message: Some(Bytes::from_bytes(message)),
            hotspot_lifetime: match moves {
                true => Limit::At(Span::from_us(100)),
                false => Limit::Unlimited,
            },
            ..nodes(0.0, 0.0, 1.0, 0.5)
        });
        let mut traffic = Traffic::new(&spec, &environment(16, seed)).unwrap();
        let weather = Weather {
            throttle_percent,
            throttle: Span::from_us(200),
            close_percent,
            close: Span::from_us(20),
            amnesty_percent,
            ..Weather::default()
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
    let (first, last) = (mock.log.first().unwrap(), mock.log.last().unwrap());
    assert_eq!(last.at, first.at + injection_time(MTU) * 3999);
}

/// Returns the messages of a V node of three hosts after the release of host 1, without the rest of a message in
/// progress. The host was throttled until its backlog of 5 was full.
fn after_a_full_backlog(seed: u64) -> Vec<Sent> {
    let spec = TrafficSection {
        backlog: 5,
        ..only_nodes(Nodes {
            hotspots: silvan_workload::traffic::Hotspots::Random(0),
            ..nodes(1.0, 0.0, 0.0, 0.0)
        })
    };
    let mut traffic = Traffic::new(&spec, &environment(3, seed)).unwrap();
    let mut mock = MockHost::unthrottled(0);
    let release = Time::ZERO + Span::from_us(500);
    mock.throttled.insert((host(1), Sl::ZERO), release);
    mock.run(&mut traffic, release + Span::from_ms(1));
    let before = mock.log.iter().take_while(|sent| sent.at < release);
    assert!(before.clone().all(|sent| sent.offer.dst == host(2)));
    let after = &mock.log[before.count()..];
    after[usize::from(after[0].offer.dst == host(2))..].to_vec()
}

#[test]
fn held_back_messages_go_first_and_no_more_of_them_than_the_backlog() {
    let mut sixth = Vec::new();
    let (mut drawn, mut to_first) = (0.0, 0.0);
    for seed in 0..16 {
        let after = after_a_full_backlog(seed);
        let (backlog, rest) = after.split_at(10);
        assert!(backlog.iter().all(|sent| sent.offer.dst == host(1)));
        sixth.push(rest[0].offer.dst);
        for sent in rest.iter().filter(|sent| sent.offer.last) {
            drawn += 1.0;
            to_first += f64::from(sent.offer.dst == host(1));
        }
    }
    // From the sixth message on both destinations are equally likely: four standard deviations.
    assert!(sixth.contains(&host(1)) && sixth.contains(&host(2)));
    let deviation = f64::sqrt(drawn / 4.0);
    assert!(
        (to_first - drawn / 2.0).abs() < 4.0 * deviation,
        "{to_first} of {drawn}"
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
    // Only the rest of the message in progress may come before.
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
    // The host waits for drawn destinations, and takes the earliest.
    assert_eq!(mock.throttled[&(sent.offer.dst, Sl::ZERO)], sent.at);
}

#[test]
fn with_hundreds_of_queue_pairs_throttled_in_the_middle_no_new_ones_are_begun() {
    let spec = only_nodes(nodes(1.0, 0.0, 0.0, 0.0));
    let mut traffic = Traffic::new(&spec, &environment(648, 1)).unwrap();
    // Every packet throttles its flow for longer than the run.
    let mut mock = MockHost::unthrottled(0);
    for _ in 0..1000 {
        let sent = mock.log.len();
        assert!(mock.step(&mut traffic) || sent > 0);
        if let Some(last) = mock.log.get(sent) {
            let flow = (last.offer.dst, Sl::ZERO);
            mock.throttled.insert(flow, Time::ZERO + Span::from_ms(900));
        }
        if mock.now > Time::ZERO + Span::from_ms(500) {
            break;
        }
    }
    let destinations: std::collections::BTreeSet<_> =
        mock.log.iter().map(|sent| sent.offer.dst).collect();
    assert_eq!(
        destinations.len(),
        mock.log.len(),
        "no flow sends while throttled"
    );
    assert!(mock.log.len() <= 256, "{}", mock.log.len());
    // A draw of a throttled destination adds no queue, so all but those end up with one.
    assert!(mock.log.len() > 128, "{}", mock.log.len());
}

#[test]
fn an_early_release_counts_once_it_is_told() {
    let v_node = only_nodes(Nodes {
        hotspots: silvan_workload::traffic::Hotspots::Random(0),
        ..nodes(1.0, 0.0, 0.0, 0.0)
    });
    for spec in [v_node, crate::mock::flows(vec![crate::mock::flow(0, 1)])] {
        let mut traffic = Traffic::new(&spec, &environment(2, 1)).unwrap();
        let mut mock = MockHost::unthrottled(0);
        mock.send_packets(&mut traffic, 1);
        mock.throttled.insert((host(1), Sl::ZERO), Time::MAX);
        assert!(!mock.step(&mut traffic), "idle until feedback");
        mock.throttled.clear();
        traffic.on_release_moved(host(0));
        mock.step(&mut traffic);
        assert_eq!(mock.log.len(), 2);
    }
}

proptest! {
    /// The oracle is the host that asks about every flow again: it sends the same packets at the same instants.
    #[test]
    fn what_is_known_of_other_flows_is_what_congestion_control_would_answer(
        seed in 0_u64..1 << 32,
        throttle_percent in prop_oneof![Just(0), 1_u64..80],
        throttle_us in 1_u64..300,
        pardon_percent in 0_u64..60,
        dry_percent in 0_u64..40,
        p in prop::sample::select(vec![0.0, 0.4]),
    ) {
        let spec = only_nodes(nodes(0.0, 0.0, 1.0, p));
        let weather = Weather {
            throttle_percent,
            throttle: Span::from_us(throttle_us),
            pardon_percent,
            dry_percent,
            ..Weather::default()
        };
        // A packet that is sent holds its flow back.
        let keeps_lanes = throttle_percent == 0;
        let sent = [(false, false), (true, false), (true, keeps_lanes)].map(|(tells_what, keeps)| {
            let mut traffic = Traffic::new(&spec, &environment(48, seed)).unwrap();
            let mut mock = MockHost::new(0, weather, seed);
            (mock.tells_what, mock.keeps_lanes) = (tells_what, keeps);
            while mock.log.len() < 600 {
                if !mock.step(&mut traffic) {
                    mock.fill_lanes(&mut traffic);
                }
            }
            mock.log
        });
        prop_assert_eq!(&sent[0], &sent[1]);
        prop_assert_eq!(&sent[0], &sent[2]);
    }
}

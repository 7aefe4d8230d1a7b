//! Explicit flows: bytes, windows, and how a host serves several.

use proptest::prelude::*;
use silvan_core::document::Limit;
use silvan_core::{Bytes, Sl, Span, Time};
use silvan_workload::traffic::{Flow, Incast, Load, Spacing, Traffic, TrafficSection, Uniform};

use crate::mock::{
    MTU, MockHost, Weather, environment, flow, flows, given, host, injection, injection_time,
    only_nodes,
};

fn build(spec: &TrafficSection) -> Traffic {
    Traffic::new(spec, &environment(8, 1)).unwrap()
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_flow_sends_exactly_its_bytes_in_messages(
        seed: u64, bytes in 1_u64..200_000, message in 1_u64..20_000,
    ) {
        let spec = flows(vec![Flow {
            bytes: Limit::At(Bytes::from_bytes(bytes)),
            message: Some(Bytes::from_bytes(message)),
            ..flow(0, 1)
        }]);
        let mut traffic = build(&spec);
        let weather = Weather {
            throttle_percent: 30,
            throttle: Span::from_us(5),
            close_percent: 30,
            close: Span::from_us(5),
            amnesty_percent: 5,
            ..Weather::default()
        };
        let mut mock = MockHost::new(0, weather, seed);
        mock.run(&mut traffic, Time::MAX);
        let mut sizes = Vec::new();
        let mut open = 0;
        for sent in &mock.log {
            open += u64::from(sent.offer.bytes);
            if sent.offer.last {
                sizes.push(std::mem::take(&mut open));
            }
        }
        // Whole messages, then what is left over.
        let mut expected = vec![message; (bytes / message) as usize];
        expected.extend(Some(bytes % message).filter(|&rest| rest > 0));
        prop_assert_eq!(sizes, expected);
        prop_assert_eq!(open, 0);
        let packets: u64 = (0..bytes / message).map(|_| message.div_ceil(MTU)).sum::<u64>()
            + (bytes % message).div_ceil(MTU);
        prop_assert_eq!(mock.log.len() as u64, packets);
    }
}

#[test]
fn a_flow_starts_and_ends_on_time() {
    let mut traffic = build(&flows(vec![Flow {
        start: Span::from_us(10),
        end: Limit::At(Span::from_us(20)),
        ..flow(0, 1)
    }]));
    let mut mock = MockHost::unthrottled(0);
    mock.run(&mut traffic, Time::MAX);
    assert_eq!(mock.log[0].at, at_us(10));
    let starts = mock.log.chunks_exact(2).map(|message| message[0].at);
    assert!(starts.clone().all(|start| start < at_us(20)));
    // Back to back: one message per message time, the last one started before the end.
    let expected = Span::from_us(10)
        .as_ps()
        .div_ceil((injection_time(MTU) * 2).as_ps());
    assert_eq!(starts.count() as u64, expected);
    assert!(
        mock.log.last().unwrap().offer.last,
        "a started message is finished"
    );
}

#[test]
fn flows_of_one_host_take_turns() {
    let three = vec![flow(0, 1), flow(0, 2), flow(0, 3)];
    let mut traffic = build(&flows(three));
    let mut mock = MockHost::unthrottled(0);
    mock.send_packets(&mut traffic, 300);
    for (number, sent) in mock.log.iter().enumerate() {
        assert_eq!(sent.offer.class as usize, number % 3);
    }
}

#[test]
fn a_throttled_flow_and_a_lane_without_credits_leave_the_others_alone() {
    let other_lane = Flow {
        sl: Sl::try_new(1).unwrap(),
        ..flow(0, 3)
    };
    let mut traffic = build(&flows(vec![flow(0, 1), flow(0, 2), other_lane.clone()]));
    let mut mock = MockHost::unthrottled(0);
    mock.throttled.insert((host(1), Sl::ZERO), Time::MAX);
    mock.closed.insert(other_lane.sl, at_us(50));
    mock.run(&mut traffic, at_us(100));
    let packets = at_us(100)
        .since(Time::ZERO)
        .as_ps()
        .div_ceil(injection_time(MTU).as_ps());
    assert_eq!(mock.log.len() as u64, packets, "the link is never idle");
    let after = |class: u16, from: Time| {
        let of_class = mock.log.iter().filter(|sent| sent.offer.class == class);
        of_class.filter(|sent| sent.at >= from).count() as i64
    };
    assert_eq!(after(0, Time::ZERO), 0);
    assert_eq!(after(2, Time::ZERO), after(2, at_us(50)));
    assert!((after(1, at_us(50)) - after(2, at_us(50))).abs() <= 1);
}

#[test]
fn a_host_is_part_of_several_entries_at_once() {
    let nodes = crate::mock::nodes(1.0, 0.0, 0.0, 0.0);
    let spec = TrafficSection {
        flow: vec![flow(0, 1)],
        ..only_nodes(nodes)
    };
    let mut traffic = build(&spec);
    assert_eq!(traffic.classes(), ["v", "flow-1"]);
    let mut mock = MockHost::unthrottled(0);
    mock.send_packets(&mut traffic, 200);
    assert_eq!(mock.bytes_of_class(0), 100 * MTU);
    assert_eq!(mock.bytes_of_class(1), 100 * MTU);
    let offered = traffic.offered_load(host(0), Time::ZERO);
    assert!((offered - 2.0 * injection().bits_per_sec() as f64).abs() < 1.0);
}

#[test]
fn destinations_are_receivers_and_targets_of_incasts_are_listed() {
    let mut spec = flows(vec![flow(0, 1)]);
    spec.incast.push(Incast {
        name: None,
        from: given([0, 3]),
        to: host(2).into(),
        bytes: Limit::Unlimited,
        load: Load::Saturating,
        spacing: Spacing::default(),
        start: Span::ZERO,
        end: Limit::Unlimited,
        on_off: None,
        message: None,
        sl: Sl::ZERO,
    });
    let traffic = build(&spec);
    assert_eq!(traffic.targets(), [host(2)]);
    let receivers: Vec<_> = (0..4).map(|index| traffic.receives(host(index))).collect();
    assert_eq!(receivers, [false, true, true, false]);
}

#[test]
fn the_only_sender_of_uniform_traffic_receives_nothing() {
    let uniform = |from: Vec<usize>| TrafficSection {
        uniform: vec![Uniform {
            name: None,
            from: given(from),
            load: Load::Saturating,
            spacing: Spacing::default(),
            start: Span::ZERO,
            end: Limit::Unlimited,
            message: None,
            sl: Sl::ZERO,
        }],
        ..TrafficSection::default()
    };
    let receives = |spec: &TrafficSection| {
        let traffic = build(spec);
        (0..4)
            .map(|index| traffic.receives(host(index)))
            .collect::<Vec<_>>()
    };
    assert_eq!(receives(&uniform(vec![1])), [true, false, true, true]);
    assert_eq!(receives(&uniform(vec![1, 3])), [true; 4]);
}

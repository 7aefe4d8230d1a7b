//! Flows that start and stop while the hosts send.

use silvan_core::document::Limit;
use silvan_core::{HostId, Rate, Sl, Span, Time};
use silvan_workload::traffic::{Flow, Load, Selection, Spacing, Traffic, TrafficSection, Uniform};

use crate::mock::{MTU, MockHost, Weather, environment, flow, flows, host, injection_time};

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn mbit(rate: u64) -> Load {
    Load::Rate(Rate::from_bits_per_sec(rate * 1_000_000).unwrap())
}

fn sent_to(mock: &MockHost, destination: usize, from: Time, to: Time) -> u64 {
    let inside = mock
        .log
        .iter()
        .filter(|sent| from <= sent.at && sent.at < to);
    inside
        .filter(|sent| sent.offer.dst == host(destination))
        .count() as u64
}

#[test]
fn classes_stop_and_go_on_by_themselves() {
    let environment = environment(4, 1);
    let spec = flows(vec![flow(0, 1), flow(0, 2)]);
    let mut traffic = Traffic::new(&spec, &environment).unwrap();
    let mut mock = MockHost::new(0, Weather::default(), 1);
    let packet = injection_time(MTU);
    let in_100_us = Span::from_us(100).as_ps() / packet.as_ps();
    let near =
        |count: u64, expected: u64| assert!(count.abs_diff(expected) <= 2, "{count} {expected}");

    mock.run(&mut traffic, us(100));
    near(sent_to(&mock, 1, us(0), us(100)), in_100_us / 2);
    near(sent_to(&mock, 2, us(0), us(100)), in_100_us / 2);

    // The other flow has the host to itself.
    assert_eq!(traffic.stop(0), [host(0)]);
    assert_eq!(traffic.stop(0), []);
    assert!(!traffic.is_running(0) && traffic.is_running(1));
    mock.run(&mut traffic, us(200));
    assert_eq!(sent_to(&mock, 1, us(100), us(200)), 0);
    near(sent_to(&mock, 2, us(100), us(200)), in_100_us);

    // A new one next to it, which stays within its rate: 2.7 of 13.5 Gbit/s.
    let added = Flow {
        load: mbit(2_700),
        start: us(200).since(Time::ZERO),
        end: Limit::Unlimited,
        ..flow(0, 3)
    };
    let class = traffic.add_flow(&added, None, &environment).unwrap();
    assert_eq!(traffic.classes()[usize::from(class)], "flow-3");
    traffic.stop(1);
    mock.run(&mut traffic, us(300));
    near(sent_to(&mock, 3, us(200), us(300)), in_100_us / 5);

    // A stopped flow continues, also behind a flow that came later.
    assert_eq!(traffic.resume(0, us(300)), [host(0)]);
    assert_eq!(traffic.resume(0, us(300)), []);
    traffic.stop(class);
    mock.run(&mut traffic, us(400));
    // The mock asks again only when the paced flow's next message would have come.
    assert!(sent_to(&mock, 1, us(310), us(400)) >= in_100_us * 9 / 10 - 1);
    assert_eq!(sent_to(&mock, 3, us(300), us(400)), 0);

    // A paced flow does not make up for the time in which it was stopped.
    traffic.stop(0);
    traffic.resume(class, us(400));
    mock.run(&mut traffic, us(500));
    near(sent_to(&mock, 3, us(400), us(500)), in_100_us / 5);
}

#[test]
fn a_class_of_many_hosts_stops_at_all_of_them() {
    let uniform = Uniform {
        name: Some("background".into()),
        from: Selection::Random(3),
        load: Load::Fraction(0.5),
        spacing: Spacing::Poisson,
        start: Span::ZERO,
        end: Limit::Unlimited,
        message: None,
        sl: Sl::ZERO,
    };
    let spec = TrafficSection {
        uniform: vec![uniform],
        ..flows(vec![flow(0, 1)])
    };
    let mut traffic = Traffic::new(&spec, &environment(6, 3)).unwrap();
    let stopped: Vec<HostId> = traffic.stop(0);
    assert_eq!(stopped.len(), 3);
    assert!(!traffic.is_running(0) && traffic.is_running(1));
    assert_eq!(traffic.resume(0, us(1)), stopped);
}

#[test]
fn impossible_flows_are_refused_and_leave_nothing_behind() {
    let environment = environment(4, 1);
    let mut traffic = Traffic::new(&flows(vec![flow(0, 1)]), &environment).unwrap();
    let mut refused = |flow: Flow| {
        let error = traffic.add_flow(&flow, None, &environment).unwrap_err();
        assert_eq!(traffic.classes(), ["flow-1"]);
        error.to_string()
    };
    assert!(refused(flow(2, 2)).contains("send to itself"));
    assert!(refused(flow(2, 9)).contains("outside the fabric"));
    let fast = Flow {
        load: mbit(14_000),
        ..flow(0, 1)
    };
    assert!(refused(fast).contains("more than the injection rate"));
    let named = Flow {
        name: Some("flow-1".into()),
        ..flow(0, 2)
    };
    assert!(refused(named).contains("taken"));
}

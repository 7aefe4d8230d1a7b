//! Offered loads, and the theoretical maximum of gran2012.

use silvan_core::document::Limit;
use silvan_core::{Rate, Sl, Span, Time};
use silvan_workload::traffic::{
    Flow, Load, Nodes, Selection, Spacing, Traffic, TrafficSection, Uniform,
};

use crate::mock::{MockHost, environment, flow, flows, host, injection, nodes, only_nodes};

fn tmax(nodes: Nodes) -> f64 {
    let traffic = Traffic::new(&only_nodes(nodes), &environment(648, 1)).unwrap();
    traffic.tmax(Time::ZERO) / 1e9
}

fn close(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.005
}

#[test]
fn tmax_is_the_papers() {
    // Table II: 20 % V nodes.
    assert!(close(tmax(nodes(0.2, 0.8, 0.0, 0.0)), 2.7));
    // Fig. 5: 25 % B nodes, of the others 20 % V; p = 0.
    assert!(close(tmax(nodes(0.15, 0.6, 0.25, 0.0)), 5.4));
    // At p = 60 %: 13.5 * (0.15 + 0.25 * 0.4); Fig. 8 at p = 90 %: 13.5 * 0.1.
    assert!(close(tmax(nodes(0.15, 0.6, 0.25, 0.6)), 3.375));
    assert!(close(tmax(nodes(0.0, 0.0, 1.0, 0.9)), 1.35));
}

#[test]
fn tmax_is_what_the_nodes_send_when_nothing_blocks() {
    // 16 hosts, few enough that own traffic and hotspots among the senders count.
    let spec = only_nodes(nodes(0.25, 0.5, 0.25, 0.3));
    let mut traffic = Traffic::new(&spec, &environment(16, 3)).unwrap();
    let end = Time::ZERO + Span::from_ms(20);
    let mut received = [0.0; 16];
    for index in 0..16 {
        let mut mock = MockHost::unthrottled(index);
        mock.run(&mut traffic, end);
        for sent in &mock.log {
            let name = &traffic.classes()[sent.offer.class as usize];
            if name == "v" || name == "b-uniform" {
                received[sent.offer.dst.index()] += f64::from(sent.offer.bytes) * 8.0;
            }
        }
    }
    let hotspots = traffic.hotspots(Time::ZERO);
    let others = (0..16).filter(|&index| !hotspots.contains(&host(index)));
    let mean = others.map(|index| received[index]).sum::<f64>() / 8.0;
    let rate = mean / end.as_secs_f64();
    // Some 65,000 messages, half of them to the eight others: 2 % are five standard deviations.
    assert!(
        (rate / traffic.tmax(Time::ZERO) - 1.0).abs() < 0.02,
        "{rate}"
    );
}

fn uniform(load: Load, spacing: Spacing) -> Traffic {
    let entry = Uniform {
        name: None,
        from: Selection::All,
        load,
        spacing,
        start: Span::ZERO,
        end: Limit::Unlimited,
        message: None,
        sl: Sl::ZERO,
    };
    let spec = TrafficSection {
        uniform: vec![entry],
        ..TrafficSection::default()
    };
    Traffic::new(&spec, &environment(16, 3)).unwrap()
}

/// Bits per second that host 2 sends in 50 ms.
fn measured(traffic: &mut Traffic) -> f64 {
    let end = Time::ZERO + Span::from_ms(50);
    let mut mock = MockHost::unthrottled(2);
    mock.run(traffic, end);
    mock.bytes_of_class(0) as f64 * 8.0 / end.as_secs_f64()
}

#[test]
fn uniform_sources_offer_their_load() {
    let half = injection().bits_per_sec() as f64 / 2.0;
    let messages = half * 0.05 / (4096.0 * 8.0);
    let mut poisson = uniform(Load::Fraction(0.5), Spacing::Poisson);
    assert!((poisson.offered_load(host(2), Time::ZERO) - half).abs() < 1.0);
    assert!((poisson.tmax(Time::ZERO) - half).abs() < 1.0);
    // The number of Poisson arrivals has the variance of its mean: four standard deviations.
    let deviation = 4.0 / messages.sqrt();
    assert!((measured(&mut poisson) / half - 1.0).abs() < deviation);
    let rate = Rate::from_bits_per_sec(half as u64).unwrap();
    let mut periodic = uniform(Load::Rate(rate), Spacing::Periodic);
    assert!((measured(&mut periodic) / half - 1.0).abs() < 1.5 / messages);
    let mut full = uniform(Load::Fraction(1.0), Spacing::Poisson);
    assert!((measured(&mut full) / (2.0 * half) - 1.0).abs() < 1.0 / messages);
}

#[test]
fn periodic_hosts_have_phases_of_their_own() {
    let mut traffic = uniform(Load::Fraction(0.1), Spacing::Periodic);
    let mut firsts: Vec<Time> = (0..16)
        .map(|index| {
            let mut mock = MockHost::unthrottled(index);
            mock.send_packets(&mut traffic, 1);
            mock.log[0].at
        })
        .collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 16);
}

#[test]
fn a_flow_with_a_rate_starts_its_messages_on_schedule() {
    let rate = Rate::from_bits_per_sec(2_000_000_000).unwrap();
    let mut traffic = Traffic::new(
        &flows(vec![Flow {
            load: Load::Rate(rate),
            start: Time::from_ps(777).since(Time::ZERO),
            end: Limit::Unlimited,
            on_off: None,
            ..flow(0, 1)
        }]),
        &environment(8, 1),
    )
    .unwrap();
    let mut mock = MockHost::unthrottled(0);
    mock.send_packets(&mut traffic, 2000);
    for (number, message) in mock.log.chunks_exact(2).enumerate() {
        // 4096 bytes at 2 Gbit/s take 16.384 us exactly.
        let due = Time::from_ps(777) + Span::from_ns(16_384) * number as u64;
        assert_eq!(message[0].at, due);
    }
}

#[test]
fn what_could_not_leave_in_time_follows_at_full_speed() {
    let mut traffic = uniform(Load::Fraction(0.5), Spacing::Periodic);
    let mut mock = MockHost::unthrottled(2);
    let ms = Span::from_ms(1);
    mock.closed.insert(Sl::ZERO, Time::ZERO + ms);
    mock.run(&mut traffic, Time::ZERO + ms * 3);
    // Half of 1 ms waits, and half of the traffic until then arrives meanwhile: the queue is empty
    // some messages from 2 ms, and all 3 ms are sent at the end.
    let busy_until_empty = mock
        .log
        .windows(2)
        .filter(|pair| pair[1].at < Time::ZERO + Span::from_us(1980))
        .all(|pair| pair[1].at.since(pair[0].at) == crate::mock::injection_time(2048));
    assert!(busy_until_empty);
    let expected = injection().bits_per_sec() as f64 / 16.0 * 3e-3;
    assert!((mock.bytes_of_class(0) as f64 - expected).abs() <= 2.0 * 4096.0);
}

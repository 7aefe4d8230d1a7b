//! B nodes: chance chooses the class, the share of time caps it (gran2012, Frame I).

use proptest::prelude::*;
use silvan_core::document::Limit;
use silvan_core::{Span, Time};
use silvan_workload::traffic::Traffic;

use crate::mock::{
    MockHost, Weather, class, environment, host, injection, injection_time, nodes, only_nodes,
};

const HOSTS: usize = 64;
const MESSAGE: u64 = 4096;

fn b_traffic(p: f64, catch_up: Limit<Span>, run_ahead: Option<Span>, seed: u64) -> Traffic {
    let spec = only_nodes(silvan_workload::traffic::Nodes {
        catch_up,
        run_ahead,
        ..nodes(0.0, 0.0, 1.0, p)
    });
    Traffic::new(&spec, &environment(HOSTS, seed)).unwrap()
}

/// Bytes that the injection rate allows in `span`.
fn bytes_in(span: Span) -> f64 {
    injection().bits_per_sec() as f64 / 8.0 * span.as_secs_f64()
}

fn since_start(time: Time) -> Span {
    time.since(Time::ZERO)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_class_never_exceeds_its_share_of_time(
        seed: u64,
        p in 0.01_f64..0.99,
        run_ahead_us in 0_u64..40,
        catch_up_us in proptest::option::of(0_u64..200),
        throttle_percent in 0_u64..100,
        close_percent in 0_u64..30,
    ) {
        let run_ahead = Span::from_us(run_ahead_us);
        let catch_up = catch_up_us.map_or(Limit::Unlimited, |us| Limit::At(Span::from_us(us)));
        let mut traffic = b_traffic(p, catch_up, Some(run_ahead), seed);
        let shares = [
            (class(&traffic, "b-hot"), p),
            (class(&traffic, "b-uniform"), 1.0 - p),
        ];
        let weather = Weather {
            throttle_percent,
            throttle: Span::from_us(300),
            close_percent,
            close: Span::from_us(50),
            amnesty_percent: 1,
            ..Weather::default()
        };
        let mut mock = MockHost::new(5, weather, seed);
        mock.run(&mut traffic, Time::ZERO + Span::from_ms(3));
        for (class, share) in shares {
            let mut sent = 0;
            for packet in mock.log.iter().filter(|packet| packet.offer.class == class) {
                sent += packet.offer.bytes;
                let cap = share * bytes_in(since_start(packet.at))
                    + bytes_in(run_ahead)
                    + MESSAGE as f64;
                // Half a byte for the rounding of the oracle itself.
                prop_assert!(f64::from(sent) <= cap + 0.5, "{} > {} at {}", sent, cap, packet.at);
            }
        }
    }

    #[test]
    fn nothing_throttled_means_no_idle_link(seed: u64, p in 0.01_f64..0.99) {
        let mut traffic = b_traffic(p, Limit::Unlimited, None, seed);
        let mut mock = MockHost::unthrottled(5);
        mock.send_packets(&mut traffic, 2000);
        // The first packet comes at a random phase within the time of a message.
        let first = mock.log[0].at;
        prop_assert!(since_start(first) < injection_time(2048) * 2);
        for (number, packet) in mock.log.iter().enumerate() {
            prop_assert_eq!(packet.at, first + injection_time(2048) * number as u64);
        }
    }
}

/// Returns true for each message of an unthrottled B node that goes to the hotspot.
fn hot_messages(traffic: &mut Traffic, of: usize, messages: usize) -> Vec<bool> {
    let hot = class(traffic, "b-hot");
    let mut mock = MockHost::unthrottled(of);
    mock.send_packets(traffic, messages * 2);
    let last = mock.log.iter().filter(|sent| sent.offer.last);
    last.map(|sent| sent.offer.class == hot).collect()
}

#[test]
fn without_caps_the_classes_are_bernoulli_trials() {
    let (p, n) = (0.3, 50_000);
    let mut traffic = b_traffic(p, Limit::Unlimited, Some(Span::from_secs(1)), 11);
    let hot = hot_messages(&mut traffic, 5, n);
    let n = n as f64;
    let count = hot.iter().filter(|&&hot| hot).count() as f64;
    let deviation = (n * p * (1.0 - p)).sqrt();
    assert!((count - n * p).abs() < 4.0 * deviation, "{count}");
    // Neighbours differ with probability 2 p (1 - p), which trains of one class would change.
    let switches = hot.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let q = 2.0 * p * (1.0 - p);
    let deviation = (n * q * (1.0 - q)).sqrt();
    assert!((switches - n * q).abs() < 5.0 * deviation, "{switches}");
}

#[test]
fn caps_keep_the_share_within_the_run_ahead() {
    let mut traffic = b_traffic(0.3, Limit::Unlimited, None, 11);
    let hot = hot_messages(&mut traffic, 5, 20_000);
    let mut count = 0;
    for (number, &hot) in hot.iter().enumerate() {
        count += u32::from(hot);
        // Eight messages of run-ahead and one that overdraws, for this class or the other.
        let excess = f64::from(count) - 0.3 * (number + 1) as f64;
        assert!(excess.abs() <= 9.0, "{excess} after {number}");
    }
}

#[test]
fn hosts_are_not_in_lockstep() {
    let p = 0.5;
    let mut traffic = b_traffic(p, Limit::Unlimited, None, 3);
    let sequences: Vec<Vec<bool>> = (0..HOSTS)
        .map(|of| hot_messages(&mut traffic, of, 400))
        .collect();
    let deviation = (HOSTS as f64 * p * (1.0 - p)).sqrt();
    for number in 0..400 {
        let hot = sequences.iter().filter(|hot| hot[number]).count() as f64;
        assert!(
            (hot - HOSTS as f64 * p).abs() < 5.0 * deviation,
            "{hot} at {number}"
        );
    }
}

/// Returns the uniform bytes of a B node at p = 0.75, relative to a host's injection in 1 ms. The
/// node has no credits for 1 ms and can then use its uniform class alone for 1 ms.
fn uniform_after_a_blocked_ms(catch_up: Limit<Span>) -> f64 {
    let ms = Span::from_ms(1);
    let mut traffic = b_traffic(0.75, catch_up, None, 4);
    let uniform = class(&traffic, "b-uniform");
    let mut mock = MockHost::unthrottled(5);
    let sl = silvan_core::Sl::ZERO;
    for hotspot in traffic.hotspots(Time::ZERO) {
        mock.throttled.insert((hotspot, sl), Time::MAX);
    }
    mock.closed.insert(sl, Time::ZERO + ms);
    mock.run(&mut traffic, Time::ZERO + ms * 2);
    assert_eq!(mock.bytes_of_class(class(&traffic, "b-hot")), 0);
    mock.bytes_of_class(uniform) as f64 / bytes_in(ms)
}

#[test]
fn catch_up_decides_what_a_blocked_class_may_make_up_for() {
    // The claim is a quarter of 2 ms, or of 1 ms and the 0.1 ms before. Run-ahead, the last message
    // and messages held back for throttled hotspots are at most 25 messages.
    let slack = 25.0 * MESSAGE as f64 / bytes_in(Span::from_ms(1));
    let unlimited = uniform_after_a_blocked_ms(Limit::Unlimited);
    assert!((unlimited - 0.5).abs() < slack, "{unlimited}");
    let bounded = uniform_after_a_blocked_ms(Limit::At(Span::from_us(100)));
    assert!((bounded - 0.275).abs() < slack, "{bounded}");
}

#[test]
fn a_throttled_hotspot_leaves_the_uniform_class_its_share_and_no_more() {
    let p = 0.6;
    let mut traffic = b_traffic(p, Limit::Unlimited, None, 9);
    let (hot, uniform) = (class(&traffic, "b-hot"), class(&traffic, "b-uniform"));
    let mut mock = MockHost::unthrottled(5);
    for hotspot in traffic.hotspots(Time::ZERO) {
        let flow = (hotspot, silvan_core::Sl::ZERO);
        mock.throttled.insert(flow, Time::MAX);
    }
    let end = Time::ZERO + Span::from_ms(20);
    mock.run(&mut traffic, end);
    assert_eq!(mock.bytes_of_class(hot), 0);
    let share = mock.bytes_of_class(uniform) as f64 / bytes_in(since_start(end));
    // Draws for the 8 throttled of 63 destinations count as offered but cannot leave until their
    // backlog of 64 each is full.
    let held = 8.0 * 64.0 * MESSAGE as f64 / bytes_in(since_start(end));
    assert!(
        share <= 1.0 - p + 0.001 && share >= 1.0 - p - held,
        "{share}"
    );
    assert_eq!(traffic.role(host(5)), silvan_workload::traffic::Role::B);
}

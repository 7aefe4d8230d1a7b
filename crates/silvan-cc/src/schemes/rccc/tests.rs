#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;
use silvan_core::Sl;

use super::super::flows::tests::{PACKET, at, flow, setup};
use super::*;

/// 1,000 bytes a packet, and windows of so many.
fn credits(window: u64, order: Order) -> Credits {
    let rccc = Rccc {
        window: Some(Bytes::from_bytes(window * 1_000)),
        order,
        ..Rccc::default()
    };
    let hosts = Setup {
        hosts: 9,
        ..setup()
    };
    rccc.build(&hosts).unwrap().1
}

fn from(source: usize) -> Flow {
    Flow {
        source: HostId::new(source),
        destination: HostId::new(0),
        sl: Sl::ZERO,
        queue: 0,
    }
}

fn packet(sent: Time, behind: u32) -> Arrival {
    Arrival {
        payload: 1_000,
        marked: false,
        last: behind == 0,
        sent,
        behind,
        takes: PACKET,
    }
}

/// The pulls after an arrival.
fn received(credits: &mut Credits, now: Time, flow: Flow, arrival: Arrival) -> Vec<Grant> {
    let mut grants = Grants::default();
    credits.on_receive(now, flow, arrival, &mut grants);
    grants.drain().collect()
}

/// Pulls of one instant have no order: what they grant together makes the rate.
#[test]
fn pulls_of_one_instant_may_come_in_any_order() {
    let rate = |pulls: [u32; 2]| {
        let mut credits = credits(1, Order::RoundRobin);
        credits.on_send(at(1), flow(), PACKET, 3_500);
        credits.on_grant(at(2), flow(), 1_000);
        for pull in pulls {
            credits.on_grant(at(4), flow(), pull);
        }
        let limits = credits.flow_limits(at(4), flow().source);
        limits.iter().map(|limit| limit.rate).collect::<Vec<_>>()
    };
    assert_eq!(rate([1_000, 500]), rate([500, 1_000]));
    assert_eq!(rate([1_000, 500]), rate([1_500, 0]));
    assert!(!rate([1_000, 500]).is_empty());
}

#[test]
fn a_flow_sends_its_window_and_waits_for_pulls() {
    let mut credits = credits(3, Order::RoundRobin);
    for _ in 0..3 {
        assert_eq!(credits.release(at(1), flow()), at(1));
        credits.on_send(at(1), flow(), PACKET, 1_000);
    }
    assert_eq!(credits.release(at(1), flow()), Time::MAX);
    assert!(credits.on_grant(at(2), flow(), 1_000));
    assert!(!credits.on_grant(at(2), flow(), 1_000));
    assert_eq!(credits.credit(flow()), Some(2_000));
}

#[test]
fn pulls_leave_at_their_part_of_the_links_rate() {
    let mut credits = credits(1, Order::RoundRobin);
    // All packets arrive at once and use their windows, so each is pulled, for any horizon. No pulls before: there is
    // time for unrequested packets.
    let pulls: Vec<_> = (1..9)
        .flat_map(|host| received(&mut credits, at(5), from(host), packet(at(4), 9_000)))
        .collect();
    let gap = (80_000.0_f64 / 0.99).round() as u64;
    let expected: Vec<_> = (0..8)
        .map(|place| (place + 1, at(5) + Span::from_ps(place as u64 * gap)))
        .collect();
    let found: Vec<_> = pulls
        .iter()
        .map(|pull| (pull.source.index(), pull.at))
        .collect();
    assert_eq!(found, expected);
}

/// Four windows of eight packets arrive at the rate of the link. Before the windows are in, only pulls that fit into
/// the base round trip ahead have time.
#[test]
fn a_burst_of_windows_is_let_in_before_more_is_pulled() {
    let mut credits = credits(8, Order::RoundRobin);
    credits.rules.horizon = Span::from_ns(161);
    credits.receivers[0].spare = Span::ZERO;
    credits.receivers[0].next = at(1);
    let mut now = at(1);
    let mut pulled = Vec::new();
    for number in 1..=8 {
        for host in 1..=4 {
            let arrival = packet(at(0), 50_000);
            let pulls = received(&mut credits, now, from(host), arrival);
            pulled.extend(pulls.iter().map(|_| number));
            now += PACKET;
        }
    }
    // The base round trip ahead has room for one pull in addition to the arrived packet. Of the other flows, each is
    // pulled at its end.
    assert_eq!(pulled, [1, 8, 8, 8]);
}

/// Marked packets of ten windows bring the rate down to a hundredth, at which the pulls of a thousand flows without credit
/// would fill eight milliseconds. None is sent for later than when the rate is whole again, and one at least is sent.
#[test]
fn marks_hold_no_pull_back_for_longer_than_the_rate_takes_to_be_whole() {
    let mut credits = credits(1, Order::RoundRobin);
    credits.rules.marks = true;
    let interval = Span::from_ps(credits.rules.horizon.as_ps() * 3 / 2 + 1);
    let marked = Arrival {
        marked: true,
        ..packet(at(0), 9_000)
    };
    let mut now = at(1);
    for number in 0..40 {
        received(&mut credits, now, from(1 + number % 10), marked);
        now += interval;
    }
    assert!(credits.pull_rate(HostId::new(0)) < 0.011);
    let pulls: Vec<_> = (11..1_011)
        .flat_map(|host| received(&mut credits, now, from(host), marked))
        .collect();
    let whole = marks::whole_after(credits.rules.horizon);
    let last = pulls.iter().map(|pull| pull.at).max().unwrap();
    assert!(now < last && last <= now + whole, "{last:?}");
    // The packet that it brings finds the rate whole, and a base round trip's pulls are sent.
    let horizon = credits.rules.horizon;
    let pulls = received(&mut credits, last + horizon, from(11), packet(now, 9_000));
    let expected = horizon.as_ps() as f64 / (80_000.0 / 0.99);
    assert!(
        (pulls.len() as f64 - expected).abs() <= 2.0,
        "{} {expected}",
        pulls.len()
    );
}

#[test]
fn a_flow_at_rest_gets_its_window_back() {
    let mut credits = credits(8, Order::RoundRobin);
    for number in 0..8 {
        let behind = (7 - number) * 1_000;
        received(&mut credits, at(1), flow(), packet(at(0), behind));
    }
    assert_eq!(credits.owed(flow()), Some(0));
}

/// Three flows that have the same credit, and 5, 2 and 9 packets more behind it.
#[test]
fn the_shortest_backlog_is_pulled_first() {
    for (order, expected) in [
        (Order::RoundRobin, [1, 2, 3, 1, 2, 3]),
        (Order::ShortestFirst, [2, 2, 1, 1, 1, 1]),
    ] {
        let mut credits = credits(50, order);
        for (host, behind) in [(1, 50_000), (2, 47_000), (3, 54_000)] {
            for _ in 0..5 {
                // No pull before all have reported.
                credits.receivers[0].next = at(100);
                credits.receivers[0].spare = Span::ZERO;
                let arrival = packet(at(0), behind);
                assert_eq!(received(&mut credits, at(1), from(host), arrival), []);
            }
        }
        // Time for the last packet and for six pulls: six gaps.
        credits.receivers[0].next = at(100);
        credits.receivers[0].spare = Span::ZERO;
        let until = at(100) + Span::from_ns(6 * 81);
        let now = until.saturating_sub(credits.rules.horizon);
        let pulls = received(&mut credits, now, from(4), packet(at(0), 0));
        let sources: Vec<_> = pulls.iter().map(|pull| pull.source.index()).collect();
        assert_eq!(sources, expected, "{order:?}");
    }
}

/// A fabric in which packets and pulls of a flow keep their order and take the given times.
struct Fabric {
    credits: Credits,
    now: Time,
    /// Messages not sent yet, in bytes, by sender.
    waiting: [u32; 9],
    packets: Vec<(Time, Flow, Arrival)>,
    pulls: Vec<(Time, Grant)>,
    /// Marks of the packets, in turn.
    marks: std::iter::Cycle<std::vec::IntoIter<bool>>,
    delivered: u64,
}

impl Fabric {
    fn delayed(&self, delay: u64, after: Option<Time>) -> Time {
        let at = self.now + Span::from_ns(delay);
        after.map_or(at, |after| at.max(after))
    }

    fn send(&mut self, host: usize, delay: u64) {
        let flow = from(host);
        while self.waiting[host] > 0 && self.credits.release(self.now, flow) <= self.now {
            let payload = self.waiting[host].min(1_000);
            self.waiting[host] -= payload;
            self.credits.on_send(self.now, flow, PACKET, payload);
            let before = self.packets.iter().filter(|(_, other, _)| *other == flow);
            let arrives = self.delayed(delay, before.map(|(at, ..)| *at).max());
            let arrival = Arrival {
                payload,
                marked: self.marks.next().unwrap_or(false),
                ..packet(self.now, self.waiting[host])
            };
            self.packets.push((arrives, flow, arrival));
        }
    }

    /// Credit, what is on its way, and what is owed are the window of each flow.
    fn windows_are_whole(&self, window: i64) {
        for host in 1..9 {
            let Some(credit) = self.credits.credit(from(host)) else {
                continue;
            };
            let owed = self.credits.owed(from(host)).unwrap_or(0);
            let packets = self
                .packets
                .iter()
                .filter(|(_, flow, _)| *flow == from(host));
            let pulls = self
                .pulls
                .iter()
                .filter(|(_, pull)| pull.source.index() == host);
            let on_the_way = packets
                .map(|(.., arrival)| i64::from(arrival.payload))
                .sum::<i64>()
                + pulls.map(|(_, pull)| i64::from(pull.bytes)).sum::<i64>();
            assert_eq!(credit + on_the_way + owed, window, "host {host}");
            assert!(owed >= 0 && credit > -1_000);
        }
    }

    /// The next thing that happens. Returns whether there was one.
    fn step(&mut self, delay: u64) -> bool {
        let packet = self
            .packets
            .iter()
            .enumerate()
            .min_by_key(|(_, (at, ..))| *at);
        let pull = self.pulls.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let (packet, pull) = (
            packet.map(|(place, (at, ..))| (*at, place)),
            pull.map(|(place, (at, _))| (*at, place)),
        );
        match (packet, pull) {
            (None, None) => return false,
            (Some((at, place)), pull) if pull.is_none_or(|(other, _)| at <= other) => {
                let (_, flow, arrival) = self.packets.remove(place);
                self.now = self.now.max(at);
                self.delivered += u64::from(arrival.payload);
                for pull in received(&mut self.credits, self.now, flow, arrival) {
                    assert!(pull.at >= self.now);
                    let before = self
                        .pulls
                        .iter()
                        .filter(|(_, other)| other.source == pull.source);
                    let arrives = before.map(|(at, _)| *at).max();
                    let arrives =
                        (pull.at + Span::from_ns(delay)).max(arrives.unwrap_or(Time::ZERO));
                    self.pulls.push((arrives, pull));
                }
            }
            (_, Some((at, place))) => {
                let (_, pull) = self.pulls.remove(place);
                self.now = self.now.max(at);
                let flow = from(pull.source.index());
                self.credits.on_grant(self.now, flow, pull.bytes);
                self.send(pull.source.index(), delay);
            }
            _ => unreachable!("one of the two is there"),
        }
        true
    }
}

proptest! {
    /// Windows stay complete, and every byte arrives, for any messages and delays.
    #[test]
    fn no_credit_is_lost_and_no_flow_starves(
        window in 1_u64..20,
        shortest in any::<bool>(),
        messages in prop::collection::vec((1_usize..9, 1_u32..30_000), 1..30),
        delays in prop::collection::vec(prop_oneof![1_u64..20_000, 1_u64..100], 1..20),
        marks in prop::collection::vec(prop::bool::weighted(0.8), 0..8),
        horizon in prop_oneof![Just(None), (1_u64..100).prop_map(Some)],
        bytes in 0_u64..1_000,
    ) {
        let order = if shortest { Order::ShortestFirst } else { Order::RoundRobin };
        let mut credits = credits(window, order);
        credits.rules.marks = !marks.is_empty();
        if let Some(horizon) = horizon {
            credits.rules.horizon = Span::from_ns(horizon);
        }
        credits.rules.window += bytes as i64;
        let window = credits.rules.window;
        let mut fabric = Fabric {
            credits,
            marks: marks.into_iter().cycle(),
            now: Time::ZERO,
            waiting: [0; 9],
            packets: Vec::new(),
            pulls: Vec::new(),
            delivered: 0,
        };
        let mut delays = delays.iter().copied().cycle();
        let mut next_delay = || delays.next().unwrap_or(1);
        let mut total = 0;
        for (host, bytes) in messages {
            fabric.waiting[host] += bytes;
            total += u64::from(bytes);
            fabric.send(host, next_delay());
            for _ in 0..3 {
                fabric.step(next_delay());
                fabric.windows_are_whole(window);
            }
        }
        while fabric.step(next_delay()) {
            fabric.windows_are_whole(window);
        }
        prop_assert_eq!(fabric.delivered, total);
    }
}

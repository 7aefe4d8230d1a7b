//! Shares of a link among several flows.

use silvan_core::{Span, Time, Vl};
use silvan_reference::{Arbitration, FlitModel, HostArbitration, VlArbitration};

use crate::common::{
    LATENCY, Routed, at, burst, cable, gbit, parameters, room, saturating, sl, two_lanes, wire_time,
};

/// Packets of each flow among those delivered between two instants.
fn counts(model: &FlitModel, flows: usize, from: Time, to: Time) -> Vec<usize> {
    let mut counts = vec![0; flows];
    for delivery in model.deliveries() {
        if (from..to).contains(&delivery.done) {
            counts[delivery.flow] += 1;
        }
    }
    counts
}

/// Round robin halves the link at every switch: 1/2, 1/4, ..., and the last two get the same.
#[test]
fn parking_lot_shares_halve_at_every_switch() {
    let kind = cable("4x DDR 2 m");
    for switches in 2..=5_usize {
        let two = [kind, kind];
        let mut hosts = vec![&two[..1]; switches];
        hosts[switches - 1] = &two;
        let row = Routed::row(&hosts, &vec![kind; switches - 1]);
        let flows: Vec<_> = (0..switches)
            .map(|source| saturating(source, switches, 2048))
            .collect();
        let mut parameters = parameters();
        parameters.switch.buffer = room(8, 2048);
        let wire = wire_time(kind, 2048);
        let (from, to) = (at(wire * 200), at(wire * (200 + 512)));
        let model = row.run(&parameters, &flows, to);
        let counts = counts(&model, switches, from, to);
        assert_eq!(counts.iter().sum::<usize>(), 512, "the link is always busy");
        for (source, &count) in counts.iter().enumerate() {
            let joins_behind = (switches - source).min(switches - 1);
            let share = 512 >> joins_behind;
            assert!(count.abs_diff(share) <= 1, "{counts:?}");
        }
    }
}

/// Packet by packet, so that bytes follow the packet sizes.
#[test]
fn round_robin_gives_every_input_as_many_packets() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind; 5]], &[]);
    let flows = [
        saturating(0, 4, 2048),
        saturating(1, 4, 2048),
        saturating(2, 4, 512),
        saturating(3, 4, 100),
    ];
    let (from, to) = (at(Span::from_us(100)), at(Span::from_us(400)));
    let counts = counts(&row.run(&parameters(), &flows, to), 4, from, to);
    let least = counts.iter().min().unwrap();
    assert!(*least > 90 && counts.iter().all(|count| count - least <= 1));
}

/// Three packets reach a busy output in the order of hosts 0, 2, 1.
#[test]
fn oldest_first_serves_by_age_and_round_robin_by_port() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind; 4]], &[]);
    let flows = [
        burst(0, 3, 2048, 1, Time::ZERO),
        burst(1, 3, 2048, 1, at(Span::from_ns(2))),
        burst(2, 3, 2048, 1, at(Span::from_ns(1))),
    ];
    for (arbitration, expected) in [
        (Arbitration::RoundRobin, [0, 1, 2]),
        (Arbitration::OldestFirst, [0, 2, 1]),
    ] {
        let mut parameters = parameters();
        parameters.switch.arbitration = arbitration;
        let model = row.drain(&parameters, &flows);
        let order: Vec<usize> = model.deliveries().iter().map(|d| d.flow).collect();
        assert_eq!(order, expected);
        let last = model.deliveries()[2].done;
        let wire = wire_time(kind, 2048);
        assert_eq!(last, at(kind.length.propagation() * 2 + LATENCY + wire * 3));
    }
}

/// A fast input that feeds two slow outputs: both at once, or one after the other.
#[test]
fn read_limit_caps_what_one_input_feeds() {
    let (fast, slow) = (cable("4x QDR 2 m"), cable("1x SDR 2 m"));
    let row = Routed::row(&[&[fast, slow, slow, slow]], &[]);
    let flows: Vec<_> = (1..4).map(|to| saturating(0, to, 2048)).collect();
    let wire = wire_time(slow, 2048);
    for (read_limit, busy_outputs) in [(None, 3), (Some(3), 3), (Some(2), 2), (Some(1), 1)] {
        let mut parameters = parameters();
        parameters.switch.read_limit = read_limit;
        parameters.switch.buffer = room(30, 2048);
        let (from, to) = (at(wire * 60), at(wire * 120));
        let counts = counts(&row.run(&parameters, &flows, to), 3, from, to);
        let total: usize = counts.iter().sum();
        let even = 20 * busy_outputs;
        assert!(
            counts.iter().all(|&count| count.abs_diff(even) <= 2),
            "{counts:?}"
        );
        assert!(
            total.abs_diff(60 * busy_outputs) <= busy_outputs,
            "{counts:?}"
        );
    }
}

/// Lanes share a link by their weights in blocks: one packet of 33 blocks against three.
#[test]
fn lane_weights_divide_the_link() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind; 3]], &[]);
    let mut flows = [saturating(0, 2, 2048), saturating(1, 2, 2048)];
    flows[1].sl = sl(1);
    let mut tables = VlArbitration::equal(2, 33);
    tables.low[1].1 = 99;
    let wire = wire_time(kind, 2048);
    let (from, to) = (at(wire * 50), at(wire * 450));
    let model = row.run(&two_lanes(tables), &flows, to);
    assert_eq!(counts(&model, 2, from, to), [100, 300]);
}

/// With room for one large packet at the switch, a flow of large packets gets its turns next to a flow of small
/// packets. It does not if the host passes over packets without credits.
#[test]
fn large_packets_get_their_turn_unless_hosts_pass_over_them() {
    let row = Routed::row(&[&[cable("4x DDR 2 m"); 2]], &[]);
    let mut parameters = two_lanes(VlArbitration::equal(2, 255));
    parameters.switch.buffer = room(1, 2048);
    let flows = [saturating(0, 1, 2048), saturating(0, 1, 64)];
    let (from, to) = (at(Span::from_us(100)), at(Span::from_us(1000)));
    parameters.host.arbitration = HostArbitration::HeadOfLine;
    let [large, small] = counts(&row.run(&parameters, &flows, to), 2, from, to)[..] else {
        unreachable!("two flows");
    };
    assert!(large > 100 && large.abs_diff(small) <= 1);
    parameters.host.arbitration = HostArbitration::WorkConserving;
    let [large, small] = counts(&row.run(&parameters, &flows, to), 2, from, to)[..] else {
        unreachable!("two flows");
    };
    assert!(large == 0 && small > 1000);
}

/// Host 0 sends to a host with a slow link and to one with a fast link, over the same trunk.
#[test]
fn a_blocked_lane_leaves_the_other_untouched() {
    let (fast, slow) = (cable("4x DDR 2 m"), cable("1x SDR 2 m"));
    let row = Routed::row(&[&[fast], &[slow, fast]], &[fast]);
    let payload = 2048;
    let mut parameters = two_lanes(VlArbitration::equal(2, 255));
    parameters.switch.buffer = room(4, payload);
    let mut other = saturating(0, 2, payload);
    let gap = Span::from_us(3);
    other.gap = gap;
    let hot = saturating(0, 1, payload);
    let until = at(Span::from_us(1000));
    let from = at(Span::from_us(200));

    // On one lane both flows get the rate of the slow link, because they take turns at the host and in one FIFO. A
    // chosen packet of the hot flow would hold back the other flow, which is not always ready.
    parameters.host.arbitration = HostArbitration::WorkConserving;
    let model = row.run(&parameters, &[hot.clone(), other.clone()], until);
    let [slow_count, other_count] = counts(&model, 2, from, until)[..] else {
        unreachable!("two flows");
    };
    let slow_packets = Span::from_us(800).as_ps() / wire_time(slow, payload).as_ps();
    assert!((slow_count as u64).abs_diff(slow_packets) <= 1);
    assert!(slow_count.abs_diff(other_count) <= 1);

    parameters.host.arbitration = HostArbitration::HeadOfLine;
    // On a separate lane the other flow waits for at most one packet of the hot flow, before it starts and again at the
    // trunk.
    other.sl = sl(1);
    let model = row.run(&parameters, &[hot, other], until);
    let [slow_count, other_count] = counts(&model, 2, from, until)[..] else {
        unreachable!("two flows");
    };
    assert!((slow_count as u64).abs_diff(slow_packets) <= 1);
    let wire = wire_time(fast, payload);
    assert!(other_count as u64 >= Span::from_us(800).as_ps() / (gap + wire).as_ps());
    let alone = wire + fast.length.propagation() * 3 + LATENCY * 2;
    let latencies = model.deliveries().iter().filter(|d| d.flow == 1);
    for latency in latencies.map(|d| d.latency()) {
        assert!(latency >= alone && latency <= alone + wire, "{latency}");
    }
    assert_eq!(
        model.max_occupancy(
            row.fabric.host_attachment(crate::common::host(0)).1,
            Vl::ZERO
        ),
        Some(room(4, payload).credits()),
        "the hot lane is full"
    );
}

/// Several flows of one host take turns packet by packet.
#[test]
fn flows_of_a_host_take_turns() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind; 4]], &[]);
    let flows: Vec<_> = (1..4).map(|to| burst(0, to, 2048, 3, Time::ZERO)).collect();
    let mut parameters = parameters();
    parameters.host.injection_rate = gbit(8);
    let model = row.drain(&parameters, &flows);
    let order: Vec<usize> = model.deliveries().iter().map(|d| d.flow).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

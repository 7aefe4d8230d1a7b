//! Latency of packets that meet no other.

use silvan_core::{Bytes, Span, Time};
use silvan_reference::OutputBuffer;

use crate::common::{
    LATENCY, Routed, at, burst, cable, done_times, gbit, parameters, room, wire_time,
};

/// Payloads around the flit size of 64 bytes, with 26 bytes of header.
const PAYLOADS: [u64; 7] = [1, 37, 38, 39, 102, 2048, 4096];

/// Every link once, every switch once, and the packet's own length once.
#[test]
fn through_equal_links_a_packet_is_stored_nowhere() {
    for speed in ["4x SDR 3 m", "4x FDR 3 m", "1x FDR 1 m", "4x NDR 100 m"] {
        let kind = cable(speed);
        for switches in 1..=6 {
            let mut hosts = vec![&[][..]; switches];
            let two = [kind, kind];
            if switches == 1 {
                hosts[0] = &two;
            } else {
                hosts[0] = &two[..1];
                hosts[switches - 1] = &two[1..];
            }
            let row = Routed::row(&hosts, &vec![kind; switches - 1]);
            for payload in PAYLOADS {
                let model = row.drain(&parameters(), &[burst(0, 1, payload, 1, Time::ZERO)]);
                let hops = switches as u64;
                let expected = wire_time(kind, payload)
                    + kind.length.propagation() * (hops + 1)
                    + LATENCY * hops;
                assert_eq!(model.deliveries()[0].latency(), expected);
            }
        }
    }
}

/// A slower output stretches the packet; a faster one waits until it can send without a pause.
#[test]
fn through_mixed_links_the_tail_waits_for_the_slowest() {
    let speeds = [
        ["4x SDR 2 m", "4x DDR 2 m", "4x QDR 2 m"],
        ["4x QDR 2 m", "4x DDR 2 m", "4x SDR 2 m"],
        ["4x QDR 2 m", "1x SDR 2 m", "4x FDR 2 m"],
        ["4x SDR 2 m", "12x QDR 2 m", "4x SDR 2 m"],
    ];
    for speed in speeds {
        let [first, trunk, last] = speed.map(cable);
        let row = Routed::row(&[&[first], &[last]], &[trunk]);
        for payload in PAYLOADS {
            let model = row.drain(&parameters(), &[burst(0, 1, payload, 1, Time::ZERO)]);
            let [a, b, c] = [first, trunk, last].map(|kind| wire_time(kind, payload));
            let expected = first.length.propagation() * 3
                + LATENCY * 2
                + a.saturating_sub(b)
                + b.saturating_sub(c)
                + c;
            assert_eq!(model.deliveries()[0].latency(), expected, "{speed:?}");
        }
    }
}

#[test]
fn the_sink_serves_packets_one_by_one() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind, kind]], &[]);
    let mut parameters = parameters();
    parameters.host.sink_rate = gbit(10);
    let payload = 2048;
    let model = row.drain(&parameters, &[burst(0, 1, payload, 5, Time::ZERO)]);
    let service = Span::from_ps(payload * 800);
    let arrival = at(wire_time(kind, payload) + kind.length.propagation() * 2 + LATENCY);
    let expected: Vec<Time> = (1..=5).map(|count| arrival + service * count).collect();
    assert_eq!(done_times(&model, 0), expected);
}

#[test]
fn the_injection_rate_paces_packet_starts_by_payload() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind, kind]], &[]);
    let mut parameters = parameters();
    parameters.host.injection_rate = gbit(10);
    let model = row.drain(&parameters, &[burst(0, 1, 2048, 5, Time::ZERO)]);
    let starts: Vec<Time> = model.deliveries().iter().map(|d| d.injected).collect();
    let expected: Vec<Time> = (0..5)
        .map(|index| at(Span::from_ps(2048 * 800) * index))
        .collect();
    assert_eq!(starts, expected);
}

#[test]
fn a_flow_with_a_gap_keeps_it_from_start_to_start() {
    let kind = cable("4x DDR 2 m");
    let row = Routed::row(&[&[kind, kind]], &[]);
    let mut flow = burst(0, 1, 100, 4, Time::from_ps(70));
    flow.gap = Span::from_us(3);
    let model = row.drain(&parameters(), &[flow]);
    let starts: Vec<Time> = model.deliveries().iter().map(|d| d.injected).collect();
    let expected: Vec<Time> = (0..4)
        .map(|index| Time::from_ps(70) + Span::from_us(3) * index)
        .collect();
    assert_eq!(starts, expected);
}

/// At the link's own rate the buffer is crossed at once. A crossbar twice as fast must wait half a
/// packet for the tail, once per switch.
#[test]
fn an_output_buffer_costs_only_the_wait_for_a_faster_crossbar() {
    let kind = cable("4x SDR 2 m");
    let row = Routed::row(&[&[kind], &[kind]], &[kind]);
    let payload = 2048;
    for (speedup_percent, wait) in [(100, Span::ZERO), (200, Span::from_ns(1037))] {
        let mut parameters = parameters();
        parameters.switch.output_buffer = Some(OutputBuffer {
            cut_through: false,
            size: room(1, payload),
            speedup_percent,
        });
        let model = row.drain(&parameters, &[burst(0, 1, payload, 1, Time::ZERO)]);
        let expected =
            wire_time(kind, payload) + kind.length.propagation() * 3 + (LATENCY + wait) * 2;
        assert_eq!(model.deliveries()[0].latency(), expected);
    }
}

/// A packet that is blocked at a switch is taken in whole, so the link behind it is free again for
/// one that goes elsewhere. (Under wormhole switching it would block the link.)
#[test]
fn a_blocked_packet_does_not_hold_the_link_behind_it() {
    let (fast, slow) = (cable("4x DDR 2 m"), cable("1x SDR 2 m"));
    // Host 0 behind a trunk; on the other switch host 1 with a slow link, and host 2.
    let row = Routed::row(&[&[fast], &[slow, fast]], &[fast]);
    let payload = 2048;
    let wire = wire_time(fast, payload);
    let alone = wire + fast.length.propagation() * 3 + LATENCY * 2;
    let flows = [
        burst(0, 1, payload, 2, Time::ZERO),
        burst(0, 2, payload, 1, at(wire * 2)),
    ];

    let mut parameters = parameters();
    parameters.switch.buffer = room(3, payload);
    let model = row.drain(&parameters, &flows);
    let third = model.deliveries().iter().find(|d| d.flow == 1).unwrap();
    assert_eq!(third.injected, at(wire * 2));
    assert_eq!(third.latency(), alone);

    // With room for one packet it starts only when the second packet's credits are back. The second
    // packet has waited at the first switch until the slow host had received the first.
    parameters.switch.buffer = Bytes::from_bytes(room(1, payload).as_u64() + 63);
    let model = row.drain(&parameters, &flows);
    let third = model.deliveries().iter().find(|d| d.flow == 1).unwrap();
    let hop = fast.length.propagation() + LATENCY;
    let credit = fast.length.propagation() + crate::common::CREDIT_DELAY;
    let slow_done = hop * 2 + wire_time(slow, payload);
    let second_leaves_first_switch = slow_done + credit + wire;
    assert_eq!(third.injected, at(second_leaves_first_switch + credit));
}

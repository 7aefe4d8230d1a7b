//! Latency of packets that meet no other, to the picosecond.

use silvan_core::{Bytes, Span};
use silvan_engine::{CrossbarFeed, EngineConfig, OutputBuffer, Sink};
use silvan_fabric::LinkKind;

use crate::common::{
    HEADER, MTU, Routed, at, cable, ddr_config, mbit, payload_time, propagation, room, ser,
};
use crate::script::Flow;

/// Latency of one packet of `payload` from the first host of a row to the last.
fn measured(config: &EngineConfig, cables: &[LinkKind], payload: u32) -> Span {
    let routed = path(cables);
    let hosts = routed.fabric.host_count();
    let start = at(Span::from_ps(123_456_789));
    let flow = Flow {
        sizes: vec![payload],
        start,
        ..Flow::burst(0, hosts - 1, 1)
    };
    let script = routed.run(config, &[flow], Span::from_ms(2));
    assert_eq!(script.records[0].injected, [start]);
    script.records[0].delivered[0].since(start)
}

/// Two hosts with switches between them, cable by cable.
fn path(cables: &[LinkKind]) -> Routed {
    let switches = cables.len() - 1;
    let (first, last) = (cables[0], cables[switches]);
    let trunks = &cables[1..switches];
    if switches == 1 {
        return Routed::star(&[first, last]);
    }
    let mut hosts: Vec<&[LinkKind]> = vec![&[]; switches];
    let ends = [[first], [last]];
    hosts[0] = &ends[0];
    hosts[switches - 1] = &ends[1];
    Routed::row(&hosts, trunks)
}

/// The head crosses n + 1 cables and n switches without waiting, and the packet is there when its
/// tail is: (n + 1) propagations + n switch latencies + one serialisation, then the sink's time.
#[test]
fn through_one_to_six_switches() {
    let kind = cable("4x DDR 7 m");
    for sink_rate in [None, Some(mbit(13_600))] {
        let mut config = ddr_config();
        config.host.sink_rate = sink_rate;
        config.host.injection_rate = Some(mbit(13_500));
        for switches in 1..=6 {
            for payload in [1, 38, 39, 1000, MTU] {
                let sink = sink_rate.map_or(Span::ZERO, |rate| payload_time(rate, payload));
                let expected = propagation(kind) * (switches + 1)
                    + config.switch.latency * switches
                    + ser(kind, payload)
                    + sink;
                let cables = vec![kind; switches as usize + 1];
                let latency = measured(&config, &cables, payload);
                assert_eq!(latency, expected, "{switches} switches, {payload} bytes");
            }
        }
    }
}

/// More distinct delays than the event queue has lanes for: the sum is that of the cables.
#[test]
fn every_cable_counts_its_own_length() {
    let lengths = [1, 30, 2, 100, 3, 0, 50, 4, 20];
    let cables: Vec<_> = lengths
        .iter()
        .map(|metres| cable(&format!("4x EDR {metres} m")))
        .collect();
    let config = ddr_config();
    let switches = lengths.len() as u64 - 1;
    let expected = Span::from_ns(5) * lengths.iter().sum::<u64>()
        + config.switch.latency * switches
        + ser(cables[0], MTU);
    assert_eq!(measured(&config, &cables, MTU), expected);
}

/// SDR host, QDR trunk, SDR host. A QDR output that started on the head would run dry, so it starts
/// when it can end together with the tail: ser(SDR) - ser(QDR) later. Then its tail leaves exactly
/// the switch latency after the tail came in. The slower last cable starts on the head.
#[test]
fn cut_through_into_a_faster_cable_never_runs_dry() {
    let config = ddr_config();
    let (sdr, qdr) = (cable("4x SDR 2 m"), cable("4x QDR 2 m"));
    let (slow, fast) = (ser(sdr, MTU), ser(qdr, MTU));
    let there = propagation(sdr) + config.switch.latency;
    let tail_on_trunk = there + slow;
    let head_on_trunk = tail_on_trunk.checked_sub(fast).unwrap();
    let expected = head_on_trunk + there + propagation(sdr) + slow;
    assert_eq!(measured(&config, &[sdr, qdr, sdr], MTU), expected);

    // The other way round the wait is at the second switch, and it ends on the fast cable.
    let expected = there * 2 + slow + propagation(qdr);
    assert_eq!(measured(&config, &[qdr, sdr, qdr], MTU), expected);
}

/// End of the tail on each cable: end(k) = start(k-1) + propagation + latency + max(ser(k-1), ser(k)). The tail ends
/// one propagation and one switch latency after its end on the cable before, or one serialisation after the head could
/// start, whichever is later.
#[test]
fn any_order_of_speeds() {
    let config = ddr_config();
    let kinds = ["1x SDR 3 m", "4x DDR 5 m", "4x QDR 1 m", "4x NDR 9 m"].map(cable);
    for code in 0..4_usize.pow(4) {
        let cables: Vec<_> = (0..4)
            .map(|digit| kinds[code / 4_usize.pow(digit) % 4])
            .collect();
        for payload in [64, MTU] {
            let mut end = ser(cables[0], payload);
            for pair in cables.windows(2) {
                let (before, after) = (ser(pair[0], payload), ser(pair[1], payload));
                let start_before = end.checked_sub(before).unwrap();
                end =
                    start_before + propagation(pair[0]) + config.switch.latency + before.max(after);
            }
            let expected = end + propagation(cables[3]);
            assert_eq!(measured(&config, &cables, payload), expected, "{cables:?}");
        }
    }
}

/// The crossbar in front of an output buffer is a faster output like any other: its start is late by
/// ser(link) - ser(crossbar), at each switch. The stage itself takes no time.
#[test]
fn an_output_buffer_adds_the_wait_for_its_faster_crossbar() {
    let kind = cable("4x DDR 7 m");
    for speedup in [100_u64, 150, 200] {
        let mut config = ddr_config();
        config.switch.output_buffer = Some(OutputBuffer {
            crossbar: CrossbarFeed::FullRate,
            size: room(4),
            speedup_percent: u32::try_from(speedup).unwrap(),
        });
        let crossbar = mbit(16_000 * speedup / 100);
        for switches in 1..=3 {
            let link = ser(kind, MTU);
            let wire = Bytes::from_bytes(u64::from(MTU) + HEADER);
            let wait = link.checked_sub(crossbar.span_for(wire)).unwrap();
            let expected = propagation(kind) * (switches + 1)
                + (config.switch.latency + wait) * switches
                + link;
            let cables = vec![kind; switches as usize + 1];
            assert_eq!(measured(&config, &cables, MTU), expected, "{speedup} %");
        }
    }
}

/// A crossbar that passes packets as they arrive takes no time of its own, however fast it is: the latency
/// is that without output buffers.
#[test]
fn a_crossbar_that_cuts_through_adds_nothing() {
    let kinds = ["4x SDR 3 m", "4x DDR 5 m", "4x QDR 1 m"].map(cable);
    let plain = ddr_config();
    for cables in [[kinds[1]; 3], kinds, [kinds[2], kinds[1], kinds[0]]] {
        for speedup_percent in [100, 150, 400] {
            let mut config = ddr_config();
            config.switch.output_buffer = Some(OutputBuffer {
                crossbar: CrossbarFeed::CutThrough,
                size: room(4),
                speedup_percent,
            });
            for payload in [1, 64, 1000, MTU] {
                let latency = measured(&config, &cables, payload);
                assert_eq!(latency, measured(&plain, &cables, payload), "{cables:?}");
            }
        }
    }
}

/// A sink that cuts through begins after the first 64 bytes, and ends with the slower of link and sink. With a slower
/// link, it ends when the sink has consumed the last block after its arrival.
#[test]
fn a_sink_that_cuts_through_begins_with_the_first_block() {
    let kind = cable("4x DDR 7 m");
    for rate in [None, Some(mbit(8_000)), Some(mbit(40_000))] {
        let mut config = ddr_config();
        config.host.sink = Sink::CutThrough;
        config.host.sink_rate = rate;
        let taking_in =
            |bytes: u64| rate.map_or(Span::ZERO, |rate| rate.span_for(Bytes::from_bytes(bytes)));
        for payload in [1, 38, 39, 1000, MTU] {
            let wire = u64::from(payload) + HEADER;
            let on_link = |bytes| kind.data_rate().span_for(Bytes::from_bytes(bytes));
            let by_sink = on_link(wire.min(64)) + taking_in(u64::from(payload));
            let last = (wire - (wire - 1) / 64 * 64).min(u64::from(payload));
            let by_link = on_link(wire) + taking_in(last);
            let head = propagation(kind) * 2 + config.switch.latency;
            let expected = head + by_sink.max(by_link);
            assert_eq!(measured(&config, &[kind; 2], payload), expected, "{rate:?}");
        }
    }
}

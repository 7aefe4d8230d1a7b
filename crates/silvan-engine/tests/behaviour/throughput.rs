//! Throughput of a single flow, by what limits it: periods exact to the picosecond.

use silvan_core::{Bytes, HostId, Span, Time};
use silvan_engine::{CrossbarFeed, EngineConfig, HostParams, OutputBuffer, SwitchParams};

use crate::common::{
    HEADER, MTU, Routed, at, blocks, cable, ddr_config, mbit, payload_time, periods, propagation,
    room, ser,
};
use crate::script::{Flow, Record};

const RUN: Span = Span::from_us(500);

fn one_flow(routed: &Routed, config: &EngineConfig, flow: Flow) -> Record {
    routed.run(config, &[flow], RUN).records.remove(0)
}

fn all_equal(instants: &[Time], period: Span) {
    assert!(instants.len() > 20, "{} packets only", instants.len());
    let first_other = periods(instants).iter().position(|&each| each != period);
    assert_eq!(first_other, None, "not every {period}: {instants:?}");
}

/// Packets start one injection time of their payload apart, whatever the cables.
#[test]
fn limited_by_the_injection_rate() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 2]);
    let mut config = ddr_config();
    config.host.injection_rate = Some(mbit(13_500));
    for payload in [500, MTU] {
        let flow = Flow {
            sizes: vec![payload],
            ..Flow::saturating(0, 1)
        };
        let record = one_flow(&routed, &config, flow);
        let period = payload_time(mbit(13_500), payload).max(ser(kind, payload));
        all_equal(&record.injected, period);
        all_equal(&record.delivered, period);
    }
}

/// Without limits of the hosts the cable is always busy: a packet every serialisation time of payload and header.
#[test]
fn limited_by_the_cable_with_its_headers() {
    let kind = cable("4x QDR 2 m");
    let routed = Routed::row(&[&[kind], &[kind]], &[kind]);
    for payload in [200, MTU] {
        let flow = Flow {
            sizes: vec![payload],
            ..Flow::saturating(0, 1)
        };
        let record = one_flow(&routed, &ddr_config(), flow);
        let wire = Bytes::from_bytes(u64::from(payload) + HEADER);
        let period = mbit(32_000).span_for(wire);
        all_equal(&record.injected, period);
        all_equal(&record.delivered, period);
    }
}

/// A sink slower than the cable is busy from the first packet on, so deliveries are one service time apart. The rest
/// stays in the buffers, and in the long run the source sends at the sink's rate.
#[test]
fn limited_by_the_sink() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 2]);
    let mut config = ddr_config();
    config.host.sink_rate = Some(mbit(9_000));
    let period = payload_time(mbit(9_000), MTU);
    let record = one_flow(&routed, &config, Flow::saturating(0, 1));
    all_equal(&record.delivered, period);
    let buffered = record.injected.len() - record.delivered.len();
    // Whole packets of 33 credits at the switch and at the receiver; at most one each is on the two cables.
    let packets = |buffer: Bytes| (buffer.as_u64() / (33 * 64)) as usize;
    let full = packets(SwitchParams::LEAST_BUFFER) + packets(HostParams::LEAST_RECEIVE_BUFFER);
    assert!(
        (full - 2..=full + 2).contains(&buffered),
        "{buffered} packets inside"
    );
}

/// `packets` packets start per round trip of a credit if that is longer than they take to send.
fn every_nth(instants: &[Time], nth: usize, round_trip: Span) {
    assert!(instants.len() > nth * 10, "{} packets", instants.len());
    for (earlier, later) in instants.iter().zip(&instants[nth..]) {
        assert_eq!(later.since(*earlier), round_trip);
    }
}

/// A switch buffer of B packets behind a long cable. Credits taken at s come back when the head has crossed the cable
/// and the switch, the tail has left, and the credit has crossed the cable: s + prop + latency + ser + prop + credit
/// delay.
#[test]
fn limited_by_a_switch_buffer_behind_a_long_cable() {
    let (long, short) = (cable("4x DDR 500 m"), cable("4x DDR 1 m"));
    let mut config = ddr_config();
    let round_trip =
        propagation(long) * 2 + config.switch.latency + ser(long, MTU) + config.switch.credit_delay;
    for packets in [1, 2, 5] {
        assert!(round_trip > ser(long, MTU) * packets);
        for spare in [0, 63] {
            config.switch.buffer = Some(room(packets) + Bytes::from_bytes(spare));
            let nth = usize::try_from(packets).unwrap();
            // The long cable between host and switch, and between two switches.
            let first_hop = Routed::star(&[long, short]);
            let record = one_flow(&first_hop, &config, Flow::saturating(0, 1));
            every_nth(&record.injected, nth, round_trip);
            let trunk = Routed::row(&[&[short], &[short]], &[long]);
            let record = one_flow(&trunk, &config, Flow::saturating(0, 1));
            every_nth(&record.delivered, nth, round_trip);
        }
        // A buffer with one block less holds one packet less.
        if packets > 1 {
            config.switch.buffer = Some(Bytes::from_bytes(room(packets).as_u64() - 1));
            let routed = Routed::star(&[long, short]);
            let record = one_flow(&routed, &config, Flow::saturating(0, 1));
            every_nth(
                &record.injected,
                usize::try_from(packets).unwrap() - 1,
                round_trip,
            );
        }
    }
}

/// A receive buffer of B packets. The credit of a packet granted at g is back when the packet has arrived, the sink has
/// received it, and the credit has crossed the cable.
#[test]
fn limited_by_a_receive_buffer() {
    let (short, long) = (cable("4x DDR 1 m"), cable("4x DDR 500 m"));
    let routed = Routed::star(&[short, long]);
    let mut config = ddr_config();
    for sink_rate in [None, Some(mbit(14_000))] {
        config.host.sink_rate = sink_rate;
        let service = sink_rate.map_or(Span::ZERO, |rate| payload_time(rate, MTU));
        for packets in [1, 2, 3] {
            config.host.receive_buffer = Some(room(packets));
            let round_trip =
                propagation(long) * 2 + ser(long, MTU) + service + config.host.credit_delay;
            let record = one_flow(&routed, &config, Flow::saturating(0, 1));
            every_nth(
                &record.delivered,
                usize::try_from(packets).unwrap(),
                round_trip,
            );
        }
    }
}

/// Credits are whole blocks per packet. A buffer of 33 blocks holds as many packets of 100 bytes of payload (126 on the
/// wire, 2 blocks) as two go into 33.
#[test]
fn small_packets_occupy_whole_blocks() {
    let (long, short) = (cable("4x DDR 500 m"), cable("4x DDR 1 m"));
    let routed = Routed::star(&[long, short]);
    let mut config = ddr_config();
    config.switch.buffer = Some(room(1));
    let payload = 100;
    assert_eq!(blocks(payload), 2);
    let round_trip = propagation(long) * 2
        + config.switch.latency
        + ser(long, payload)
        + config.switch.credit_delay;
    let flow = Flow {
        sizes: vec![payload],
        ..Flow::saturating(0, 1)
    };
    let record = one_flow(&routed, &config, flow);
    every_nth(&record.injected, 16, round_trip);
}

/// The buffer behind a long cable holds two packets: one that a slow cable takes away in 8 us, and
/// behind it one for a fast cable. The sender of a third waits for the credits that come first,
/// those of the second packet, although the others have been on their way for longer.
#[test]
fn the_first_credits_to_come_wake_the_sender() {
    let (long, slow, fast) = (
        cable("4x QDR 200 m"),
        cable("1x SDR 2 m"),
        cable("4x QDR 2 m"),
    );
    let mut config = ddr_config();
    config.switch.buffer = Some(room(2));
    // The second packet starts when the first has left, and goes straight through the switch.
    let round_trip =
        propagation(long) * 2 + config.switch.latency + ser(fast, MTU) + config.switch.credit_delay;
    assert!(round_trip < ser(slow, MTU));
    let second = ser(long, MTU);

    // A host that waits.
    let routed = Routed::star(&[long, slow, fast]);
    let flows = [Flow::burst(0, 1, 1), Flow::burst(0, 2, 2)];
    let script = routed.run(&config, &flows, RUN);
    let starts = &script.records[1].injected;
    assert_eq!(starts[..], [at(second), at(second + round_trip)]);

    // A switch that waits: the hosts send at once, the trunk takes their packets in turn.
    let routed = Routed::row(&[&[fast; 3], &[slow, fast]], &[long]);
    let flows = [
        Flow::burst(0, 3, 1),
        Flow::burst(1, 4, 1),
        Flow::burst(2, 4, 1),
    ];
    let script = routed.run(&config, &flows, RUN);
    let there = propagation(fast) + config.switch.latency;
    let beyond = propagation(long) + config.switch.latency + ser(fast, MTU) + propagation(fast);
    let last = there + second + round_trip + beyond;
    assert_eq!(script.records[2].delivered, [at(last)]);
}

/// An output buffer changes when packets cross the switch, not how many: the cable is the limit.
#[test]
fn an_output_buffer_leaves_the_throughput_as_it_is() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::row(&[&[kind], &[kind]], &[kind]);
    for speedup_percent in [100, 170, 300] {
        let mut config = ddr_config();
        config.switch.output_buffer = Some(OutputBuffer {
            crossbar: CrossbarFeed::FullRate,
            size: room(2),
            speedup_percent,
        });
        let record = one_flow(&routed, &config, Flow::saturating(0, 1));
        all_equal(&record.injected, ser(kind, MTU));
        all_equal(&record.delivered, ser(kind, MTU));
    }
}

#[test]
fn counters_agree_with_the_packets() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 2]);
    let flow = Flow {
        sizes: vec![100, MTU, 700],
        ..Flow::saturating(0, 1)
    };
    let mut engine = routed.engine(&ddr_config(), &[flow]);
    for step in 1..=20 {
        let now = at(Span::from_ps(7_777_777) * step);
        engine.run_until(now).unwrap();
        let script = engine.workload();
        let record = &script.records[0];
        let (sent, received) = (record.injected.len(), record.delivered.len());
        let (source, sink) = (HostId::new(0), HostId::new(1));
        let injected = engine.host_counters(source);
        assert_eq!(injected.injected_bytes, script.payload(0, sent));
        let delivered = engine.host_counters(sink);
        assert_eq!(delivered.delivered_bytes, script.payload(0, received));
        assert_eq!(delivered.delivered_packets, received as u64);
        let class = engine.class(0).map_or(0, |class| class.delivered_bytes);
        assert_eq!(class, delivered.delivered_bytes);
        assert_eq!(engine.packet_hops(), 2 * received as u64);
        let port = engine.port_counters(routed.fabric.host_port(source));
        assert_eq!(port.xmit_pkts, sent as u64);
        assert_eq!(
            port.xmit_bytes,
            script.payload(0, sent) + HEADER * sent as u64
        );
        let to_sink = engine.port_counters(routed.port_to(1));
        let at_sink = engine.port_counters(routed.fabric.host_port(sink));
        assert_eq!(to_sink.xmit_bytes, at_sink.rcv_bytes);
        assert_eq!(to_sink.xmit_pkts, at_sink.rcv_pkts);
    }
}

/// Packets from a host to itself take its injection rate and nothing else: they are delivered when they have been
/// injected. A flow to another host, with which they take turns, keeps half of the rate.
#[test]
fn packets_to_the_sender_stay_in_the_host() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 2]);
    let mut config = ddr_config();
    config.host.sink_rate = Some(mbit(1_000));
    for rate in [None, Some(mbit(9_000))] {
        config.host.injection_rate = rate;
        let each = rate.map_or(ser(kind, MTU), |rate| payload_time(rate, MTU));
        let alone = one_flow(&routed, &config, Flow::saturating(0, 0));
        all_equal(&alone.injected, each);
        let sent = alone.injected.iter().map(|&at| at + each);
        assert!(
            alone
                .delivered
                .iter()
                .copied()
                .eq(sent.take(alone.delivered.len()))
        );

        let flows = [Flow::saturating(0, 0), Flow::saturating(0, 1)];
        let mut engine = routed.engine(&config, &flows);
        engine.run_until(at(Span::from_us(30))).unwrap();
        engine.audit().unwrap();
        let records = &engine.workload().records;
        all_equal_to_end(&records[0].injected, each * 2);
        all_equal_to_end(&records[1].injected, each * 2);
        let port = engine.port_counters(routed.fabric.host_port(HostId::new(0)));
        assert_eq!(port.xmit_pkts, records[1].injected.len() as u64);
        let host = engine.host_counters(HostId::new(0));
        assert_eq!(host.delivered_packets, records[0].delivered.len() as u64);
    }
}

fn all_equal_to_end(instants: &[Time], period: Span) {
    assert!(instants.len() > 5);
    assert!(
        periods(instants).iter().all(|&each| each == period),
        "{instants:?}"
    );
}

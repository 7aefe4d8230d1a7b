//! Priority-based flow control: exact headroom, full links, pauses by formula, and named deadlocks.

use std::cell::Cell;

use proptest::prelude::*;
use silvan_core::{Bytes, HostId, Length, PortId, Rate, Span, Time, Vl};
use silvan_engine::{CompiledFabric, EngineConfig, EngineError, Loss, PfcLimits, PfcParams};
use silvan_fabric::{LinkKind, Speed, Width};

use crate::common::{
    HEADER, MTU, Routed, WIRE, at, cable, ddr_config, periods, propagation, ser, vl,
};
use crate::deadlock::{assert_is_ring, deadlock_of, one_way_ring, round};
use crate::lossless::case::cases;
use crate::lossless::runner;
use crate::script::Flow;

fn bytes(bytes: u64) -> Option<Bytes> {
    Some(Bytes::from_bytes(bytes))
}

fn with(pfc: PfcParams) -> EngineConfig {
    EngineConfig {
        pfc: Some(pfc),
        ..ddr_config()
    }
}

/// Both thresholds after so many full packets; the headroom by the formula.
fn after_packets(packets: u64) -> PfcParams {
    PfcParams {
        xoff: bytes(packets * WIRE),
        xon: bytes(packets * WIRE),
        ..PfcParams::default()
    }
}

/// Limits of all links of a fabric with equal cables.
fn limits(routed: &Routed, config: &EngineConfig) -> PfcLimits {
    let mut links = routed.fabric.links.iter();
    config.pfc_limits(links.next().unwrap()).unwrap().unwrap()
}

/// Returns the host's port that receives packets of these sizes, and the first loss within 1 ms. The sink is blocked
/// from the first packet on.
fn loss(kind: LinkKind, pfc: PfcParams, sizes: Vec<u32>) -> (PortId, Option<Loss>) {
    let routed = Routed::star(&[kind, kind]);
    let mut config = with(pfc);
    config.host.sink_rate = Rate::from_bits_per_sec(1);
    let flow = Flow {
        packets: sizes.len() as u64,
        sizes,
        ..Flow::saturating(0, 1)
    };
    let mut engine = routed.engine(&config, &[flow]);
    let port = routed.fabric.host_port(HostId::new(1));
    match engine.run_until(at(Span::from_ms(1))) {
        Err(EngineError::Loss(loss)) => (port, Some(loss)),
        other => {
            other.unwrap();
            engine.audit().unwrap();
            (port, None)
        }
    }
}

/// Headroom by hand, at 1 B/ns. The fourth packet fills the buffer to xoff. The fifth starts, and its first byte
/// arrives 10 ns later. The pause waits 2074 ns for a frame, takes 84 ns to send, 10 ns on the cable, and 614.4 ns
/// until its effect: 2792.4 ns from the start. Two packets of 1396 B fill 2792 ns, and a full packet has just started
/// then: 4866 B in all.
#[test]
fn one_byte_less_than_the_headroom_loses_one_byte() {
    let kind = cable("4x SDR 2 m");
    let short = 1396 - HEADER as u32;
    let sizes = vec![MTU, MTU, MTU, MTU, short, short, MTU, MTU, MTU];
    let exact = after_packets(4);
    assert_eq!(loss(kind, exact.clone(), sizes.clone()).1, None);
    let less = PfcParams {
        headroom: bytes(4865),
        ..exact
    };
    let (port, lost) = loss(kind, less, sizes);
    let lost = lost.unwrap();
    assert_eq!((lost.port, lost.priority, lost.over), (port, vl(0), 1));
    assert_eq!(lost.limits.formula.as_u64(), 4866);
    // Two cables, 100 ns in the switch, and what is ahead of the packet.
    let ahead = 4 * WIRE + 2 * 1396;
    assert_eq!(lost.at, at(Span::from_ns(10 + 100 + ahead + 10)));
    assert!(lost.hint().contains("4866 B"), "{}", lost.hint());
}

/// With the headroom of the formula the worst case has room, and with a byte less it has not, for any cable, rate and
/// delay.
#[test]
fn headroom_of_the_formula_is_exact() {
    let speeds = proptest::sample::select(vec![Speed::Sdr, Speed::Ddr, Speed::Qdr, Speed::Edr]);
    let delays = (0_u64..3_000_000, 0_u64..300_000, 64_u64..100);
    let drawn = (speeds, 0_u32..400_000, delays, 1_u64..6);
    let test = |(speed, length, (response, interface_delay, pause_frame), packets)| {
        let kind = LinkKind::new(Width::X4, speed, Length::from_mm(length));
        let pfc = PfcParams {
            response: Span::from_ps(response),
            interface_delay: Span::from_ps(interface_delay),
            pause_frame: Bytes::from_bytes(pause_frame),
            ..after_packets(packets)
        };
        let routed = Routed::star(&[kind, kind]);
        let headroom = limits(&routed, &with(pfc.clone())).headroom.as_u64();
        // Bytes that the link carries until the pause takes effect, in packets of any size that are not too small.
        let mut left = headroom - WIRE;
        let mut sizes = vec![MTU; packets as usize];
        while left > 0 {
            let next = if left > 2 * WIRE {
                WIRE
            } else {
                left.div_ceil(2).max(HEADER + 1)
            };
            let next = if left <= WIRE { left } else { next };
            sizes.push((next - HEADER) as u32);
            left -= next;
        }
        sizes.extend([MTU; 4]);
        prop_assert_eq!(loss(kind, pfc.clone(), sizes.clone()).1, None);
        let less = PfcParams {
            headroom: bytes(headroom - 1),
            ..pfc
        };
        let lost = loss(kind, less, sizes).1;
        prop_assert_eq!(lost.map(|lost| lost.over), Some(1));
        Ok(())
    };
    if let Err(error) = runner(128).run(&drawn, test) {
        panic!("{error}");
    }
}

/// Nothing is lost or overtaken on random fabrics, with any thresholds and the headroom of the formula, and everything drains.
#[test]
fn random_fabrics_lose_nothing_with_the_headroom_of_the_formula() {
    let frames = Cell::new(0);
    let drawn = cases().prop_flat_map(|case| {
        let wire = (case.config.packet.mtu + case.config.packet.header).as_u64();
        let xoff = (0..6 * wire).prop_flat_map(|xoff| (Just(xoff), 0..=xoff));
        let delays = (0_u64..2_000_000, 0_u64..200_000);
        (Just(case), proptest::option::of(xoff), delays)
    });
    let test = |(mut case, thresholds, (response, interface_delay)): (
        crate::lossless::case::Case,
        Option<(u64, u64)>,
        (u64, u64),
    )| {
        case.config.pfc = Some(PfcParams {
            xoff: thresholds.and_then(|(xoff, _)| bytes(xoff)),
            xon: thresholds.and_then(|(_, xon)| bytes(xon)),
            response: Span::from_ps(response),
            interface_delay: Span::from_ps(interface_delay),
            ..PfcParams::default()
        });
        let (routed, _) = case.build();
        let (switch, adapter) = case.control(&routed);
        let mut engine = routed.controlled(&case.config, switch, adapter, &case.flows);
        for &step in &case.steps {
            engine.run_until(Time::from_ps(step)).unwrap();
            prop_assert_eq!(engine.audit(), Ok(()));
        }
        engine.run_until(at(Span::from_ms(40))).unwrap();
        prop_assert_eq!(engine.audit(), Ok(()));
        for record in &engine.workload().records {
            prop_assert_eq!(record.delivered.len(), record.injected.len());
        }
        let of_port = |port| engine.port_counters(port);
        let ports = || routed.fabric.ports.ids();
        let received: u64 = ports().map(|port| of_port(port).pause_rcv).sum();
        let sent: u64 = ports().map(|port| of_port(port).pause_sent).sum();
        prop_assert_eq!(sent, received);
        // All have drained, so that each pause has ended.
        prop_assert_eq!(received % 2, 0);
        frames.set(frames.get() + received);
        Ok(())
    };
    if let Err(error) = runner(256).run(&drawn, test) {
        panic!("{error}");
    }
    assert!(frames.get() > 10_000, "{} frames", frames.get());
}

/// The first packet pauses its sender, which starts `n` packets before that takes effect. The buffer is empty when they have left;
/// then the sender may resume, and the next packet needs the cable and the switch.
#[test]
fn without_thresholds_a_link_sends_bursts_of_one_round_trip() {
    let kind = cable("4x DDR 300 m");
    let routed = Routed::star(&[kind, kind]);
    let config = with(after_packets(0));
    let delay = limits(&routed, &config).delay;
    let packet = ser(kind, MTU);
    let round_trip = delay + propagation(kind);
    let burst = round_trip.as_ps() / packet.as_ps() + 1;
    assert!(burst > 2);
    let script = routed.run(&config, &[Flow::saturating(0, 1)], Span::from_us(200));
    let found = periods(&script.records[0].delivered);
    let gap = config.switch.latency + packet + round_trip;
    let expected = |index: usize| match (index as u64 + 1) % burst {
        0 => gap,
        _ => packet,
    };
    for (index, period) in found.iter().enumerate() {
        assert_eq!(*period, expected(index), "after packet {index}");
    }
    assert!(found.len() > 30);
}

/// A fast sender behind a slow link: the slow link is always busy if the buffer's content at xon lasts until the next
/// packet can leave. Otherwise it is idle for the difference once per pause.
#[test]
fn a_link_is_full_exactly_if_xon_covers_the_round_trip() {
    let (fast, slow) = (cable("4x QDR 400 m"), cable("4x SDR 40 m"));
    let routed = Routed::star(&[fast, slow]);
    let packet = ser(slow, MTU);
    let run = |packets| {
        let config = with(after_packets(packets));
        let mut links = routed.fabric.links.iter();
        let of_fast = links.find(|link| link.kind == fast).unwrap();
        let delay = config.pfc_limits(of_fast).unwrap().unwrap().delay;
        let needed = delay + propagation(fast) + config.switch.latency;
        let script = routed.run(&config, &[Flow::saturating(0, 1)], Span::from_ms(1));
        (needed, periods(&script.records[0].delivered))
    };
    let (needed, _) = run(1);
    let enough = needed.as_ps().div_ceil(packet.as_ps());
    assert!(enough > 2);
    let (_, full) = run(enough);
    assert!(full.iter().all(|period| *period == packet));
    let (_, idle) = run(enough - 1);
    let rest = needed.saturating_sub(packet * (enough - 1));
    let longest = idle.iter().copied().max().unwrap();
    assert_eq!(longest, packet + rest);
    let is_known = |period: &Span| *period == packet || *period == packet + rest;
    assert!(idle.iter().all(is_known));
}

/// By default thresholds keep a link full, also where several senders are paused in turn.
#[test]
fn default_thresholds_keep_a_link_full() {
    for text in ["4x SDR 1 m", "4x DDR 100 m", "4x EDR 30 m", "4x FDR 5 m"] {
        let kind = cable(text);
        let routed = Routed::star(&[kind; 4]);
        let flows = [0, 1, 2].map(|source| Flow::saturating(source, 3));
        let mut engine = routed.engine(&with(PfcParams::default()), &flows);
        engine.run_until(at(Span::from_ms(2))).unwrap();
        let script = engine.workload();
        let mut delivered: Vec<_> = script.records.iter().flat_map(|r| &r.delivered).collect();
        delivered.sort_unstable();
        let delivered: Vec<Time> = delivered.into_iter().copied().collect();
        assert!(
            periods(&delivered)
                .iter()
                .all(|period| *period == ser(kind, MTU))
        );
        let sender = engine.port_counters(routed.fabric.host_port(HostId::new(0)));
        assert!(sender.pause_rcv > 10);
    }
}

/// Of N hosts that send to one host, each sends for 1/N of the time, and is paused for the rest. A pause can begin
/// during a packet, which the host completes.
#[test]
fn an_incast_pauses_each_sender_for_all_but_its_share() {
    let kind = cable("4x DDR 10 m");
    for senders in [2, 3, 5, 8] {
        let cables = vec![kind; senders + 1];
        let routed = Routed::star(&cables);
        let flows: Vec<_> = (0..senders)
            .map(|source| Flow::saturating(source, senders))
            .collect();
        let mut engine = routed.engine(&with(PfcParams::default()), &flows);
        let time = Span::from_ms(20);
        engine.run_until(at(time)).unwrap();
        engine.audit().unwrap();
        for source in 0..senders {
            let counters = engine.port_counters(routed.fabric.host_port(HostId::new(source)));
            let part = |span: Span| span.as_ps() as f64 / time.as_ps() as f64;
            let expected = 1.0 - 1.0 / senders as f64;
            let waits = part(counters.xmit_wait);
            // The buffer takes some packets more at the beginning.
            assert!((waits - expected).abs() < 0.005, "{waits} of {expected}");
            let within_packets = part(ser(kind, MTU)) * (counters.pause_rcv / 2 + 1) as f64;
            let paused = part(counters.xmit_paused);
            assert!(
                waits <= paused && paused <= waits + within_packets,
                "{paused}"
            );
        }
    }
}

/// With buffers that never fill, PFC, credits and no flow control are equal.
#[test]
fn ample_buffers_make_pfc_and_credits_equal() {
    let ample = Bytes::from_bytes(16 << 20);
    let drawn = cases();
    let test = |mut case: crate::lossless::case::Case| {
        case.config.switch.buffer = Some(ample);
        case.config.host.receive_buffer = Some(ample);
        let (routed, _) = case.build();
        let mut of_pfc = case.config.clone();
        of_pfc.pfc = Some(PfcParams {
            buffer: Some(ample),
            ..PfcParams::default()
        });
        let mut engines = [&case.config, &of_pfc].map(|config| {
            let (switch, adapter) = case.control(&routed);
            routed.controlled(config, switch, adapter, &case.flows)
        });
        for engine in &mut engines {
            engine.run_until(at(Span::from_ms(40))).unwrap();
        }
        let [credits, pfc] = engines;
        prop_assert_eq!(&credits.workload().records, &pfc.workload().records);
        for port in routed.fabric.ports.ids() {
            prop_assert_eq!(credits.port_counters(port), pfc.port_counters(port));
        }
        for host in routed.fabric.host_ids() {
            prop_assert_eq!(credits.host_counters(host), pfc.host_counters(host));
        }
        Ok(())
    };
    if let Err(error) = runner(96).run(&drawn, test) {
        panic!("{error}");
    }
}

/// Pauses that wait for each other around a ring are named as a credit loop is.
#[test]
fn a_ring_of_pauses_names_its_cycle() {
    for switches in 4..=7 {
        // On a route of two links, half of the packets that enter a buffer leave at the next switch.
        for hops in 3..switches {
            for packets in [1, 4] {
                let routed = one_way_ring(switches, 1);
                let flows = round(0..switches, switches, 1, hops);
                let mut engine = routed.engine(&with(after_packets(packets)), &flows);
                let deadlock = deadlock_of(&mut engine);
                assert_is_ring(&routed, 1, &deadlock, Vl::ZERO);
                assert!(deadlock.paused);
                let text = deadlock.describe(&routed.fabric);
                assert!(text.contains("cycle of PFC pauses switch-0"), "{text}");
                engine.audit().unwrap();
            }
        }
    }
}

/// Each priority is paused separately.
#[test]
fn a_paused_priority_leaves_the_other_untouched() {
    let kind = cable("4x DDR 10 m");
    let routed = Routed::row(&[&[kind; 2], &[kind; 2]], &[kind]);
    let mut config = crate::common::two_lanes(with(PfcParams::default()));
    let low = [0, 1].map(|lane| (vl(lane), 1));
    config.vl_arbitration.low = low.to_vec();
    // The host of priority 1 receives nothing further after some packets.
    config.host.sink_rate = Rate::from_bits_per_sec(2_000_000_000);
    let blocked = Flow {
        sl: 1,
        ..Flow::saturating(0, 2)
    };
    let free = Flow {
        gap: ser(kind, MTU) * 16,
        packets: 50,
        ..Flow::saturating(1, 3)
    };
    let alone = routed.run(&config, std::slice::from_ref(&free), Span::from_ms(1));
    let both = routed.run(&config, &[free, blocked], Span::from_ms(1));
    assert_eq!(alone.records[0].delivered.len(), 50);
    assert_eq!(both.records[0].delivered.len(), 50);
    // A packet of the other priority can be ahead of it on the shared link, and one in front of that switch's output.
    let late = alone.records[0]
        .delivered
        .iter()
        .zip(&both.records[0].delivered);
    for (alone, both) in late {
        assert!(both.since(*alone) <= ser(kind, MTU) * 2);
    }
}

/// The replay of a lane is known when a window begins, in the engine for every fabric that has windows.
#[test]
fn pfc_has_windows_in_the_engine_for_every_fabric() {
    let routed = Routed::star(&[cable("4x DDR 20 m"); 3]);
    let fits = |config: &EngineConfig| {
        let fabric = CompiledFabric::new(&routed.fabric, &routed.tables, config).unwrap();
        (fabric.is_plain(), fabric.has_windows())
    };
    assert_eq!(fits(&ddr_config()), (true, true));
    assert_eq!(fits(&with(PfcParams::default())), (false, true));
}

/// Windows are no longer than a pause takes, and windows below 2^14 ps are not opened. A pause takes a frame and a
/// pause frame, at 25 bytes in 1 ns, and the cables. Heads and credits would allow longer windows.
#[test]
fn windows_are_no_longer_than_a_pause_takes() {
    let kind = LinkKind::new(Width::X4, Speed::Hdr, Length::from_mm(100));
    let routed = Routed::star(&[kind; 3]);
    let frames = 40 * (200 + 84);
    let cables = propagation(kind).as_ps();
    let has_windows = |delay: u64| {
        let mut config = with(PfcParams {
            response: Span::from_ps(delay - frames - cables),
            max_frame: bytes(200),
            ..PfcParams::default()
        });
        config.switch.latency = Span::from_ns(200);
        config.packet.mtu = Bytes::from_bytes(180);
        config.packet.header = Bytes::from_bytes(20);
        let limits = limits(&routed, &config);
        assert_eq!(limits.delay.as_ps(), delay);
        let fabric = CompiledFabric::new(&routed.fabric, &routed.tables, &config);
        fabric.unwrap().has_windows()
    };
    assert!(!has_windows((1 << 14) - 1));
    assert!(has_windows(1 << 14));
}

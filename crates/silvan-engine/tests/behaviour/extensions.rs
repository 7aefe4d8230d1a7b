//! Data of each packet for schemes, and their choices for it: telemetry, round trips, grants, paths and lanes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use silvan_cc::hooks::{
    Ack, Arrival, Candidate, Flow as QueuePair, Grant, Grants, Hop, LaneView, NoControl,
    PacketView, PortVl, QueueView, SourceControl, SwitchControl,
};
use silvan_core::{Bytes, HostId, PortId, Span, Time, Vl};
use silvan_engine::{BecnCarrier, Engine, EngineConfig, EngineError, FeedbackParams, OnWire};
use silvan_fabric::generators::{Generator, Xgft};
use silvan_fabric::routing::{PathChoice, Routes, d_mod_k, minimal_alternatives};
use silvan_model::InvariantError;

use crate::common::{
    MTU, Routed, WIRE, at, cable, ddr_config, mbit, only_lane, past_fabric, propagation, room, ser,
    through_fabric,
};
use crate::script::{Flow, Script};

/// Stamps at all ports or at one, and notes what waits behind each packet that leaves.
#[derive(Debug, Default)]
struct Stamper {
    only: Option<PortVl>,
    left: Vec<(PortVl, Time, u32)>,
}

impl SwitchControl for Stamper {
    fn needs_stamps(&self) -> bool {
        true
    }

    fn stamps(&mut self, _: Time, output: PortVl) -> bool {
        self.only.is_none_or(|only| only == output)
    }

    fn on_departure(
        &mut self,
        now: Time,
        output: PortVl,
        queue: QueueView,
        packet: PacketView,
    ) -> bool {
        self.left
            .push((output, now, queue.queued_bytes - packet.wire_bytes));
        false
    }
}

/// Notes all acknowledgements, and takes paths in turn.
#[derive(Debug, Default)]
struct Noting {
    acks: Vec<(Time, QueuePair, u32, Time, Vec<Hop>)>,
    paths: bool,
    path: u32,
}

impl SourceControl for Noting {
    fn needs_ack(&self) -> bool {
        true
    }

    fn on_ack(&mut self, now: Time, flow: QueuePair, ack: Ack<'_>) -> bool {
        self.acks
            .push((now, flow, ack.bytes, ack.sent, ack.hops.to_vec()));
        false
    }

    fn needs_select_path(&self) -> bool {
        self.paths
    }

    fn select_path(&mut self, _: Time, _: QueuePair) -> Option<u32> {
        self.path += 1;
        Some(self.path)
    }
}

fn acknowledged(path: FeedbackParams) -> EngineConfig {
    let carrier = Some(BecnCarrier::AckPerPacket);
    EngineConfig {
        feedback: FeedbackParams { carrier, ..path },
        ..ddr_config()
    }
}

const DELAY: Span = Span::from_us(2);

/// Notifications past the fabric.
fn past() -> FeedbackParams {
    past_fabric(DELAY)
}

/// A packet alone on its way: each switch stamps it one propagation and one latency after the last.
#[test]
fn telemetry_of_an_idle_path_is_its_timetable() {
    let kind = cable("4x DDR 20 m");
    let routed = Routed::row(&[&[kind], &[kind]], &[kind]);
    let config = acknowledged(past());
    let flow = Flow {
        gap: Span::from_us(50),
        ..Flow::burst(0, 1, 20)
    };
    let outputs = [routed.port("S0", 3), routed.port_to(1)].map(only_lane);
    for only in [None, Some(outputs[1])] {
        let stamper = Stamper {
            only,
            ..Stamper::default()
        };
        let mut engine = routed.controlled(
            &config,
            stamper,
            Noting::default(),
            std::slice::from_ref(&flow),
        );
        engine.run_until(at(Span::from_ms(2))).unwrap();
        engine.audit().unwrap();
        let acks = &engine.source_control().acks;
        assert_eq!(acks.len(), 20);
        let step = propagation(kind) + config.switch.latency;
        for (number, (now, pair, bytes, sent, hops)) in (1..).zip(acks) {
            assert_eq!(*sent, at(Span::from_us(50) * (number - 1)));
            assert_eq!((pair.source, *bytes), (HostId::new(0), MTU));
            let latency = propagation(kind) * 3 + config.switch.latency * 2 + ser(kind, MTU);
            assert_eq!(*now, *sent + latency + DELAY);
            let hop = |place: u64| Hop {
                output: outputs[place as usize - 1],
                at: *sent + step * place,
                queued_bytes: 0,
                xmit_bytes: number * WIRE,
                rate: kind.data_rate(),
            };
            let all = [hop(1), hop(2)];
            let expected = if only.is_some() { &all[1..] } else { &all };
            assert_eq!(hops, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A hop at a queue has the data of the switch's own hooks at the packet's departure. Every extension belongs to
    /// one packet at any time, also when ports close, and none is left in the end.
    #[test]
    fn telemetry_is_what_the_switches_see(
        ends in prop::collection::vec((0_usize..6, 1_usize..6), 1..12),
        in_band in any::<bool>(),
        per_message in any::<bool>(),
        closed in prop::option::of(0_usize..6),
    ) {
        let kind = cable("4x DDR 2 m");
        let routed = Routed::row(&[&[kind; 3], &[kind; 3]], &[kind]);
        let flows: Vec<_> = ends
            .iter()
            .map(|&(from, step)| Flow { message: 3, ..Flow::burst(from, (from + step) % 6, 30) })
            .collect();
        let bytes = Bytes::from_bytes(64);
        let mut config = acknowledged(past());
        if in_band {
            config = acknowledged(through_fabric(None, bytes, false));
        }
        if per_message {
            config.feedback.carrier = Some(BecnCarrier::AckPerMessage);
        }
        let mut engine = routed.controlled(&config, Stamper::default(), Noting::default(), &flows);
        engine.discard_unroutable(true);
        for step in 1..=40_u64 {
            if let Some(host) = closed.filter(|_| step == 2) {
                engine.close_port(routed.port_to(host), OnWire::Lost);
            }
            engine.run_until(at(Span::from_us(20) * step)).unwrap();
            engine.audit().unwrap();
        }
        let left = &engine.switch_control().left;
        let by_place: BTreeMap<_, _> = left.iter().map(|&(port, now, behind)| ((port, now), behind)).collect();
        for (now, _, _, sent, hops) in &engine.source_control().acks {
            prop_assert!(!hops.is_empty() && sent < now);
            for hop in hops {
                prop_assert_eq!(by_place[&(hop.output, hop.at)], hop.queued_bytes);
            }
        }
        if closed.is_none() {
            let acknowledged: u32 = engine.source_control().acks.iter().map(|ack| ack.2).sum();
            prop_assert_eq!(acknowledged as usize, flows.len() * 30 * MTU as usize);
        }
    }
}

/// Grants what arrives, later by `delay`.
#[derive(Debug, Default)]
struct Granting {
    delay: Span,
    to: Option<HostId>,
    received: Vec<(Time, QueuePair, Arrival)>,
    granted: Vec<(Time, QueuePair, u32)>,
}

impl SourceControl for Granting {
    fn needs_receive(&self) -> bool {
        true
    }

    fn on_receive(&mut self, now: Time, flow: QueuePair, arrival: Arrival, grants: &mut Grants) {
        self.received.push((now, flow, arrival));
        grants.send(Grant {
            source: self.to.unwrap_or(flow.source),
            sl: flow.sl,
            bytes: self.received.len() as u32,
            at: now + self.delay,
        });
    }

    fn on_grant(&mut self, now: Time, flow: QueuePair, bytes: u32) -> bool {
        self.granted.push((now, flow, bytes));
        false
    }
}

/// A grant travels like a notification: past the fabric a constant time, through it that of a packet of its
/// size. It takes its charge of the injection rate like a CNP.
#[test]
fn grants_travel_as_notifications_do() {
    let kind = cable("4x DDR 20 m");
    let routed = Routed::star(&[kind; 2]);
    let flow = Flow {
        gap: Span::from_us(50),
        ..Flow::burst(0, 1, 10)
    };
    let bytes = Bytes::from_bytes(64);
    let delay = Span::from_us(3);
    let mut config = ddr_config();
    let latency = propagation(kind) * 2 + config.switch.latency;
    let through = latency + kind.data_rate().span_for(bytes);
    for (path, way) in [
        (past(), DELAY),
        (through_fabric(None, bytes, true), through),
    ] {
        config.feedback = path;
        let granting = Granting {
            delay,
            ..Granting::default()
        };
        let mut engine =
            routed.controlled(&config, NoControl, granting, std::slice::from_ref(&flow));
        engine.run_until(at(Span::from_ms(1))).unwrap();
        engine.audit().unwrap();
        let Granting {
            received, granted, ..
        } = engine.source_control();
        assert_eq!((received.len(), granted.len()), (10, 10));
        let pairs = received.iter().zip(granted);
        for (number, ((there, pair, arrival), (back, granted_pair, bytes))) in (1..).zip(pairs) {
            assert_eq!(*there, arrival.sent + latency + ser(kind, MTU));
            assert_eq!((arrival.payload, arrival.marked), (MTU, false));
            assert_eq!((pair, *bytes), (granted_pair, number));
            assert_eq!(*back, *there + delay + way);
        }
    }
}

/// No host, or the receiver itself: neither has anything to send to it.
#[test]
fn grants_without_a_receiver_are_errors() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 2]);
    for to in [1, 7] {
        let granting = Granting {
            to: Some(HostId::new(to)),
            ..Granting::default()
        };
        let config = ddr_config();
        let mut engine = routed.controlled(&config, NoControl, granting, &[Flow::burst(0, 1, 1)]);
        let error = engine.run_until(at(Span::from_ms(1))).unwrap_err();
        let expected = InvariantError::GrantTo { host: 1, to };
        assert!(matches!(error, EngineError::Invariant { error, .. } if error == expected));
    }
}

/// Takes a path by a rule, and notes how many packets arrive after one that was sent later.
#[derive(Debug)]
struct Paths {
    /// True for one path for all packets of a flow; false for all paths in turn.
    fixed: bool,
    sent: u32,
    last: BTreeMap<QueuePair, Time>,
    overtaken: u32,
}

impl SourceControl for Paths {
    fn needs_select_path(&self) -> bool {
        true
    }

    fn select_path(&mut self, _: Time, flow: QueuePair) -> Option<u32> {
        self.sent += 1;
        Some(if self.fixed {
            flow.source.index() as u32
        } else {
            self.sent
        })
    }

    fn needs_receive(&self) -> bool {
        true
    }

    fn on_receive(&mut self, _: Time, flow: QueuePair, arrival: Arrival, _: &mut Grants) {
        let last = self.last.entry(flow).or_default();
        self.overtaken += u32::from(arrival.sent < *last);
        *last = arrival.sent.max(*last);
    }
}

/// Chooses the last candidate, or one that is not there.
#[derive(Debug, Default)]
struct Last {
    beyond: u32,
    seen: Vec<usize>,
}

impl SwitchControl for Last {
    fn needs_select_output(&self) -> bool {
        true
    }

    fn select_output(
        &mut self,
        _: Time,
        _: PortId,
        _: QueuePair,
        candidates: &[Candidate],
    ) -> Option<u32> {
        assert!(
            candidates
                .windows(2)
                .all(|pair| pair[0].output < pair[1].output)
        );
        self.seen.push(candidates.len());
        Some(candidates.len() as u32 - 1 + self.beyond)
    }
}

fn tree<S: SwitchControl, C: SourceControl>(
    switch: S,
    source: C,
    flows: &[Flow],
) -> Engine<S, C, Script> {
    let tree = Xgft {
        children: vec![4, 4],
        parents: vec![1, 4],
        links: Vec::new(),
    };
    let fabric = tree.build(cable("4x DDR 2 m")).unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    let alternatives = minimal_alternatives(&fabric).unwrap();
    let routes = Routes {
        alternatives: Some(&alternatives),
        choice: PathChoice::Adaptive,
        ..(&tables).into()
    };
    let mut script = Script::new(flows, fabric.host_count());
    script.follows = false;
    let config = ddr_config();
    Engine::new(&fabric, routes, &config, switch, source, script).unwrap()
}

/// Packets of one flow on one path stay in order, for any traffic on other paths. On all paths in turn they do not,
/// because other traffic makes the paths differ.
#[test]
fn packets_of_one_path_stay_in_order() {
    let flows: Vec<_> = (0..16)
        .map(|host| Flow::burst(host, (host * 5 + 4) % 16, 300))
        .collect();
    let flows: Vec<_> = flows
        .into_iter()
        .filter(|flow| flow.source != flow.destination)
        .collect();
    let run = |fixed| {
        let paths = Paths {
            fixed,
            sent: 0,
            last: BTreeMap::new(),
            overtaken: 0,
        };
        let mut engine = tree(NoControl, paths, &flows);
        engine.run_until(at(Span::from_ms(5))).unwrap();
        engine.audit().unwrap();
        assert_eq!(engine.delivered_packets(), 300 * flows.len() as u64);
        engine.source_control().overtaken
    };
    assert_eq!(run(true), 0);
    assert!(run(false) > 0);
}

/// A switch's scheme chooses by itself, packet by packet; what it cannot choose ends the run.
#[test]
fn a_switch_chooses_among_its_candidates() {
    let flows = [Flow::burst(0, 15, 50), Flow::burst(1, 10, 50)];
    let mut engine = tree(Last::default(), NoControl, &flows);
    engine.run_until(at(Span::from_ms(1))).unwrap();
    engine.audit().unwrap();
    assert_eq!(engine.delivered_packets(), 100);
    assert_eq!(engine.switch_control().seen, [4; 100]);

    let mut engine = tree(
        Last {
            beyond: 1,
            ..Last::default()
        },
        NoControl,
        &flows,
    );
    let error = engine.run_until(at(Span::from_ms(1))).unwrap_err();
    let expected = InvariantError::ChosenOutput {
        chosen: 4,
        candidates: 4,
    };
    assert!(matches!(error, EngineError::Invariant { error, .. } if error == expected));
}

/// A lane by destination.
#[derive(Debug)]
struct Lanes(u8);

impl SourceControl for Lanes {
    fn needs_select_vl(&self) -> bool {
        true
    }

    fn select_vl(&mut self, _: Time, flow: QueuePair, vl: Vl) -> Option<Vl> {
        assert_eq!(vl, Vl::ZERO);
        let lane = flow.destination.index() as u8 % self.0;
        Some(Vl::try_new(lane).unwrap())
    }
}

/// Host 0 sends to a slow host and to a fast host behind one cable. On one lane the slow host's packets fill the
/// buffer, and both hosts get equal rates. On separate lanes the fast host gets the rest of the link.
#[test]
fn lanes_by_destination_keep_flows_apart() {
    let kind = cable("4x DDR 2 m");
    let slow = cable("1x SDR 2 m");
    let routed = Routed::row(&[&[kind], &[slow, kind]], &[kind]);
    let flows = [Flow::saturating(0, 1), Flow::saturating(0, 2)];
    let mut config = EngineConfig {
        data_vls: 2,
        ..ddr_config()
    };
    config.switch.buffer = Some(room(8));
    let delivered = |lanes| {
        let mut engine = routed.controlled(&config, NoControl, Lanes(lanes), &flows);
        engine.run_until(at(Span::from_ms(2))).unwrap();
        engine.audit().unwrap();
        [0, 1].map(|flow| engine.workload().records[flow].delivered.len() as f64)
    };
    // Packets in 2 ms over a link of 16 Gbit/s, and over one of 2 Gbit/s.
    let per_link = |rate| 2e9 / mbit(rate).span_for(Bytes::from_bytes(WIRE)).as_ps() as f64;
    let [shared, separate] = delivered(1);
    assert!((shared / per_link(2_000) - 1.0).abs() < 0.05, "{shared}");
    assert!((separate / shared - 1.0).abs() < 0.1, "{separate}");
    let [alone, fast] = delivered(2);
    assert!((alone / per_link(2_000) - 1.0).abs() < 0.05, "{alone}");
    let rest = per_link(16_000) - per_link(2_000);
    assert!((fast / rest - 1.0).abs() < 0.05, "{fast} of {rest}");

    let mut engine = routed.controlled(&config, NoControl, Lanes(3), &flows);
    let error = engine.run_until(at(Span::from_ms(1))).unwrap_err();
    let expected = InvariantError::ChosenLane {
        host: 0,
        vl: 2,
        vls: 2,
    };
    assert!(matches!(error, EngineError::Invariant { error, .. } if error == expected));
}

/// Chooses lanes in turn, and notes where packets are.
#[derive(Debug, Default)]
struct LanesInTurn {
    lanes: u8,
    turn: u8,
    hops: Vec<(QueuePair, LaneView)>,
}

impl SwitchControl for LanesInTurn {
    fn needs_select_next_vl(&self) -> bool {
        true
    }

    fn select_next_vl(&mut self, _: Time, hop: LaneView, flow: QueuePair, _: Vl) -> Option<Vl> {
        self.hops.push((flow, hop));
        self.turn = (self.turn + 1) % self.lanes;
        Some(Vl::try_new(self.turn).unwrap())
    }
}

/// A packet's next input and output are those at the next switch, from its host to its destination. Credits are those
/// of the chosen lanes.
#[test]
fn lanes_are_chosen_hop_by_hop() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::row(&[&[kind; 2], &[kind], &[kind; 2]], &[kind; 2]);
    let mut config = EngineConfig {
        data_vls: 3,
        ..ddr_config()
    };
    config.switch.buffer = Some(room(8));
    // One packet at a time: the hops of a packet follow each other.
    let alone = Flow {
        gap: Span::from_us(50),
        ..Flow::burst(0, 3, 10)
    };
    let in_turn = |lanes| LanesInTurn {
        lanes,
        ..LanesInTurn::default()
    };
    let mut engine = routed.controlled(&config, in_turn(3), NoControl, &[alone]);
    engine.run_until(at(Span::from_ms(1))).unwrap();
    let hops = &engine.switch_control().hops;
    assert_eq!(hops.len(), 10 * 4);
    for packet in hops.chunks(4) {
        let hop = |place: usize| packet[place].1;
        assert_eq!(hop(0).input, None);
        for place in 0..3 {
            assert_eq!(hop(place).next_input, hop(place + 1).input);
            assert_eq!(hop(place).next_output, Some(hop(place + 1).output));
        }
        assert_eq!((hop(3).next_input, hop(3).next_output), (None, None));
    }

    let all: Vec<Flow> = [(0, 3), (1, 4), (2, 3), (4, 0), (3, 2)]
        .map(|(from, to)| Flow::burst(from, to, 200))
        .to_vec();
    let mut engine = routed.controlled(&config, in_turn(3), NoControl, &all);
    for us in (10..=4_000).step_by(70) {
        engine.run_until(at(Span::from_us(us))).unwrap();
        engine.audit().unwrap();
    }
    assert_eq!(engine.delivered_packets(), 1_000);

    let mut engine = routed.controlled(&config, in_turn(5), NoControl, &all);
    let error = engine.run_until(at(Span::from_ms(1))).unwrap_err();
    let EngineError::Invariant { error, .. } = error else {
        panic!("{error}");
    };
    assert!(
        matches!(error, InvariantError::NextLane { vl: 3, vls: 3, .. }),
        "{error}"
    );
}

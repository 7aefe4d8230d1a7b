//! Packets that change their lane at a switch and are held until earlier packets have left.
//!
//! Also hosts whose flows wait for credits of the lanes that switches choose.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use silvan_cc::hooks::{
    Flow as QueuePair, LaneView, NoControl, PacketView, PortVl, QueueView, SourceControl,
    SwitchControl,
};
use silvan_core::stream::SplitMix64;
use silvan_core::{PortId, Span, Time, Vl};
use silvan_engine::EngineConfig;

use crate::common::{MTU, Routed, at, cable, ddr_config, room, two_lanes};
use crate::script::Flow;

/// Draws a lane for each packet, and holds what has not come first to its output from its input.
#[derive(Debug)]
struct InOrder {
    stream: SplitMix64,
    /// By output and input, the lanes behind and before it of the packets that wait, in their order.
    waiting: BTreeMap<(u32, PortId), VecDeque<(u32, Vl)>>,
    /// The lane on which the packet has come whose next lane was chosen last.
    before: Vl,
    held: u32,
}

impl SwitchControl for InOrder {
    fn needs_select_next_vl(&self) -> bool {
        true
    }

    fn needs_holds_head(&self) -> bool {
        true
    }

    fn select_next_vl(&mut self, _: Time, hop: LaneView, _: QueuePair, vl: Vl) -> Option<Vl> {
        self.before = vl;
        hop.input.map(|_| match self.stream.one_in(2) {
            true => Vl::try_new(1 - vl.as_u8()).unwrap(),
            false => vl,
        })
    }

    fn on_queued(&mut self, _: Time, output: PortVl, _: QueueView, packet: PacketView) {
        let lanes = self
            .waiting
            .entry((output.0 / 2, packet.input))
            .or_default();
        assert_eq!(packet.vl, self.before);
        lanes.push_back((output.0 % 2, packet.vl));
    }

    fn holds_head(&mut self, _: Time, output: PortVl, input: PortId, _: QueuePair) -> bool {
        let first = self.waiting[&(output.0 / 2, input)].front();
        let held = first.unwrap().0 != output.0 % 2;
        self.held += u32::from(held);
        held
    }

    fn on_departure(&mut self, _: Time, output: PortVl, _: QueueView, packet: PacketView) -> bool {
        let lanes = self.waiting.get_mut(&(output.0 / 2, packet.input));
        let first = lanes.unwrap().pop_front();
        assert_eq!(first, Some((output.0 % 2, packet.vl)));
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Packets leave each output in the order of their arrival by an input, for any lanes. All packets arrive, and
    /// credits add up.
    #[test]
    fn held_packets_keep_their_order(
        buffer in 2_u64..10,
        bypass in prop::sample::select(vec![None, Some(1), Some(4)]),
        seed in any::<u64>(),
    ) {
        let mut config = two_lanes(ddr_config());
        config.switch.buffer = Some(room(buffer));
        config.switch.bypass_limit = bypass;
        let kind = cable("4x DDR 2 m");
        let routed = Routed::row(&[&[kind, kind], &[kind, kind]], &[kind]);
        // Sizes in turn: a delivery out of order shows as a wrong size.
        let flows: Vec<Flow> = [(0, 3), (1, 3), (2, 3), (0, 2), (3, 1)]
            .map(|(source, destination)| Flow { sizes: vec![MTU, 100, 700], ..Flow::burst(source, destination, 60) })
            .to_vec();
        let in_order = InOrder {
            stream: SplitMix64::new(seed),
            waiting: BTreeMap::new(),
            before: Vl::ZERO,
            held: 0,
        };
        let mut engine = routed.controlled(&config, in_order, NoControl, &flows);
        for step in 1..=40 {
            engine.run_until(at(Span::from_us(100 * step))).unwrap();
            engine.audit().unwrap();
        }
        prop_assert!(engine.switch_control().held > 0);
        prop_assert_eq!(engine.delivered_packets(), 5 * 60);
    }
}

/// Puts packets for one host on the second lane, at hosts and switches.
#[derive(Debug)]
struct LaneOfHost {
    destination: usize,
    known: bool,
}

impl LaneOfHost {
    fn lane(&self, flow: QueuePair) -> Option<Vl> {
        Vl::try_new(u8::from(flow.destination.index() == self.destination)).ok()
    }
}

impl SwitchControl for LaneOfHost {
    fn needs_select_next_vl(&self) -> bool {
        true
    }

    fn needs_host_vl(&self) -> bool {
        self.known
    }

    fn select_next_vl(&mut self, _: Time, _: LaneView, flow: QueuePair, _: Vl) -> Option<Vl> {
        self.lane(flow)
    }

    fn host_vl(&mut self, _: Time, _: PortId, flow: QueuePair, _: Vl) -> Option<Vl> {
        self.lane(flow)
    }
}

/// Notified of nothing, but there, so that hosts ask.
#[derive(Debug)]
struct Asked;

impl SourceControl for Asked {}

/// Oracle: three hosts have a third of the link of host 3. The one that sends to host 4, too, has the rest of its own link for
/// that, two thirds, if its flows wait for their lanes. Else both flows have the same, as one waits for the other.
#[test]
fn a_flow_waits_for_the_lane_that_switches_choose_while_others_go() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 5]);
    let mut config = EngineConfig {
        data_vls: 2,
        ..ddr_config()
    };
    config.switch.buffer = Some(room(8));
    let flows: Vec<Flow> = [(0, 3), (1, 3), (2, 3), (0, 4)]
        .map(|(from, to)| Flow::saturating(from, to))
        .to_vec();
    let shares = |known| {
        let lanes = LaneOfHost {
            destination: 3,
            known,
        };
        let mut engine = routed.controlled(&config, lanes, Asked, &flows);
        engine.run_until(at(Span::from_ms(1))).unwrap();
        engine.audit().unwrap();
        let delivered = |flow: usize| engine.workload().records[flow].delivered.len() as f64;
        let link = delivered(0) + delivered(1) + delivered(2);
        (delivered(0) / link, delivered(3) / link)
    };
    let (hot, other) = shares(true);
    assert!((hot - 1.0 / 3.0).abs() < 0.01, "{hot}");
    assert!((other - 2.0 / 3.0).abs() < 0.01, "{other}");
    let (hot, other) = shares(false);
    assert!((other - hot).abs() < 0.01, "{other}, {hot}");
}

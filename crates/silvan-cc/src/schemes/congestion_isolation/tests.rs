#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use silvan_core::{HostId, PortNumber, Sl, SwitchId};

use super::super::flows::tests::{are_refused, at, setup};
use super::*;
use crate::schemes::SwitchPort;

/// Host 0 is connected to port 1 of a switch, whose port 2 leads to port 1 of another one. This one's port 2 leads to
/// a host, and its port 3 to a third switch.
const HOST: PortId = PortId::new(0);
const FIRST_IN: PortId = PortId::new(1);
const FIRST_OUT: PortId = PortId::new(2);
const SECOND_IN: PortId = PortId::new(3);
const TO_HOST: PortId = PortId::new(4);
const TO_THIRD: PortId = PortId::new(5);
const PACKET: u32 = 1_000;

fn port(switch: usize, number: u8, to_host: bool, peer: Option<PortId>) -> Option<SwitchPort> {
    Some(SwitchPort {
        switch: SwitchId::new(switch),
        number: PortNumber::new(number),
        to_host,
        peer,
    })
}

fn built() -> Isolator {
    let ports = [
        None,
        port(0, 1, true, Some(HOST)),
        port(0, 2, false, Some(SECOND_IN)),
        port(1, 1, false, Some(FIRST_OUT)),
        port(1, 2, true, None),
        port(1, 3, false, None),
    ];
    let scheme = CongestionIsolation {
        set_point: Some(Bytes::from_bytes(u64::from(4 * PACKET))),
        ..CongestionIsolation::default()
    };
    let setup = Setup {
        ports: &ports,
        data_vls: 2,
        ..setup()
    };
    assert_eq!(scheme.check_setup(&setup), Ok(()));
    scheme.build(&setup).unwrap().0
}

fn flow(source: usize) -> Flow {
    Flow {
        source: HostId::new(source),
        destination: HostId::new(9),
        sl: Sl::ZERO,
        queue: 0,
    }
}

/// The hops of a packet from host 0 to an output of the second switch.
fn hops(to: PortId) -> [LaneView; 3] {
    let hop = |input, output, next_input| LaneView {
        input,
        output,
        next_input,
        next_output: None,
    };
    [
        hop(None, HOST, Some(FIRST_IN)),
        hop(Some(FIRST_IN), FIRST_OUT, Some(SECOND_IN)),
        hop(Some(SECOND_IN), to, None),
    ]
}

/// The packets that wait for one output, as the engine counts them.
struct Waiting {
    isolator: Isolator,
    output: PortId,
    has_credit: bool,
    bytes: [u32; LANES],
}

impl Waiting {
    fn of(output: PortId) -> Self {
        Self {
            isolator: built(),
            output,
            has_credit: true,
            bytes: [0; LANES],
        }
    }

    fn port_vl(&self, lane: usize) -> PortVl {
        PortVl(self.output.index() as u32 * 2 + lane as u32)
    }

    fn view(&self, lane: usize) -> (QueueView, PacketView) {
        let queue = QueueView {
            queued_bytes: self.bytes[lane],
            has_credit: self.has_credit,
        };
        let packet = PacketView {
            wire_bytes: PACKET,
            marked: false,
            input: SECOND_IN,
            vl: Vl::ZERO,
        };
        (queue, packet)
    }

    /// A packet passes the host and the first switch, where nothing waits, and joins. Returns its lanes.
    fn join(&mut self, us: u64, flow: Flow) -> [usize; 3] {
        let lanes = hops(self.output).map(|hop| {
            let lane = self.isolator.select_next_vl(at(us), hop, flow, Vl::ZERO);
            lane.unwrap().index()
        });
        self.bytes[lanes[2]] += PACKET;
        let (queue, packet) = self.view(lanes[2]);
        let port_vl = self.port_vl(lanes[2]);
        self.isolator.on_queued(at(us), port_vl, queue, packet);
        lanes
    }

    fn leave(&mut self, us: u64, lane: usize) {
        let (queue, packet) = self.view(lane);
        let port_vl = self.port_vl(lane);
        assert!(!self.isolator.on_departure(at(us), port_vl, queue, packet));
        self.bytes[lane] -= PACKET;
    }

    fn holds(&mut self, lane: usize, flow: Flow) -> bool {
        let port_vl = self.port_vl(lane);
        self.isolator.holds_head(at(0), port_vl, SECOND_IN, flow)
    }
}

#[test]
fn a_flow_that_joins_at_the_set_point_changes_its_lane_hop_by_hop() {
    let mut waiting = Waiting::of(TO_HOST);
    for _ in 0..4 {
        assert_eq!(waiting.join(10, flow(1)), [0, 0, 0]);
    }
    // The fourth reached the set point. Its neighbour knows of it a microsecond later.
    assert_eq!(waiting.isolator.messages(), 1);
    assert_eq!(waiting.join(10, flow(1)), [0, 0, 1]);
    assert_eq!(waiting.join(11, flow(1)), [0, 1, 1]);
    // Another flow finds the queue as it is, and is next.
    assert_eq!(waiting.join(11, flow(2)), [0, 0, 0]);
    assert_eq!(waiting.join(11, flow(2)), [0, 0, 1]);
    assert_eq!(waiting.isolator.messages(), 2);
}

#[test]
fn a_neighbour_whose_congesting_lane_is_full_passes_the_message_on_to_the_host() {
    let mut waiting = Waiting::of(FIRST_OUT);
    waiting.has_credit = false;
    waiting
        .isolator
        .send_upstream(at(1), TO_HOST, SECOND_IN, flow(1));
    let [at_host, at_switch, _] = hops(TO_HOST);
    let host = |isolator: &mut Isolator, us| {
        let vl = isolator.host_vl(at(us), HOST, flow(1), Vl::ZERO);
        vl.unwrap().index()
    };
    for joined in 1..=6_u32 {
        let lane = waiting
            .isolator
            .select_next_vl(at(2), at_switch, flow(1), Vl::ZERO);
        assert_eq!(lane.unwrap().index(), CONGESTING);
        assert_eq!(waiting.isolator.messages(), 1 + u64::from(joined > 4));
        let queue = QueueView {
            queued_bytes: joined * PACKET,
            has_credit: false,
        };
        let packet = PacketView {
            wire_bytes: PACKET,
            marked: false,
            input: FIRST_IN,
            vl: Vl::ZERO,
        };
        let port_vl = waiting.port_vl(CONGESTING);
        waiting.isolator.on_queued(at(2), port_vl, queue, packet);
    }
    // While a flow may change its lane, a host has to ask about all.
    let may_change = |isolator: &Isolator, us| isolator.host_vl_version(at(us), HOST).is_none();
    assert!(!may_change(&waiting.isolator, 2));
    assert_eq!(host(&mut waiting.isolator, 2), MONITORED);
    assert!(may_change(&waiting.isolator, 3));
    assert_eq!(host(&mut waiting.isolator, 3), CONGESTING);
    assert!(may_change(&waiting.isolator, 3));
    let lane = |isolator: &mut Isolator, us| {
        let lane = isolator.select_next_vl(at(us), at_host, flow(1), Vl::ZERO);
        lane.unwrap().index()
    };
    assert_eq!(lane(&mut waiting.isolator, 3), CONGESTING);
    // A flow that has waited for credits of this lane longer than the hold is sent on it, and then returns.
    assert_eq!(host(&mut waiting.isolator, 500), CONGESTING);
    assert_eq!(lane(&mut waiting.isolator, 500), CONGESTING);
    assert_eq!(host(&mut waiting.isolator, 500), MONITORED);
    assert_eq!(lane(&mut waiting.isolator, 500), MONITORED);
    assert!(!may_change(&waiting.isolator, 500));
}

#[test]
fn its_first_packet_is_held_until_what_came_before_has_left() {
    let mut waiting = Waiting::of(TO_HOST);
    for _ in 0..4 {
        waiting.join(10, flow(1));
    }
    assert_eq!(waiting.join(10, flow(1))[2], CONGESTING);
    for us in 10..14 {
        assert!(waiting.holds(CONGESTING, flow(1)));
        assert!(!waiting.holds(MONITORED, flow(1)));
        waiting.leave(us, MONITORED);
    }
    assert!(!waiting.holds(CONGESTING, flow(1)));
}

#[test]
fn it_returns_after_the_hold_and_is_held_again() {
    let mut waiting = Waiting::of(TO_HOST);
    for _ in 0..4 {
        waiting.join(10, flow(1));
    }
    waiting.join(10, flow(1));
    waiting.join(10, flow(1));
    (0..4).for_each(|_| waiting.leave(11, MONITORED));
    // Two wait on the congesting lane: less than the set point, so that nothing renews it.
    assert_eq!(waiting.join(109, flow(1))[2], CONGESTING);
    assert_eq!(waiting.join(110, flow(1))[2], MONITORED);
    assert!(waiting.holds(MONITORED, flow(1)));
    (0..3).for_each(|_| waiting.leave(111, CONGESTING));
    assert!(!waiting.holds(MONITORED, flow(1)));
    waiting.leave(111, MONITORED);
    waiting.join(112, flow(1));
    assert!(waiting.isolator.outputs[TO_HOST.index()].flows.is_empty());
}

#[test]
fn a_port_without_credits_inside_the_fabric_isolates_nothing() {
    let mut waiting = Waiting::of(TO_THIRD);
    waiting.has_credit = false;
    for _ in 0..20 {
        assert_eq!(waiting.join(1, flow(1))[2], MONITORED);
    }
    waiting.has_credit = true;
    waiting.join(1, flow(1));
    assert_eq!(waiting.join(1, flow(1))[2], CONGESTING);
}

#[test]
fn a_port_whose_flows_congest_another_one_isolates_none_of_its_own() {
    let mut waiting = Waiting::of(TO_THIRD);
    let arrives = at(1);
    let behind = &mut waiting.isolator.outputs[TO_THIRD.index()].root_is_behind;
    behind.extend(arrives, at(101));
    for us in [1, 100] {
        for _ in 0..10 {
            assert_eq!(waiting.join(us, flow(1))[2], MONITORED);
        }
    }
    waiting.join(101, flow(1));
    assert_eq!(waiting.join(101, flow(1))[2], CONGESTING);
}

#[test]
fn flows_that_have_ended_are_forgotten_and_discarded_packets_hold_nothing() {
    let mut waiting = Waiting::of(TO_HOST);
    for source in 0..100 {
        waiting.join(1, flow(source));
    }
    waiting.join(1, flow(50));
    assert!(waiting.holds(CONGESTING, flow(50)));
    for lane in [MONITORED, CONGESTING] {
        let port_vl = waiting.port_vl(lane);
        waiting.isolator.on_discarded(at(2), port_vl);
        waiting.bytes[lane] = 0;
    }
    assert!(!waiting.holds(CONGESTING, flow(50)));
    for source in 100..200 {
        waiting.join(500, flow(source));
    }
    // Most of the first hundred flows were over when the table had 128 entries.
    assert!(waiting.isolator.outputs[TO_HOST.index()].flows.len() <= 100);
}

#[test]
fn what_it_cannot_work_with_is_refused() {
    let base = CongestionIsolation::default;
    let hold = CongestionIsolation {
        hold: base().message_delay,
        ..base()
    };
    are_refused([(hold, "hold")]);
    let two = Setup {
        data_vls: 2,
        ..setup()
    };
    let steps = Setup {
        routes_use_lanes: true,
        ..two
    };
    let twice = Setup {
        waits_once: false,
        ..two
    };
    for (setup, message) in [
        (setup(), "one data lane"),
        (steps, "from deadlock"),
        (twice, "single queues"),
    ] {
        let error = base().check_setup(&setup).unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
}

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use silvan_core::{HostId, PortId, PortNumber, Sl, SwitchId, Time, Vl};

use super::super::flows::tests::{are_refused, at, setup};
use super::*;
use crate::hooks::{Flow, LaneView, PacketView, PortVl, QueueView, RouteView, SwitchControl};
use crate::schemes::SwitchPort;

mod versions;

/// Host 0 is connected to port 1 of a switch, whose port 2 leads to port 1 of another one. This one's ports 2 and 3 lead to
/// hosts 1 and 2.
const HOST: PortId = PortId::new(0);
const FIRST_IN: PortId = PortId::new(1);
const FIRST_OUT: PortId = PortId::new(2);
const SECOND_IN: PortId = PortId::new(3);
const TO: [PortId; 3] = [PortId::new(6), PortId::new(4), PortId::new(5)];
const PACKET: u32 = 1_000;

fn port(switch: usize, number: u8, peer: Option<PortId>) -> Option<SwitchPort> {
    Some(SwitchPort {
        switch: SwitchId::new(switch),
        number: PortNumber::new(number),
        to_host: peer.is_none_or(|peer| peer == HOST),
        peer,
    })
}

/// Host 0 is behind port 1 of the first switch, the others behind the second one.
struct Routes;

impl RouteView for Routes {
    fn output(&self, port: PortId, to: HostId) -> Option<PortId> {
        let is_first = port == FIRST_IN || port == FIRST_OUT;
        Some(match (is_first, to.index()) {
            (true, 0) => FIRST_IN,
            (true, _) => FIRST_OUT,
            (false, 0) => SECOND_IN,
            (false, to) => TO[to],
        })
    }
}

/// The packets that wait, and those in the buffers, as the engine counts them.
struct Fabric {
    queues: SetAside,
    lanes: usize,
    /// By port and lane.
    waiting: Vec<u32>,
}

impl Fabric {
    fn new(variant: Variant, lanes: u8) -> Self {
        let ports = [
            None,
            port(0, 1, Some(HOST)),
            port(0, 2, Some(SECOND_IN)),
            port(1, 1, Some(FIRST_OUT)),
            port(1, 2, None),
            port(1, 3, None),
            port(1, 4, None),
        ];
        let scheme = Recn {
            variant,
            detection: Some(Bytes::from_bytes(4 * u64::from(PACKET))),
            propagation: Some(Bytes::from_bytes(2 * u64::from(PACKET))),
            ..Recn::default()
        };
        let setup = Setup {
            ports: &ports,
            data_vls: lanes,
            hosts: 3,
            ..setup()
        };
        assert_eq!(scheme.check_setup(&setup), Ok(()));
        let mut queues = scheme.build(&setup).unwrap().0;
        for port in [FIRST_IN, SECOND_IN] {
            queues.on_routes(port, &Routes);
        }
        Self {
            queues,
            lanes: usize::from(lanes),
            waiting: vec![0; ports.len() * usize::from(lanes)],
        }
    }

    fn port_vl(&self, output: PortId, lane: usize) -> PortVl {
        PortVl((output.index() * self.lanes + lane) as u32)
    }

    fn flow(to: usize) -> Flow {
        Flow {
            source: HostId::new(0),
            destination: HostId::new(to),
            sl: Sl::ZERO,
            queue: 0,
        }
    }

    fn hop(place: usize, to: usize) -> LaneView {
        let (input, output, next) = [
            (None, HOST, Some((FIRST_IN, FIRST_OUT))),
            (Some(FIRST_IN), FIRST_OUT, Some((SECOND_IN, TO[to]))),
            (Some(SECOND_IN), TO[to], None),
        ][place];
        LaneView {
            input,
            output,
            next_input: next.map(|next| next.0),
            next_output: next.map(|next| next.1),
        }
    }

    /// The lane of a packet behind the host, the first or the second switch.
    fn choose(&mut self, now: Time, place: usize, to: usize) -> usize {
        let hop = Self::hop(place, to);
        let chosen = self
            .queues
            .select_next_vl(now, hop, Self::flow(to), Vl::ZERO);
        chosen.unwrap().index()
    }

    /// A packet starts at the host.
    fn start(&mut self, now: Time, to: usize) -> usize {
        self.choose(now, 0, to)
    }

    /// All outputs have received what has arrived by an instant.
    fn reach(&mut self, now: Time) {
        self.queues
            .receive_all(now.saturating_add(Span::from_ps(1)));
    }

    fn view(place: usize, vl: usize) -> PacketView {
        PacketView {
            wire_bytes: PACKET,
            marked: false,
            input: Self::hop(place, 1).input.unwrap(),
            vl: Vl::try_new(vl as u8).unwrap(),
        }
    }

    /// A packet joins those that wait at the first or the second switch.
    fn join(&mut self, now: Time, place: usize, to: usize, vl: usize) -> usize {
        let lane = self.choose(now, place, to);
        let port_vl = self.port_vl(Self::hop(place, to).output, lane);
        self.waiting[port_vl.0 as usize] += PACKET;
        let queue = QueueView {
            queued_bytes: self.waiting[port_vl.0 as usize],
            has_credit: false,
        };
        self.queues
            .on_queued(now, port_vl, queue, Self::view(place, vl));
        lane
    }

    fn leave(&mut self, now: Time, place: usize, to: usize, lane: usize, vl: usize) {
        let port_vl = self.port_vl(Self::hop(place, to).output, lane);
        let queue = QueueView {
            queued_bytes: self.waiting[port_vl.0 as usize],
            has_credit: true,
        };
        self.waiting[port_vl.0 as usize] -= PACKET;
        let packet = Self::view(place, vl);
        assert!(!self.queues.on_departure(now, port_vl, queue, packet));
    }

    fn holds(&mut self, lane: usize, to: usize) -> bool {
        let port_vl = self.port_vl(FIRST_OUT, lane);
        let flow = Self::flow(to);
        self.queues.holds_head(at(0), port_vl, FIRST_IN, flow)
    }

    /// Packets for a host pass the first switch and wait at the second one.
    fn fill(&mut self, now: Time, to: usize, packets: usize) {
        for _ in 0..packets {
            let first = self.start(now, to);
            let second = self.join(now, 1, to, first);
            self.leave(now, 1, to, second, first);
            assert_eq!(self.join(now, 2, to, second), 0);
        }
    }
}

const BOTH: [Variant; 2] = [Variant::Recn, Variant::Fbicm];

#[test]
fn a_root_sets_a_queue_aside_upstream_and_a_full_one_the_next() {
    for variant in BOTH {
        let mut fabric = Fabric::new(variant, 3);
        fabric.fill(at(0), 1, 3);
        fabric.reach(at(1));
        assert_eq!(fabric.queues.notifications(), 0);
        fabric.fill(at(1), 1, 1);
        // The neighbour knows of it a microsecond later; packets for the other host stay.
        assert_eq!(fabric.choose(at(1), 1, 1), 0);
        assert_eq!(fabric.join(at(2), 1, 1, 0), 1);
        assert_eq!(fabric.choose(at(2), 1, 2), 0);
        assert_eq!(fabric.queues.notifications(), 1);
        // Two packets wait in the queue that is set aside: the host is notified.
        assert_eq!(fabric.join(at(2), 1, 1, 0), 1);
        let host = |fabric: &mut Fabric, us| {
            let flow = Fabric::flow(1);
            let vl = fabric.queues.host_vl(at(us), HOST, flow, Vl::ZERO);
            vl.unwrap().index()
        };
        assert_eq!(host(&mut fabric, 2), 0);
        assert_eq!(host(&mut fabric, 3), 1);
        assert_eq!(fabric.choose(at(3), 0, 1), 1);
        assert_eq!(fabric.choose(at(3), 0, 2), 0);
        assert_eq!(fabric.queues.notifications(), 2);
    }
}

#[test]
fn a_root_without_a_free_queue_is_refused() {
    for variant in BOTH {
        for (lanes, refused) in [(2, 1), (3, 0)] {
            let mut fabric = Fabric::new(variant, lanes);
            fabric.fill(at(1), 1, 4);
            fabric.fill(at(1), 2, 4);
            fabric.reach(at(2));
            assert_eq!(fabric.queues.refused(), refused);
            assert_eq!(fabric.choose(at(2), 1, 1), 1);
            assert_eq!(fabric.choose(at(2), 1, 2), 2 * (1 - refused as usize));
        }
    }
}

#[test]
fn the_first_packet_is_held_until_what_came_before_has_left() {
    for variant in BOTH {
        let mut fabric = Fabric::new(variant, 3);
        fabric.fill(at(1), 1, 4);
        for to in [1, 2, 1] {
            assert_eq!(fabric.join(at(1), 1, to, 0), 0);
        }
        assert_eq!(fabric.join(at(2), 1, 1, 0), 1);
        // Later packets on lane 0 do not hold the packet.
        assert_eq!(fabric.join(at(2), 1, 2, 0), 0);
        for to in [1, 2, 1] {
            assert!(fabric.holds(1, 1) && !fabric.holds(0, 2));
            fabric.leave(at(2), 1, to, 0, 0);
        }
        assert!(!fabric.holds(1, 1));
    }
}

/// The queue of the switch is freed after that of the host, its branch, and not before its own packets have left the
/// buffer behind it.
#[test]
fn queues_are_freed_from_the_leaves_when_they_are_empty() {
    for variant in BOTH {
        let mut fabric = Fabric::new(variant, 3);
        fabric.fill(at(1), 1, 4);
        fabric.join(at(2), 1, 1, 0);
        fabric.join(at(2), 1, 1, 0);
        assert_eq!(fabric.start(at(4), 1), 1);
        assert_eq!(fabric.join(at(4), 1, 1, 1), 1);
        for vl in [0, 0] {
            fabric.leave(at(5), 1, 1, 1, vl);
            fabric.join(at(5), 2, 1, 1);
            fabric.leave(at(5), 2, 1, 0, 1);
        }
        // The buffer is empty, but a packet still waits, and the host has a branch.
        let in_use = |fabric: &mut Fabric, us| {
            fabric.reach(at(us));
            [HOST, FIRST_OUT].map(|port| fabric.queues.in_use(port))
        };
        assert_eq!(in_use(&mut fabric, 6), [1, 1]);
        fabric.leave(at(7), 1, 1, 1, 1);
        assert_eq!(in_use(&mut fabric, 8), [0, 1]);
        fabric.join(at(8), 2, 1, 1);
        assert_eq!(in_use(&mut fabric, 9), [0, 1]);
        fabric.leave(at(9), 2, 1, 0, 1);
        assert_eq!(in_use(&mut fabric, 10), [0, 0]);
        assert_eq!(fabric.choose(at(10), 1, 1), 0);
    }
}

#[test]
fn a_queue_that_no_packet_takes_is_freed_when_another_root_needs_it() {
    for variant in BOTH {
        let mut fabric = Fabric::new(variant, 2);
        fabric.fill(at(1), 1, 4);
        fabric.fill(at(1), 2, 4);
        fabric.reach(at(2));
        assert_eq!(fabric.queues.refused(), 1);
        // The neighbour has known of it since 2 us, and keeps it for 100 us.
        fabric.fill(at(100), 2, 1);
        fabric.reach(at(101));
        assert_eq!(fabric.queues.refused(), 2);
        fabric.fill(at(103), 2, 1);
        fabric.reach(at(104));
        assert_eq!(fabric.queues.refused(), 2);
        assert_eq!(fabric.choose(at(104), 1, 2), 1);
        assert_eq!(fabric.choose(at(104), 1, 1), 0);
    }
}

/// The host has a branch of the line that no packet uses: the switch asks the host first.
#[test]
fn branches_that_no_packet_takes_are_freed_before() {
    for variant in BOTH {
        let mut fabric = Fabric::new(variant, 2);
        fabric.fill(at(1), 1, 4);
        fabric.reach(at(2));
        fabric
            .queues
            .notify(at(2), FIRST_OUT, 1, FIRST_IN, HostId::new(1));
        fabric.reach(at(3));
        let in_use = |fabric: &Fabric| [HOST, FIRST_OUT].map(|port| fabric.queues.in_use(port));
        assert_eq!(in_use(&fabric), [1, 1]);
        // At 111 us the switch asks the host, which frees the branch at 112; the switch knows at 113.
        fabric.fill(at(110), 2, 4);
        fabric.reach(at(111));
        assert_eq!(in_use(&fabric), [1, 1]);
        assert_eq!(fabric.queues.refused(), 1);
        fabric.reach(at(112));
        assert_eq!(in_use(&fabric), [0, 1]);
        fabric.reach(at(113));
        assert_eq!(in_use(&fabric), [0, 0]);
        fabric.fill(at(114), 2, 1);
        assert_eq!(fabric.choose(at(115), 1, 2), 1);
    }
}

/// An output inside the fabric that is itself a root: one queue for all that goes through it, or one for each destination.
#[test]
fn a_root_with_two_destinations_takes_one_queue_of_recn_and_two_of_fbicm() {
    for (variant, queues) in [(Variant::Recn, 1), (Variant::Fbicm, 2)] {
        let mut fabric = Fabric::new(variant, 4);
        for to in [1, 2, 1, 2, 1, 2, 1, 2] {
            let lane = fabric.start(at(1), to);
            assert_eq!(lane, 0);
            let output = FIRST_OUT;
            assert_eq!(fabric.choose(at(1), 1, to), 0);
            let port_vl = fabric.port_vl(output, 0);
            fabric.waiting[port_vl.0 as usize] += PACKET;
            let queue = QueueView {
                queued_bytes: fabric.waiting[port_vl.0 as usize],
                has_credit: true,
            };
            fabric
                .queues
                .on_queued(at(1), port_vl, queue, Fabric::view(1, 0));
        }
        fabric.reach(at(2));
        assert_eq!(fabric.queues.in_use(HOST), queues);
        let lanes = [1, 2].map(|to| fabric.choose(at(2), 0, to));
        assert_eq!(lanes, [[1, 1], [1, 2]][queues - 1]);
    }
}

/// An output is a root of its own, and on the way to another one: packets take the queue of the longer path.
#[test]
fn packets_take_the_queue_of_the_longest_path() {
    let mut fabric = Fabric::new(Variant::Recn, 4);
    let queues = &mut fabric.queues;
    let to = HostId::new(1);
    queues.notify(at(1), FIRST_OUT, 0, FIRST_IN, to);
    queues.notify(at(1), TO[1], 0, SECOND_IN, to);
    fabric.reach(at(2));
    assert_eq!([1, 2].map(|to| fabric.choose(at(2), 0, to)), [1, 1]);
    fabric.queues.notify(at(2), FIRST_OUT, 1, FIRST_IN, to);
    assert_eq!([1, 2].map(|to| fabric.choose(at(3), 0, to)), [2, 1]);
}

#[test]
fn other_routes_are_other_paths() {
    struct Changed;
    impl RouteView for Changed {
        fn output(&self, port: PortId, to: HostId) -> Option<PortId> {
            let is_other = port == SECOND_IN && to.index() == 2;
            Routes.output(port, if is_other { HostId::new(1) } else { to })
        }
    }
    let mut fabric = Fabric::new(Variant::Recn, 4);
    fabric
        .queues
        .notify(at(1), TO[1], 0, SECOND_IN, HostId::new(1));
    assert_eq!([1, 2].map(|to| fabric.choose(at(2), 1, to)), [1, 0]);
    fabric.queues.on_routes(SECOND_IN, &Changed);
    assert_eq!([1, 2].map(|to| fabric.choose(at(2), 1, to)), [1, 1]);
}

#[test]
fn discarded_packets_hold_nothing() {
    let mut fabric = Fabric::new(Variant::Recn, 3);
    fabric.fill(at(1), 1, 4);
    fabric.join(at(1), 1, 1, 0);
    fabric.join(at(2), 1, 1, 0);
    assert!(fabric.holds(1, 1));
    for lane in 0..3 {
        let port_vl = fabric.port_vl(FIRST_OUT, lane);
        fabric.queues.on_discarded(at(3), port_vl);
    }
    assert!(!fabric.holds(1, 1));
}

#[test]
fn what_it_cannot_work_with_is_refused() {
    let base = Recn::default;
    let idle = Recn {
        idle: base().message_delay,
        ..base()
    };
    are_refused([(idle, "idle")]);
    let two = || Setup {
        data_vls: 2,
        ..setup()
    };
    assert_eq!(base().check_setup(&two()), Ok(()));
    let faults = [
        Setup {
            data_vls: 1,
            ..two()
        },
        Setup {
            routes_use_lanes: true,
            ..two()
        },
        Setup {
            has_alternatives: true,
            ..two()
        },
        Setup {
            waits_once: false,
            ..two()
        },
    ];
    for fault in faults {
        assert!(base().check_setup(&fault).is_err(), "{fault:?}");
    }
}

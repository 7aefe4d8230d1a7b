//! Routes, links and tables that change while packets move.

use proptest::array::{uniform2, uniform16};
use proptest::collection::vec;
use proptest::prelude::*;
use silvan_cc::hooks::{
    LinkView, NoControl, PacketView, PortVl, QueueView, RouteView, SourceControl, SwitchControl,
};
use silvan_core::{HostId, NodeId, PortId, PortNumber, Span, Time};
use silvan_engine::workload::Workload;
use silvan_engine::{Engine, EngineConfig, EngineError, OnWire, Queueing, VlArbitration};
use silvan_fabric::Fabric;

use crate::common::{MTU, Routed, WIRE, at, cable, ddr_config, periods, room, ser, two_lanes, vl};
use crate::lossless::case::{Case, cases};
use crate::lossless::runner;
use crate::script::{Flow, Script};

const CABLE: &str = "4x DDR 2 m";

fn us(span: u64) -> Time {
    at(Span::from_us(span))
}

/// Both ends of a cable.
fn cut<S: SwitchControl, C: SourceControl, W: Workload>(
    engine: &mut Engine<S, C, W>,
    fabric: &Fabric,
    port: PortId,
    on_wire: OnWire,
) {
    engine.close_port(port, on_wire);
    engine.close_port(fabric.ports[port].peer.unwrap(), on_wire);
}

fn restore<S: SwitchControl, C: SourceControl, W: Workload>(
    engine: &mut Engine<S, C, W>,
    fabric: &Fabric,
    port: PortId,
) {
    engine.open_port(port);
    engine.open_port(fabric.ports[port].peer.unwrap());
}

/// Two switches with two trunks, three hosts each; ports 1 to 3 are hosts, 4 and 5 trunks.
fn two_trunks() -> Routed {
    let kind = cable(CABLE);
    let mut builder = silvan_fabric::FabricBuilder::new();
    let switches = ["S0", "S1"].map(|name| builder.add_switch(name, 6).unwrap());
    for (index, switch) in switches.iter().enumerate() {
        for port in 1..=3 {
            let name = format!("H{}", index * 3 + usize::from(port) - 1);
            let host = builder.add_host(name).unwrap();
            builder
                .connect(host.port(1), switch.port(port), kind)
                .unwrap();
        }
    }
    for port in [4, 5] {
        let [a, b] = switches;
        builder.connect(a.port(port), b.port(port), kind).unwrap();
    }
    Routed::new(builder.build().unwrap())
}

fn node(routed: &Routed, name: &str) -> NodeId {
    routed.fabric.node_by_name(name).unwrap()
}

/// A switch discards undeliverable packets at the rate of their arrival. The sender is not delayed,
/// and every packet is delivered, discarded or under way.
#[test]
fn packets_for_a_closed_port_are_discarded() {
    let routed = Routed::star(&[cable(CABLE); 3]);
    let flows = [Flow::saturating(0, 2), Flow::saturating(1, 2)];
    let mut engine = routed.engine(&ddr_config(), &flows);
    engine.run_until(us(50)).unwrap();
    let to = routed.port_to(2);
    engine.close_port(to, OnWire::Arrive);
    engine.audit().unwrap();
    assert!(engine.queued(to, vl(0)).is_zero());
    let sent = |engine: &Engine<_, _, Script>, host| {
        engine.host_counters(HostId::new(host)).injected_bytes / u64::from(MTU)
    };
    engine.run_until(us(60)).unwrap();
    let (delivered, discards) = (
        engine.delivered_packets(),
        engine.port_counters(to).xmit_discards,
    );
    let before = [sent(&engine, 0), sent(&engine, 1)];
    engine.run_until(us(160)).unwrap();
    engine.audit().unwrap();
    assert_eq!(engine.delivered_packets(), delivered);
    let after = [sent(&engine, 0), sent(&engine, 1)];
    // Both now send at the full rate of their links.
    let most = Span::from_us(100).as_ps() / ser(cable(CABLE), MTU).as_ps();
    for (before, after) in before.into_iter().zip(after) {
        assert!(
            (most..=most + 1).contains(&(after - before)),
            "{before} {after}"
        );
    }
    let discarded = engine.port_counters(to).xmit_discards - discards;
    let injected = after[0] + after[1] - before[0] - before[1];
    assert!(injected.abs_diff(discarded) <= 2, "{injected} {discarded}");
    engine.open_port(to);
    engine.run_until(us(300)).unwrap();
    engine.audit().unwrap();
    assert_eq!(
        engine.discarded_bytes(),
        engine.port_counters(to).xmit_discards * u64::from(MTU)
    );
    // The link is used without a pause again.
    let record = &engine.workload().records[0];
    let last: Vec<Time> = record
        .delivered
        .iter()
        .rev()
        .take(20)
        .rev()
        .copied()
        .collect();
    let turn = ser(cable(CABLE), MTU) * 2;
    assert!(periods(&last).iter().all(|&period| period == turn));
}

#[test]
fn a_closed_host_keeps_its_packets() {
    let routed = Routed::star(&[cable(CABLE); 2]);
    let mut engine = routed.engine(&ddr_config(), &[Flow::saturating(0, 1)]);
    engine.run_until(us(20)).unwrap();
    let port = routed.fabric.host_port(HostId::new(0));
    engine.close_port(port, OnWire::Arrive);
    let before = engine.port_counters(port);
    engine.run_until(us(70)).unwrap();
    engine.audit().unwrap();
    let closed = engine.port_counters(port);
    // Nothing sent, and nothing waited for either.
    assert_eq!(closed, before);
    assert_eq!(engine.discarded_bytes(), 0);
    engine.open_port(port);
    engine.run_until(us(120)).unwrap();
    engine.audit().unwrap();
    let open = engine.port_counters(port);
    let most = Span::from_us(50).as_ps() / ser(cable(CABLE), MTU).as_ps();
    let sent = open.xmit_pkts - closed.xmit_pkts;
    assert!((most..=most + 1).contains(&sent), "{sent} of {most}");
    assert_eq!(open.xmit_wait, closed.xmit_wait);
    let delivered = engine.delivered_packets();
    assert!(open.xmit_pkts - delivered <= 2);
}

/// Only the packet on the cut trunk is lost. Later packets are discarded at the dead port until the
/// route is changed, and then take the other trunk.
#[test]
fn traffic_follows_a_changed_route_around_a_cut_cable() {
    let routed = two_trunks();
    // Propagation of 200 m is as long as a packet and a little: there always is one on the wire.
    let mut engine = routed.engine(&ddr_config(), &[Flow::saturating(0, 3)]);
    let target = HostId::new(3);
    let used = routed.tables.get(
        routed.fabric.nodes[node(&routed, "S0")]
            .as_switch()
            .unwrap(),
        routed.fabric.host(target).lid,
    );
    let used = used.unwrap();
    let other = PortNumber::new(9 - used.as_u8());
    engine.run_until(us(50)).unwrap();
    let port = routed.port("S0", used.as_u8());
    cut(&mut engine, &routed.fabric, port, OnWire::Lost);
    engine.run_until(us(100)).unwrap();
    engine.audit().unwrap();
    let far = routed.fabric.ports[port].peer.unwrap();
    let lost = engine.port_counters(far).rcv_errors;
    assert!(lost <= 1, "{lost} packets of one flow on 2 m of cable");
    let discarded = engine.port_counters(port).xmit_discards;
    assert!(discarded > 0);
    engine.set_route(node(&routed, "S0"), target, Some(other));
    engine.run_until(us(200)).unwrap();
    engine.audit().unwrap();
    assert_eq!(engine.port_counters(port).xmit_discards, discarded);
    let counters = engine.port_counters(routed.port("S0", other.as_u8()));
    let most = Span::from_us(100).as_ps() / ser(cable(CABLE), MTU).as_ps();
    assert!((most - 1..=most + 1).contains(&counters.xmit_pkts));
    // Back again over the restored cable.
    restore(&mut engine, &routed.fabric, port);
    engine.set_route(node(&routed, "S0"), target, Some(used));
    engine.run_until(us(300)).unwrap();
    engine.audit().unwrap();
    let more = engine.port_counters(routed.port("S0", other.as_u8()));
    assert!(more.xmit_pkts - counters.xmit_pkts <= 1);
    assert_eq!(
        engine.discarded_bytes(),
        (lost + discarded) * u64::from(MTU)
    );
}

/// Stores the routes of its calls.
#[derive(Clone, Debug, Default)]
struct Told(std::collections::BTreeMap<(PortId, HostId), Option<PortId>>);

/// Hosts of the fabric of [`two_trunks`].
const HOSTS: usize = 6;

impl SwitchControl for Told {
    fn needs_routes(&self) -> bool {
        true
    }

    fn on_routes<R: RouteView>(&mut self, port: PortId, routes: &R) {
        for host in (0..HOSTS).map(HostId::new) {
            self.0.insert((port, host), routes.output(port, host));
        }
    }
}

/// Oracle: the tables, those over cables that are cut included.
#[test]
fn schemes_know_the_routes_from_the_start_and_when_they_change() {
    let routed = two_trunks();
    let config = ddr_config();
    let mut engine = routed.controlled(&config, Told::default(), NoControl, &[]);
    let mut tables = routed.tables.clone();
    let check = |engine: &Engine<Told, NoControl, Script>,
                 tables: &silvan_fabric::ForwardingTables| {
        let mut entries = 0;
        for (switch, name) in routed.fabric.switch_ids().zip(["S0", "S1"]) {
            for host in routed.fabric.host_ids() {
                let told = engine.switch_control().0[&(routed.port(name, 1), host)];
                let set = tables.to_host(switch, host);
                assert_eq!(told, set.map(|number| routed.port(name, number.as_u8())));
                entries += 1;
            }
        }
        assert_eq!(engine.switch_control().0.len(), entries);
    };
    check(&engine, &tables);
    let target = HostId::new(3);
    let lid = routed.fabric.host(target).lid;
    let first = routed.fabric.switch_ids().next().unwrap();
    let used = tables.get(first, lid).unwrap();
    cut(
        &mut engine,
        &routed.fabric,
        routed.port("S0", used.as_u8()),
        OnWire::Lost,
    );
    engine.run_until(us(1)).unwrap();
    check(&engine, &tables);
    for port in [None, Some(PortNumber::new(9 - used.as_u8())), Some(used)] {
        tables.set(first, lid, port);
        engine.set_route(node(&routed, "S0"), target, port);
        check(&engine, &tables);
    }
}

/// Entries that lead nowhere: an error in a run whose tables were checked, a count otherwise.
#[test]
fn packets_without_a_route_end_the_run_or_are_counted() {
    let routed = Routed::star(&[cable(CABLE); 3]);
    let run = |discard: bool| {
        let mut engine = routed.engine(&ddr_config(), &[Flow::saturating(0, 1)]);
        engine.discard_unroutable(discard);
        engine.run_until(us(10)).unwrap();
        // Host 2 would drop what is for host 1.
        engine.set_route(
            node(&routed, "S0"),
            HostId::new(1),
            Some(PortNumber::new(3)),
        );
        let outcome = engine.run_until(us(20));
        (engine, outcome)
    };
    let (_, outcome) = run(false);
    assert!(
        matches!(outcome, Err(EngineError::NoRoute { destination: 1, .. })),
        "{outcome:?}"
    );
    let (engine, outcome) = run(true);
    outcome.unwrap();
    engine.audit().unwrap();
    let port = routed.port_to(0);
    let counts = engine.port_counters(port);
    assert!(counts.relay_errors >= 8);
    assert_eq!(
        engine.discarded_bytes(),
        counts.relay_errors * u64::from(MTU)
    );
}

/// Weights 1 to 3 share a link 1 to 3, from the instant at which they are set at this port.
#[test]
fn a_port_can_have_its_own_arbitration_tables() {
    let routed = Routed::star(&[cable(CABLE); 3]);
    let config = two_lanes(ddr_config());
    let flows = [0, 1].map(|sl| Flow {
        sl,
        ..Flow::saturating(usize::from(sl), 2)
    });
    let mut engine = routed.engine(&config, &flows);
    engine.run_until(us(100)).unwrap();
    let tables = VlArbitration {
        high: vec![],
        low: vec![(vl(0), 33), (vl(1), 99)],
        limit_high: 0,
    };
    engine
        .set_vl_arbitration(routed.port_to(2), &tables)
        .unwrap();
    engine.run_until(us(500)).unwrap();
    engine.audit().unwrap();
    let delivered =
        |flow: usize, from, to| engine.workload().records[flow].delivered_in(us(from), us(to));
    assert!(delivered(0, 20, 100).abs_diff(delivered(1, 20, 100)) <= 8);
    let (one, three) = (delivered(0, 110, 500), delivered(1, 110, 500));
    assert!((3 * one).abs_diff(three) <= 6, "{one} {three}");
    let unknown = VlArbitration {
        low: vec![(vl(2), 1)],
        ..VlArbitration::default()
    };
    assert!(
        engine
            .set_vl_arbitration(routed.port_to(2), &unknown)
            .is_err()
    );
}

/// Two flows of one lane take turns. On a lane of its own, which the switch gives it by its service
/// level, a flow gets what the weights of the lanes say.
#[test]
fn switches_map_service_levels_to_lanes_port_by_port() {
    let routed = Routed::star(&[cable(CABLE); 3]);
    let config = EngineConfig {
        data_vls: 2,
        ..ddr_config()
    };
    let flows = [0, 1].map(|sl| Flow {
        sl,
        ..Flow::saturating(usize::from(sl), 2)
    });
    let mut engine = routed.engine(&config, &flows);
    let tables = VlArbitration {
        high: vec![],
        low: vec![(vl(0), 33), (vl(1), 99)],
        limit_high: 0,
    };
    engine
        .set_vl_arbitration(routed.port_to(2), &tables)
        .unwrap();
    engine.run_until(us(100)).unwrap();
    let port = |host: usize| routed.fabric.ports[routed.port_to(host)].number;
    let switch = routed.fabric.ports[routed.port_to(0)].node;
    assert_eq!(engine.sl_to_vl(switch, port(1), port(2)), Some([0; 16]));
    let mut lanes = [0; 16];
    lanes[1] = 1;
    engine.set_sl_to_vl(switch, port(1), port(2), &lanes);
    assert_eq!(engine.sl_to_vl(switch, port(1), port(2)), Some(lanes));
    assert_eq!(engine.sl_to_vl(switch, port(0), port(2)), Some([0; 16]));
    engine.audit().unwrap();
    engine.run_until(us(900)).unwrap();
    engine.audit().unwrap();
    let delivered = |engine: &Engine<_, _, Script>, flow: usize, from, to| {
        engine.workload().records[flow].delivered_in(us(from), us(to))
    };
    let before = [0, 1].map(|flow| delivered(&engine, flow, 20, 100));
    assert!(before[0].abs_diff(before[1]) <= 8, "{before:?}");
    // Packets that waited before keep their lane, and have left by then.
    let [one, three] = [0, 1].map(|flow| delivered(&engine, flow, 400, 900));
    assert!((3 * one).abs_diff(three) <= 8, "{one} {three}");
    // Without a lane the packets are discarded at arrival, and their space is free again.
    lanes[1] = 15;
    engine.set_sl_to_vl(switch, port(1), port(2), &lanes);
    engine.run_until(us(1100)).unwrap();
    engine.audit().unwrap();
    let counts = engine.port_counters(routed.port_to(1));
    let most = Span::from_us(200).as_ps() / ser(cable(CABLE), MTU).as_ps();
    assert!(
        (most - 60..=most + 1).contains(&counts.relay_errors),
        "{counts:?}"
    );
    assert_eq!(
        engine.discarded_bytes(),
        counts.relay_errors * u64::from(MTU)
    );
    assert_eq!(engine.sl_to_vl(switch, port(1), PortNumber::new(9)), None);
}

/// A host that has no lane for a service level sends nothing of it, and goes on when it has.
#[test]
fn hosts_map_service_levels_to_lanes() {
    let routed = Routed::star(&[cable(CABLE); 2]);
    let config = EngineConfig {
        data_vls: 2,
        ..ddr_config()
    };
    let mut engine = routed.engine(&config, &[Flow::saturating(0, 1)]);
    engine.run_until(us(50)).unwrap();
    let host = HostId::new(0);
    let port = routed.fabric.host_port(host);
    let full = engine.credits(port, vl(1));
    assert!(engine.credits(port, vl(0)) < full);
    engine.set_host_sl_to_vl(host, &[1; 16]);
    engine.run_until(us(100)).unwrap();
    engine.audit().unwrap();
    assert!(engine.credits(port, vl(1)) < full);
    assert_eq!(engine.credits(port, vl(0)), full);
    engine.set_host_sl_to_vl(host, &[15; 16]);
    engine.run_until(us(110)).unwrap();
    let before = engine.port_counters(port);
    engine.run_until(us(200)).unwrap();
    assert_eq!(engine.port_counters(port), before);
    engine.set_host_sl_to_vl(host, &[0; 16]);
    engine.run_until(us(300)).unwrap();
    engine.audit().unwrap();
    let sent = engine.port_counters(port).xmit_pkts - before.xmit_pkts;
    let most = Span::from_us(100).as_ps() / ser(cable(CABLE), MTU).as_ps();
    assert!((most..=most + 1).contains(&sent), "{sent} of {most}");
}

/// A ring in which every packet needs the next buffer comes to a stop; dropping what waits in the
/// cycle lets the run continue.
#[test]
fn packets_move_again_after_a_broken_deadlock() {
    for queueing in [Queueing::Voq, Queueing::Fifo] {
        break_deadlocks(queueing);
    }
}

fn break_deadlocks(queueing: Queueing) {
    let ring = crate::deadlock::one_way_ring(4, 1);
    let flows: Vec<Flow> = (0..4)
        .map(|host| Flow::burst(host, (host + 2) % 4, 200))
        .collect();
    let mut config = ddr_config();
    config.switch.buffer = Some(room(1));
    config.switch.queueing = queueing;
    let mut engine = ring.engine(&config, &flows);
    let mut broken = 0;
    let mut discarded = 0;
    while let Err(error) = engine.run_until(at(Span::from_ms(400))) {
        assert!(matches!(error, EngineError::Deadlock(_)), "{error}");
        let packets = engine.break_deadlock();
        assert!(packets > 0);
        discarded += packets;
        broken += 1;
        engine.audit().unwrap();
    }
    assert!(broken > 0);
    assert_eq!(engine.break_deadlock(), 0);
    assert_eq!(engine.discarded_bytes(), discarded as u64 * u64::from(MTU));
    assert_eq!(engine.delivered_packets() + discarded as u64, 800);
}

/// Counts the packets on links.
#[derive(Clone, Debug, Default)]
struct Links {
    bytes: Vec<u64>,
    packets: Vec<u64>,
    waited: Vec<Span>,
}

impl SwitchControl for Links {
    #[inline]
    fn needs_link(&self) -> bool {
        true
    }
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}
    fn on_departure(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) -> bool {
        false
    }
    fn on_link(&mut self, _: Time, output: PortVl, packet: LinkView) {
        let lane = output.0 as usize;
        self.bytes[lane] += u64::from(packet.wire_bytes);
        self.packets[lane] += 1;
        self.waited[lane] += packet.waited;
    }
}

/// Oracle: the port's own counters.
#[test]
fn link_hook_reports_every_packet_of_a_port() {
    let result = runner(64).run(&cases(), |case| {
        let (routed, _) = case.build();
        let vls = usize::from(case.config.data_vls);
        let lanes = routed.fabric.ports.len() * vls;
        let links = Links {
            bytes: vec![0; lanes],
            packets: vec![0; lanes],
            waited: vec![Span::ZERO; lanes],
        };
        let mut engine = routed.controlled(&case.config, links, NoControl, &case.flows);
        engine.run_until(at(Span::from_ms(40))).unwrap();
        let links = engine.switch_control();
        for port in routed.fabric.ports.ids() {
            let counters = engine.port_counters(port);
            let lanes = port.index() * vls..(port.index() + 1) * vls;
            let sum = |counts: &[u64]| counts.iter().sum::<u64>();
            prop_assert_eq!(sum(&links.bytes[lanes.clone()]), counters.xmit_bytes);
            prop_assert_eq!(sum(&links.packets[lanes.clone()]), counters.xmit_pkts);
            let waited: u64 = links.waited[lanes].iter().map(|span| span.as_ps()).sum();
            // A host can also wait with a packet that is withdrawn before it is sent.
            let from_host = routed.fabric.nodes[routed.fabric.ports[port].node].as_host();
            if from_host.is_none() {
                prop_assert_eq!(waited, counters.xmit_wait.as_ps());
            }
            prop_assert!(waited <= counters.xmit_wait.as_ps());
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[derive(Clone, Debug)]
enum Change {
    Cut(usize),
    Leave(usize),
    Restore(usize),
    Unroute(usize, usize),
    Reroute(usize, usize, u8),
    /// The lanes of a switch for packets between two ports, and those of a host.
    Lanes(usize, [u8; 2], [u8; 16]),
    HostLanes(usize, [u8; 16]),
}

fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let any = any::<usize>;
    let change = prop_oneof![
        any().prop_map(Change::Cut),
        any().prop_map(Change::Leave),
        any().prop_map(Change::Restore),
        (any(), any()).prop_map(|(switch, host)| Change::Unroute(switch, host)),
        (any(), any(), 0_u8..12)
            .prop_map(|(switch, host, port)| Change::Reroute(switch, host, port)),
        (any(), uniform2(0_u8..12), uniform16(0_u8..5))
            .prop_map(|(switch, ports, lanes)| Change::Lanes(switch, ports, lanes)),
        (any(), uniform16(0_u8..5)).prop_map(|(host, lanes)| Change::HostLanes(host, lanes)),
    ];
    vec((0_u64..100_000_000, change), 1..30).prop_map(|mut changes| {
        changes.sort_by_key(|change| change.0);
        changes
    })
}

fn apply(
    engine: &mut Engine<impl SwitchControl, impl SourceControl, Script>,
    routed: &Routed,
    change: &Change,
) {
    let fabric = &routed.fabric;
    let link = |index: usize| fabric.links.as_slice()[index % fabric.links.len()].a;
    let switch = |index: usize| {
        fabric.node_of_switch(silvan_core::SwitchId::new(index % fabric.switch_count()))
    };
    let host = |index: usize| HostId::new(index % fabric.host_count());
    match *change {
        Change::Cut(index) => cut(engine, fabric, link(index), OnWire::Lost),
        Change::Leave(index) => engine.close_port(link(index), OnWire::Arrive),
        Change::Restore(index) => restore(engine, fabric, link(index)),
        Change::Unroute(at, to) => engine.set_route(switch(at), host(to), None),
        Change::Reroute(at, to, port) => {
            engine.set_route(switch(at), host(to), Some(PortNumber::new(port)));
        }
        Change::Lanes(at, ports, lanes) => {
            let [from, to] = ports.map(PortNumber::new);
            engine.set_sl_to_vl(switch(at), from, to, &lanes);
        }
        Change::HostLanes(index, lanes) => engine.set_host_sl_to_vl(host(index), &lanes),
    }
}

/// Bytes, credits and queues add up after each change: cut, close, open and reroute. When all
/// changes are undone, all packets drain and every buffer has its credits again.
#[test]
fn every_packet_is_accounted_for() {
    let discards = std::cell::Cell::new(0);
    let result = runner(192).run(&(cases(), changes()), |(case, changes): (Case, _)| {
        let (routed, _) = case.build();
        // After a loss the script cannot distinguish sizes in order from sizes out of order.
        let mut flows = case.flows.clone();
        for flow in &mut flows {
            flow.sizes.truncate(1);
        }
        let (switch, adapter) = case.control(&routed);
        let mut engine = routed.controlled(&case.config, switch, adapter, &flows);
        engine.discard_unroutable(true);
        let run = |engine: &mut Engine<_, _, Script>, until| {
            while engine.run_until(until).is_err() {
                assert!(engine.break_deadlock() > 0);
            }
        };
        for (time, change) in &changes {
            run(&mut engine, Time::from_ps(*time));
            prop_assert_eq!(engine.audit(), Ok(()));
            apply(&mut engine, &routed, change);
            prop_assert_eq!(engine.audit(), Ok(()), "{:?}", change);
        }
        for link in &routed.fabric.links {
            restore(&mut engine, &routed.fabric, link.a);
        }
        for switch in routed.fabric.switch_ids() {
            for host in routed.fabric.host_ids() {
                let port = routed.tables.get(switch, routed.fabric.host(host).lid);
                engine.set_route(routed.fabric.node_of_switch(switch), host, port);
            }
            let node = routed.fabric.switch(switch);
            let ports = || node.ports().map(|port| routed.fabric.ports[port].number);
            for (from, to) in ports().flat_map(|from| ports().map(move |to| (from, to))) {
                let node = routed.fabric.node_of_switch(switch);
                engine.set_sl_to_vl(node, from, to, &case.config.sl_to_vl);
            }
        }
        for host in routed.fabric.host_ids() {
            engine.set_host_sl_to_vl(host, &case.config.sl_to_vl);
        }
        run(&mut engine, at(Span::from_ms(60)));
        prop_assert_eq!(engine.audit(), Ok(()));
        prop_assert_eq!(engine.notifications_inside(), 0);
        for port in routed.fabric.ports.ids() {
            for lane in silvan_core::Vl::all().take(usize::from(case.config.data_vls)) {
                prop_assert!(engine.queued(port, lane).is_zero());
            }
        }
        discards.set(discards.get() + engine.discarded_bytes() / WIRE);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(discards.get() > 100, "{discards:?}");
}

//! The management plane played by hand: bytes in, bytes out, no sockets and no clock.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use silvan_instances::Fastest;

use silvan_core::{Lid, PortNumber, Span, Time};
use silvan_mad::congestion::{
    CongestionAttribute, CongestionControl, CongestionKeyInfo, SwitchCongestionSetting,
    switch_control_map,
};
use silvan_mad::performance::{PerformanceAttribute, PortCounters, PortCountersExtended};
use silvan_mad::smp::{
    DirectedRoute, LinearForwardingTable, NodeInfo, PortInfo, PortState, Smp, SmpAttribute,
    SmpRoute, SwitchInfo,
};
use silvan_mad::{Body, Class, MAD_LEN, Mad, Method, Packet, Status};
use silvan_scenario::Scenario;

use crate::clients::{Clients, ControlAction};
use crate::subnet::{Start, Subnet};
use crate::wire::{DATA_LEN, Message};

mod faults;
mod load;
mod paths;
mod schedule;
mod ticks;

/// Hosts a, b at left, c, d at right; two cables between the switches.
const LINE: &str = r#"
[fabric]
switch = [{ name = "left", ports = 8 }, { name = "right", ports = 8 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "left:2" },
    { from = "c", to = "right:1" },
    { from = "d", to = "right:2" },
    { from = "left:5", to = "right:6" },
    { from = "left:7", to = "right:8" },
]
routing = "min-hop"
[link]
speed = "DDR"
[switch]
buffer = "64 KiB"
[host]
receive-buffer = "16 KiB"
[packet]
mtu = "2 KiB"
[[traffic.flow]]
from = "a"
to = "c"
load = "4 Gbit/s"
"#;

fn clients(start: Start) -> Clients {
    let scenario = Scenario::from_toml(LINE, "line.toml", &[]).unwrap();
    Clients::new(Subnet::new(&Fastest, &scenario, start, None).unwrap(), None).unwrap()
}

fn control(kind: u32, client: u32, data: &[u8]) -> [u8; 80] {
    let mut bytes = [0; 80];
    for (at, word) in [(0, 0xdead_beef), (4, client), (8, kind), (12, 64)] {
        bytes[at..at + 4].copy_from_slice(&u32::to_ne_bytes(word));
    }
    bytes[16..16 + data.len()].copy_from_slice(data);
    bytes
}

fn attach(clients: &mut Clients, node: &str, is_sm: bool) -> u16 {
    let mut data = [0; 64];
    data[..4].copy_from_slice(&77u32.to_ne_bytes());
    data[8..12].copy_from_slice(&u32::from(is_sm).to_ne_bytes());
    data[12..12 + node.len()].copy_from_slice(node.as_bytes());
    match clients.control(&control(1, 0, &data)) {
        ControlAction::Connect { client, id: 77, .. } => client,
        other => panic!("{other:?}"),
    }
}

fn message(lid: u16, mad: &[u8; MAD_LEN]) -> [u8; DATA_LEN] {
    Message::unasked(Lid::new(0), Lid::new(lid), mad).bytes
}

/// Sends a request and takes the one message that comes back.
fn ask(clients: &mut Clients, client: u16, lid: u16, request: &Mad) -> Mad {
    let mut answer = send_raw(clients, client, lid, request);
    assert_eq!(
        &answer.bytes[16..20],
        &[0; 4],
        "there is no answer to {request}"
    );
    Mad::parse(&Packet::new(*answer.mad())).unwrap()
}

fn send_raw(clients: &mut Clients, client: u16, lid: u16, request: &Mad) -> Message {
    clients.datagram(client, &message(lid, &request.emit()));
    let mut sent = std::mem::take(&mut clients.outbox);
    // A subnet manager gets traps in addition to the answers.
    sent.retain_mut(|(_, message)| Packet::new(*message.mad()).method() != Method::TRAP);
    match sent.as_slice() {
        [(to, answer)] if *to == client => answer.clone(),
        other => panic!("{} messages to {request}", other.len()),
    }
}

fn smp(method: Method, route: SmpRoute, modifier: u32, attribute: impl Into<SmpAttribute>) -> Mad {
    let body = Body::Smp(Smp {
        m_key: 0,
        route,
        attribute: attribute.into(),
    });
    Mad {
        modifier,
        transaction_id: 0x1234_5678_9abc,
        ..Mad::request(method, body)
    }
}

fn directed(ports: &[u8]) -> SmpRoute {
    SmpRoute::Directed(DirectedRoute::request(ports).unwrap())
}

fn port_info(answer: &Mad) -> PortInfo {
    match answer.body {
        Body::Smp(Smp {
            attribute: SmpAttribute::PortInfo(info),
            ..
        }) => info,
        _ => panic!("{answer}"),
    }
}

fn performance(attribute: impl Into<PerformanceAttribute>, method: Method) -> Mad {
    Mad::request(method, Body::Performance(attribute.into()))
}

/// A question to a subnet manager.
fn query(tid: u64) -> [u8; MAD_LEN] {
    let mut bytes = [0; MAD_LEN];
    bytes[..4].copy_from_slice(&[1, Class::SUBNET_ADMINISTRATION.code() as u8, 2, 1]);
    bytes[8..16].copy_from_slice(&tid.to_be_bytes());
    bytes
}

fn lid(clients: &Clients, name: &str) -> u16 {
    let node = clients.subnet.node_named(name).unwrap();
    clients.subnet.lid(node).as_u16()
}

fn pass(clients: &mut Clients, span: Span) {
    let end = clients.subnet.now() + span;
    clients.subnet.step(end).unwrap();
}

#[test]
fn directed_routes_arrive_and_tell_the_way_back() {
    let mut clients = clients(Start::Blank);
    let me = attach(&mut clients, "a", false);
    let request = smp(Method::GET, directed(&[1, 5, 2]), 0, NodeInfo::default());
    let answer = ask(&mut clients, me, 0xffff, &request);
    assert_eq!(answer.method, Method::GET_RESPONSE);
    assert_eq!(answer.status, Status::OK);
    assert_eq!(answer.transaction_id & 0xffff_ffff_ffff, 0x1234_5678_9abc);
    let Body::Smp(Smp {
        route: SmpRoute::Directed(route),
        attribute: SmpAttribute::NodeInfo(info),
        ..
    }) = answer.body
    else {
        panic!("{answer}");
    };
    // From a by its port 1 into left:1, by left:5 into right:6, by right:2 into d.
    assert!(route.returning);
    assert_eq!(route.return_path[..4], [1, 1, 6, 1]);
    let d = clients.subnet.node_named("d").unwrap();
    assert_eq!(info.node_guid, clients.subnet.fabric.nodes[d].guid);
    assert_eq!(info.local_port, PortNumber::new(1));
    // Datagrams on a path that ends are returned as lost: no cable, through a host, no such port.
    for ports in [&[1, 3][..], &[1, 2, 1], &[2], &[1, 0], &[1, 200]] {
        let request = smp(Method::GET, directed(ports), 0, NodeInfo::default());
        let lost = send_raw(&mut clients, me, 0xffff, &request);
        assert_eq!(&lost.bytes[16..20], &110u32.to_be_bytes());
        assert_eq!(lost.bytes[32..], request.emit());
    }
}

fn set_port(clients: &mut Clients, me: u16, ports: &[u8], number: u32, info: PortInfo) -> Mad {
    let request = smp(Method::SET, directed(ports), number, info);
    ask(clients, me, 0xffff, &request)
}

/// A new state of a port; the subnet manager is at LID 1.
fn state(port_state: PortState) -> PortInfo {
    PortInfo {
        port_state,
        master_sm_lid: Lid::new(1),
        ..PortInfo::default()
    }
}

/// Both ends of the three links from a to c, as a sees them.
const ENDS: [(&[u8], u32); 6] = [
    (&[], 1),
    (&[1], 1),
    (&[1], 5),
    (&[1, 5], 6),
    (&[1, 5], 1),
    (&[1, 5, 1], 1),
];

/// Gives a blank fabric LIDs, 1 to 4 for the hosts, 11 and 12 for the switches, and tables, from a.
fn set_up(clients: &mut Clients, me: u16) {
    let nodes: [(&[u8], u16, u32); 6] = [
        (&[], 1, 1),
        (&[1, 2], 2, 1),
        (&[1, 5, 1], 3, 1),
        (&[1, 5, 2], 4, 1),
        (&[1], 11, 0),
        (&[1, 5], 12, 0),
    ];
    for (path, value, number) in nodes {
        let info = PortInfo {
            lid: Lid::new(value),
            master_sm_lid: Lid::new(1),
            ..PortInfo::default()
        };
        let answer = set_port(clients, me, path, number, info);
        assert_eq!(port_info(&answer).lid, Lid::new(value));
    }
    for (path, entries) in [
        (
            &[1][..],
            [(1u8, 1u8), (2, 2), (3, 5), (4, 5), (11, 0), (12, 5)],
        ),
        (&[1, 5], [(1, 6), (2, 6), (3, 1), (4, 2), (11, 6), (12, 0)]),
    ] {
        let mut table = LinearForwardingTable {
            ports: [LinearForwardingTable::NO_ROUTE; 64],
        };
        for (value, port) in entries {
            table.ports[usize::from(value)] = PortNumber::new(port);
        }
        ask(
            clients,
            me,
            0xffff,
            &smp(Method::SET, directed(path), 0, table),
        );
        let info = SwitchInfo {
            linear_fdb_top: 12,
            ..SwitchInfo::default()
        };
        ask(
            clients,
            me,
            0xffff,
            &smp(Method::SET, directed(path), 0, info),
        );
    }
}

/// Takes the ports on the way from a to c to Armed or Active.
fn take_to(clients: &mut Clients, me: u16, port_state: PortState) {
    for (path, number) in ENDS {
        let set = set_port(clients, me, path, number, state(port_state));
        assert_eq!(port_info(&set).port_state, port_state);
    }
}

fn delivered(clients: &Clients) -> u64 {
    clients.subnet.plane.delivered_bytes(&clients.subnet.fabric)
}

/// A port goes from Initialize to Armed to Active and no other way, and data follows.
#[test]
fn data_flows_when_every_port_on_the_way_is_active() {
    let mut clients = clients(Start::Blank);
    let me = attach(&mut clients, "a", true);
    set_up(&mut clients, me);
    let refused = set_port(&mut clients, me, &[], 1, state(PortState::ACTIVE));
    assert_eq!(refused.status, Status::INVALID_VALUE);
    take_to(&mut clients, me, PortState::ARMED);
    pass(&mut clients, Span::from_us(100));
    assert_eq!(delivered(&clients), 0);
    take_to(&mut clients, me, PortState::ACTIVE);
    // Without a subnet manager to query for the path, the packet is sent at once.
    clients.disconnect(me);
    let me = attach(&mut clients, "a", false);
    pass(&mut clients, Span::from_us(100));
    clients.come_due();
    pass(&mut clients, Span::from_us(100));
    let before = delivered(&clients);
    assert!(before > 0);
    clients.subnet.plane.engine.audit().unwrap();
    // Data stops when a port is set down, which trains the link again.
    set_port(&mut clients, me, &[1], 5, state(PortState::DOWN));
    pass(&mut clients, Span::from_us(100));
    let after = delivered(&clients);
    assert!(after - before < 20 * 2048, "{before} {after}");
    let counters = performance(
        PortCounters {
            port_select: PortNumber::new(5),
            ..PortCounters::default()
        },
        Method::GET,
    );
    let Body::Performance(PerformanceAttribute::PortCounters(counts)) =
        ask(&mut clients, me, 11, &counters).body
    else {
        panic!();
    };
    assert!(counts.xmit_discards > 0);
    assert_eq!(counts.link_downed, 1);
    clients.subnet.plane.engine.audit().unwrap();
}

/// Oracle: the widths of the specification. Writing a value and letting it grow shows how it ends.
#[test]
fn counters_saturate_or_wrap_by_their_width() {
    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "a", false);
    let a = lid(&clients, "a");
    let start = PortCounters {
        port_select: PortNumber::new(1),
        counter_select: 0xffff,
        xmit_pkts: u32::MAX - 2,
        xmit_data: u32::MAX - 100,
        ..PortCounters::default()
    };
    ask(&mut clients, me, a, &performance(start, Method::SET));
    let wide = PortCountersExtended {
        port_select: PortNumber::new(1),
        counter_select: 0xffff,
        xmit_pkts: u64::MAX - 2,
        ..PortCountersExtended::default()
    };
    ask(&mut clients, me, a, &performance(wide, Method::SET));
    pass(&mut clients, Span::from_us(100));
    let sent = clients
        .subnet
        .plane
        .counters(clients.subnet.fabric.host_port(silvan_core::HostId::new(0)));
    assert!(sent.xmit_pkts > 10);
    let get = |clients: &mut Clients, attribute: PerformanceAttribute| match ask(
        clients,
        me,
        a,
        &performance(attribute, Method::GET),
    )
    .body
    {
        Body::Performance(answer) => answer,
        _ => panic!(),
    };
    let asked = PortCounters {
        port_select: PortNumber::new(1),
        ..PortCounters::default()
    };
    let PerformanceAttribute::PortCounters(narrow) = get(&mut clients, asked.into()) else {
        panic!();
    };
    assert_eq!((narrow.xmit_pkts, narrow.xmit_data), (u32::MAX, u32::MAX));
    let asked = PortCountersExtended {
        port_select: PortNumber::new(1),
        ..PortCountersExtended::default()
    };
    let PerformanceAttribute::PortCountersExtended(wide) = get(&mut clients, asked.into()) else {
        panic!();
    };
    assert_eq!(wide.xmit_pkts, (u64::MAX - 2).wrapping_add(sent.xmit_pkts));
}

#[test]
fn a_cut_cable_is_told_to_the_subnet_manager() {
    let mut clients = clients(Start::Configured);
    let sm = attach(&mut clients, "d", true);
    let d = lid(&clients, "d");
    for name in ["left", "right"] {
        let own = PortInfo {
            lid: Lid::new(lid(&clients, name)),
            master_sm_lid: Lid::new(d),
            ..PortInfo::default()
        };
        let request = smp(Method::SET, SmpRoute::Lid, 0, own);
        let to = lid(&clients, name);
        ask(&mut clients, sm, to, &request);
    }
    let left = clients.subnet.node_named("left").unwrap();
    let port = clients
        .subnet
        .fabric
        .port(left, PortNumber::new(2))
        .unwrap();
    assert!(clients.subnet.set_cable(port, true));
    clients.flush_traps();
    let traps = std::mem::take(&mut clients.outbox);
    assert_eq!(traps.len(), 1);
    for (to, mut trap) in traps {
        assert_eq!(to, sm);
        let trap = Mad::parse(&Packet::new(*trap.mad())).unwrap();
        assert_eq!(trap.method, Method::TRAP);
        let Body::Smp(Smp {
            attribute: SmpAttribute::Notice(notice),
            ..
        }) = trap.body
        else {
            panic!("{trap}");
        };
        assert_eq!(notice.trap_number, 128);
    }
    // The change stands until the manager clears it.
    let get = smp(Method::GET, SmpRoute::Lid, 0, SwitchInfo::default());
    let changed = |clients: &mut Clients, request: &Mad| match ask(
        clients,
        sm,
        lid(clients, "left"),
        request,
    )
    .body
    {
        Body::Smp(Smp {
            attribute: SmpAttribute::SwitchInfo(info),
            ..
        }) => info,
        _ => panic!(),
    };
    let info = changed(&mut clients, &get);
    assert!(info.port_state_change);
    let cleared = changed(&mut clients, &smp(Method::SET, SmpRoute::Lid, 0, info));
    assert!(!cleared.port_state_change);
    // A trap that cannot be delivered waits for a manager.
    clients.disconnect(sm);
    clients.subnet.set_cable(port, false);
    clients.flush_traps();
    assert!(clients.outbox.is_empty());
    let sm = attach(&mut clients, "d", true);
    clients.flush_traps();
    assert_eq!(clients.outbox.iter().filter(|(to, _)| *to == sm).count(), 1);
}

#[test]
fn questions_to_a_subnet_manager_are_answered_once_or_come_back() {
    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "a", false);
    let d = lid(&clients, "d");
    // There is no such node.
    clients.datagram(me, &message(d, &query(1)));
    let (to, lost) = clients.outbox.pop().unwrap();
    assert_eq!((to, &lost.bytes[16..20]), (me, &110u32.to_be_bytes()[..]));
    let sm = attach(&mut clients, "d", true);
    clients.datagram(me, &message(d, &query(2)));
    let (to, mut forwarded) = clients.outbox.pop().unwrap();
    assert_eq!(to, sm);
    assert_eq!(forwarded.owner(), me);
    assert_eq!(forwarded.bytes[4..6], lid(&clients, "a").to_be_bytes());
    forwarded.mad()[3] = 0x81;
    // An answer of somebody else, the answer, and the same once more.
    clients.datagram(me, &forwarded.bytes);
    assert!(clients.outbox.is_empty());
    clients.datagram(sm, &forwarded.bytes);
    assert_eq!(clients.outbox.pop().unwrap().0, me);
    clients.datagram(sm, &forwarded.bytes);
    assert!(clients.outbox.is_empty());
    // A subnet manager that takes too long also returns the requests, and its late answer is dropped.
    clients.datagram(me, &message(d, &query(4)));
    let (_, mut delayed) = clients.outbox.pop().unwrap();
    clients.subnet.uptime = Duration::from_secs(4);
    clients.expire();
    assert!(clients.outbox.is_empty());
    clients.subnet.uptime = Duration::from_secs(5);
    clients.expire();
    let (to, lost) = clients.outbox.pop().unwrap();
    assert_eq!((to, &lost.bytes[16..20]), (me, &110u32.to_be_bytes()[..]));
    delayed.mad()[3] = 0x81;
    clients.datagram(sm, &delayed.bytes);
    assert!(clients.outbox.is_empty());
    // A manager that dies gives its questions back; one that asks and dies is forgotten.
    clients.datagram(me, &message(d, &query(3)));
    clients.outbox.clear();
    clients.disconnect(sm);
    let (to, lost) = clients.outbox.pop().unwrap();
    assert_eq!((to, &lost.bytes[16..20]), (me, &110u32.to_be_bytes()[..]));
    assert!(clients.outbox.is_empty());
}

/// A subnet manager waits for the answer to the trap by which it tells the master of itself, and with
/// it its handover.
#[test]
fn a_subnet_manager_gets_the_answer_to_its_trap() {
    let mut clients = clients(Start::Configured);
    let master = attach(&mut clients, "d", true);
    let trap = Mad {
        transaction_id: 7,
        ..Mad::request(
            Method::TRAP,
            Body::Smp(Smp {
                m_key: 0,
                route: SmpRoute::Lid,
                attribute: silvan_mad::smp::Notice::link_state_change(Lid::new(1)).into(),
            }),
        )
    };
    let d = lid(&clients, "d");
    for (is_sm, answers) in [(true, 1), (false, 0)] {
        let other = attach(&mut clients, "a", is_sm);
        clients.datagram(other, &message(d, &trap.emit()));
        let (to, mut answer) = clients.outbox.pop().unwrap();
        assert_eq!(to, master);
        answer.mad()[3] = Method::TRAP_REPRESS.code() as u8;
        for _ in 0..2 {
            clients.datagram(master, &answer.bytes);
        }
        let mut sent = std::mem::take(&mut clients.outbox);
        assert_eq!(sent.len(), answers);
        for (to, message) in &mut sent {
            assert_eq!(*to, other);
            assert_eq!(message.transaction(), 7);
            let method = Packet::new(*message.mad()).method();
            assert_eq!(method, Method::TRAP_REPRESS);
        }
        clients.disconnect(other);
    }
    assert_eq!(clients.traffic.dropped, 0);
}

#[test]
fn the_key_protects_until_its_lease_ends() {
    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "a", false);
    let left = lid(&clients, "left");
    let cc = |key: u64, method: Method, attribute: CongestionAttribute| {
        Mad::request(
            method,
            Body::CongestionControl(CongestionControl {
                cc_key: key,
                attribute,
            }),
        )
    };
    let rate = |marking_rate| SwitchCongestionSetting {
        control_map: switch_control_map::MARKING_RATE,
        marking_rate,
        ..SwitchCongestionSetting::default()
    };
    let key = CongestionKeyInfo {
        cc_key: 9,
        protect: true,
        lease_period: 10,
        violations: 0,
    };
    ask(&mut clients, me, left, &cc(0, Method::SET, key.into()));
    let lost = send_raw(&mut clients, me, left, &cc(8, Method::SET, rate(5).into()));
    assert_eq!(&lost.bytes[16..20], &110u32.to_be_bytes());
    ask(&mut clients, me, left, &cc(9, Method::SET, rate(6).into()));
    let marking_rate = |clients: &mut Clients| {
        let request = cc(0, Method::GET, SwitchCongestionSetting::default().into());
        match ask(clients, me, left, &request).body {
            Body::CongestionControl(CongestionControl {
                attribute:
                    CongestionAttribute::Management(
                        silvan_mad::congestion::ManagementAttribute::SwitchCongestionSetting(
                            setting,
                        ),
                    ),
                ..
            }) => setting.marking_rate,
            _ => panic!(),
        }
    };
    assert_eq!(marking_rate(&mut clients), 6);
    // A wrong key starts the lease, the right one stops it.
    send_raw(&mut clients, me, left, &cc(8, Method::SET, rate(7).into()));
    clients.subnet.uptime = Duration::from_secs(9);
    ask(&mut clients, me, left, &cc(9, Method::SET, rate(7).into()));
    clients.subnet.uptime = Duration::from_secs(30);
    send_raw(&mut clients, me, left, &cc(8, Method::SET, rate(8).into()));
    assert_eq!(marking_rate(&mut clients), 7);
    clients.subnet.uptime = Duration::from_secs(40);
    ask(&mut clients, me, left, &cc(8, Method::SET, rate(9).into()));
    assert_eq!(marking_rate(&mut clients), 9);
}

/// Random numbers (an LCG of Knuth's, upper half).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.next() % bound
    }
}

/// A datagram that is nearly legal: class, method, attribute and modifier of use, the rest random.
fn mutant(random: &mut Random, bytes: &mut [u8; MAD_LEN]) {
    if random.below(4) == 0 {
        for chunk in bytes.chunks_exact_mut(4) {
            chunk.copy_from_slice(&random.next().to_be_bytes());
        }
    }
    const CLASSES: [(u8, u8); 6] = [
        (0x01, 1),
        (0x81, 1),
        (0x04, 1),
        (0x21, 2),
        (0x03, 2),
        (0x32, 1),
    ];
    const METHODS: [u8; 8] = [1, 2, 1, 2, 5, 6, 7, 0x81];
    let (class, version) = CLASSES[random.below(6) as usize];
    bytes[..4].copy_from_slice(&[1, class, version, METHODS[random.below(8) as usize]]);
    bytes[16..18].copy_from_slice(&(random.below(0x40) as u16).to_be_bytes());
    bytes[20..24].copy_from_slice(&match random.below(3) {
        0 => [0; 4],
        1 => random.below(40).to_be_bytes(),
        _ => random.next().to_be_bytes(),
    });
    if class == 0x81 {
        bytes[4..6].fill(0);
        bytes[6] = 0;
        bytes[7] = random.below(5) as u8;
        bytes[32..36].fill(0xff);
        for hop in &mut bytes[128..136] {
            *hop = random.below(9) as u8;
        }
    }
    for _ in 0..random.below(6) {
        bytes[random.below(256) as usize] = random.next() as u8;
    }
}

/// A million mutated datagrams: each request gets exactly one message back, either its answer or
/// itself; nothing breaks, and the data plane still adds up.
#[test]
fn every_request_gets_one_message_back() {
    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "a", false);
    let mut random = Random(1);
    let mut bytes = [0; MAD_LEN];
    let (mut answered, mut came_back) = (0u32, 0u32);
    for round in 0..1_000_000u32 {
        mutant(&mut random, &mut bytes);
        let lid = match random.below(4) {
            0 => 0xffff,
            1 => random.next() as u16,
            _ => random.below(8) as u16,
        };
        let request = message(lid, &bytes);
        clients.datagram(me, &request);
        let method = bytes[3];
        let expected = usize::from(method & 0x80 == 0 && method != 7);
        assert_eq!(clients.outbox.len(), expected, "{}", Packet::new(&bytes));
        if let Some((to, answer)) = clients.outbox.pop() {
            assert_eq!(to, me);
            if answer.bytes[16..20] == 110u32.to_be_bytes() {
                assert_eq!(answer.bytes[32..], bytes);
                came_back += 1;
            } else {
                // Class, transaction by the client's count, attribute and modifier are the request's.
                assert_eq!(answer.bytes[33], bytes[1]);
                assert_eq!(answer.bytes[32 + 3], 0x81);
                assert_eq!(answer.bytes[32 + 10..32 + 18], bytes[10..18]);
                assert_eq!(answer.bytes[32 + 20..32 + 24], bytes[20..24]);
                answered += 1;
            }
        }
        if round % 100_000 == 0 {
            pass(&mut clients, Span::from_us(20));
            clients.subnet.plane.engine.audit().unwrap();
        }
    }
    assert!(
        answered > 100_000 && came_back > 100_000,
        "{answered} {came_back}"
    );
    assert!(clients.subnet.now() > Time::ZERO);
}

/// A subnet manager has 49,151 unicast LIDs (IBA volume 1, section 4.1.3).
#[test]
fn fabrics_with_more_nodes_than_lids_are_refused() {
    let text = "[fabric]\ngenerator = \"xgft\"\nchildren = [200, 250]\nparents = [1, 1]\n";
    let scenario = Scenario::from_toml(text, "test.toml", &[]).unwrap();
    let subnet = Subnet::new(&Fastest, &scenario, Start::Configured, None);
    assert_eq!(
        subnet.map(|_| ()).unwrap_err().to_string(),
        "50251 nodes need more LIDs than the 49151 unicast ones; such a fabric can be simulated, but not managed"
    );
}

/// The largest code of an MTU is that of 4096 bytes (IBA volume 1, section 14.2.5.6).
#[test]
fn packets_larger_than_those_of_infiniband_are_refused() {
    let subnet = |mtu: &str| {
        let text = format!("[packet]\nmtu = \"{mtu}\"\n");
        subnet_of(&text)
    };
    assert_eq!(subnet("4 KiB"), Ok(()));
    let refused = subnet("9000 B").unwrap_err();
    assert!(
        refused.starts_with("packet.mtu: MTU of 9000 bytes"),
        "{refused}"
    );
}

#[test]
fn ethernet_is_refused() {
    let refused = subnet_of("[link]\nflow-control = \"pfc\"\n").unwrap_err();
    assert!(
        refused.starts_with("link.flow-control: \"pfc\" is Ethernet"),
        "{refused}"
    );
}

fn subnet_of(text: &str) -> Result<(), String> {
    let scenario = Scenario::from_toml(text, "test.toml", &[]).unwrap();
    Subnet::new(&Fastest, &scenario, Start::Configured, None)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

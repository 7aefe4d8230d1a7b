//! The hosts' questions for paths, with a subnet manager played by hand.

use silvan_core::{HostId, PortId, Sl, SwitchId};
use silvan_mad::Bits;
use silvan_mad::administration::{AdministrationAttribute, PathRecord, SubnetAdministration};
use silvan_mad::smp::SlToVlMappingTable;

use super::*;
use crate::subnet::Sources;

/// The LID that represents the node itself.
const PERMISSIVE: u16 = 0xffff;
/// Time that a host waits for the first answer.
const PATIENCE: Duration = Duration::from_millis(250);

/// The questions that have been sent, for whom they are, and as bytes.
fn questions(clients: &mut Clients) -> Vec<(u16, Message, PathRecord)> {
    let sent = std::mem::take(&mut clients.outbox).into_iter();
    let asked = sent.filter_map(|(to, mut message)| {
        let mad = Mad::parse(&Packet::new(*message.mad())).unwrap();
        let Body::Administration(SubnetAdministration {
            attribute: AdministrationAttribute::PathRecord(path),
            component_mask,
            ..
        }) = mad.body
        else {
            return None;
        };
        assert_eq!(mad.method, Method::GET);
        assert_eq!(component_mask, 1 << 4 | 1 << 5);
        Some((to, message, path))
    });
    asked.collect()
}

/// A subnet manager's answer to a question.
fn answer(
    question: &Message,
    status: Status,
    change: impl FnOnce(&mut PathRecord),
) -> [u8; DATA_LEN] {
    let mut message = question.clone();
    let mut mad = Mad::parse(&Packet::new(*message.mad())).unwrap();
    mad.method = Method::GET_RESPONSE;
    mad.status = status;
    if let Body::Administration(SubnetAdministration {
        attribute: AdministrationAttribute::PathRecord(path),
        ..
    }) = &mut mad.body
    {
        change(path);
    }
    *message.mad() = mad.emit();
    message.bytes
}

fn with_level(question: &Message, level: u8) -> [u8; DATA_LEN] {
    answer(question, Status::OK, |path| {
        path.sl = Sl::try_new(level).unwrap();
    })
}

/// Lets simulated time and the server's clock pass.
fn live(clients: &mut Clients, span: Duration) {
    pass(clients, Span::from_us(100));
    clients.subnet.uptime += span;
    clients.come_due();
}

/// Bytes sent by a, by service level.
fn sent(clients: &Clients) -> [u64; Sl::COUNT] {
    let port: PortId = clients.subnet.fabric.host_port(HostId::new(0));
    clients.subnet.plane.by_sl(port).bytes
}

fn levels_used(clients: &mut Clients) -> Vec<usize> {
    let before = sent(clients);
    live(clients, Duration::ZERO);
    let after = sent(clients);
    (0..Sl::COUNT)
        .filter(|&sl| after[sl] > before[sl])
        .collect()
}

/// A blank fabric that a subnet manager at a has brought up, and the question that comes of it.
fn brought_up() -> (Clients, u16, Message) {
    let mut clients = clients(Start::Blank);
    let me = attach(&mut clients, "a", true);
    set_up(&mut clients, me);
    take_to(&mut clients, me, PortState::ARMED);
    take_to(&mut clients, me, PortState::ACTIVE);
    live(&mut clients, Duration::ZERO);
    let asked = questions(&mut clients);
    let [(to, question, path)] = asked.as_slice() else {
        panic!("{} questions", asked.len());
    };
    assert_eq!(*to, me);
    assert_eq!((path.source, path.destination), (Lid::new(1), Lid::new(3)));
    assert_eq!(question.destination(), Lid::new(1));
    (clients, me, question.clone())
}

#[test]
fn a_host_asks_before_it_sends_and_takes_the_level() {
    let (mut clients, me, question) = brought_up();
    live(&mut clients, Duration::ZERO);
    assert!(questions(&mut clients).is_empty(), "asked twice at once");
    assert_eq!(delivered(&clients), 0);
    clients.datagram(me, &with_level(&question, 5));
    assert_eq!(levels_used(&mut clients), [5]);
    assert!(delivered(&clients) > 0);
    live(&mut clients, PATIENCE * 8);
    assert!(questions(&mut clients).is_empty());
    assert_eq!(
        (clients.questions.count(), clients.questions.answered),
        (0, 1)
    );
    clients.subnet.plane.engine.audit().unwrap();
}

#[test]
fn what_is_no_answer_is_asked_again_and_ever_more_rarely() {
    let (mut clients, me, question) = brought_up();
    let other = attach(&mut clients, "d", true);
    clients.datagram(other, &with_level(&question, 1));
    let wrong = answer(&question, Status::OK, |path| path.destination = Lid::new(4));
    clients.datagram(me, &wrong);
    // An answer that was none is not waited for longer, but not asked for sooner either.
    live(&mut clients, PATIENCE - Duration::from_millis(1));
    assert!(questions(&mut clients).is_empty());
    live(&mut clients, Duration::from_millis(1));
    let (_, second, _) = questions(&mut clients).remove(0);
    assert_ne!(second.transaction(), question.transaction());
    // Too late, and once too often.
    clients.datagram(me, &with_level(&question, 2));
    let busy = answer(&second, Status::BUSY, |_| {});
    clients.datagram(me, &busy);
    clients.datagram(me, &with_level(&second, 3));
    let mut waited = Duration::ZERO;
    let mut waits = Vec::new();
    while waits.len() < 6 {
        live(&mut clients, Duration::from_millis(50));
        waited += Duration::from_millis(50);
        for _ in questions(&mut clients) {
            waits.push(std::mem::take(&mut waited).as_millis());
        }
    }
    assert_eq!(waits, [500, 1000, 2000, 4000, 4000, 4000]);
    assert_eq!(delivered(&clients), 0);
    assert_eq!(clients.traffic.dropped, 3);
}

/// A subnet manager that has gone cannot be queried, and a new one may not be prepared.
#[test]
fn nobody_waits_for_a_subnet_manager_that_there_is_not() {
    let (mut clients, me, _) = brought_up();
    clients.disconnect(me);
    let next = attach(&mut clients, "a", true);
    live(&mut clients, Duration::ZERO);
    assert!(questions(&mut clients).is_empty());
    assert_eq!(levels_used(&mut clients), [0]);
    // After it has set a port to become Active, it is queried.
    for port_state in [PortState::DOWN, PortState::ARMED, PortState::ACTIVE] {
        for (path, number) in [(&[][..], 1), (&[1], 1)] {
            set_port(&mut clients, next, path, number, state(port_state));
        }
    }
    live(&mut clients, Duration::ZERO);
    let (to, question, _) = questions(&mut clients).remove(0);
    assert_eq!(to, next);
    clients.datagram(next, &with_level(&question, 7));
    assert_eq!(levels_used(&mut clients), [7]);
}

#[test]
fn changed_tables_are_reason_to_ask_anew_without_a_stop() {
    let (mut clients, me, question) = brought_up();
    clients.datagram(me, &with_level(&question, 5));
    live(&mut clients, Duration::from_secs(1));
    assert!(questions(&mut clients).is_empty());
    let mut table = LinearForwardingTable {
        ports: [LinearForwardingTable::NO_ROUTE; 64],
    };
    for (value, port) in [(1u8, 1u8), (3, 5), (4, 7), (12, 5)] {
        table.ports[usize::from(value)] = PortNumber::new(port);
    }
    let set = smp(Method::SET, directed(&[1]), 0, table);
    ask(&mut clients, me, 0xffff, &set);
    live(&mut clients, Duration::from_millis(99));
    // An equal table changes nothing.
    ask(&mut clients, me, 0xffff, &set);
    assert!(questions(&mut clients).is_empty());
    live(&mut clients, Duration::from_millis(1));
    assert_eq!(levels_used(&mut clients), [5]);
    let (_, question, _) = questions(&mut clients).remove(0);
    clients.datagram(me, &with_level(&question, 6));
    assert_eq!(levels_used(&mut clients), [6]);
    // The subnet manager may ask for it as well.
    let reregister = PortInfo {
        client_reregister: true,
        lid: Lid::new(1),
        master_sm_lid: Lid::new(1),
        ..PortInfo::default()
    };
    set_port(&mut clients, me, &[], 1, reregister);
    assert_eq!(levels_used(&mut clients), [6]);
    assert_eq!(questions(&mut clients).len(), 1);
}

#[test]
fn questions_and_answers_get_lost() {
    let mut clients = clients(Start::Blank);
    let me = attach(&mut clients, "b", true);
    let near = attach(&mut clients, "a", false);
    set_up(&mut clients, near);
    for port_state in [PortState::ARMED, PortState::ACTIVE] {
        take_to(&mut clients, near, port_state);
        for (path, number) in [(&[1][..], 2), (&[1, 2], 1)] {
            set_port(&mut clients, near, path, number, state(port_state));
        }
    }
    let manager = PortInfo {
        master_sm_lid: Lid::new(2),
        ..PortInfo::default()
    };
    set_port(&mut clients, near, &[], 1, manager);
    // The manager makes a Set, so it can be queried.
    ask(
        &mut clients,
        me,
        0xffff,
        &smp(Method::SET, directed(&[]), 1, state(PortState::NO_CHANGE)),
    );
    clients.loss.set(1.0, 1);
    live(&mut clients, Duration::ZERO);
    assert!(questions(&mut clients).is_empty());
    assert_eq!(clients.traffic.lost, 1);
    clients.loss.set(0.0, 1);
    live(&mut clients, PATIENCE);
    let (_, question, _) = questions(&mut clients).remove(0);
    clients.loss.set(1.0, 1);
    clients.datagram(me, &with_level(&question, 5));
    assert_eq!((clients.traffic.lost, clients.questions.answered), (2, 0));
    clients.loss.set(0.0, 1);
    live(&mut clients, PATIENCE * 2);
    let (_, question, _) = questions(&mut clients).remove(0);
    clients.datagram(me, &with_level(&question, 5));
    assert_eq!(levels_used(&mut clients), [5]);
}

/// The levels are behind the destinations, for the first host of every switch.
#[test]
fn tables_can_be_dumped_with_levels() {
    let (mut clients, me, question) = brought_up();
    clients.datagram(me, &with_level(&question, 0));
    // The other hosts' ports are not active, so that only the first host of the first switch can ask.
    assert_eq!(clients.query_all_paths(Sources::Switches), Some(6));
    live(&mut clients, Duration::ZERO);
    let asked = questions(&mut clients);
    let found: Vec<_> = asked
        .iter()
        .map(|(_, _, path)| (path.source.as_u16(), path.destination.as_u16()))
        .collect();
    assert_eq!(found[..3], [(1, 2), (1, 3), (1, 4)]);
    for (level, (_, question, _)) in (0..).zip(&asked) {
        clients.datagram(me, &with_level(question, level));
    }
    let text = crate::tables::dump(&clients.subnet, Some(Sources::Switches));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(") sl ")).collect();
    assert!(
        lines[0].starts_with("0x0003 005 : (Channel Adapter"),
        "{text}"
    );
    assert!(lines[0].ends_with(": 'c') sl 1"), "{text}");
    assert!(lines[1].ends_with(": 'd') sl 2"), "{text}");
    assert!(!crate::tables::dump(&clients.subnet, None).contains(") sl "));
    clients.disconnect(me);
    assert_eq!(clients.query_all_paths(Sources::Hosts), None);
}

/// Oracle: what the importer reads is what the data plane has.
#[test]
fn what_is_dumped_tells_hosts_and_ports_apart() {
    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "left", false);
    let fabric = std::sync::Arc::clone(&clients.subnet.fabric);
    let [a, b, c, d] = [0, 1, 2, 3].map(HostId::new);
    let engine = &mut clients.subnet.plane.engine;
    for (from, to, level) in [(a, c, 3), (b, c, 3), (d, c, 1), (a, d, 2)] {
        engine.set_path_sl(from, to, Sl::try_new(level).unwrap());
    }
    let dump = |clients: &Clients, sources| crate::tables::dump(&clients.subnet, sources);
    let text = dump(&clients, Some(Sources::Hosts));
    let levels: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once(") sl ")?.1))
        .collect();
    // At the left switch to c and d, at the right switch to c.
    assert_eq!(levels, ["3", "0 1:2", "1"]);
    assert!(!text.contains("base LID"), "none was set: {text}");
    let read = silvan_fabric::import::routes(&text, &fabric).unwrap();
    for (from, to) in [(a, c), (b, c), (d, c), (a, d), (b, d), (a, b), (c, a)] {
        let level = clients.subnet.plane.engine.path_sl(from, to);
        assert_eq!(read.levels.level(from, to), level.as_u8());
    }

    let mut set = |modifier: u32, vls: [u8; 16]| {
        let lanes = SlToVlMappingTable {
            vls: vls.map(|vl| Bits::saturating(vl.into())),
        };
        let request = smp(Method::SET, SmpRoute::Lid, modifier, lanes);
        let answer = ask(&mut clients, me, PERMISSIVE, &request);
        assert_eq!(answer.status, Status::OK);
    };
    let by_output = std::array::from_fn(|sl| sl as u8 / 2);
    set(0x0105, by_output);
    set(0x0205, by_output);
    assert!(!dump(&clients, None).contains("base LID"));
    let text = dump(&clients, Some(Sources::Hosts));
    assert!(text.contains("\n1-2 5   : 0  0  1  1  2  2  3"), "{text}");
    let read = silvan_fabric::import::routes(&text, &fabric).unwrap();
    for switch in [0, 1].map(SwitchId::new) {
        let node = fabric.node_of_switch(switch);
        for (input, output) in [(1, 5), (2, 5), (5, 1), (1, 2), (6, 8)] {
            let (input, output) = (PortNumber::new(input), PortNumber::new(output));
            let found = read.lanes.switch(switch, input, output).copied();
            let port = |port| fabric.switch(switch).port(port);
            let is_cabled =
                |number| port(number).is_some_and(|port| fabric.ports[port].peer.is_some());
            let expected = clients.subnet.plane.engine.sl_to_vl(node, input, output);
            let both = is_cabled(input) && is_cabled(output);
            assert_eq!(found, expected.filter(|_| both));
        }
    }
    assert_eq!(read.lanes.host(a), Some(&[0; 16]));
}

/// Tables that change nothing for the levels in use are left out.
#[test]
fn lanes_of_the_same_number_are_not_dumped() {
    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "left", false);
    let lanes = SlToVlMappingTable {
        vls: std::array::from_fn(|sl| Bits::saturating(sl as u64 % 8)),
    };
    let ports = 1..=8;
    for (input, output) in ports
        .clone()
        .flat_map(|a| ports.clone().map(move |b| (a, b)))
    {
        let request = smp(Method::SET, SmpRoute::Lid, input << 8 | output, lanes);
        ask(&mut clients, me, PERMISSIVE, &request);
    }
    // The lanes of the other switch map all levels to lane 0; only level 0 is in use so far.
    let text = crate::tables::dump(&clients.subnet, Some(Sources::Hosts));
    assert!(!text.contains("base LID"), "{text}");
    let level = Sl::try_new(9).unwrap();
    let (from, to) = (HostId::new(0), HostId::new(2));
    clients.subnet.plane.engine.set_path_sl(from, to, level);
    let text = crate::tables::dump(&clients.subnet, Some(Sources::Hosts));
    assert!(text.contains("base LID"), "{text}");
}

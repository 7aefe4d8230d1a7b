//! Datagrams that are lost, switches that reboot.

use silvan_mad::Bits;
use silvan_mad::congestion::{
    CongestionKeyInfo, ManagementAttribute, SwitchPortCongestionElement,
    SwitchPortCongestionSetting,
};
use silvan_mad::smp::{PKeyTable, SlToVlMappingTable, VlArbitrationEntry, VlArbitrationTable};

use super::*;

/// The address of the own node without a LID.
const PERMISSIVE: u16 = 0xffff;
const TIMED_OUT: [u8; 4] = [0, 0, 0, 110];

fn control_mad(method: Method, modifier: u32, attribute: impl Into<ManagementAttribute>) -> Mad {
    let attribute: ManagementAttribute = attribute.into();
    let body = Body::CongestionControl(CongestionControl {
        cc_key: 0,
        attribute: attribute.into(),
    });
    Mad {
        modifier,
        ..Mad::request(method, body)
    }
}

fn rate_of(clients: &mut Clients, asker: u16, lid: u16) -> u16 {
    let request = control_mad(Method::GET, 0, SwitchCongestionSetting::default());
    match ask(clients, asker, lid, &request).body {
        Body::CongestionControl(CongestionControl {
            attribute:
                CongestionAttribute::Management(ManagementAttribute::SwitchCongestionSetting(setting)),
            ..
        }) => setting.marking_rate,
        _ => panic!("no setting"),
    }
}

/// Sends settings from far away with one of five datagrams lost, and reads their effects nearby. Returns the numbers of
/// answered settings, of settings without effect, and of effective settings without an answer.
fn losses(seed: u64) -> (Vec<u16>, usize, usize) {
    let mut clients = clients(Start::Configured);
    let far = attach(&mut clients, "c", false);
    let near = attach(&mut clients, "left", false);
    let left = lid(&clients, "left");
    clients.loss.set(0.2, seed);
    let (mut answered, mut ineffective, mut silent) = (Vec::new(), 0, 0);
    let mut rate = rate_of(&mut clients, near, PERMISSIVE);
    for number in 1..=2000 {
        let wanted = SwitchCongestionSetting {
            control_map: switch_control_map::MARKING_RATE,
            marking_rate: number,
            ..SwitchCongestionSetting::default()
        };
        let request = control_mad(Method::SET, 0, wanted);
        clients.datagram(far, &message(left, &request.emit()));
        let mut messages = std::mem::take(&mut clients.outbox);
        let before = std::mem::replace(&mut rate, rate_of(&mut clients, near, PERMISSIVE));
        assert!(rate == before || rate == number);
        if messages.is_empty() {
            clients.subnet.uptime += Duration::from_millis(99);
            clients.come_due();
            assert!(clients.outbox.is_empty(), "back too early");
            clients.subnet.uptime += Duration::from_millis(1);
            clients.come_due();
            messages = std::mem::take(&mut clients.outbox);
            assert_eq!(messages[0].1.bytes[16..20], TIMED_OUT);
            ineffective += usize::from(rate == before);
            silent += usize::from(rate == number);
        } else {
            assert_eq!(rate, number, "answered without effect");
            answered.push(number);
        }
        // One message each, in every case.
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].0, far);
    }
    assert_eq!(clients.traffic.lost, (ineffective + silent) as u64);
    (answered, ineffective, silent)
}

#[test]
fn as_many_are_lost_as_asked_for_on_both_ways() {
    let (answered, ineffective, silent) = losses(3);
    // Five standard deviations of a binomial count around 0.8 x 0.8, 0.2 and 0.8 x 0.2 of 2000.
    assert!(answered.len().abs_diff(1280) < 108, "{}", answered.len());
    assert!(ineffective.abs_diff(400) < 90, "{ineffective}");
    assert!(silent.abs_diff(320) < 82, "{silent}");
    assert_eq!(losses(3).0, answered);
    assert_ne!(losses(4).0, answered);
}

/// Questions to a subnet manager get lost as well, and traps are sent again.
#[test]
fn what_is_passed_on_can_be_lost() {
    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "a", false);
    let sm = attach(&mut clients, "d", true);
    let d = lid(&clients, "d");
    let come_back = |clients: &mut Clients| {
        assert!(clients.outbox.is_empty());
        clients.subnet.uptime += Duration::from_millis(100);
        clients.come_due();
        let (to, message) = clients.outbox.pop().unwrap();
        assert_eq!((to, &message.bytes[16..20]), (me, &TIMED_OUT[..]));
        assert!(clients.outbox.is_empty());
    };
    clients.loss.set(1.0, 0);
    clients.datagram(me, &message(d, &query(1)));
    come_back(&mut clients);
    // The answer is lost.
    clients.loss.set(0.0, 0);
    clients.datagram(me, &message(d, &query(2)));
    let (_, mut forwarded) = clients.outbox.pop().unwrap();
    forwarded.mad()[3] = 0x81;
    clients.loss.set(1.0, 0);
    clients.datagram(sm, &forwarded.bytes);
    come_back(&mut clients);
    // The switch has a route to the subnet manager, but its trap is lost.
    let left = clients.subnet.node_named("left").unwrap();
    let manager = clients.subnet.node_of_lid(Lid::new(d)).unwrap();
    let manager = clients.subnet.lid(manager);
    clients.subnet.state_mut(left).ports[0].info.master_sm_lid = manager;
    let port = clients.subnet.port_id(left, PortNumber::new(1)).unwrap();
    clients.subnet.set_cable(port, true);
    clients.flush_traps();
    assert!(clients.outbox.is_empty());
    clients.loss.set(0.0, 0);
    clients.flush_traps();
    assert_eq!(clients.outbox.pop().unwrap().0, sm);
}

/// A subnet manager's requests are sent again, and what is sent four times is lost by the fourth power.
#[test]
fn the_requests_of_a_subnet_manager_are_sent_again() {
    let mut clients = clients(Start::Configured);
    let sm = attach(&mut clients, "d", true);
    let left = lid(&clients, "left");
    let request = control_mad(Method::GET, 0, SwitchCongestionSetting::default()).emit();
    clients.loss.set(0.5, 5);
    // Numbers of requests back after multiples of 100 ms, and of requests that still time out.
    let (mut back, mut in_vain) = ([0usize; 5], 0);
    for _ in 0..2000 {
        clients.datagram(sm, &message(left, &request));
        let mut waits = 0;
        while clients.outbox.is_empty() {
            clients.subnet.uptime += Duration::from_millis(100);
            clients.come_due();
            waits += 1;
        }
        back[waits] += 1;
        let (_, message) = clients.outbox.pop().unwrap();
        assert!(clients.outbox.is_empty());
        let timed_out = message.bytes[16..20] == TIMED_OUT;
        assert_eq!(timed_out, waits == 4);
        in_vain += usize::from(timed_out);
    }
    // There and back without loss: 1/4 of the rest, each time; five standard deviations.
    for (waits, expected) in [(0, 500.0_f64), (1, 375.0), (2, 281.25), (3, 210.9)] {
        let count = back[waits] as f64;
        let deviation = (expected * (1.0 - expected / 2000.0)).sqrt();
        assert!(
            (count - expected).abs() < 5.0 * deviation,
            "{waits}: {count}"
        );
    }
    assert_eq!(clients.traffic.answered as usize, 2000 - in_vain);
}

/// Reads all attributes of a switch, as bytes. The oracle of a reboot is a switch that was never set up.
fn all_of(clients: &mut Clients, asker: u16) -> Vec<(String, Message)> {
    let mut requests = Vec::new();
    let pair = |input: u32, output: u32| input << 8 | output;
    let mut smps: Vec<(u16, u32)> = vec![(0x10, 0), (0x11, 0), (0x12, 0), (0x14, 0), (0x19, 0)];
    smps.extend((0..=8).map(|port| (0x15, port)));
    smps.extend((0..=8).map(|port| (0x16, port << 16)));
    smps.extend((0..=8).flat_map(|input| (0..=8).map(move |output| (0x17, pair(input, output)))));
    smps.extend((1..=8).flat_map(|port| (1..=4).map(move |block| (0x18, block << 16 | port))));
    smps.push((0x1b, 0));
    requests.extend(
        smps.into_iter()
            .map(|(id, modifier)| (1, 1, id, modifier, 0)),
    );
    let counters = [
        0x12, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1f, 0x30, 0x31, 0x32, 0x33,
        0x34, 0x35, 0x36, 0x37,
    ];
    for id in counters {
        requests.extend((0..=8).map(|port| (4, 1, id, 0, port)));
    }
    requests.extend([0x11, 0x12, 0x13, 0x14, 0x15].map(|id| (0x21, 2, id, 0, 0)));
    let all = requests.into_iter().map(
        |(class, version, id, modifier, port): (u8, u8, u16, u32, u8)| {
            let mut bytes = [0; MAD_LEN];
            bytes[..4].copy_from_slice(&[1, class, version, 1]);
            bytes[16..18].copy_from_slice(&id.to_be_bytes());
            bytes[20..24].copy_from_slice(&modifier.to_be_bytes());
            bytes[65] = if class == 4 { port } else { 0 };
            clients.datagram(asker, &message(PERMISSIVE, &bytes));
            let (_, answer) = clients.outbox.pop().unwrap();
            assert!(clients.outbox.is_empty());
            (
                format!("class {class:#x} attribute {id:#x} modifier {modifier:#x} port {port}"),
                answer,
            )
        },
    );
    all.collect()
}

/// Sets all attributes of a switch that can be set.
fn set_up(clients: &mut Clients, asker: u16) {
    let mut set = |request: &Mad| {
        let answer = ask(clients, asker, PERMISSIVE, request);
        assert_eq!(answer.status, Status::OK, "{request}");
    };
    let table = LinearForwardingTable {
        ports: [PortNumber::new(2); 64],
    };
    let keys = PKeyTable {
        p_keys: [0x8007; 32],
    };
    let lanes = SlToVlMappingTable {
        vls: [Bits::saturating(15); 16],
    };
    let mut arbitration = VlArbitrationTable::default();
    arbitration.entries[0] = VlArbitrationEntry {
        weight: 9,
        ..arbitration.entries[0]
    };
    set(&smp(Method::SET, SmpRoute::Lid, 0, table));
    for pair in [0x0102, 0x0001, 0x0100] {
        set(&smp(Method::SET, SmpRoute::Lid, pair, lanes));
    }
    for port in 1..=2 {
        set(&smp(Method::SET, SmpRoute::Lid, port << 16, keys));
        set(&smp(
            Method::SET,
            SmpRoute::Lid,
            1 << 16 | port,
            arbitration,
        ));
    }
    let whole = SwitchCongestionSetting {
        control_map: 0x1f,
        threshold: Bits::saturating(7),
        packet_size: 5,
        marking_rate: 99,
        ..SwitchCongestionSetting::default()
    };
    set(&control_mad(Method::SET, 0, whole));
    let mut ports = SwitchPortCongestionSetting::default();
    ports.ports[1] = SwitchPortCongestionElement {
        valid: true,
        marking_rate: 3,
        ..SwitchPortCongestionElement::default()
    };
    set(&control_mad(Method::SET, 0, ports));
    let key = CongestionKeyInfo {
        cc_key: 5,
        protect: true,
        ..CongestionKeyInfo::default()
    };
    set(&control_mad(Method::SET, 0, key));
}

#[test]
fn a_switch_that_reboots_is_as_one_that_was_never_set_up() {
    let mut fresh = clients(Start::Blank);
    let me = attach(&mut fresh, "left", false);
    let expected = all_of(&mut fresh, me);

    let mut clients = clients(Start::Configured);
    let me = attach(&mut clients, "left", false);
    let other = attach(&mut clients, "c", false);
    let (left, right) = (lid(&clients, "left"), lid(&clients, "right"));
    pass(&mut clients, Span::from_us(200));
    set_up(&mut clients, me);
    let switch = &clients.subnet.fabric.nodes[clients.subnet.node_named("left").unwrap()];
    let switch = switch.as_switch().unwrap();
    assert!(clients.subnet.power_off(switch, Duration::from_secs(2)));
    assert!(!clients.subnet.power_off(switch, Duration::from_secs(9)));
    pass(&mut clients, Span::from_us(50));
    // The node does not exist, neither for others nor for itself.
    let request = smp(Method::GET, SmpRoute::Lid, 0, NodeInfo::default());
    for (asker, lid) in [(other, left), (me, PERMISSIVE)] {
        let message = send_raw(&mut clients, asker, lid, &request);
        assert_eq!(message.bytes[16..20], TIMED_OUT);
    }
    let far_end = smp(Method::GET, SmpRoute::Lid, 6, PortInfo::default());
    let info = port_info(&ask(&mut clients, other, right, &far_end));
    assert_eq!(info.port_state, PortState::DOWN);
    let delivered =
        |clients: &Clients| clients.subnet.plane.delivered_bytes(&clients.subnet.fabric);
    let before = delivered(&clients);
    pass(&mut clients, Span::from_us(50));
    assert_eq!(delivered(&clients), before);

    clients.subnet.uptime = Duration::from_secs(2);
    clients.come_due();
    let info = port_info(&ask(&mut clients, other, right, &far_end));
    assert_eq!(info.port_state, PortState::INITIALIZE);
    let mut reached = all_of(&mut clients, me);
    // The ports have come up after the reboot, and the clock has continued.
    for (what, answer) in &mut reached {
        match what {
            _ if what.starts_with("class 0x1 attribute 0x12 ") => {
                answer.mad()[64 + 11] &= !(1 << 2)
            }
            _ if what.starts_with("class 0x21 attribute 0x13 ") => answer.mad()[36..40].fill(0),
            _ => {}
        }
    }
    for (reached, expected) in reached.iter().zip(&expected) {
        assert_eq!(reached, expected);
    }
    // Nothing passes until somebody sets it up.
    pass(&mut clients, Span::from_us(50));
    assert_eq!(delivered(&clients), before);
    clients.subnet.plane.engine.audit().unwrap();
}

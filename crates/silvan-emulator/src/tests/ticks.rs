//! Ticks of counters of time, by the device that a switch shows.

use silvan_core::{DeviceId, PortId};
use silvan_mad::performance::PortSamplesControl;
use silvan_mad::smp::NodeType;

use super::*;
use crate::subnet::{Setup, SwitchDevices};

/// A switch with links of two speeds; a sends more to c than its link carries.
const FAN: &str = r#"
[fabric]
switch = [{ name = "left", ports = 4 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
cable = [
    { from = "a", to = "left:1", speed = "HDR" },
    { from = "b", to = "left:2", speed = "EDR" },
    { from = "c", to = "left:3", speed = "SDR" },
]
routing = "min-hop"
[link]
width = "4x"
[[traffic.flow]]
from = "a"
to = "c"
"#;

fn fan(devices: SwitchDevices) -> Clients {
    let scenario = Scenario::from_toml(FAN, "fan.toml", &[]).unwrap();
    let setup = Setup {
        devices,
        ..Start::Configured.into()
    };
    let subnet = Subnet::new(&Fastest, &scenario, setup, None).unwrap();
    Clients::new(subnet, None).unwrap()
}

fn performance_of(
    clients: &mut Clients,
    client: u16,
    node: &str,
    attribute: impl Into<PerformanceAttribute>,
) -> PerformanceAttribute {
    let lid = lid(clients, node);
    let request = performance(attribute, Method::GET);
    match ask(clients, client, lid, &request).body {
        Body::Performance(answer) => answer,
        _ => panic!("no counters"),
    }
}

fn code(clients: &mut Clients, client: u16, node: &str, port: u8) -> u8 {
    let control = PortSamplesControl {
        port_select: PortNumber::new(port),
        ..PortSamplesControl::default()
    };
    match performance_of(clients, client, node, control) {
        PerformanceAttribute::PortSamplesControl(control) => control.tick,
        other => panic!("{other:?}"),
    }
}

fn wait(clients: &mut Clients, client: u16) -> u64 {
    let extended = PortCountersExtended {
        port_select: PortNumber::new(1),
        ..PortCountersExtended::default()
    };
    match performance_of(clients, client, "a", extended) {
        PerformanceAttribute::PortCountersExtended(counters) => counters.xmit_wait,
        other => panic!("{other:?}"),
    }
}

fn waited_ps(clients: &Clients) -> u64 {
    let port: PortId = clients.subnet.fabric.host_port(silvan_core::HostId::new(0));
    clients.subnet.plane.counters(port).xmit_wait.as_ps()
}

/// Oracle: the manual's ticks by hand, and the engine's time.
#[test]
fn ports_answer_and_count_as_their_device() {
    let all = [
        (SwitchDevices::BySpeed, DeviceId::QUANTUM, [7, 7, 7], 320),
        (
            SwitchDevices::Same(DeviceId::SWITCH_IB_2),
            DeviceId::SWITCH_IB_2,
            [31, 31, 31],
            5_120,
        ),
        // 4 ns are 25 symbols of 0.16 ns, 12 of 0.32 ns, and 1 of 4 ns.
        (
            SwitchDevices::default(),
            DeviceId::EMULATED,
            [24, 11, 0],
            4_000,
        ),
    ];
    for (devices, device, codes, tick) in all {
        let mut clients = fan(devices);
        let me = attach(&mut clients, "b", false);
        let node = clients.subnet.node_named("left").unwrap();
        let adapter = clients.subnet.node_named("a").unwrap();
        for node in [node, adapter] {
            assert_eq!(clients.subnet.state(node).info.device(), device);
        }
        for (port, expected) in (1..).zip(codes) {
            assert_eq!(code(&mut clients, me, "left", port), expected);
        }
        // An adapter counts as the switch at the other end.
        assert_eq!(code(&mut clients, me, "a", 1), codes[0]);
        pass(&mut clients, Span::from_us(200));
        let expected = waited_ps(&clients) / tick;
        assert!(expected > 1_000, "{expected}");
        assert_eq!(wait(&mut clients, me), expected);
    }
}

/// Oracle: the switch at the first cabled port of each adapter; NodeType 3 is a router's (IBA volume 1, 14.2.5.3).
#[test]
fn adapters_show_one_device_and_routers_their_type() {
    const RAILS: &str = r#"
[fabric]
switch = [{ name = "hdr", ports = 4 }, { name = "edr", ports = 4 }]
host = [
    { name = "a/P1", guid = "0x10", adapter-port = 1 },
    { name = "a/P2", guid = "0x10", adapter-port = 2 },
    { name = "gate", router = true },
    { name = "b" },
]
cable = [
    { from = "a/P1", to = "hdr:1", speed = "HDR" },
    { from = "a/P2", to = "edr:1", speed = "EDR" },
    { from = "gate", to = "hdr:2", speed = "HDR" },
    { from = "b", to = "edr:2", speed = "EDR" },
    { from = "hdr:3", to = "edr:3", speed = "EDR" },
]
routing = "min-hop"
[link]
width = "4x"
[[traffic.flow]]
from = "a/P1"
to = "b"
"#;
    let scenario = Scenario::from_toml(RAILS, "rails.toml", &[]).unwrap();
    let setup = Setup {
        devices: SwitchDevices::BySpeed,
        ..Start::Configured.into()
    };
    let subnet = Subnet::new(&Fastest, &scenario, setup, None).unwrap();
    for (name, device, node_type) in [
        ("a/P1", DeviceId::QUANTUM, NodeType::CHANNEL_ADAPTER),
        ("a/P2", DeviceId::QUANTUM, NodeType::CHANNEL_ADAPTER),
        ("gate", DeviceId::QUANTUM, NodeType::ROUTER),
        ("b", DeviceId::SWITCH_IB_2, NodeType::CHANNEL_ADAPTER),
        ("edr", DeviceId::SWITCH_IB_2, NodeType::SWITCH),
    ] {
        let info = subnet.state(subnet.node_named(name).unwrap()).info;
        assert_eq!(
            (info.device(), info.node_type),
            (device, node_type),
            "{name}"
        );
    }
}

/// Oracle: the time waited at each speed, over the tick of this speed.
#[test]
fn a_link_that_changes_its_speed_keeps_what_it_has_counted() {
    let mut clients = fan(SwitchDevices::BySpeed);
    let me = attach(&mut clients, "b", false);
    pass(&mut clients, Span::from_us(200));
    let (before, before_ps) = (wait(&mut clients, me), waited_ps(&clients));
    let port = clients.subnet.fabric.host_port(silvan_core::HostId::new(0));
    let limit = silvan_fabric::CableLimit {
        speed: Some(silvan_fabric::Speed::Edr),
        ..silvan_fabric::CableLimit::default()
    };
    clients.subnet.limit_cable(port, limit);
    // Requests to a LID need an active link.
    clients.subnet.activate(port);
    // The engine takes the wait of a packet back that was lost with the link.
    let taken_back = before_ps - waited_ps(&clients);
    let kept = wait(&mut clients, me);
    assert!(
        kept.abs_diff(before - taken_back / 640) <= 1,
        "{kept} {before}"
    );
    pass(&mut clients, Span::from_us(200));
    let waited = waited_ps(&clients) - before_ps;
    assert!(waited > 50_000_000, "{waited}");
    let counted = wait(&mut clients, me) - before;
    // 8 bytes at 100 Gbit/s are 0.64 ns.
    assert!(counted.abs_diff(waited / 640) <= 1, "{counted} {waited}");
}

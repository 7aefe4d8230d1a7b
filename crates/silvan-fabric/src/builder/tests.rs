#![allow(
    clippy::unwrap_used,
    reason = "a fabric that cannot be built is a failed test"
)]

use super::*;
use crate::testing::LINK;

/// Two switches with 4 ports, two hosts, nothing cabled.
fn parts() -> (FabricBuilder, [NodeHandle; 4]) {
    let mut builder = FabricBuilder::new();
    let handles = [
        builder.add_switch("leaf-00", 4).unwrap(),
        builder.add_switch("leaf-01", 4).unwrap(),
        builder.add_host("host-0000").unwrap(),
        builder.add_host("host-0001").unwrap(),
    ];
    (builder, handles)
}

/// Ids depend on the order of the calls within a kind alone; switches come first.
#[test]
fn ids_are_given_switches_first() {
    let mut builder = FabricBuilder::new();
    let host = builder.add_host("h").unwrap();
    let empty = builder.add_switch("empty", 3).unwrap();
    let switch = builder.add_switch("s", 2).unwrap();
    builder.connect(switch.port(2), host.port(1), LINK).unwrap();
    builder
        .connect(empty.port(3), switch.port(1), LINK)
        .unwrap();
    let fabric = builder.build().unwrap();

    let names: Vec<&str> = fabric.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["empty", "s", "h"]);
    let lids: Vec<u16> = fabric.nodes.iter().map(|node| node.lid.as_u16()).collect();
    assert_eq!(lids, [1, 2, 3]);
    let guids: Vec<String> = fabric
        .nodes
        .iter()
        .map(|node| node.guid.to_string())
        .collect();
    assert_eq!(
        guids,
        [
            "0x0253560000000100",
            "0x0253560000000200",
            "0x0253560000000300"
        ]
    );
    let host = HostId::new(0);
    assert_eq!(
        fabric.ports[fabric.host_port(host)].guid,
        Guid::new(0x0253_5600_0000_0301)
    );
    let (leaf, port) = fabric.host_attachment(host);
    assert_eq!(fabric.switch(leaf).name, "s");
    assert_eq!(fabric.port_name(port).to_string(), "s:2");
    assert_eq!(
        fabric.port(fabric.node_of_switch(leaf), PortNumber::new(0)),
        None
    );
    assert_eq!(
        fabric.port(fabric.node_of_switch(leaf), PortNumber::new(3)),
        None
    );
    assert_eq!(fabric.node_by_lid(Lid::new(0)), None);
    assert_eq!(fabric.node_by_lid(Lid::new(4)), None);
    assert_eq!(fabric.nearest_name("emtpy"), Some("empty"));
}

#[test]
fn bad_nodes_are_refused() {
    let (mut builder, _) = parts();
    for (error, expected) in [
        (
            builder.add_host("leaf-00").unwrap_err(),
            "there are two nodes named \"leaf-00\"",
        ),
        (
            builder.add_host("").unwrap_err(),
            "\"\" cannot be a node name: it must not be empty",
        ),
        (
            builder.add_switch("none", 0).unwrap_err(),
            "switch \"none\" has 0 ports, it must have 1 to 254",
        ),
        (
            builder.add_switch("many", 255).unwrap_err(),
            "switch \"many\" has 255 ports, it must have 1 to 254",
        ),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn bad_cables_are_refused() {
    let (mut builder, [a, b, h, i]) = parts();
    builder.connect(a.port(1), h.port(1), LINK).unwrap();
    for ((from, to), expected) in [
        (
            (a.port(1), b.port(1)),
            "two cables are plugged into leaf-00:1",
        ),
        (
            (b.port(1), h.port(1)),
            "two cables are plugged into host-0000:1",
        ),
        (
            (a.port(5), b.port(1)),
            "\"leaf-00\" has ports 1 to 4, not 5",
        ),
        (
            (a.port(2), b.port(0)),
            "\"leaf-01\" has ports 1 to 4, not 0",
        ),
        (
            (a.port(2), i.port(2)),
            "\"host-0001\" has ports 1 to 1, not 2",
        ),
        (
            (a.port(2), a.port(3)),
            "a cable connects \"leaf-00\" to itself",
        ),
        (
            (a.port(2), a.port(2)),
            "a cable connects \"leaf-00\" to itself",
        ),
    ] {
        let error = builder.connect(from, to, LINK).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let (mut builder, [_, _, h, i]) = parts();
    assert_eq!(
        builder
            .connect(h.port(1), i.port(1), LINK)
            .unwrap_err()
            .to_string(),
        "a cable connects the hosts \"host-0000\" and \"host-0001\"; a host needs a switch"
    );
}

#[test]
fn endpoints_are_read_from_text() {
    let (builder, [a, _, h, _]) = parts();
    assert_eq!(builder.endpoint("leaf-00:3").unwrap(), a.port(3));
    assert_eq!(builder.endpoint("host-0000").unwrap(), h.port(1));
    assert_eq!(builder.endpoint("host-0000:1").unwrap(), h.port(1));
    for (text, expected) in [
        ("laef-00:3", "there is no node named \"laef-00\""),
        ("zzz:3", "there is no node named \"zzz\""),
        ("leaf-00", "\"leaf-00\" is not a port"),
        ("leaf-00:x", "\"leaf-00:x\" is not a port"),
        ("leaf-00:256", "\"leaf-00:256\" is not a port"),
    ] {
        assert_eq!(builder.endpoint(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn incomplete_fabrics_are_refused() {
    let (mut builder, [a, _, h, _]) = parts();
    builder.connect(a.port(1), h.port(1), LINK).unwrap();
    assert_eq!(
        builder.build().unwrap_err().to_string(),
        "host \"host-0001\" is not connected to a switch"
    );
    let mut builder = FabricBuilder::new();
    builder.add_switch("lonely", 4).unwrap();
    assert_eq!(
        builder.build().unwrap_err().to_string(),
        "the fabric has no host"
    );
}

/// With one node more than there are LIDs, no node gets a LID, and a given LID is refused.
#[test]
fn nodes_beyond_all_lids_have_none() {
    let with_hosts = |hosts: usize| {
        let mut builder = FabricBuilder::new();
        let mut switch = None;
        for index in 0..hosts {
            if index % 254 == 0 {
                let name = format!("s{}", index / 254);
                switch = Some(builder.add_switch(name, 254).unwrap());
            }
            let host = builder.add_host(format!("h{index}")).unwrap();
            let port = switch.unwrap().port((index % 254 + 1) as u8);
            builder.connect(host.port(1), port, LINK).unwrap();
        }
        builder
    };
    // 193 switches.
    let fabric = with_hosts(48_958).build().unwrap();
    assert_eq!(fabric.nodes.len(), 49_151);
    assert!(fabric.has_lids() && fabric.require_lids().is_ok());
    assert_eq!(fabric.max_lid(), Lid::MAX_UNICAST);
    let fabric = with_hosts(48_959).build().unwrap();
    assert!(!fabric.has_lids());
    assert!(fabric.nodes.iter().all(|node| node.lid == Lid::new(0)));
    assert_eq!(fabric.node_by_lid(Lid::new(0)), None);
    assert_eq!(
        fabric.require_lids().unwrap_err().to_string(),
        "49152 nodes need more LIDs than the 49151 unicast ones"
    );
    let mut builder = with_hosts(48_959);
    let identity = Identity {
        lid: Some(Lid::new(7)),
        ..Identity::default()
    };
    builder.identify(NodeHandle(0), identity);
    assert_eq!(
        builder.build().unwrap_err().to_string(),
        "49152 nodes need more LIDs than the 49151 unicast ones"
    );
}

/// Descriptions of real switches have colons; what can be read both ways is a port.
#[test]
fn names_may_have_colons() {
    let mut builder = FabricBuilder::new();
    let switch = builder.add_switch("MF0;sw-1:MSB7700/U1", 36).unwrap();
    let host = builder.add_host("a").unwrap();
    let other = builder.add_host("a:1").unwrap();
    for (text, expected) in [
        ("MF0;sw-1:MSB7700/U1:7", switch.port(7)),
        ("a", host.port(1)),
        ("a:1", host.port(1)),
        ("a:1:1", other.port(1)),
    ] {
        assert_eq!(builder.endpoint(text).unwrap(), expected, "{text}");
    }
    assert!(builder.endpoint("MF0;sw-1:MSB7700/U1").is_err());
}

#[test]
fn given_identities_are_kept_and_the_others_fit_in() {
    let mut builder = FabricBuilder::new();
    let switch = builder.add_switch("s", 4).unwrap();
    let handles = ["a", "b", "c"].map(|name| builder.add_host(name).unwrap());
    let lid = |lid| Identity {
        lid: Some(Lid::new(lid)),
        ..Identity::default()
    };
    builder.identify(switch, lid(2));
    let guid = Guid::new(0x0002_c903_0000_0010);
    let port_guid = Guid::new(0x0002_c903_0000_0012);
    builder.identify(
        handles[1],
        Identity {
            lid: Some(Lid::new(900)),
            guid: Some(guid),
            port_guid: Some(port_guid),
            adapter_port: Some(PortNumber::new(2)),
            role: HostRole::Router,
        },
    );
    for (handle, port) in handles.into_iter().zip(1..) {
        builder
            .connect(handle.port(1), switch.port(port), LINK)
            .unwrap();
    }
    let fabric = builder.clone().build().unwrap();
    let lids: Vec<u16> = fabric.nodes.iter().map(|node| node.lid.as_u16()).collect();
    assert_eq!(lids, [2, 1, 900, 3]);
    let b = fabric.node_by_lid(Lid::new(900)).unwrap();
    assert_eq!(fabric.nodes[b].name, "b");
    assert_eq!(fabric.nodes[b].guid, guid);
    assert_eq!(fabric.nodes[b].adapter_port, Some(PortNumber::new(2)));
    assert_eq!(fabric.ports[fabric.nodes[b].first_port].guid, port_guid);

    // Ports of one adapter differ in their default GUIDs, and so do adapters whose GUIDs differ by 1.
    let of_port = |guid: u64, port: u8| Identity {
        guid: Some(Guid::new(guid)),
        adapter_port: Some(PortNumber::new(port)),
        ..Identity::default()
    };
    let mut default = builder.clone();
    default.identify(handles[0], of_port(0x12, 1));
    default.identify(handles[1], of_port(0x12, 2));
    default.identify(handles[2], of_port(0x14, 1));
    let fabric = default.clone().build().unwrap();
    let guids = handles.map(|handle| {
        let name = &default.nodes[handle.0].name;
        fabric.ports[fabric.nodes[fabric.node_by_name(name).unwrap()].first_port].guid
    });
    assert_eq!(guids, [0x13, 0x14, 0x15].map(Guid::new));

    for (bad, expected) in [
        (
            lid(0xc000),
            "\"a\" cannot have LID 49152, it must be 1 to 49151",
        ),
        (lid(900), "\"a\" and \"b\" both have LID 900"),
        (
            Identity {
                port_guid: Some(port_guid),
                ..Identity::default()
            },
            "\"a\" and \"b\" both have GUID 0x0002c90300000012",
        ),
        (
            Identity {
                guid: Some(Guid::new(0x0253_5600_0000_0100)),
                ..Identity::default()
            },
            "\"s\" and \"a\" both have GUID 0x0253560000000100",
        ),
    ] {
        let mut builder = builder.clone();
        builder.identify(handles[0], bad);
        assert_eq!(builder.build().unwrap_err().to_string(), expected);
    }
}

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
            "\"\" cannot be a node name: it must not be empty or contain ':'",
        ),
        (
            builder.add_switch("a:1", 4).unwrap_err(),
            "\"a:1\" cannot be a node name: it must not be empty or contain ':'",
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
        (
            "laef-00:3",
            "there is no node named \"laef-00\" (did you mean \"leaf-00\"?)",
        ),
        ("zzz:3", "there is no node named \"zzz\""),
        (
            "leaf-00",
            "\"leaf-00\" is not a port (write e.g. \"leaf-03:19\"; a host has only port 1)",
        ),
        (
            "leaf-00:x",
            "\"leaf-00:x\" is not a port (write e.g. \"leaf-03:19\"; a host has only port 1)",
        ),
        (
            "leaf-00:256",
            "\"leaf-00:256\" is not a port (write e.g. \"leaf-03:19\"; a host has only port 1)",
        ),
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

    let mut builder = FabricBuilder::new();
    for index in 0..0xc000 {
        builder.add_host(format!("h{index}")).unwrap();
    }
    assert_eq!(
        builder.build().unwrap_err().to_string(),
        "49152 nodes need more LIDs than the 49151 unicast ones"
    );
}

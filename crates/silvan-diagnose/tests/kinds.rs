//! Kinds of nodes, live and from files.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;

use silvan_core::{DeviceId, GivenTicks, Span};
use silvan_diagnose::dumps::{Files, diagnose_files};
use silvan_diagnose::managed::ManagedSubnet;
use silvan_diagnose::map::SubnetMap;
use silvan_subnet::client::{Client, Limits};
use silvan_subnet::discovery::discover;
use silvan_subnet::fake::{FakeNode, SharedWorld, World};

const AGGREGATION: DeviceId = DeviceId {
    vendor: DeviceId::MELLANOX,
    device: 0xcf09,
};
const SHARP: &str = "Mellanox Technologies Aggregation Node";

/// Kinds and NodeInfo of the nodes at ports 4 to 7 of S1.
fn nodes() -> [(&'static str, bool, DeviceId, &'static str); 4] {
    let other = |device| DeviceId {
        vendor: DeviceId::MELLANOX,
        device,
    };
    [
        ("gate", true, other(0x1003), "router"),
        (SHARP, false, other(0xcf08), "aggregation"),
        ("an-1", false, AGGREGATION, "aggregation"),
        ("host", false, other(0x101b), "host"),
    ]
}

fn kinds(map: &SubnetMap) -> BTreeMap<&str, &'static str> {
    let nodes = map.nodes.iter();
    nodes.map(|node| (node.name.as_str(), node.kind)).collect()
}

/// Oracle: NodeInfo.NodeType 3 is that of a router (IBA volume 1, 14.2.5.3); the device and name of aggregation nodes.
#[test]
fn nodes_have_the_same_kind_live_and_from_files() {
    let mut world = World::testbed(1);
    let mut text =
        "vendid=0x2c9\ndevid=0xd2f0\nswitchguid=0x1\nSwitch\t8 \"S-1\"\t\t# \"S1\" enhanced port 0 lid 1 lmc 0\n"
            .to_owned();
    let mut adapters = String::new();
    for (port, (name, is_router, device, _)) in (4_u8..).zip(nodes()) {
        let place = world.nodes.len();
        let lid = 20 + u16::from(port);
        world.nodes.push(FakeNode {
            is_router,
            device,
            ..FakeNode::host(name, lid)
        });
        world.nodes[0].ports[usize::from(port)].peer = Some((place, 1));
        world.nodes[place].ports[1].peer = Some((0, port));
        let (id, word, attribute) = match is_router {
            true => ('R', "Rt", "rtguid"),
            false => ('H', "Ca", "caguid"),
        };
        text +=
            &format!("[{port}]\t\"{id}-{port}0\"[1]({port}0)\t\t# \"{name}\" lid {lid} 4xHDR\n");
        adapters += &format!(
            "\nvendid={:#x}\ndevid={:#x}\n{attribute}=0x{port}0\n{word}\t1 \"{id}-{port}0\"\t\t# \"{name}\"\n\
             [1]({port}0)\t\"S-1\"[{port}]\t\t# lid {lid} lmc 0 \"S1\" lid 1 4xHDR\n",
            device.vendor, device.device,
        );
    }
    text += &adapters;
    let mut client = Client::new(SharedWorld::new(world), Limits::DEFAULT);
    let subnet = discover(&mut client).unwrap().unwrap();
    let live = ManagedSubnet::new(Arc::new(subnet)).unwrap();
    let counters = |count: u32| {
        format!(
            "# Port counters: Lid 24 port 1 (CapMask: 0x1000)\nPortSelect:......................1\nPortXmitData:....................{count}\nPortRcvData:.....................0\nPortXmitWait:....................0\n"
        )
    };
    let (before, after) = (counters(1), counters(2));
    let files = Files {
        topology: &text,
        routes: None,
        before: &before,
        after: &after,
    };
    let done = diagnose_files(files, Span::from_secs(1), &GivenTicks::default()).unwrap();
    let (live, of_files) = (kinds(&live.map), kinds(&done.map));
    for (name, _, _, kind) in nodes() {
        assert_eq!(live[name], kind, "{name}");
        assert_eq!(of_files[name], kind, "{name}");
    }
    assert_eq!((live["S1"], of_files["S1"]), ("switch", "switch"));
}

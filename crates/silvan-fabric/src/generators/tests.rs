#![allow(
    clippy::unwrap_used,
    reason = "a fabric that cannot be built is a failed test"
)]

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;
use silvan_core::{Length, SwitchId};

use super::*;
use crate::check::{CheckOptions, check};
use crate::testing::routing_input;
use crate::{Fabric, LinkKind, NodeKind, Speed, Width};

pub(super) const LINK: LinkKind = LinkKind::new(Width::X4, Speed::Ddr, Length::from_mm(2_000));

/// Properties of every fabric, from any generator.
pub(super) fn assert_invariants(fabric: &Fabric) {
    for (id, port) in fabric.ports.iter_enumerated() {
        assert_eq!(fabric.port(port.node, port.number), Some(id));
        match (port.link, port.peer) {
            (Some(link), Some(peer)) => {
                let link = &fabric.links[link];
                assert!((link.a, link.b) == (id, peer) || (link.b, link.a) == (id, peer));
                assert_eq!(fabric.ports[peer].peer, Some(id));
                assert_ne!(fabric.ports[peer].node, port.node);
            }
            (link, peer) => assert_eq!((link, peer), (None, None)),
        }
    }
    let cabled = fabric.ports.iter().filter(|port| port.peer.is_some());
    assert_eq!(cabled.count(), 2 * fabric.links.len());

    let mut names = HashSet::new();
    let mut guids = HashSet::new();
    let mut next_port = 0;
    for (id, node) in fabric.nodes.iter_enumerated() {
        assert!(names.insert(&node.name), "{} is not unique", node.name);
        assert!(guids.insert(node.guid), "{} is not unique", node.guid);
        assert!(node.lid.is_unicast());
        assert_eq!(fabric.node_by_lid(node.lid), Some(id));
        assert_eq!(fabric.node_by_name(&node.name), Some(id));
        assert_eq!(node.first_port.index(), next_port);
        next_port += usize::from(node.port_count);
        match node.kind {
            NodeKind::Switch(switch) => assert_eq!(fabric.node_of_switch(switch), id),
            NodeKind::Host(host) => {
                assert_eq!(fabric.node_of_host(host), id);
                let port = &fabric.ports[fabric.host_port(host)];
                assert!(guids.insert(port.guid), "{} is not unique", port.guid);
                assert_eq!(Some(fabric.host_attachment(host).1), port.peer);
            }
        }
    }
    assert_eq!(next_port, fabric.ports.len());
    assert_eq!(
        fabric.nodes.len(),
        fabric.switch_count() + fabric.host_count()
    );
}

/// Names of the nodes at the other ends of a node's cables, by port number; empty ports as "-".
pub(super) fn peers(fabric: &Fabric, name: &str) -> Vec<String> {
    let node = &fabric.nodes[fabric.node_by_name(name).unwrap()];
    let peer_of = |port| match fabric.ports[port].peer {
        Some(peer) => fabric.port_name(peer).to_string(),
        None => "-".to_owned(),
    };
    node.ports().map(peer_of).collect()
}

fn degrees(fabric: &Fabric) -> HashSet<usize> {
    let degree = |switch: SwitchId| {
        let ports = fabric.switch(switch).ports();
        ports
            .filter(|port| fabric.ports[*port].peer.is_some())
            .count()
    };
    fabric.switch_ids().map(degree).collect()
}

/// gran2012, section IV: 648 ports from 54 36-port crossbars.
#[test]
fn fat_tree_648_is_54_full_crossbars() {
    let fabric = FatTree648 {}.build(LINK).unwrap();
    assert_invariants(&fabric);
    assert_eq!(fabric.switch_count(), 54);
    assert_eq!(fabric.host_count(), 648);
    assert_eq!(fabric.links.len(), 648 + 36 * 18);
    assert_eq!(degrees(&fabric), HashSet::from([36]));

    let leaf = peers(&fabric, "leaf-03");
    assert_eq!(leaf[0], "host-0054:1");
    assert_eq!(leaf[17], "host-0071:1");
    assert_eq!(leaf[18], "spine-00:4");
    assert_eq!(leaf[35], "spine-17:4");
    let spine = peers(&fabric, "spine-17");
    assert_eq!(spine[0], "leaf-00:36");
    assert_eq!(spine[35], "leaf-35:36");
}

/// 36^3 / 4 hosts; five crossbars of 36 ports serve 36 hosts.
#[test]
fn fat_tree_11664_is_full_crossbars() {
    let fabric = FatTree11664 {}.build(LINK).unwrap();
    assert_invariants(&fabric);
    assert_eq!(fabric.host_count(), 36 * 36 * 36 / 4);
    assert_eq!(fabric.switch_count(), 36 * 36 * 5 / 4);
    assert_eq!(degrees(&fabric), HashSet::from([36]));
    assert_eq!(
        fabric.node_by_name("host-11663").map(|node| node.index()),
        Some(13_283)
    );
}

#[test]
fn fat_tree_120_is_non_blocking() {
    let fabric = FatTree120 {}.build(LINK).unwrap();
    assert_invariants(&fabric);
    assert_eq!(fabric.host_count(), 120);
    // Ten leaves with as many cables up as hosts.
    for leaf in 0..10 {
        let leaf = peers(&fabric, &format!("leaf-{leaf:02}"));
        let up = leaf.iter().filter(|peer| peer.starts_with("spine")).count();
        let hosts = leaf.iter().filter(|peer| peer.starts_with("host")).count();
        assert_eq!((up, hosts), (12, 12));
    }
}

/// Petrini and Vanneschi 1997: k^n hosts, n k^(n-1) switches of 2k ports, n k^n cables.
#[test]
fn k_ary_n_trees_have_their_counts() {
    for (k, n) in [(2, 1), (2, 3), (3, 2), (4, 3), (2, 5)] {
        let fabric = KAryNTree { k, n }.build(LINK).unwrap();
        assert_invariants(&fabric);
        let power = |exponent: usize| k.pow(exponent as u32);
        assert_eq!(fabric.host_count(), power(n), "{k}-ary {n}-tree");
        assert_eq!(fabric.switch_count(), n * power(n - 1), "{k}-ary {n}-tree");
        assert_eq!(fabric.links.len(), n * power(n), "{k}-ary {n}-tree");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Öhring et al. 1995: the number of nodes and of parents at each level.
    #[test]
    fn xgfts_have_their_counts(
        shape in prop::collection::vec((1_usize..5, 1_usize..4), 1..4),
    ) {
        let children: Vec<usize> = shape.iter().map(|(m, _)| *m).collect();
        let mut parents: Vec<usize> = shape.iter().map(|(_, w)| *w).collect();
        parents[0] = 1;
        let levels = children.len();
        let xgft = Xgft { children: children.clone(), parents: parents.clone(), links: Vec::new(), };
        let fabric = xgft.build(LINK).unwrap();
        assert_invariants(&fabric);

        let nodes_at = |level: usize| -> usize {
            let above: usize = children[level..].iter().product();
            above * parents[..level].iter().product::<usize>()
        };
        prop_assert_eq!(fabric.host_count(), nodes_at(0));
        let switches: usize = (1..=levels).map(nodes_at).sum();
        prop_assert_eq!(fabric.switch_count(), switches);
        let cables: usize = (0..levels).map(|level| nodes_at(level) * parents[level]).sum();
        prop_assert_eq!(fabric.links.len(), cables);

        // Every port of every switch is in use: m_l down and w_(l+1) up.
        prop_assert!(fabric.ports.iter().all(|port| port.peer.is_some()));
        // No two switches are cabled twice: digits determine the parent.
        let mut pairs = HashSet::new();
        for link in &fabric.links {
            let pair = (fabric.ports[link.a].node, fabric.ports[link.b].node);
            prop_assert!(pairs.insert(pair), "two cables between {:?}", pair);
        }
    }
}

/// XGFT(3; 2,2,2; 1,2,2) by hand: spine 2 b_3 + b_2 is above the middle switches with that b_2.
#[test]
fn xgft_digits_say_who_is_cabled_to_whom() {
    let fabric = Xgft {
        children: vec![2, 2, 2],
        parents: vec![1, 2, 2],
        links: Vec::new(),
    }
    .build(LINK)
    .unwrap();
    for (switch, expected) in [
        (
            "leaf-03",
            ["host-0006:1", "host-0007:1", "mid2-02:2", "mid2-03:2"],
        ),
        (
            "mid2-00",
            ["leaf-00:3", "leaf-01:3", "spine-00:1", "spine-02:1"],
        ),
        (
            "mid2-03",
            ["leaf-02:4", "leaf-03:4", "spine-01:2", "spine-03:2"],
        ),
    ] {
        assert_eq!(peers(&fabric, switch), expected, "{switch}");
    }
    assert_eq!(peers(&fabric, "spine-01"), ["mid2-01:3", "mid2-03:3"]);
}

/// mizero2017, sections 4.1 and 4.2.
#[test]
fn two_switch_testbed_has_the_papers_ports_and_rates() {
    let fabric = TwoSwitchTestbed {}.build(TwoSwitchTestbed::TRUNK).unwrap();
    assert_invariants(&fabric);
    let s1 = peers(&fabric, "S1");
    assert_eq!((&*s1[10], &*s1[11], &*s1[14]), ("X:1", "A:1", "S2:20"));
    let s2 = peers(&fabric, "S2");
    assert_eq!((&*s2[19], &*s2[22]), ("S1:15", "D:1"));
    assert_eq!(s2.iter().filter(|peer| *peer != "-").count(), 5);
    for link in &fabric.links {
        let trunk = fabric.peer_switch(link.a).is_some() && fabric.peer_switch(link.b).is_some();
        let expected = if trunk { 32_000_000_000 } else { 8_000_000_000 };
        assert_eq!(link.data_rate().bits_per_sec(), expected);
    }
}

/// santos2003, section III: R remote sources and AV on A; L local sources, BC and BV on B.
#[test]
fn santos_switches_have_the_papers_hosts() {
    let link = SantosTwoSwitches::LINK;
    let fabric = SantosTwoSwitches {
        remote: 1,
        local: 5,
    }
    .build(link)
    .unwrap();
    assert_invariants(&fabric);
    assert_eq!(peers(&fabric, "A"), ["A1:1", "AV:1", "B:8"]);
    assert_eq!(
        peers(&fabric, "B"),
        [
            "B1:1", "B2:1", "B3:1", "B4:1", "B5:1", "BC:1", "BV:1", "A:3"
        ]
    );
    assert_eq!(link.data_rate(), "1 GB/s".parse().unwrap());
}

#[test]
fn rows_connect_their_neighbours() {
    let chain = Chain {
        switches: 3,
        hosts_per_switch: 2,
    }
    .build(LINK)
    .unwrap();
    assert_invariants(&chain);
    assert_eq!(
        peers(&chain, "switch-00"),
        ["host-0000:1", "host-0001:1", "-", "switch-01:3"]
    );
    assert_eq!(
        peers(&chain, "switch-01"),
        ["host-0002:1", "host-0003:1", "switch-00:4", "switch-02:3"]
    );

    let ring = Ring {
        switches: 4,
        hosts_per_switch: 1,
    }
    .build(LINK)
    .unwrap();
    assert_invariants(&ring);
    assert_eq!(
        peers(&ring, "switch-00"),
        ["host-0000:1", "switch-03:3", "switch-01:2"]
    );

    let single = SingleSwitch { hosts: 5 }.build(LINK).unwrap();
    assert_invariants(&single);
    assert_eq!(
        (
            single.switch_count(),
            single.host_count(),
            single.links.len()
        ),
        (1, 5, 5)
    );
}

#[test]
fn senseless_parameters_are_refused() {
    let xgft = |children: &[usize], parents: &[usize]| {
        let xgft = Xgft {
            children: children.to_vec(),
            parents: parents.to_vec(),
            links: Vec::new(),
        };
        xgft.build(LINK).unwrap_err().to_string()
    };
    for (message, expected) in [
        (
            xgft(&[], &[]),
            "xgft: 0 numbers of children and 0 of parents",
        ),
        (
            xgft(&[4, 4], &[1]),
            "xgft: 2 numbers of children and 1 of parents",
        ),
        (xgft(&[4, 0], &[1, 2]), "xgft: every number"),
        (
            xgft(&[4, 4], &[2, 2]),
            "xgft: the first number of parents is 2",
        ),
        (
            xgft(&[300], &[1]),
            "switch \"leaf-00\" has 300 ports, it must have 1 to 254",
        ),
        (
            xgft(&[250, 250, 250], &[1, 1, 1]),
            "xgft: 15687751 nodes, a fabric has at most 4194304",
        ),
        (
            xgft(&[usize::MAX, 3], &[1, 1]),
            "xgft: the number of hosts is astronomical",
        ),
        (
            KAryNTree { k: 0, n: 2 }
                .build(LINK)
                .unwrap_err()
                .to_string(),
            "k-ary-n-tree: k is 0",
        ),
        (
            Ring {
                switches: 2,
                hosts_per_switch: 1,
            }
            .build(LINK)
            .unwrap_err()
            .to_string(),
            "ring: 2 switches, it must be 3 or more",
        ),
        (
            Chain {
                switches: 0,
                hosts_per_switch: 1,
            }
            .build(LINK)
            .unwrap_err()
            .to_string(),
            "chain: switches is 0",
        ),
        (
            SingleSwitch { hosts: 255 }
                .build(LINK)
                .unwrap_err()
                .to_string(),
            "switch \"switch-00\" has 255 ports",
        ),
    ] {
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn names_are_padded_to_equal_width() {
    assert_eq!(switch_name("leaf", 3, 36), "leaf-03");
    assert_eq!(switch_name("leaf", 3, 648), "leaf-003");
    assert_eq!(switch_name("leaf", 0, 1), "leaf-00");
    assert_eq!(switch_name("leaf", 99, 100), "leaf-99");
    assert_eq!(host_name(123, 648), "host-0123");
    assert_eq!(host_name(0, 10_001), "host-00000");
}

fn grid(sizes: &[usize], wraps: bool, hosts_per_switch: usize) -> Grid {
    Grid {
        sizes: sizes.to_vec(),
        wraps,
        hosts_per_switch,
    }
}

/// Hosts first, then down and up in each dimension.
#[test]
fn a_torus_joins_the_ends_of_its_rows() {
    let fabric = grid(&[4, 3], true, 2).build(LINK).unwrap();
    assert_invariants(&fabric);
    assert_eq!((fabric.switch_count(), fabric.host_count()), (12, 24));
    assert_eq!(fabric.links.len(), 24 + 12 * 2);
    assert_eq!(degrees(&fabric), HashSet::from([6]));
    assert_eq!(
        peers(&fabric, "switch-3-2"),
        [
            "host-0022:1",
            "host-0023:1",
            "switch-2-2:4",
            "switch-0-2:3",
            "switch-3-1:6",
            "switch-3-0:5",
        ]
    );
}

#[test]
fn a_mesh_ends_at_its_edges() {
    let fabric = grid(&[3, 1, 2], false, 1).build(LINK).unwrap();
    assert_invariants(&fabric);
    assert_eq!(fabric.links.len(), 6 + 2 * 2 + 3);
    assert_eq!(
        peers(&fabric, "switch-0-0-1"),
        [
            "host-0003:1",
            "-",
            "switch-1-0-1:2",
            "-",
            "-",
            "switch-0-0-0:7",
            "-"
        ]
    );
}

#[test]
fn impossible_grids_are_refused() {
    for (sizes, wraps, hosts, expected) in [
        (&[][..], false, 1, "no sizes"),
        (
            &[4, 2],
            true,
            1,
            "a dimension of 2 switches, it must have 3 or more",
        ),
        (&[4, 0], false, 1, "a dimension of 0 switches"),
        (&[4, 4], false, 0, "hosts-per-switch is 0"),
        (&[4, 4], false, 251, "a switch would need 255 ports"),
        (&[usize::MAX, 3], false, 1, "astronomical"),
        (&[2100, 2100], true, 1, "8820000 nodes"),
    ] {
        let error = grid(sizes, wraps, hosts)
            .build(LINK)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Oracle: the check of routes. Every registered topology has the invariants of fabrics, and its default
/// routing connects all pairs of hosts.
#[test]
fn every_topology_works_with_its_default_routing() {
    let keys = json!({
        "children": [2, 3], "parents": [1, 2], "k": 2, "n": 2, "switches": 4, "sizes": [3, 3],
        "hosts-per-switch": 2, "remote": 1, "local": 2, "hosts": 4, "switches-per-group": 2,
        "global-per-switch": 1, "leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2,
        "global-per-spine": 1, "q": 3, "cables-per-switch": 3, "servers": 4, "leaf-hosts": [2, 1],
        "spine-cables": [1, 2],
    });
    for kind in Kind::ALL {
        let name = kind.name();
        let topology = kind.read(&keys).unwrap();
        assert_eq!(topology.kind(), *kind);
        let fabric = topology.build(LINK).unwrap();
        assert_invariants(&fabric);
        let routing = topology.default_routing();
        let algorithm = routing.algorithm().expect("a default needs no tables");
        let (tables, _) = algorithm.routes(routing_input(&fabric, &topology)).unwrap();
        let options = CheckOptions {
            allow_cycles: true,
            allow_missing: false,
        };
        let hosts = fabric.host_count();
        let report = check(&fabric, &tables, options).unwrap();
        assert_eq!(report.pairs as usize, hosts * (hosts - 1), "{name}");
    }
}

#[test]
fn names_of_topologies_are_unique() {
    let names: HashSet<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), Kind::ALL.len());
}

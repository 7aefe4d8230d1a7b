//! Fat-tree routing of regular trees, and of drawn ones that are not.
#![allow(
    clippy::unwrap_used,
    reason = "a fabric without routes is a failed test"
)]

use proptest::prelude::*;
use silvan_core::{HostId, IdVec, PortId, SwitchId};

use super::{
    FatTree, ForwardingTables, PathChoice, Routes, RoutingAlgorithm, RoutingError, RoutingInput,
    d_mod_k, fat_tree, up_down,
};
use crate::check::{CheckOptions, RouteReport, check};
use crate::generators::{FatTree648, Generator, LeafSpine, Xgft};
use crate::testing::{LINK, all_distances, host_pairs, walk};
use crate::{Cable, Fabric, FabricBuilder};

/// Routes of which no path can deadlock on one lane, and which connect all hosts.
fn checked(fabric: &Fabric, tables: &ForwardingTables) -> RouteReport {
    let report = check(fabric, tables, CheckOptions::default()).unwrap();
    assert_eq!(report.unreachable, 0);
    report
}

/// Pairs of hosts whose routes leave a switch for another one by each port.
fn pairs_by_port(
    fabric: &Fabric,
    tables: &ForwardingTables,
    pairs: impl Iterator<Item = (HostId, HostId)>,
) -> IdVec<PortId, usize> {
    let mut counts = IdVec::filled(0, fabric.ports.len());
    for (from, to) in pairs {
        for port in walk(fabric, tables, from, fabric.node_of_host(to)) {
            let is_switch = fabric.nodes[fabric.ports[port].node].as_switch().is_some();
            if is_switch && fabric.peer_switch(port).is_some() {
                counts[port] += 1;
            }
        }
    }
    counts
}

/// Pairs by the number of the switch that they leave.
fn out_of(fabric: &Fabric, counts: &IdVec<PortId, usize>, switch: usize) -> usize {
    let ports = fabric.switch(SwitchId::new(switch)).ports();
    ports.map(|port| counts[port]).sum()
}

/// Switches `s0`, `s1`, ... with these hosts `h0`, `h1`, ... and cables between them.
fn tree(hosts: &[usize], cables: &[(usize, usize)]) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut next_port = vec![1; hosts.len()];
    let switches: Vec<_> = (0..hosts.len())
        .map(|index| builder.add_switch(format!("s{index}"), 128).unwrap())
        .collect();
    let mut take_port = |index: usize| {
        let port = switches[index].port(next_port[index]);
        next_port[index] += 1;
        port
    };
    for &(a, b) in cables {
        let (a, b) = (take_port(a), take_port(b));
        builder.connect(a, b, LINK).unwrap();
    }
    let mut number = 0;
    for (index, count) in hosts.iter().enumerate() {
        for _ in 0..*count {
            let host = builder.add_host(format!("h{number}")).unwrap();
            number += 1;
            builder
                .connect(host.port(1), take_port(index), LINK)
                .unwrap();
        }
    }
    builder.build().unwrap()
}

/// Cables of a tree of three levels: pods of `leaves` leaves and `middles` switches above them, and one root above each middle
/// switch of every pod. Switches are numbered leaves first, then middle switches, then roots.
fn three_levels(pods: usize, leaves: usize, middles: usize) -> Vec<(usize, usize)> {
    let mut cables = Vec::new();
    for pod in 0..pods {
        for middle in 0..middles {
            let above = pods * leaves + pod * middles + middle;
            cables.extend((0..leaves).map(|leaf| (pod * leaves + leaf, above)));
            cables.push((above, pods * (leaves + middles) + middle));
        }
    }
    cables
}

/// In regular trees each cable carries as many pairs as with d-mod-k, and paths are as short.
#[test]
fn regular_trees_are_balanced_as_by_d_mod_k() {
    let oversubscribed = Xgft {
        children: vec![6, 4],
        parents: vec![1, 2],
        links: Vec::new(),
    };
    let three_levels = Xgft {
        children: vec![2, 2, 12],
        parents: vec![1, 2, 2],
        links: Vec::new(),
    };
    for fabric in [
        FatTree648 {}.build(LINK).unwrap(),
        oversubscribed.build(LINK).unwrap(),
        three_levels.build(LINK).unwrap(),
    ] {
        let tables = fat_tree(&fabric, &FatTree::default()).unwrap();
        let expected = d_mod_k(&fabric).unwrap();
        assert_eq!(
            checked(&fabric, &tables).mean_hops,
            checked(&fabric, &expected).mean_hops
        );
        let sorted = |tables| {
            let counts = pairs_by_port(&fabric, tables, host_pairs(&fabric));
            let mut counts: Vec<usize> = counts.iter().copied().collect();
            counts.sort_unstable();
            counts
        };
        assert_eq!(sorted(&tables), sorted(&expected));
    }
}

/// Each leaf of a regular tree receives from the others by every cable down to it, so that a shift never uses one twice.
#[test]
fn the_hosts_of_a_leaf_have_a_cable_each() {
    let fabric = FatTree648 {}.build(LINK).unwrap();
    let tables = fat_tree(&fabric, &FatTree::default()).unwrap();
    let count = fabric.host_count();
    for shift in [1, 18, 37, 324] {
        let pairs = (0..count).map(|from| (from, (from + shift) % count));
        let pairs = pairs.map(|(from, to)| (HostId::new(from), HostId::new(to)));
        let counts = pairs_by_port(&fabric, &tables, pairs);
        assert_eq!(counts.iter().max(), Some(&1), "shift by {shift}");
    }
}

/// Leaves with fewer hosts than spines use all spines: 8 leaves of 3 hosts and 4 spines, so 24 destinations, 6 for each spine.
#[test]
fn all_spines_are_used_where_hosts_are_fewer() {
    let shape = LeafSpine {
        leaf_hosts: vec![3; 8],
        spine_cables: vec![1; 4],
        host_link: Cable::default(),
        spine_links: Vec::new(),
    };
    let fabric = shape.build(LINK).unwrap();
    let tables = fat_tree(&fabric, &FatTree::default()).unwrap();
    let counts = pairs_by_port(&fabric, &tables, host_pairs(&fabric));
    for spine in 8..12 {
        assert_eq!(out_of(&fabric, &counts, spine), 6 * 21);
    }
}

/// Storage hosts at two spines reach all hosts and each other, and the routes between compute nodes are those without storage.
#[test]
fn storage_at_spines_is_connected_and_does_not_matter_for_compute_nodes() {
    let cables: Vec<(usize, usize)> = (0..4)
        .flat_map(|leaf| (4..7).map(move |spine| (leaf, spine)))
        .collect();
    let without = tree(&[4, 4, 4, 4, 0, 0, 0], &cables);
    let with = tree(&[4, 4, 4, 4, 2, 1, 0], &cables);
    let expected = fat_tree(&without, &FatTree::default()).unwrap();
    let tables = fat_tree(&with, &FatTree::default()).unwrap();
    checked(&with, &tables);
    for switch in with.switch_ids() {
        for host in without.host_ids() {
            assert_eq!(tables.to_host(switch, host), expected.to_host(switch, host));
        }
    }
    // h16 and h17 at s4, h18 at s5: over one leaf.
    let path = walk(
        &with,
        &tables,
        HostId::new(16),
        with.node_of_host(HostId::new(18)),
    );
    assert_eq!(path.len(), 4);
}

/// A leaf that has lost its hosts is no root: no path goes through it.
#[test]
fn leaves_without_hosts_are_no_roots() {
    let cables = three_levels(4, 3, 2);
    let mut hosts = vec![2; 12];
    hosts.extend([0; 10]);
    hosts[5] = 0;
    let fabric = tree(&hosts, &cables);
    let tables = fat_tree(&fabric, &FatTree::default()).unwrap();
    checked(&fabric, &tables);
    let counts = pairs_by_port(&fabric, &tables, host_pairs(&fabric));
    assert_eq!(out_of(&fabric, &counts, 5), 0);
    assert!(out_of(&fabric, &counts, 20) > 0);
}

/// A leaf at the roots of a tree of three levels makes them as near to hosts as the middle switches are: they are roots nevertheless.
#[test]
fn leaves_at_roots_are_accepted() {
    let mut cables = three_levels(4, 3, 2);
    // Leaf 22 is cabled to both roots, 20 and 21.
    cables.extend([(22, 20), (22, 21)]);
    let mut hosts = vec![3; 12];
    hosts.extend([0; 10]);
    hosts.push(2);
    let fabric = tree(&hosts, &cables);
    let tables = fat_tree(&fabric, &FatTree::default()).unwrap();
    assert_eq!(checked(&fabric, &tables).max_hops, 6);
    let roots = ["s20".to_owned(), "s21".to_owned()];
    let keys = FatTree {
        roots: roots.to_vec(),
        ..FatTree::default()
    };
    assert_eq!(tables, fat_tree(&fabric, &keys).unwrap());
}

/// Two leaves with 4 hosts each; the first two of each are compute nodes. Other hosts do not change the balance of
/// compute nodes.
#[test]
fn compute_nodes_are_balanced_alone() {
    let shape = LeafSpine {
        leaf_hosts: vec![4; 2],
        spine_cables: vec![1; 2],
        host_link: Cable::default(),
        spine_links: Vec::new(),
    };
    let fabric = shape.build(LINK).unwrap();
    let listed = [0, 2, 4, 6].map(HostId::new);
    let keys = FatTree {
        compute_nodes: listed
            .iter()
            .map(|host| fabric.host(*host).name.clone())
            .collect(),
        ..FatTree::default()
    };
    let tables = fat_tree(&fabric, &keys).unwrap();
    checked(&fabric, &tables);
    let pairs = host_pairs(&fabric).filter(|(a, b)| listed.contains(a) && listed.contains(b));
    let counts = pairs_by_port(&fabric, &tables, pairs);
    // 2 hosts to 2 hosts: each leaf has 2 pairs over each of 2 spines.
    assert_eq!(counts.iter().max(), Some(&2));
    assert_eq!(counts.iter().filter(|count| **count == 2).count(), 8);
}

#[test]
fn fabrics_that_are_no_trees_are_refused_with_the_place() {
    let refusal = |fabric: &Fabric, keys: &FatTree| match fat_tree(fabric, keys) {
        Err(RoutingError::Refused { key, problem, .. }) => format!("{key}: {problem}"),
        other => panic!("{other:?}"),
    };
    let default = FatTree::default();
    // Three leaves in a ring, below one spine.
    let ring = [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)];
    let fabric = tree(&[2, 2, 2, 0], &ring);
    assert_eq!(
        refusal(&fabric, &default),
        "routing: fat-tree needs a tree: \"s0:1\" is cabled to \"s1\", which is at the same rank"
    );
    let uneven = tree(&[3, 2], &[(0, 1)]);
    assert_eq!(
        refusal(&uneven, &default),
        "routing: fat-tree needs a tree: 2 of 5 hosts are at switches above others"
    );
    let row = tree(&[2, 2], &[(0, 1)]);
    assert_eq!(
        refusal(&row, &default),
        "routing: fat-tree needs a tree: all switches have hosts, so none is a root"
    );
    let spine = tree(&[2, 2, 1], &[(0, 2), (1, 2)]);
    let named = |roots: &[&str], compute: &[&str]| FatTree {
        roots: roots.iter().map(|name| (*name).to_owned()).collect(),
        compute_nodes: compute.iter().map(|name| (*name).to_owned()).collect(),
    };
    for (keys, expected) in [
        (
            named(&["s2"], &["h4"]),
            "compute-nodes: the compute node \"h4\" is at \"s2\", which is above other switches",
        ),
        (
            named(&["s9"], &[]),
            "roots: there is no switch named \"s9\"",
        ),
        (
            named(&[], &["s2"]),
            "compute-nodes: there is no host named \"s2\"",
        ),
        (
            named(&["s0", "s2"], &[]),
            "roots: fat-tree needs a tree: \"s0:1\" is cabled to \"s2\", which is at the same rank",
        ),
    ] {
        assert_eq!(refusal(&spine, &keys), expected);
    }
    // Two trees that are not connected.
    let apart = tree(&[2, 2, 0, 2, 2, 0], &[(0, 2), (1, 2), (3, 5), (4, 5)]);
    assert!(refusal(&apart, &default).contains("no path leads up from \"s3\" and down to \"s0\""));
}

/// A tree of two or three levels with missing cables and hosts at any switch; its roots, and its hosts at leaves.
#[derive(Debug)]
struct Drawn {
    fabric: Fabric,
    roots: Vec<String>,
    compute_nodes: Vec<String>,
}

/// Every switch keeps a cable to the first of those above it, so that all leaves are connected.
fn drawn_tree() -> impl Strategy<Value = Drawn> {
    (
        (1_usize..4, 1_usize..5, 1_usize..4, 0_usize..4),
        prop::collection::vec(0_u8..8, 64),
        prop::collection::vec(0_usize..6, 12),
        prop::collection::vec(0_usize..12, 12),
    )
        .prop_map(|((pods, leaves, middles, roots), cut, at_leaves, inner)| {
            let mut cut = cut.into_iter().cycle();
            let (first_middle, first_root) = (pods * leaves, pods * (leaves + middles));
            // A tree of two levels is one pod.
            let count = first_root + if pods == 1 { 0 } else { roots + 1 };
            let mut cables = Vec::new();
            let mut cable = |below: usize, above: usize, is_first: bool| {
                // Of 8 cables, one is missing and one doubled.
                let copies = match cut.next() {
                    Some(0) if !is_first => 0,
                    Some(1) => 2,
                    _ => 1,
                };
                cables.extend(vec![(below, above); copies]);
            };
            for pod in 0..pods {
                for middle in 0..middles {
                    let above = first_middle + pod * middles + middle;
                    for leaf in 0..leaves {
                        cable(pod * leaves + leaf, above, middle == 0);
                    }
                    for root in first_root..count {
                        cable(above, root, root == first_root);
                    }
                }
            }
            // A switch that has lost all cables is none.
            for switch in first_middle..count {
                let below = match switch < first_root {
                    true => (switch - first_middle) / middles * leaves,
                    false => first_middle,
                };
                if !cables.iter().any(|(a, b)| *a == switch || *b == switch) {
                    cables.push((below, switch));
                }
            }
            let hosts: Vec<usize> = (0..count)
                .map(|switch| match switch < first_middle {
                    true => at_leaves[switch % 12] + usize::from(switch == 0),
                    // Few inner switches have hosts.
                    false => inner[switch % 12].saturating_sub(9),
                })
                .collect();
            let top = if pods == 1 { first_middle } else { first_root };
            let compute: usize = hosts[..first_middle].iter().sum();
            Drawn {
                fabric: tree(&hosts, &cables),
                roots: (top..count).map(|root| format!("s{root}")).collect(),
                compute_nodes: (0..compute).map(|host| format!("h{host}")).collect(),
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Oracles: the check of channel dependencies on one lane, for the tables and for switches that choose; Floyd and Warshall.
    #[test]
    fn drawn_trees_are_connected_without_deadlock(drawn in drawn_tree()) {
        let Drawn { fabric, roots, compute_nodes } = drawn;
        for keys in [
            FatTree { roots: roots.clone(), compute_nodes },
            FatTree { roots: roots.clone(), compute_nodes: Vec::new() },
            FatTree::default(),
        ] {
            let tables = match fat_tree(&fabric, &keys) {
                Ok(tables) => tables,
                // Most hosts may be at inner switches, and then roots may be hard to find.
                Err(_) if keys.compute_nodes.is_empty() => continue,
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            };
            checked(&fabric, &tables);
            let input = RoutingInput { fabric: &fabric, topology: None, data_vls: 1 };
            let alternatives = keys.alternatives(input).unwrap();
            let adaptive = Routes {
                alternatives: Some(&alternatives),
                choice: PathChoice::Adaptive,
                ..(&tables).into()
            };
            let report = check(&fabric, adaptive, CheckOptions::default()).unwrap();
            prop_assert_eq!(report.unreachable, 0);
            for switch in fabric.switch_ids() {
                for host in fabric.host_ids() {
                    let ports = alternatives.get(switch, host);
                    prop_assert!(ports.is_empty() || ports.contains(&tables.to_host(switch, host).unwrap()));
                }
            }
        }
    }

    /// If only leaves have hosts, paths are as short as up*/down* allows, and no leaf is passed.
    #[test]
    fn leaves_are_not_passed(drawn in drawn_tree()) {
        let Drawn { fabric, roots, compute_nodes } = drawn;
        prop_assume!(compute_nodes.len() == fabric.host_count());
        let keys = FatTree { roots: roots.clone(), compute_nodes };
        let tables = fat_tree(&fabric, &keys).unwrap();
        let expected = checked(&fabric, &up_down(&fabric, &roots).unwrap());
        prop_assert_eq!(checked(&fabric, &tables).mean_hops, expected.mean_hops);
        let distances = all_distances(&fabric);
        for (from, to) in host_pairs(&fabric) {
            let path = walk(&fabric, &tables, from, fabric.node_of_host(to));
            prop_assert!(path.len() >= distances[fabric.node_of_host(from)][fabric.node_of_host(to)]);
            let through = path.iter().filter(|port| {
                let switch = fabric.nodes[fabric.ports[**port].node].as_switch();
                switch.is_some_and(|switch| fabric.host_ids().any(|host| fabric.host_attachment(host).0 == switch))
            });
            let ends = [from, to].map(|host| fabric.host_attachment(host).0);
            prop_assert_eq!(through.count(), if ends[0] == ends[1] { 1 } else { 2 });
        }
    }
}

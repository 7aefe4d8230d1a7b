#![allow(
    clippy::unwrap_used,
    reason = "a fabric that cannot be routed is a failed test"
)]

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use serde_json::json;
use silvan_core::{HostId, NodeId};

use super::*;
use crate::check::{CheckOptions, check};
use crate::generators::{Chain, FatTree648, Generator, KAryNTree, Kind, Ring, SingleSwitch, Xgft};
use crate::testing::{LINK, all_distances, any_fabric, fabric_from, host_pairs, walk};

/// Every route to every node is as short as the shortest path.
fn assert_minimal(fabric: &Fabric, tables: &ForwardingTables) {
    let distances = all_distances(fabric);
    for source in fabric.host_ids() {
        let from = fabric.node_of_host(source);
        for to in fabric.nodes.ids().filter(|to| *to != from) {
            let hops = walk(fabric, tables, source, to).len();
            assert_eq!(hops, distances[from][to], "{from} to {to}");
        }
    }
    for switch in fabric.switch_ids() {
        let own = tables.get(switch, fabric.switch(switch).lid);
        assert_eq!(own, Some(PortNumber::new(0)));
    }
}

/// Number of hosts that each port of `switch` leads to.
fn destinations_per_port(
    fabric: &Fabric,
    tables: &ForwardingTables,
    switch: SwitchId,
) -> BTreeMap<PortNumber, usize> {
    let mut counts = BTreeMap::new();
    for host in fabric.host_ids() {
        let port = tables.get(switch, fabric.host(host).lid).unwrap();
        *counts.entry(port).or_insert(0) += 1;
    }
    counts
}

/// The formula of d-mod-k, at the leaves and spines of the 648-port tree.
#[test]
fn d_mod_k_takes_the_spine_of_the_destinations_place_on_its_leaf() {
    let fabric = FatTree648 {}.build(LINK).unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    for host in fabric.host_ids() {
        let (leaf, place) = (host.index() / 18, host.index() % 18);
        for switch in 0..54 {
            let port = match switch {
                own if own == leaf => place + 1,
                0..36 => 19 + place,
                _ => leaf + 1,
            };
            let entry = tables.get(SwitchId::new(switch), fabric.host(host).lid);
            assert_eq!(
                entry,
                Some(PortNumber::new(port as u8)),
                "switch {switch} {host}"
            );
        }
    }
}

/// 630 remote destinations over 18 up-ports: 35 each, one on each host port.
#[test]
fn both_algorithms_balance_the_648_port_tree_exactly() {
    let fabric = FatTree648 {}.build(LINK).unwrap();
    for tables in [
        d_mod_k(&fabric).unwrap(),
        min_hop_balanced(&fabric).unwrap(),
    ] {
        for leaf in (0..36).map(SwitchId::new) {
            let counts = destinations_per_port(&fabric, &tables, leaf);
            for number in 1..=36 {
                let expected = if number <= 18 { 1 } else { 35 };
                assert_eq!(
                    counts[&PortNumber::new(number)],
                    expected,
                    "{leaf} port {number}"
                );
            }
        }
    }
}

/// XGFT(3; 3,4,5; 1,2,3): up-port d mod 2 at level 1, floor(d / 2) mod 3 at level 2.
#[test]
fn d_mod_k_follows_its_formula_on_three_levels() {
    let fabric = Xgft {
        children: vec![3, 4, 5],
        parents: vec![1, 2, 3],
        links: Vec::new(),
    }
    .build(LINK)
    .unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    // The first subtree holds hosts 0 to 11; its first leaf hosts 0 to 2.
    let entry = |switch: &str, destination: usize| {
        let node = fabric.node_by_name(switch).unwrap();
        let switch = fabric.nodes[node].as_switch().unwrap();
        let port = tables.get(switch, fabric.host(HostId::new(destination)).lid);
        usize::from(port.unwrap().as_u8())
    };
    for destination in 3..60 {
        assert_eq!(entry("leaf-00", destination), 4 + destination % 2);
    }
    for destination in 12..60 {
        assert_eq!(entry("mid2-00", destination), 5 + destination / 2 % 3);
        assert_eq!(entry("mid2-01", destination), 5 + destination / 2 % 3);
    }
}

#[test]
fn degenerate_trees_are_routed() {
    let single = SingleSwitch { hosts: 4 }.build(LINK).unwrap();
    assert_minimal(&single, &d_mod_k(&single).unwrap());
    assert_minimal(&single, &min_hop_balanced(&single).unwrap());
    // Two leaves with two parallel cables to one spine.
    let parallel = fabric_from_cables(&[("leaf0", "spine", 2), ("leaf1", "spine", 2)], 2);
    assert_minimal(&parallel, &d_mod_k(&parallel).unwrap());
}

/// Switches joined by so many cables each; `hosts` hosts on every switch named `leaf..`.
fn fabric_from_cables(cables: &[(&str, &str, usize)], hosts: usize) -> Fabric {
    let mut builder = crate::FabricBuilder::new();
    let mut next_port: BTreeMap<&str, u8> = BTreeMap::new();
    let mut handles = BTreeMap::new();
    for name in cables.iter().flat_map(|(a, b, _)| [*a, *b]) {
        if !handles.contains_key(name) {
            handles.insert(name, builder.add_switch(name, 36).unwrap());
            next_port.insert(name, 1);
        }
    }
    let mut take_port = |name: &str| {
        let port = next_port.get_mut(name).unwrap();
        *port += 1;
        handles[name].port(*port - 1)
    };
    for (a, b, count) in cables {
        for _ in 0..*count {
            let (a, b) = (take_port(a), take_port(b));
            builder.connect(a, b, LINK).unwrap();
        }
    }
    for leaf in handles.keys().filter(|name| name.starts_with("leaf")) {
        for index in 0..hosts {
            let host = builder.add_host(format!("{leaf}-h{index}")).unwrap();
            let port = take_port(leaf);
            builder.connect(host.port(1), port, LINK).unwrap();
        }
    }
    builder.build().unwrap()
}

/// From another pod, the GPUs of a server receive over one rail each, and together use all cables that lead to them.
#[test]
fn d_mod_k_shares_the_ways_down_among_the_hosts_of_a_leaf() {
    for cables_per_spine in [1, 2] {
        let keys = json!({
            "servers": 8, "gpus-per-server": 4, "servers-per-pod": 4, "spines": 2,
            "cables-per-spine": cables_per_spine,
        });
        let rails = Kind::RailOptimised.read(&keys).unwrap();
        let fabric = rails.build(LINK).unwrap();
        let tables = d_mod_k(&fabric).unwrap();
        let named = |name: &str| {
            let mut switches = fabric.switch_ids();
            switches.find(|switch| fabric.switch(*switch).name == name)
        };
        for spine in ["spine-00", "spine-01"] {
            let spine = named(spine).unwrap();
            let mut used = HashSet::new();
            for host in fabric.host_ids() {
                let port = tables.get(spine, fabric.host(host).lid).unwrap();
                used.insert(port);
                let cable = fabric.switch(spine).port(port).unwrap();
                let (leaf, _) = fabric.peer_switch(cable).unwrap();
                let rail = &fabric.switch(leaf).name;
                let (server, gpu) = (host.index() / 4, host.index() % 4);
                assert_eq!(*rail, format!("pod-{:02}-rail-{gpu:02}", server / 4));
            }
            assert_eq!(used.len(), 2 * 4 * cables_per_spine);
        }
    }
}

#[test]
fn d_mod_k_refuses_what_is_no_fat_tree() {
    let ring = Ring {
        switches: 4,
        hosts_per_switch: 1,
    }
    .build(LINK)
    .unwrap();
    let chain = Chain {
        switches: 2,
        hosts_per_switch: 1,
    }
    .build(LINK)
    .unwrap();
    let uneven = fabric_from_cables(&[("leaf0", "spine", 2), ("leaf1", "spine", 1)], 1);
    let two_trees = fabric_from_cables(
        &[
            ("leaf0", "spine0", 1),
            ("leaf1", "spine0", 1),
            ("leaf2", "spine1", 1),
        ],
        1,
    );
    for (fabric, expected) in [
        (
            &ring,
            "\"switch-00\" and \"switch-03\" are neighbours at one level",
        ),
        (
            &chain,
            "\"switch-00\" and \"switch-01\" are neighbours at one level",
        ),
        (
            &uneven,
            "\"leaf1\" has 1 cables upwards, another switch of its level 2",
        ),
        (
            &two_trees,
            "\"spine1\" is at the top but not above \"leaf0-h0\"",
        ),
    ] {
        assert_eq!(
            d_mod_k(fabric).unwrap_err().to_string(),
            format!("d-mod-k needs a fat tree: {expected}")
        );
    }
    assert_eq!(
        min_hop_balanced(&two_trees).unwrap_err().to_string(),
        "no path of cables leads from \"leaf2\" to \"leaf0\""
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Minimal, and all packets to one host that pass the top come down through one root
    /// (Zahavi 2010).
    #[test]
    fn d_mod_k_is_minimal_with_one_root_per_destination(
        shape in prop::collection::vec((1_usize..4, 1_usize..4), 1..4),
    ) {
        let children: Vec<usize> = shape.iter().map(|(m, _)| *m).collect();
        let mut parents: Vec<usize> = shape.iter().map(|(_, w)| *w).collect();
        parents[0] = 1;
        let fabric = Xgft { children, parents, links: Vec::new(), }.build(LINK).unwrap();
        let tables = d_mod_k(&fabric).unwrap();
        assert_minimal(&fabric, &tables);
        let mut roots: BTreeMap<HostId, HashSet<NodeId>> = BTreeMap::new();
        for (source, destination) in host_pairs(&fabric) {
            let ports = walk(&fabric, &tables, source, fabric.node_of_host(destination));
            let nodes = ports.iter().map(|port| fabric.ports[*port].node);
            let is_top = |node: &NodeId| fabric.nodes[*node].name.starts_with("spine");
            roots.entry(destination).or_default().extend(nodes.filter(is_top));
        }
        prop_assert!(roots.values().all(|roots| roots.len() <= 1));
    }

    #[test]
    fn min_hop_is_minimal_on_any_fabric(fabric in any_fabric()) {
        let tables = min_hop_balanced(&fabric).unwrap();
        assert_minimal(&fabric, &tables);
    }

    /// Two ports of a switch that are equally good for every destination, here parallel cables,
    /// differ by one destination at most.
    #[test]
    fn min_hop_balances_parallel_cables(count in 1_usize..8, hosts in 1_usize..20) {
        let fabric = fabric_from_cables(&[("leaf0", "leaf1", count)], hosts);
        let tables = min_hop_balanced(&fabric).unwrap();
        for switch in fabric.switch_ids() {
            let counts = destinations_per_port(&fabric, &tables, switch);
            let loads: Vec<usize> = (1..=count as u8)
                .map(|number| counts.get(&PortNumber::new(number)).copied().unwrap_or(0))
                .collect();
            let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}", loads);
            prop_assert_eq!(loads.iter().sum::<usize>(), hosts);
        }
    }
}

#[test]
fn k_ary_n_trees_are_balanced_at_every_level() {
    let fabric = KAryNTree { k: 3, n: 3 }.build(LINK).unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    // Level l has 3^l hosts below; the other 27 - 3^l destinations share 3 up-ports.
    for switch in fabric.switch_ids() {
        let level = switch.index() / 9 + 1;
        let counts = destinations_per_port(&fabric, &tables, switch);
        for (number, count) in counts {
            let expected = match number.as_u8() {
                1..=3 => 3_usize.pow(level as u32 - 1),
                _ => (27 - 3_usize.pow(level as u32)) / 3,
            };
            assert_eq!(count, expected, "{switch} port {number}");
        }
    }
}

/// The k^n (k^n - k^l) pairs that cross between levels l and l + 1 share k^n cables.
#[test]
fn both_algorithms_balance_every_cable_of_a_k_ary_n_tree() {
    let (k, n) = (3_u64, 3);
    let fabric = KAryNTree { k: 3, n }.build(LINK).unwrap();
    for tables in [
        d_mod_k(&fabric).unwrap(),
        min_hop_balanced(&fabric).unwrap(),
    ] {
        let report = check(&fabric, &tables, CheckOptions::default()).unwrap();
        for (port, pairs) in report.routes.iter_enumerated() {
            let Some((peer, _)) = fabric.peer_switch(port) else {
                continue;
            };
            let Some(switch) = fabric.nodes[fabric.ports[port].node].as_switch() else {
                continue;
            };
            // Nine switches a level, numbered from the leaves.
            let lower_level = (switch.index() / 9).min(peer.index() / 9) as u32 + 1;
            let expected = k.pow(n as u32) - k.pow(lower_level);
            assert_eq!(*pairs, expected, "{}", fabric.port_name(port));
        }
    }
}

#[test]
fn missing_routes_are_none() {
    let fabric = fabric_from(&[0], &[], &[1, 1]);
    let mut tables = ForwardingTables::new(&fabric);
    let (switch, lid) = (SwitchId::new(0), fabric.host(HostId::new(0)).lid);
    assert_eq!(tables.get(switch, lid), None);
    assert_eq!(tables.get(switch, Lid::MAX_UNICAST), None);
    tables.set(switch, lid, Some(PortNumber::new(2)));
    let routes: Vec<_> = tables.routes(switch).collect();
    assert_eq!(
        routes,
        [(Lid::new(1), PortNumber::new(0)), (lid, PortNumber::new(2))]
    );
    tables.set(switch, lid, None);
    assert_eq!(tables, ForwardingTables::new(&fabric));
}

fn explicit_table(switch: &str, routes: &[(&str, u8)]) -> ExplicitTable {
    ExplicitTable {
        switch: switch.to_owned(),
        routes: routes
            .iter()
            .map(|(to, port)| ((*to).to_owned(), PortNumber::new(*port)))
            .collect(),
    }
}

/// Two switches, cabled by their ports 1; h0 and h2 on s0, h1 on s1.
fn two_switches() -> Fabric {
    fabric_from(&[0], &[], &[1, 1])
}

#[test]
fn explicit_tables_take_names_and_lids() {
    let fabric = two_switches();
    let given = [
        explicit_table(
            "s0",
            &[("h0", 2), ("h1", 1), ("0x5", 3), ("s1", 1), ("s0", 0)],
        ),
        explicit_table("s1", &[("3", 1), ("h1", 2), ("h2", 1), ("s0", 1)]),
    ];
    assert_eq!(
        explicit(&fabric, &given).unwrap(),
        min_hop_balanced(&fabric).unwrap()
    );
}

#[test]
fn bad_explicit_tables_are_refused() {
    let fabric = two_switches();
    let error = |tables: &[ExplicitTable]| explicit(&fabric, tables).unwrap_err().to_string();
    let table = |routes: &[(&str, u8)]| error(&[explicit_table("s0", routes)]);
    for (message, expected) in [
        (
            error(&[explicit_table("s9", &[])]),
            "there is no switch named \"s9\"",
        ),
        (
            error(&[explicit_table("h0", &[])]),
            "there is no switch named \"h0\"",
        ),
        (
            error(&[explicit_table("s0", &[]), explicit_table("s0", &[])]),
            "switch \"s0\" has two tables",
        ),
        (
            table(&[("nowhere", 1)]),
            "table of \"s0\": \"nowhere\" is no node's name or LID",
        ),
        (
            table(&[("77", 1)]),
            "table of \"s0\": \"77\" is no node's name or LID",
        ),
        (
            table(&[("h0", 2), ("3", 2)]),
            "table of \"s0\": \"3\" has two entries",
        ),
        (
            table(&[("h0", 65)]),
            "table of \"s0\": \"h0\" leaves by port 65, which has no cable",
        ),
        (
            table(&[("h0", 9)]),
            "table of \"s0\": \"h0\" leaves by port 9, which has no cable",
        ),
        (
            table(&[("h0", 0)]),
            "table of \"s0\": \"h0\" leaves by port 0, which has no cable",
        ),
        (
            table(&[("s0", 1)]),
            "table of \"s0\": \"s0\" leaves by port 1, which has no cable",
        ),
    ] {
        assert!(message.starts_with(expected), "{message}");
    }
}

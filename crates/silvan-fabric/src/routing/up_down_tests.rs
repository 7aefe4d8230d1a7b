//! Routes up and down on trees, irregular fabrics and with given roots.
#![allow(
    clippy::unwrap_used,
    reason = "a fabric without routes is a failed test"
)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use silvan_core::{IdVec, PortId, SwitchId};

use super::{
    ForwardingTables, PathChoice, Routes, RoutingAlgorithm, RoutingError, UpDown, d_mod_k, up_down,
};
use crate::check::{CheckOptions, RouteReport, check};
use crate::generators::{FatTree648, Generator, Kind, Topology, Xgft};
use crate::testing::{
    LINK, all_distances, any_fabric, fabric_from, host_pairs, routing_input, walk,
};
use crate::{Fabric, FabricBuilder};

fn topology(name: &str, keys: &Value) -> Topology {
    let kind = Kind::ALL.iter().find(|kind| kind.name() == name).unwrap();
    kind.read(keys).unwrap()
}

/// Routes of which no path can deadlock on one lane.
fn checked(fabric: &Fabric, tables: &ForwardingTables) -> RouteReport {
    let report = check(fabric, tables, CheckOptions::default()).unwrap();
    assert_eq!(report.unreachable, 0);
    report
}

/// Pairs of hosts whose routes leave by each port.
fn pairs_by_port(fabric: &Fabric, tables: &ForwardingTables) -> IdVec<PortId, usize> {
    let mut pairs = IdVec::filled(0, fabric.ports.len());
    for (from, to) in host_pairs(fabric) {
        for port in walk(fabric, tables, from, fabric.node_of_host(to)) {
            pairs[port] += 1;
        }
    }
    pairs
}

/// Cables on the shortest path up towards a root and then down, by the states (switch, has turned down). A cable goes
/// up if it leads to a lower rank, or to a lower index of equal ranks.
fn shortest_legal(
    fabric: &Fabric,
    ranks: &BTreeMap<SwitchId, usize>,
    from: SwitchId,
) -> BTreeMap<SwitchId, usize> {
    let mut found: BTreeMap<(SwitchId, bool), usize> = BTreeMap::from([((from, false), 0)]);
    let mut queue = vec![(from, false)];
    let mut head = 0;
    while head < queue.len() {
        let (at, has_turned) = queue[head];
        let here = found[&(at, has_turned)];
        head += 1;
        for port in fabric.switch(at).ports() {
            let Some((peer, _)) = fabric.peer_switch(port) else {
                continue;
            };
            let is_up = (ranks[&peer], peer) < (ranks[&at], at);
            let state = (peer, has_turned || !is_up);
            if (has_turned && is_up) || found.contains_key(&state) {
                continue;
            }
            found.insert(state, here + 1);
            queue.push(state);
        }
    }
    let mut least = BTreeMap::new();
    for ((switch, _), cables) in found {
        let entry = least.entry(switch).or_insert(cables);
        *entry = cables.min(*entry);
    }
    least
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Oracles: the check of channel dependencies on one lane, for the tables and for switches that choose; Floyd and Warshall;
    /// and legal paths found by states.
    #[test]
    fn any_fabric_is_connected_without_deadlock(fabric in any_fabric(), root in 0_usize..8) {
        let root = SwitchId::new(root % fabric.switch_count());
        for roots in [Vec::new(), vec![fabric.switch(root).name.clone()]] {
            let algorithm = UpDown { roots };
            let tables = up_down(&fabric, &algorithm.roots).unwrap();
            let report = checked(&fabric, &tables);
            let input = super::RoutingInput { fabric: &fabric, topology: None, data_vls: 1 };
            let alternatives = algorithm.alternatives(input).unwrap();
            let adaptive = Routes {
                alternatives: Some(&alternatives),
                choice: PathChoice::Adaptive,
                ..(&tables).into()
            };
            checked_routes(&fabric, adaptive);
            for switch in fabric.switch_ids() {
                for host in fabric.host_ids() {
                    let ports = alternatives.get(switch, host);
                    let tabled = tables.to_host(switch, host);
                    prop_assert!(ports.is_empty() || ports.contains(&tabled.unwrap()));
                }
            }
            let distances = all_distances(&fabric);
            let shortest = host_pairs(&fabric)
                .map(|(a, b)| distances[fabric.node_of_host(a)][fabric.node_of_host(b)])
                .max();
            prop_assert!(report.max_hops as usize >= shortest.unwrap_or(0));
            if !algorithm.roots.is_empty() {
                let ranks: BTreeMap<SwitchId, usize> = fabric
                    .switch_ids()
                    .map(|at| (at, distances[fabric.node_of_switch(root)][fabric.node_of_switch(at)]))
                    .collect();
                for (from, to) in host_pairs(&fabric) {
                    let (first, last) = (fabric.host_attachment(from).0, fabric.host_attachment(to).0);
                    let path = walk(&fabric, &tables, from, fabric.node_of_host(to));
                    let mut has_turned = false;
                    for port in &path[1..path.len() - 1] {
                        let at = fabric.nodes[fabric.ports[*port].node].as_switch().unwrap();
                        let (peer, _) = fabric.peer_switch(*port).unwrap();
                        let is_up = (ranks[&peer], peer) < (ranks[&at], at);
                        prop_assert!(!(has_turned && is_up));
                        has_turned |= !is_up;
                    }
                    let least = shortest_legal(&fabric, &ranks, first)[&last];
                    prop_assert!(path.len() >= least + 2);
                }
            }
        }
    }
}

fn checked_routes(fabric: &Fabric, routes: Routes<'_>) {
    let report = check(fabric, routes, CheckOptions::default()).unwrap();
    assert_eq!(report.unreachable, 0);
}

/// The top switches of a tree are found as its roots: paths are as short as those of d-mod-k, and each cable carries as many pairs.
#[test]
fn trees_are_routed_as_by_d_mod_k() {
    let three_levels = Xgft {
        children: vec![2, 2, 12],
        parents: vec![1, 2, 2],
        links: Vec::new(),
    };
    for fabric in [
        FatTree648 {}.build(LINK).unwrap(),
        three_levels.build(LINK).unwrap(),
    ] {
        let (tables, expected) = (up_down(&fabric, &[]).unwrap(), d_mod_k(&fabric).unwrap());
        let (found, wanted) = (checked(&fabric, &tables), checked(&fabric, &expected));
        assert_eq!(found.mean_hops, wanted.mean_hops);
        let sorted = |tables| {
            let mut pairs: Vec<usize> = pairs_by_port(&fabric, tables).iter().copied().collect();
            pairs.sort_unstable();
            pairs
        };
        assert_eq!(sorted(&tables), sorted(&expected));
    }
}

/// Two levels: a leaf has lost the cable to one of two spines. Both spines still carry the traffic of the other leaves.
#[test]
fn damaged_trees_keep_their_roots() {
    let mut builder = FabricBuilder::new();
    let names = ["leaf-0", "leaf-1", "leaf-2", "spine-0", "spine-1"];
    let switches = names.map(|name| builder.add_switch(name, 16).unwrap());
    for (leaf, spine) in [(0_usize, 3_usize), (0, 4), (1, 3), (1, 4), (2, 3)] {
        let (from, to) = (
            switches[leaf].port(spine as u8),
            switches[spine].port(leaf as u8 + 1),
        );
        builder.connect(from, to, LINK).unwrap();
    }
    for (leaf, switch) in switches[..3].iter().enumerate() {
        for place in 0..2 {
            let host = builder.add_host(format!("host-{leaf}-{place}")).unwrap();
            builder
                .connect(host.port(1), switch.port(9 + place), LINK)
                .unwrap();
        }
    }
    let fabric = builder.build().unwrap();
    let tables = up_down(&fabric, &[]).unwrap();
    let report = checked(&fabric, &tables);
    assert_eq!(report.max_hops, 4);
    let pairs = pairs_by_port(&fabric, &tables);
    let out_of = |switch: usize| {
        let ports = fabric.switch(SwitchId::new(switch)).ports();
        ports.map(|port| pairs[port]).sum::<usize>()
    };
    // 8 pairs between the first two leaves, half over each spine, and 16 with the last leaf over the first.
    assert_eq!((out_of(3), out_of(4)), (20, 4));
}

/// Topologies without a routing of their own that suits one lane are free of deadlock on one lane.
#[test]
fn irregular_topologies_need_one_lane() {
    for (name, keys) in [
        ("ring", json!({ "switches": 8, "hosts-per-switch": 1 })),
        ("torus", json!({ "sizes": [4, 4], "hosts-per-switch": 1 })),
        (
            "jellyfish",
            json!({ "switches": 30, "hosts-per-switch": 2, "cables-per-switch": 5 }),
        ),
        (
            "dragonfly",
            json!({ "switches-per-group": 4, "hosts-per-switch": 2, "global-per-switch": 2 }),
        ),
    ] {
        let topology = topology(name, &keys);
        let fabric = topology.build(LINK).unwrap();
        let routed = UpDown::default().routes(routing_input(&fabric, &topology));
        let (tables, lanes) = routed.unwrap();
        assert!(lanes.is_none());
        checked(&fabric, &tables);
    }
}

/// Ring of six: the root's two neighbours reach each other over the root.
#[test]
fn given_roots_are_passed() {
    let topology = topology("ring", &json!({ "switches": 6, "hosts-per-switch": 1 }));
    let fabric = topology.build(LINK).unwrap();
    let name = |switch: usize| fabric.switch(SwitchId::new(switch)).name.clone();
    let tables = up_down(&fabric, &[name(3)]).unwrap();
    checked(&fabric, &tables);
    // 0 is opposite to the root: no path goes through it.
    let pairs = pairs_by_port(&fabric, &tables);
    let through = |switch: usize| {
        let ports = fabric.switch(SwitchId::new(switch)).ports();
        let between = ports.filter(|port| fabric.peer_switch(*port).is_some());
        between.map(|port| pairs[port]).sum::<usize>()
    };
    assert_eq!(through(0), 5);
    assert!(through(3) > 5);
    for (roots, expected) in [
        (vec!["swich-03".to_owned()], "there is no switch named"),
        (vec!["host-0000".to_owned()], "there is no switch named"),
    ] {
        let error = up_down(&fabric, &roots).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

/// Two roots beside each other in a ring leave pairs without a legal path.
#[test]
fn roots_that_do_not_connect_all_hosts_are_refused() {
    // s0 and s1 have hosts and join separate roots, s2 above s0 and s3 above s1; the roots are not joined.
    let fabric = fabric_from(&[0, 0, 1], &[], &[1, 1, 1, 1]);
    let roots = ["s2".to_owned(), "s3".to_owned()];
    let error = up_down(&fabric, &roots).unwrap_err();
    assert!(
        matches!(error, RoutingError::Refused { key: "roots", .. }),
        "{error}"
    );
}

//! Computed routes against the tables of the same routing.
#![allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use proptest::prelude::*;
use serde_json::{Value, json};
use silvan_core::HostId;

use super::{PathChoice, computed_d_mod_k, d_mod_k, min_hop_balanced};
use crate::check::{CheckOptions, check};
use crate::generators::{Generator, Kind, Topology};
use crate::testing::{LINK, any_fabric, fabric_from, routing_input};
use crate::{Fabric, ForwardingTables};

fn numbers(most: usize, count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1..=most, count)
}

fn fat_tree() -> impl Strategy<Value = (Kind, Value)> {
    prop::collection::vec((1_usize..4, 1_usize..4), 1..5).prop_map(|levels| {
        let (children, mut parents): (Vec<_>, Vec<_>) = levels.into_iter().unzip();
        parents[0] = 1;
        (
            Kind::Xgft,
            json!({ "children": children, "parents": parents }),
        )
    })
}

fn leaf_spine() -> impl Strategy<Value = (Kind, Value)> {
    (numbers(4, 1..6), numbers(3, 1..4)).prop_map(|(hosts, cables)| {
        let keys = json!({ "leaf-hosts": hosts, "spine-cables": cables });
        (Kind::LeafSpine, keys)
    })
}

fn rail_optimised() -> impl Strategy<Value = (Kind, Value)> {
    (1_usize..4, 1_usize..4, 1_usize..4, 0_usize..3, 1_usize..3).prop_map(
        |(pods, servers, gpus, spines, cables)| {
            let keys = json!({
                "servers": pods * servers,
                "servers-per-pod": servers,
                "gpus-per-server": gpus,
                "spines": if pods > 1 { spines + 1 } else { spines },
                "cables-per-spine": cables,
            });
            (Kind::RailOptimised, keys)
        },
    )
}

fn dragonfly() -> impl Strategy<Value = (Kind, Value)> {
    (
        1_usize..5,
        1_usize..4,
        1_usize..4,
        2_usize..12,
        any::<bool>(),
    )
        .prop_map(|(switches, hosts, global, groups, palm)| {
            let keys = json!({
                "switches-per-group": switches,
                "hosts-per-switch": hosts,
                "global-per-switch": global,
                "groups": groups.min(switches * global + 1),
                "wiring": if palm { "palm-tree" } else { "consecutive" },
            });
            (Kind::Dragonfly, keys)
        })
}

fn dragonfly_plus() -> impl Strategy<Value = (Kind, Value)> {
    (1_usize..4, 1_usize..4, 1_usize..4, 1_usize..4, 2_usize..8).prop_map(
        |(leaves, spines, hosts, global, groups)| {
            let keys = json!({
                "leaves-per-group": leaves,
                "spines-per-group": spines,
                "hosts-per-leaf": hosts,
                "global-per-spine": global,
                "groups": groups.min(spines * global + 1),
            });
            (Kind::DragonflyPlus, keys)
        },
    )
}

fn hyper_x() -> impl Strategy<Value = (Kind, Value)> {
    (
        prop::collection::vec((2_usize..5, 1_usize..4), 1..4),
        1_usize..4,
    )
        .prop_map(|(dimensions, hosts)| {
            let (sizes, cables): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
            let keys = json!({ "sizes": sizes, "cables": cables, "hosts-per-switch": hosts });
            (Kind::HyperX, keys)
        })
}

fn grid() -> impl Strategy<Value = (Kind, Value)> {
    (numbers(4, 1..4), 1_usize..4, any::<bool>()).prop_map(|(mut sizes, hosts, wraps)| {
        if wraps {
            sizes.iter_mut().for_each(|size| *size += 2);
        }
        let kind = if wraps { Kind::Torus } else { Kind::Mesh };
        (kind, json!({ "sizes": sizes, "hosts-per-switch": hosts }))
    })
}

/// Any topology whose routes have a rule.
fn topology() -> impl Strategy<Value = Topology> {
    let drawn = prop_oneof![
        fat_tree(),
        leaf_spine(),
        rail_optimised(),
        dragonfly(),
        dragonfly_plus(),
        hyper_x(),
        grid(),
    ];
    drawn.prop_map(|(kind, keys)| kind.read(keys).unwrap())
}

/// The tables of a routing, and the same computed.
fn both(fabric: &Fabric, topology: &Topology) -> (ForwardingTables, ForwardingTables) {
    let routing = topology.routing_for(PathChoice::Valiant);
    let algorithm = routing.algorithm().expect("topologies have algorithms");
    let input = routing_input(fabric, topology);
    let (tables, lanes) = algorithm.routes(input).unwrap();
    let (computed, same_lanes) = algorithm.computed(input).unwrap();
    assert_eq!(lanes, same_lanes);
    (tables, computed)
}

fn assert_equal(fabric: &Fabric, tables: &ForwardingTables, computed: &ForwardingTables) {
    for switch in fabric.switch_ids() {
        for host in fabric.host_ids() {
            let port = tables.to_host(switch, host);
            assert_eq!(computed.to_host(switch, host), port, "{switch} to {host}");
        }
    }
}

proptest! {
    /// Tables and computed routes have the same ports and the same report, except that cycles of group topologies
    /// depend on lanes.
    #[test]
    fn computed_routes_equal_tables(topology in topology()) {
        let fabric = topology.build(LINK).unwrap();
        let (tables, computed) = both(&fabric, &topology);
        assert_equal(&fabric, &tables, &computed);
        let options = CheckOptions { allow_cycles: true, allow_missing: false };
        prop_assert_eq!(
            check(&fabric, &computed, options).unwrap(),
            check(&fabric, &tables, options).unwrap()
        );
    }

    /// In any fabric, computed d-mod-k equals its tables; without tables it is not computed.
    #[test]
    fn irregular_trees_are_computed_right_or_not(fabric in any_fabric()) {
        match (d_mod_k(&fabric), computed_d_mod_k(&fabric)) {
            (Ok(tables), Some(routes)) => {
                assert_equal(&fabric, &tables, &ForwardingTables::computed(&fabric, routes));
            }
            (Err(_), Some(_)) => prop_assert!(false, "computed routes without tables"),
            (_, None) => {}
        }
    }
}

/// The root reaches the first leaf over two switches and the second one over one of them: tables can tell these apart, a rule by
/// subtrees cannot.
#[test]
fn a_subtree_that_is_not_uniform_has_tables() {
    let (leaf, left, other_leaf, right, root) = (0, 1, 2, 3, 4);
    let parents = [leaf, left, leaf, left];
    let extra = [(root, right), (other_leaf, left)];
    let fabric = fabric_from(&parents, &extra, &[1, 0, 1, 0, 0]);
    assert!(d_mod_k(&fabric).is_ok());
    assert_eq!(computed_d_mod_k(&fabric), None);
    let uniform = fabric_from(
        &parents,
        &[(root, right), (other_leaf, right)],
        &[1, 0, 1, 0, 0],
    );
    let tables = d_mod_k(&uniform).unwrap();
    let computed = computed_d_mod_k(&uniform).unwrap();
    assert_equal(
        &uniform,
        &tables,
        &ForwardingTables::computed(&uniform, computed),
    );
}

/// Rows grow with the sum of the sizes of the levels. A table of 324 leaves, 324 switches of the second level and 162
/// roots would have 9 million entries for 11,664 hosts.
#[test]
fn computed_routes_are_small() {
    let keys = json!({ "children": [18, 18, 36], "parents": [1, 18, 18] });
    let fabric = Kind::Xgft.read(keys).unwrap().build(LINK).unwrap();
    let routes = computed_d_mod_k(&fabric).unwrap();
    assert_eq!(routes.switch_count(), fabric.switch_count());
    let leaf = 36 + 18;
    let middle = 36 + 18;
    let root = 36;
    let rows = 648 * leaf + 648 * middle + 324 * root;
    assert_eq!(routes.entries().len(), 256 + rows);
    assert!(routes.bytes() < 1_000_000, "{} bytes", routes.bytes());
}

/// Without LIDs, tables have entries for hosts, and there is none for a LID.
#[test]
fn tables_without_lids_lead_to_hosts() {
    let keys = json!({ "children": [200, 250], "parents": [1, 1] });
    let fabric = Kind::Xgft.read(keys).unwrap().build(LINK).unwrap();
    assert!(!fabric.has_lids());
    let tables = min_hop_balanced(&fabric).unwrap();
    let computed = ForwardingTables::computed(&fabric, computed_d_mod_k(&fabric).unwrap());
    let last = HostId::new(fabric.host_count() - 1);
    let (leaf, port) = fabric.host_attachment(last);
    for routes in [&tables, &computed] {
        assert_eq!(routes.to_host(leaf, last), Some(fabric.ports[port].number));
        assert_eq!(routes.routes(leaf).count(), 0);
        assert_eq!(routes.get(leaf, fabric.host(last).lid), None);
    }
    let report = check(&fabric, &computed, CheckOptions::default()).unwrap();
    assert_eq!(report.pairs, 50_000 * 49_999);
    assert_eq!(report.max_hops, 4);
}

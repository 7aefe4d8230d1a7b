//! Lanes of shortest paths, and dimension order on HyperX.
#![allow(
    clippy::unwrap_used,
    reason = "a fabric without routes is a failed test"
)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{DimensionOrder, Routes, RoutingAlgorithm, layered_min_hop, min_hop_balanced};
use crate::Fabric;
use crate::check::{CheckOptions, check};
use crate::generators::{Generator, HyperX, Kind, Ring, Topology};
use crate::testing::{LINK, all_distances, any_fabric, host_pairs, routing_input};

/// Lanes of the routes, which the check of channel dependencies finds free of cycles.
fn lanes(fabric: &Fabric) -> u8 {
    let (tables, lanes) = layered_min_hop(fabric).unwrap();
    assert_eq!(tables, min_hop_balanced(fabric).unwrap());
    let routes = Routes {
        lanes: lanes.as_ref(),
        ..(&tables).into()
    };
    let report = check(fabric, routes, CheckOptions::default()).unwrap();
    assert_eq!(report.unreachable, 0);
    let on_one_lane = check(fabric, &tables, CheckOptions::default());
    assert_eq!(on_one_lane.is_err(), lanes.is_some());
    lanes.map_or(1, |lanes| lanes.lanes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Oracle: the check of channel dependencies.
    #[test]
    fn layers_have_no_cycles(fabric in any_fabric()) {
        lanes(&fabric);
    }

    /// Oracle: Floyd and Warshall, and the check of channel dependencies on one lane.
    #[test]
    fn dimension_order_on_hyper_x_is_minimal_and_free_of_cycles(
        shape in prop::collection::vec((2_usize..4, 1_usize..3), 1..4), hosts in 1_usize..3,
    ) {
        let (sizes, cables): (Vec<usize>, Vec<usize>) = shape.into_iter().unzip();
        let topology = Topology::HyperX(HyperX {
            sizes,
            cables,
            hosts_per_switch: hosts,
            host_link: Default::default(),
            links: Vec::new(),
        });
        let fabric = topology.build(LINK).unwrap();
        let input = routing_input(&fabric, &topology);
        let (tables, lanes) = DimensionOrder {}.routes(input).unwrap();
        prop_assert!(lanes.is_none());
        let report = check(&fabric, &tables, CheckOptions::default()).unwrap();
        let distances = all_distances(&fabric);
        let distance = |(a, b)| distances[fabric.node_of_host(a)][fabric.node_of_host(b)];
        let lengths: Vec<usize> = host_pairs(&fabric).map(distance).collect();
        prop_assert_eq!(report.max_hops as usize, lengths.iter().copied().max().unwrap());
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        prop_assert!((report.mean_hops - mean).abs() < 1e-9);
        for switch in fabric.switch_ids() {
            for destination in fabric.switch_ids() {
                let found = tables.get(switch, fabric.switch(destination).lid);
                prop_assert_eq!(found.unwrap().as_u8() == 0, switch == destination);
            }
        }
    }
}

/// Routes of a ring of four do not close a circle, those of larger ones do, and two lanes open it.
#[test]
fn rings_need_two_lanes() {
    for (switches, expected) in [(3, 1), (5, 2), (8, 2)] {
        let ring = Ring {
            switches,
            hosts_per_switch: 1,
        };
        assert_eq!(lanes(&ring.build(LINK).unwrap()), expected, "{switches}");
    }
}

/// Local, global, local cables of a dragonfly close circles on one lane; up, global, down of a dragonfly+ do not.
#[test]
fn direct_topologies_have_few_lanes() {
    let topology = |name: &str, keys: Value| {
        let kind = Kind::ALL.iter().find(|kind| kind.name() == name).unwrap();
        kind.read(&keys).unwrap().build(LINK).unwrap()
    };
    for (name, keys, expected) in [
        (
            "dragonfly",
            json!({ "switches-per-group": 4, "hosts-per-switch": 2, "global-per-switch": 2 }),
            2..=3,
        ),
        (
            "dragonfly-plus",
            json!({
                "leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2, "global-per-spine": 2,
            }),
            1..=1,
        ),
        ("slim-fly", json!({ "q": 5, "hosts-per-switch": 2 }), 2..=4),
        (
            "jellyfish",
            json!({ "switches": 30, "hosts-per-switch": 2, "cables-per-switch": 5 }),
            2..=4,
        ),
    ] {
        let lanes = lanes(&topology(name, keys));
        assert!(expected.contains(&lanes), "{name}: {lanes}");
    }
}

//! Dimension order against coordinates and pairwise dependencies; alternatives against distances.
#![allow(
    clippy::unwrap_used,
    reason = "a fabric that cannot be routed is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use silvan_core::{HostId, NodeId, PortId, SwitchId};

use super::*;
use crate::check::{CheckOptions, RouteError, check, dependency_cycle};
use crate::generators::{FatTree648, Generator, Grid, Ring};
use crate::testing::{LINK, all_distances, any_fabric, host_pairs, walk};

fn grid(sizes: &[usize], wraps: bool, hosts_per_switch: usize) -> Grid {
    Grid {
        sizes: sizes.to_vec(),
        wraps,
        hosts_per_switch,
    }
}

fn any_grid() -> impl Strategy<Value = Grid> {
    (
        prop::collection::vec(1_usize..7, 1..4),
        any::<bool>(),
        1_usize..3,
    )
        .prop_map(|(sizes, wraps, hosts)| {
            let least = if wraps { 3 } else { 1 };
            let sizes: Vec<usize> = sizes.into_iter().map(|size| size.max(least)).collect();
            grid(&sizes, wraps, hosts)
        })
}

/// The switches that a list of ports leads to, as coordinates.
fn places(fabric: &Fabric, grid: &Grid, ports: &[PortId]) -> Vec<Vec<usize>> {
    let switch = |port: &PortId| {
        let (switch, _) = fabric.peer_switch(*port)?;
        let dimensions = 0..grid.sizes.len();
        Some(
            dimensions
                .map(|dimension| grid.coordinate(switch, dimension))
                .collect(),
        )
    };
    ports.iter().filter_map(switch).collect()
}

/// Channels with their lanes, pair by pair of hosts. The lane follows from the rule, not from the tables: 1 if the path
/// passes from one end of a row to the other.
fn dependencies_by_pairs(
    fabric: &Fabric,
    grid: &Grid,
    tables: &ForwardingTables,
    lanes: Option<&PathLanes>,
) -> BTreeMap<(PortId, u8), BTreeSet<(PortId, u8)>> {
    let mut followers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (source, destination) in host_pairs(fabric) {
        let ports = walk(fabric, tables, source, fabric.node_of_host(destination));
        let places = places(fabric, grid, &ports);
        let mut crossed = vec![false; grid.sizes.len()];
        for pair in places.windows(2) {
            for (dimension, crossed) in crossed.iter_mut().enumerate() {
                *crossed |= pair[0][dimension].abs_diff(pair[1][dimension]) > 1;
            }
        }
        let lane = |port: PortId| {
            let dimension = grid.dimension_of(fabric.ports[port].number);
            match (lanes, dimension) {
                (Some(_), Some(dimension)) => u8::from(crossed[dimension]),
                _ => 0,
            }
        };
        // The first cable is the source's; its port is not one of a switch.
        for pair in ports[1..].windows(2) {
            let channel = |port: PortId| (port, lane(port));
            followers
                .entry(channel(pair[0]))
                .or_default()
                .insert(channel(pair[1]));
        }
    }
    followers
}

fn is_cyclic(mut followers: BTreeMap<(PortId, u8), BTreeSet<(PortId, u8)>>) -> bool {
    loop {
        let with_followers: BTreeSet<_> = followers.keys().copied().collect();
        let before = followers.len();
        for set in followers.values_mut() {
            set.retain(|channel| with_followers.contains(channel));
        }
        followers.retain(|_, set| !set.is_empty());
        if followers.is_empty() || followers.len() == before {
            return !followers.is_empty();
        }
    }
}

fn with_lanes<'a>(tables: &'a ForwardingTables, lanes: Option<&'a PathLanes>) -> Routes<'a> {
    Routes {
        lanes,
        ..tables.into()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Routes pass the dimensions in order, never back, and take the shorter way round.
    #[test]
    fn routes_follow_the_dimensions_in_order(grid in any_grid()) {
        let fabric = grid.build(LINK).unwrap();
        let (tables, _) = dimension_order(&fabric, &grid).unwrap();
        let distances = all_distances(&fabric);
        for (source, destination) in host_pairs(&fabric) {
            let end: NodeId = fabric.node_of_host(destination);
            let ports = walk(&fabric, &tables, source, end);
            prop_assert_eq!(ports.len(), distances[fabric.node_of_host(source)][end]);
            let inner = &ports[1..ports.len() - 1];
            let dimensions: Vec<_> = inner
                .iter()
                .map(|port| grid.dimension_of(fabric.ports[*port].number).unwrap())
                .collect();
            prop_assert!(dimensions.is_sorted(), "{:?}", dimensions);
        }
    }

    /// With datelines no torus can deadlock. Without datelines, a torus with a row of five or more can. In a row of
    /// four, a way of two cables upwards starts at an even switch, so no two such ways overlap. The check agrees with
    /// dependencies collected pair by pair from the rule.
    #[test]
    fn datelines_break_every_circle(grid in any_grid()) {
        let fabric = grid.build(LINK).unwrap();
        let (tables, lanes) = dimension_order(&fabric, &grid).unwrap();
        prop_assert_eq!(lanes.is_some(), grid.wraps);
        let plain = dependencies_by_pairs(&fabric, &grid, &tables, None);
        let can_deadlock = grid.wraps && grid.sizes.iter().any(|size| *size > 4);
        prop_assert_eq!(is_cyclic(plain), can_deadlock);
        prop_assert_eq!(dependency_cycle(&fabric, &tables).unwrap().is_some(), can_deadlock);
        let laned = dependencies_by_pairs(&fabric, &grid, &tables, lanes.as_ref());
        prop_assert!(!is_cyclic(laned));
        let routes = with_lanes(&tables, lanes.as_ref());
        prop_assert_eq!(dependency_cycle(&fabric, routes).unwrap(), None);
    }

    /// Alternatives are exactly the ports that lead one cable closer.
    #[test]
    fn alternatives_are_all_shortest_ways(fabric in any_fabric()) {
        let alternatives = minimal_alternatives(&fabric).unwrap();
        let distances = all_distances(&fabric);
        for switch in fabric.switch_ids() {
            for host in fabric.host_ids() {
                let end = fabric.node_of_host(host);
                let here = distances[fabric.node_of_switch(switch)][end];
                let closer: Vec<_> = fabric
                    .switch(switch)
                    .ports()
                    .filter(|port| {
                        let peer = fabric.ports[*port].peer;
                        peer.is_some_and(|peer| distances[fabric.ports[peer].node][end] < here)
                    })
                    .map(|port| fabric.ports[port].number)
                    .collect();
                let expected = if closer.len() > 1 { &closer[..] } else { &[] };
                prop_assert_eq!(alternatives.get(switch, host), expected);
            }
        }
    }
}

/// A ring of six, dateline between 5 and 0, as in the manual of OpenSM's torus-2QoS.
#[test]
fn a_path_across_the_dateline_stays_on_lane_1() {
    let grid = grid(&[6], true, 1);
    let fabric = grid.build(LINK).unwrap();
    let (tables, lanes) = dimension_order(&fabric, &grid).unwrap();
    let lanes = lanes.unwrap();
    assert_eq!(
        (lanes.path_bits(), lanes.lanes(), lanes.classes()),
        (1, 2, 8)
    );
    let switch = SwitchId::new;
    // 4 -> 5 -> 0 crosses it, 0 -> 5 -> 4 the other way round too, 0 -> 1 -> 2 -> 3 does not.
    for (from, to, path) in [(4, 0, 1), (0, 4, 1), (0, 3, 0), (1, 5, 1)] {
        assert_eq!(
            lanes.levels().level(HostId::new(from), HostId::new(to)),
            path
        );
    }
    let (host, down, up) = (1, 2, 3);
    let number = PortNumber::new;
    for output in [down, up] {
        assert_eq!(lanes.lane(switch(2), number(host), number(output), 0), 0);
        assert_eq!(lanes.lane(switch(2), number(host), number(output), 1), 1);
    }
    assert_eq!(lanes.lane(switch(2), number(down), number(host), 1), 0);
    // Three cables either way: even switches go up, odd ones down.
    let port = |from: usize, to: usize| tables.get(switch(from), fabric.host(HostId::new(to)).lid);
    assert_eq!(port(0, 3), Some(number(up)));
    assert_eq!(port(1, 4), Some(number(down)));
}

/// Every cable between switches of a torus is on as many routes as any other cable of its dimension. The number is
/// switches times hosts squared times the mean way, half of it in each direction.
#[test]
fn a_torus_is_evenly_loaded() {
    let (sizes, hosts) = ([4, 8], 2);
    let grid = grid(&sizes, true, hosts);
    let fabric = grid.build(LINK).unwrap();
    let (tables, lanes) = dimension_order(&fabric, &grid).unwrap();
    let routes = with_lanes(&tables, lanes.as_ref());
    let report = check(&fabric, routes, CheckOptions::default()).unwrap();
    for (port, routes) in report.routes.iter_enumerated() {
        let Some(dimension) = grid.dimension_of(fabric.ports[port].number) else {
            continue;
        };
        if fabric.peer_switch(port).is_none()
            || fabric.nodes[fabric.ports[port].node].as_host().is_some()
        {
            continue;
        }
        // On a ring of even size n the ways sum up to n^2 / 4 over the ends.
        let size = sizes[dimension];
        let switches = 32 / size;
        let pairs = switches * size * size / 4 * hosts * hosts * switches * size;
        let cables = 2 * 32;
        assert_eq!(
            *routes,
            (pairs / cables) as u64,
            "{}",
            fabric.port_name(port)
        );
    }
}

#[test]
fn the_cycle_of_a_torus_without_datelines_is_named() {
    let grid = grid(&[5, 3], true, 1);
    let fabric = grid.build(LINK).unwrap();
    let (tables, _) = dimension_order(&fabric, &grid).unwrap();
    let error = check(&fabric, &tables, CheckOptions::default()).unwrap_err();
    let RouteError::DependencyCycle { cycle } = &error else {
        panic!("{error}");
    };
    assert_eq!(cycle.len(), 5, "{error}");
    assert!(
        cycle.iter().all(|port| port.starts_with("switch-")),
        "{error}"
    );
}

/// A mapping that puts everything on one of two lanes breaks nothing, and the lane is named.
#[test]
fn lanes_that_do_not_help_are_seen_through() {
    let grid = grid(&[5], true, 1);
    let fabric = grid.build(LINK).unwrap();
    let (tables, _) = dimension_order(&fabric, &grid).unwrap();
    let useless = PathLanes::new(
        &fabric,
        1,
        PathServiceLevels::by_switch(&fabric, |_, _| 0),
        |_, _, _, path| 1 - path,
    );
    let routes = with_lanes(&tables, Some(&useless));
    let error = check(&fabric, routes, CheckOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("switch-0:3 (lane 1)")
            || error.to_string().contains("switch-0:2 (lane 1)"),
        "{error}"
    );
}

/// Ring of four: the paths to the other side block each other in a cycle of four. If the paths from one switch have a
/// separate level, three paths remain on the first level. Paths from one switch never make a cycle.
#[test]
fn levels_take_the_circle_out_of_a_ring() {
    let ring = Ring {
        switches: 4,
        hosts_per_switch: 2,
    };
    let fabric = ring.build(LINK).unwrap();
    let tables = min_hop_balanced(&fabric).unwrap();
    assert!(dependency_cycle(&fabric, &tables).unwrap().is_some());
    for (level, has_cycle) in [(0, true), (1, false), (2, false)] {
        let levels = |from: SwitchId, to: HostId| {
            let across = fabric.host_attachment(to).0.index().abs_diff(from.index()) == 2;
            if from.index() == 3 && across {
                level
            } else {
                0
            }
        };
        let lanes = PathLanes::by_level(&fabric, PathServiceLevels::by_switch(&fabric, levels));
        assert_eq!(
            (lanes.lanes(), lanes.classes()),
            (level + 1, [16, 8, 4][usize::from(level)])
        );
        for from in fabric.host_ids() {
            for to in fabric.host_ids() {
                let expected = levels(fabric.host_attachment(from).0, to);
                assert_eq!(lanes.levels().level(from, to), expected);
            }
        }
        let found = dependency_cycle(&fabric, with_lanes(&tables, Some(&lanes))).unwrap();
        assert_eq!(found.is_some(), has_cycle);
    }
}

#[test]
fn alternatives_of_trees_cannot_deadlock_and_those_of_grids_can() {
    let tree = FatTree648 {}.build(LINK).unwrap();
    let mesh = grid(&[3, 3], false, 1).build(LINK).unwrap();
    let ring = Ring {
        switches: 4,
        hosts_per_switch: 1,
    };
    for (fabric, can_deadlock) in [
        (tree, false),
        (mesh, true),
        (ring.build(LINK).unwrap(), true),
    ] {
        let tables = min_hop_balanced(&fabric).unwrap();
        let alternatives = minimal_alternatives(&fabric).unwrap();
        let routes = Routes {
            alternatives: Some(&alternatives),
            ..(&tables).into()
        };
        let cycle = dependency_cycle(&fabric, routes).unwrap();
        assert_eq!(cycle.is_some(), can_deadlock);
    }
}

#[test]
fn other_fabrics_are_no_grids() {
    let torus = grid(&[4, 3], true, 2);
    let fabric = torus.build(LINK).unwrap();
    for (shape, expected) in [
        (
            grid(&[4, 4], true, 2),
            "the grid has 16 switches with 2 hosts each",
        ),
        (
            grid(&[3, 4], true, 2),
            "port 3 of \"switch-0-0\" does not lead to its neighbour",
        ),
        (
            grid(&[4, 3], false, 2),
            "port 3 of \"switch-0-0\" does not lead to its neighbour",
        ),
    ] {
        let error = dimension_order(&fabric, &shape).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let five = grid(&[3, 3, 3, 3, 3], true, 1);
    let error = dimension_order(&five.build(LINK).unwrap(), &five).unwrap_err();
    assert!(error.to_string().contains("too many datelines"), "{error}");
}

//! Paths over waypoints: their lanes, and the proof that these suffice.
#![allow(
    clippy::unwrap_used,
    reason = "a fabric that cannot be built is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{HostId, PortId};

use super::*;
use crate::check::{check, check_steps};
use crate::generators::{Generator, Kind, Topology};
use crate::testing::{LINK, routing_input};

fn topology(kind: Kind, keys: &str) -> Topology {
    let keys: Value = serde_json::from_str(keys).unwrap();
    kind.read(&keys).unwrap()
}

/// A fabric, its tables where paths lead over waypoints, and what these need.
struct Built {
    topology: Topology,
    fabric: Fabric,
    tables: ForwardingTables,
}

fn built(kind: Kind, keys: &str) -> Built {
    let topology = topology(kind, keys);
    let fabric = topology.build(LINK).unwrap();
    let routing = topology.routing_for(PathChoice::Valiant);
    let tables = match routing.name() {
        RoutingName::GroupMinimal | RoutingName::DimensionOrder => {
            let algorithm = routing.algorithm().unwrap();
            algorithm
                .routes(routing_input(&fabric, &topology))
                .unwrap()
                .0
        }
        _ => min_hop_balanced(&fabric).unwrap(),
    };
    Built {
        topology,
        fabric,
        tables,
    }
}

/// The ports by which packets leave switches on the way to the switch of a host.
fn path(built: &Built, from: SwitchId, to: HostId) -> Vec<PortId> {
    let Built { fabric, tables, .. } = built;
    let lid = fabric.host(to).lid;
    let (mut at, mut ports) = (from, Vec::new());
    loop {
        let port = fabric
            .switch(at)
            .port(tables.get(at, lid).unwrap())
            .unwrap();
        match fabric.peer_switch(port) {
            Some((next, _)) => at = next,
            None => return ports,
        }
        ports.push(port);
    }
}

const DRAGONFLY: &str =
    r#"{"switches-per-group": 4, "hosts-per-switch": 1, "global-per-switch": 2}"#;
const MEGAFLY: &str = r#"{"leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2,
    "global-per-spine": 2}"#;

#[test]
fn group_minimal_paths_cross_one_cable_between_groups_and_at_most_one_on_either_side() {
    let more = DRAGONFLY.replace('}', r#", "groups": 4}"#);
    for (kind, keys) in [
        (Kind::Dragonfly, DRAGONFLY),
        (Kind::Dragonfly, &more),
        (Kind::DragonflyPlus, MEGAFLY),
    ] {
        let built = built(kind, keys);
        let group = |switch| built.topology.group(switch).unwrap();
        let report = check(&built.fabric, &built.tables, allow_cycles()).unwrap();
        assert_eq!(report.max_hops, 5, "{keys}");
        for from in built.fabric.switch_ids() {
            for to in built.fabric.host_ids() {
                let end = built.fabric.host_attachment(to).0;
                let ports = path(&built, from, to);
                let between = ports.iter().filter(|port| {
                    let there = built.fabric.peer_switch(**port).unwrap().0;
                    let node = &built.fabric.nodes[built.fabric.ports[**port].node];
                    group(node.as_switch().unwrap()) != group(there)
                });
                assert_eq!(between.count(), usize::from(group(from) != group(end)));
            }
        }
    }
}

/// A port among which switches choose leads into the group of the destination, or stays in the group where it is.
#[test]
fn choices_of_group_minimal_routes_take_no_other_group() {
    for (kind, keys, has_choice) in [
        (Kind::Dragonfly, DRAGONFLY.to_owned(), false),
        (
            Kind::Dragonfly,
            DRAGONFLY.replace('}', r#", "groups": 4}"#),
            true,
        ),
        (
            Kind::DragonflyPlus,
            MEGAFLY.replace('}', r#", "groups": 3}"#),
            true,
        ),
    ] {
        let built = built(kind, &keys);
        let group = |switch| built.topology.group(switch).unwrap();
        let input = routing_input(&built.fabric, &built.topology);
        let found = GroupMinimal {}.alternatives(input).unwrap();
        let mut chosen = 0;
        for from in built.fabric.switch_ids() {
            for to in built.fabric.host_ids() {
                let end = built.fabric.host_attachment(to).0;
                let ports = found.get(from, to);
                let tabled = built.tables.to_host(from, to).unwrap();
                assert!(ports.is_empty() || ports.contains(&tabled));
                chosen += ports.len();
                for number in ports {
                    let port = built.fabric.switch(from).port(*number).unwrap();
                    let (there, _) = built.fabric.peer_switch(port).unwrap();
                    assert!([group(from), group(end)].contains(&group(there)));
                }
            }
        }
        assert_eq!(chosen > 0, has_choice, "{keys}");
    }
}

fn allow_cycles() -> crate::check::CheckOptions {
    crate::check::CheckOptions {
        allow_cycles: true,
        allow_missing: false,
    }
}

/// Enumerates the channels of all paths, from every source over every waypoint, and finds cycles of dependencies.
/// Repeatedly removing channels without dependants leaves the cycles.
fn enumerate(built: &Built, waypoints: Option<&Waypoints>, par: bool, lanes: u8) -> (u8, bool) {
    let steps = built.topology.lane_steps(&built.fabric);
    let mut follows: BTreeSet<((PortId, u8), (PortId, u8))> = BTreeSet::new();
    let mut highest = 0;
    let mut add = |ports: &[PortId]| {
        let (mut lane, mut last): (u8, Option<PortId>) = (0, None);
        for &port in ports {
            if let Some(before) = last {
                let next = lane + u8::from(steps.kind(port) <= steps.kind(before));
                let next = next.min(lanes - 1);
                follows.insert(((before, lane), (port, next)));
                lane = next;
                highest = highest.max(lane);
            }
            last = Some(port);
        }
    };
    let leaf = |host| built.fabric.host_attachment(host).0;
    let mut paths = BTreeMap::new();
    for from in built.fabric.switch_ids() {
        for to in built.fabric.host_ids() {
            paths.insert((from, to), path(built, from, to));
        }
    }
    let all = waypoints.map_or(&[][..], Waypoints::hosts);
    for source in built.fabric.host_ids() {
        for to in built.fabric.host_ids() {
            let direct = &paths[&(leaf(source), to)];
            add(direct);
            for &over in all {
                let second = &paths[&(leaf(over), to)];
                add(&[&paths[&(leaf(source), over)][..], second].concat());
                let Some(&first) = direct.first().filter(|port| par && steps.kind(**port) == 1)
                else {
                    continue;
                };
                let next = built.fabric.peer_switch(first).unwrap().0;
                add(&[&[first][..], &paths[&(next, over)], second].concat());
            }
        }
    }
    loop {
        let before = follows.len();
        let from: BTreeSet<_> = follows.iter().map(|(from, _)| *from).collect();
        follows.retain(|(_, to)| from.contains(to));
        if follows.len() == before {
            return (highest + 1, before > 0);
        }
    }
}

/// Known numbers of lanes. A dragonfly has 2 for l-g-l and 4 for l-g-l-l-g-l. Paths up and down in a dragonfly+, or
/// through the dimensions of a HyperX, need 1 for each part.
#[test]
fn lanes_that_paths_need_are_those_of_all_paths_enumerated() {
    let jellyfish = r#"{"switches": 12, "hosts-per-switch": 1, "cables-per-switch": 3, "seed": "#;
    let random: Vec<String> = (1..4).map(|seed| format!("{jellyfish}{seed}}}")).collect();
    let mut cases = vec![
        (Kind::Dragonfly, DRAGONFLY, Some([2, 4, 5])),
        (Kind::DragonflyPlus, MEGAFLY, Some([1, 2, 3])),
        (
            Kind::HyperX,
            r#"{"sizes": [3, 3], "hosts-per-switch": 1}"#,
            Some([1, 2, 3]),
        ),
        (
            Kind::Mesh,
            r#"{"sizes": [3, 2], "hosts-per-switch": 1}"#,
            None,
        ),
    ];
    cases.extend(random.iter().map(|keys| (Kind::Jellyfish, &keys[..], None)));
    for (kind, keys, expected) in cases {
        let built = built(kind, keys);
        let waypoints = built.topology.waypoints(&built.fabric);
        let choices = [
            (PathChoice::Table, None),
            (PathChoice::Valiant, Some(&waypoints)),
            (PathChoice::Par, Some(&waypoints)),
        ];
        for (index, (choice, waypoints)) in choices.into_iter().enumerate() {
            let par = choice == PathChoice::Par;
            let (needed, _) = enumerate(&built, waypoints, par, 64);
            assert_eq!(
                needed,
                expected.map_or(needed, |known| known[index]),
                "{keys}"
            );
            for lanes in [1, needed - 1, needed]
                .into_iter()
                .filter(|lanes| *lanes > 0)
            {
                let steps = built.topology.lane_steps(&built.fabric).with_lanes(lanes);
                let routes = Routes {
                    steps: Some(&steps),
                    waypoints,
                    choice,
                    ..(&built.tables).into()
                };
                let report = check_steps(&built.fabric, routes);
                assert_eq!(report.needed, needed, "{keys} {choice:?}");
                let (_, has_cycle) = enumerate(&built, waypoints, par, lanes);
                assert_eq!(
                    report.cycle.is_some(),
                    has_cycle,
                    "{keys} {choice:?} {lanes}"
                );
                assert!(lanes < needed || !has_cycle);
            }
        }
    }
}

#[test]
fn waypoints_are_all_hosts_group_by_group() {
    let built = built(Kind::DragonflyPlus, MEGAFLY);
    let waypoints = built.topology.waypoints(&built.fabric);
    assert_eq!(waypoints.starts(), [0, 4, 8, 12, 16, 20]);
    for (group, range) in waypoints.starts().windows(2).enumerate() {
        for host in &waypoints.hosts()[range[0] as usize..range[1] as usize] {
            let leaf = built.fabric.host_attachment(*host).0;
            assert_eq!(waypoints.group(leaf), group as u32);
        }
    }
}

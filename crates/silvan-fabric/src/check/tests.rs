#![allow(
    clippy::unwrap_used,
    reason = "a fabric that cannot be routed is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use silvan_core::{HostId, Sl, SwitchId};

use super::*;
use crate::ForwardingTables;
use crate::generators::{Chain, FatTree648, FatTree11664, Generator, Ring, SingleSwitch};
use crate::routing::{
    ExplicitTable, PathLanes, PathServiceLevels, SlToVlTables, d_mod_k, explicit, min_hop_balanced,
    minimal_alternatives,
};
use crate::testing::{LINK, any_fabric, fabric_from, host_pairs, walk, wild_tables};

const ALLOW: CheckOptions = CheckOptions {
    allow_cycles: true,
    allow_missing: false,
};

fn ring(switches: usize) -> Fabric {
    Ring {
        switches,
        hosts_per_switch: 1,
    }
    .build(LINK)
    .unwrap()
}

/// 17 hosts share the leaf, 630 are four cables away; 35 destinations times 18 sources on each
/// cable between leaf and spine.
#[test]
fn the_648_port_tree_is_reported_exactly() {
    let fabric = FatTree648 {}.build(LINK).unwrap();
    let report = check(&fabric, &d_mod_k(&fabric).unwrap(), CheckOptions::default()).unwrap();
    assert_eq!(report.pairs, 648 * 647);
    assert_eq!(report.max_hops, 4);
    let mean = f64::from(17 * 2 + 630 * 4) / 647.0;
    assert!(
        (report.mean_hops - mean).abs() < 1e-12,
        "{}",
        report.mean_hops
    );
    for (port, routes) in report.routes.iter_enumerated() {
        let to_host = fabric.peer_switch(port).is_none();
        let from_host = fabric.nodes[fabric.ports[port].node].as_host().is_some();
        let expected = if to_host || from_host { 647 } else { 18 * 35 };
        assert_eq!(*routes, expected, "{}", fabric.port_name(port));
    }
}

#[test]
fn the_11664_port_tree_is_reported_exactly() {
    let fabric = FatTree11664 {}.build(LINK).unwrap();
    let report = check(&fabric, &d_mod_k(&fabric).unwrap(), CheckOptions::default()).unwrap();
    assert_eq!(report.max_hops, 6);
    let per_source = f64::from(17 * 2 + (324 - 18) * 4 + (11_664 - 324) * 6);
    assert!((report.mean_hops - per_source / 11_663.0).abs() < 1e-9);
    // A leaf's cable upwards: 18 sources, an 18th of the destinations elsewhere.
    let leaf = fabric.switch(SwitchId::new(0));
    for port in leaf.ports().skip(18) {
        assert_eq!(report.routes[port], 11_664 - 18);
    }
}

/// Ring of five: all shortest paths are unique, and paths of two cables form a chain around the ring, in either
/// direction. On a ring of three no path passes a whole switch-to-switch cable.
#[test]
fn minimal_routes_around_a_ring_are_named_as_a_cycle() {
    let fabric = ring(5);
    let tables = min_hop_balanced(&fabric).unwrap();
    let error = check(&fabric, &tables, CheckOptions::default()).unwrap_err();
    let RouteError::DependencyCycle { cycle } = &error else {
        panic!("{error}");
    };
    let around: BTreeSet<String> = cycle.iter().cloned().collect();
    let direction = |port| {
        (0..5)
            .map(|switch| format!("switch-0{switch}:{port}"))
            .collect()
    };
    assert!(around == direction(2) || around == direction(3), "{error}");
    assert!(
        error.to_string().starts_with(
            "the routes can deadlock, their channels depend on each other in a cycle: switch-0"
        ),
        "{error}"
    );

    let report = check(&fabric, &tables, ALLOW).unwrap();
    assert_eq!(report.dependency_cycle.map(|cycle| cycle.len()), Some(5));
    assert_eq!(report.max_hops, 4);

    let three = ring(3);
    let tables = min_hop_balanced(&three).unwrap();
    assert_eq!(dependency_cycle(&three, &tables).unwrap(), None);
}

#[test]
fn small_fabrics_are_accepted() {
    let single = SingleSwitch { hosts: 1 }.build(LINK).unwrap();
    let report = check(
        &single,
        &min_hop_balanced(&single).unwrap(),
        CheckOptions::default(),
    );
    let report = report.unwrap();
    assert_eq!((report.pairs, report.max_hops), (0, 0));
    assert_eq!(report.mean_hops, 0.0);

    let chain = Chain {
        switches: 4,
        hosts_per_switch: 2,
    }
    .build(LINK)
    .unwrap();
    let report = check(
        &chain,
        &min_hop_balanced(&chain).unwrap(),
        CheckOptions::default(),
    );
    assert_eq!(report.unwrap().max_hops, 5);
}

/// A triangle of switches s0 (h0, h3), s1 (h1) and s2 (h2).
///
/// - s0: port 1 to s1, 2 to s2, 3 h0, 4 h3
/// - s1: port 1 to s0, 2 to s2, 3 h1
/// - s2: port 1 to s0, 2 to s1, 3 h2
fn triangle() -> Fabric {
    fabric_from(&[0, 0], &[(1, 2)], &[1, 1, 1])
}

/// Tables of the triangle with the entries for h2 replaced.
fn towards_h2(s0: Option<u8>, s1: Option<u8>, s2: Option<u8>) -> RouteError {
    let fabric = triangle();
    let mut tables = min_hop_balanced(&fabric).unwrap();
    let lid = fabric.host(HostId::new(2)).lid;
    for (switch, port) in [s0, s1, s2].into_iter().enumerate() {
        tables.set(SwitchId::new(switch), lid, port.map(PortNumber::new));
    }
    check(&fabric, &tables, CheckOptions::default()).unwrap_err()
}

/// A switch lacks the entry for one destination: sources whose full route passes that switch have no route.
#[test]
fn missing_entries_are_reported_where_they_are_allowed() {
    let fabric = FatTree648 {}.build(LINK).unwrap();
    let whole = d_mod_k(&fabric).unwrap();
    let options = CheckOptions {
        allow_missing: true,
        ..CheckOptions::default()
    };
    let complete = check(&fabric, &whole, options).unwrap();
    assert_eq!((complete.unreachable, &complete.first_missing), (0, &None));
    let destination = HostId::new(40);
    let lid = fabric.host(destination).lid;
    for switch in fabric.switch_ids() {
        let mut tables = whole.clone();
        tables.set(switch, lid, None);
        let passes = |source: HostId| {
            let mut at = fabric.host_attachment(source).0;
            loop {
                let port = fabric.switch(at).port(whole.get(at, lid).unwrap()).unwrap();
                match fabric.peer_switch(port) {
                    _ if at == switch => return true,
                    Some((next, _)) => at = next,
                    None => return false,
                }
            }
        };
        let sources = fabric.host_ids().filter(|host| *host != destination);
        let cut: Vec<HostId> = sources.filter(|source| passes(*source)).collect();
        let report = check(&fabric, &tables, options).unwrap();
        assert_eq!(report.unreachable, cut.len() as u64);
        assert_eq!(report.pairs, complete.pairs);
        let error = check(&fabric, &tables, CheckOptions::default());
        match report.first_missing {
            Some(missing) => assert_eq!(error.unwrap_err(), missing),
            None => assert!(cut.is_empty() && error.is_ok()),
        }
    }
}

#[test]
fn loops_name_source_destination_and_switches() {
    // s0 -> s1 -> s0, although s2 knows the way.
    let error = towards_h2(Some(1), Some(1), Some(3));
    assert_eq!(
        error,
        RouteError::Loop {
            source_host: "h0".to_owned(),
            destination: "h2".to_owned(),
            cycle: vec!["s0".to_owned(), "s1".to_owned()],
        }
    );
    assert_eq!(
        error.to_string(),
        "packets from \"h0\" to \"h2\" go round in a loop: s0 -> s1 -> s0"
    );
    // All the way round, past the destination's own switch.
    let round = towards_h2(Some(1), Some(2), Some(1)).to_string();
    assert!(round.ends_with("s0 -> s1 -> s2 -> s0"), "{round}");
}

#[test]
fn explicit_tables_that_loop_are_named() {
    let fabric = triangle();
    let table = |switch: &str, routes: [(&str, u8); 4]| ExplicitTable {
        switch: switch.to_owned(),
        routes: routes
            .iter()
            .map(|(to, port)| ((*to).to_owned(), PortNumber::new(*port)))
            .collect(),
    };
    // Everybody sends h0's packets on to the next switch.
    let tables = explicit(
        &fabric,
        &[
            table("s0", [("h0", 1), ("h1", 1), ("h2", 2), ("h3", 4)]),
            table("s1", [("h0", 2), ("h1", 3), ("h2", 2), ("h3", 1)]),
            table("s2", [("h0", 1), ("h1", 2), ("h2", 3), ("h3", 1)]),
        ],
    )
    .unwrap();
    let error = check(&fabric, &tables, CheckOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "packets from \"h3\" to \"h0\" go round in a loop: s0 -> s1 -> s2 -> s0"
    );
}

#[test]
fn dead_ends_are_named() {
    for (error, expected) in [
        (
            towards_h2(Some(2), None, Some(3)),
            "no route from \"h1\" to \"h2\": \"s1\" has no entry for it",
        ),
        (
            towards_h2(Some(3), Some(2), Some(3)),
            "no route from \"h0\" to \"h2\": \"s0\" sends it out of port 3, which leads to \"h0\"",
        ),
        (
            towards_h2(Some(9), Some(2), Some(3)),
            "no route from \"h0\" to \"h2\": \"s0\" sends it out of port 9, which leads to no cable",
        ),
        (
            towards_h2(Some(2), Some(2), Some(0)),
            "no route from \"h0\" to \"h2\": \"s2\" sends it out of port 0, which leads to the \
             switch itself",
        ),
        (
            towards_h2(Some(65), Some(2), Some(3)),
            "no route from \"h0\" to \"h2\": \"s0\" sends it out of port 65, which leads to \
             nothing: it has 64 ports",
        ),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

/// All dependencies between channels, pair by pair of hosts.
fn dependencies_by_pairs(
    fabric: &Fabric,
    tables: &ForwardingTables,
) -> BTreeMap<PortId, BTreeSet<PortId>> {
    let mut followers: BTreeMap<PortId, BTreeSet<PortId>> = BTreeMap::new();
    for (source, destination) in host_pairs(fabric) {
        let ports = walk(fabric, tables, source, fabric.node_of_host(destination));
        for pair in ports.windows(2) {
            followers.entry(pair[0]).or_default().insert(pair[1]);
        }
    }
    followers
}

/// Returns dependencies with the lanes of tables, by pair of hosts and level; `None` if some packet has no lane.
fn laned_dependencies_by_pairs(
    fabric: &Fabric,
    tables: &ForwardingTables,
    (levels, own): (&PathServiceLevels, u8),
    (mapped, data_vls): (&SlToVlTables, u8),
) -> Option<BTreeMap<Laned, BTreeSet<Laned>>> {
    let mut followers: BTreeMap<Laned, BTreeSet<Laned>> = BTreeMap::new();
    for (source, destination) in host_pairs(fabric) {
        let ports = walk(fabric, tables, source, fabric.node_of_host(destination));
        for level in [levels.level(source, destination), own] {
            let lane = |pair: &[PortId]| {
                let input = fabric.ports[pair[0]].peer.unwrap();
                let switch = fabric.nodes[fabric.ports[input].node].as_switch().unwrap();
                let [input, output] = [input, pair[1]].map(|port| fabric.ports[port].number);
                let vls = mapped.switch(switch, input, output);
                let vl = vls.unwrap_or(&[0; 16])[usize::from(level)];
                (vl < data_vls).then_some((pair[1], vl))
            };
            let lanes: Option<Vec<Laned>> = ports.windows(2).map(lane).collect();
            // The last cable leads to a host.
            for pair in lanes?.windows(2) {
                followers.entry(pair[0]).or_default().insert(pair[1]);
            }
        }
    }
    Some(followers)
}

/// The port that a cable is entered by, and the lane on it.
type Laned = (PortId, u8);

/// Returns true if channels remain after channels without followers are removed repeatedly.
fn is_cyclic<T: Ord + Copy>(mut followers: BTreeMap<T, BTreeSet<T>>) -> bool {
    loop {
        let with_followers: BTreeSet<T> = followers.keys().copied().collect();
        let before = followers.len();
        for set in followers.values_mut() {
            set.retain(|port| with_followers.contains(port));
        }
        followers.retain(|_, set| !set.is_empty());
        if followers.is_empty() || followers.len() == before {
            return !followers.is_empty();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against the same numbers collected pair by pair.
    #[test]
    fn the_report_agrees_with_every_single_route(fabric in any_fabric(), seed in any::<u64>()) {
        let tables = wild_tables(&fabric, seed);
        let report = check(&fabric, &tables, ALLOW).unwrap();
        let mut routes = IdVec::filled(0, fabric.ports.len());
        let mut hops = Vec::new();
        for (source, destination) in host_pairs(&fabric) {
            let ports = walk(&fabric, &tables, source, fabric.node_of_host(destination));
            hops.push(ports.len() as u32);
            ports.iter().for_each(|port| routes[*port] += 1);
        }
        prop_assert_eq!(report.routes, routes);
        prop_assert_eq!(report.pairs, hops.len() as u64);
        prop_assert_eq!(report.max_hops, hops.iter().copied().max().unwrap_or(0));
        let mean = f64::from(hops.iter().sum::<u32>()) / hops.len().max(1) as f64;
        prop_assert!((report.mean_hops - mean).abs() < 1e-9);
    }

    /// A cycle is found if and only if there is one, and it is real.
    #[test]
    fn dependency_cycles_are_found_and_real(fabric in any_fabric(), seed in any::<u64>()) {
        let tables = wild_tables(&fabric, seed);
        let followers = dependencies_by_pairs(&fabric, &tables);
        let cycle = dependency_cycle(&fabric, &tables).unwrap();
        prop_assert_eq!(cycle.is_some(), is_cyclic(followers.clone()));
        if let Some(cycle) = cycle {
            let next = cycle.iter().cycle().skip(1);
            for (port, following) in cycle.iter().zip(next) {
                prop_assert!(followers[port].contains(following));
            }
        }
    }

    /// Every choice of a switch counts: all followers of each choice for each host are dependencies.
    #[test]
    fn every_choice_counts(fabric in any_fabric(), seed in any::<u64>()) {
        let tables = wild_tables(&fabric, seed);
        let alternatives = minimal_alternatives(&fabric).unwrap();
        let mut followers = dependencies_by_pairs(&fabric, &tables);
        for host in fabric.host_ids() {
            let outs = |switch: SwitchId| -> Vec<PortId> {
                let several = alternatives.get(switch, host);
                let only = tables.to_host(switch, host).filter(|_| several.is_empty());
                let numbers = several.iter().copied().chain(only);
                numbers.filter_map(|number| fabric.switch(switch).port(number)).collect()
            };
            for out in fabric.switch_ids().flat_map(outs) {
                let Some((next, _)) = fabric.peer_switch(out) else {
                    continue;
                };
                let on = outs(next).into_iter().filter(|on| fabric.peer_switch(*on).is_some());
                followers.entry(out).or_default().extend(on);
            }
        }
        let routes = Routes { alternatives: Some(&alternatives), ..(&tables).into() };
        let cycle = dependency_cycle(&fabric, routes).unwrap();
        prop_assert_eq!(cycle.is_some(), is_cyclic(followers.clone()));
        if let Some(cycle) = cycle {
            let next = cycle.iter().cycle().skip(1);
            for (port, following) in cycle.iter().zip(next) {
                prop_assert!(followers[port].contains(following));
            }
        }
    }

    /// SL to VL tables by input and output, and levels by pair of hosts. The check finds a cycle if and only if there
    /// is one; it finds packets without a lane first.
    #[test]
    fn tables_and_levels_are_followed(
        fabric in any_fabric(),
        seed in any::<u64>(),
        data_vls in 1_u8..4,
        kinds in prop::collection::vec(prop::array::uniform16(0_u8..3), 3),
        own in 0_u8..16,
    ) {
        let tables = wild_tables(&fabric, seed);
        let random = |a: usize, b: usize, sides: u64| {
            let mixed = seed ^ (a as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b as u64) << 20;
            (mixed.wrapping_mul(0xd129_0d3a_f9b5_0e5d) >> 40) % sides
        };
        let levels = PathServiceLevels::by_host(&fabric, |from, to| random(from.index(), to.index(), 3) as u8);
        let mut mapped = SlToVlTables::default();
        for switch in fabric.switch_ids() {
            for (input, output) in fabric.switch(switch).ports().flat_map(|a| {
                fabric.switch(switch).ports().map(move |b| (a, b))
            }) {
                let kind = random(input.index(), output.index(), 4) as usize;
                if let Some(vls) = kinds.get(kind) {
                    let [input, output] = [input, output].map(|port| fabric.ports[port].number);
                    mapped.set_switch(switch, input, output, *vls);
                }
            }
        }
        let sl = Sl::try_new(own).unwrap();
        let lanes = PathLanes::by_tables(&fabric, levels.clone(), &mapped, &[0; 16], data_vls, [sl]);
        let routes = Routes { lanes: Some(&lanes), ..(&tables).into() };
        let expected =
            laned_dependencies_by_pairs(&fabric, &tables, (&levels, own), (&mapped, data_vls));
        match (check(&fabric, routes, CheckOptions::default()), expected) {
            (Ok(_), Some(followers)) => prop_assert!(!is_cyclic(followers)),
            (Err(RouteError::DependencyCycle { .. }), Some(followers)) => {
                prop_assert!(is_cyclic(followers));
            }
            (Err(RouteError::NoLane { lane, .. }), None) => prop_assert!(lane >= data_vls),
            (found, expected) => prop_assert!(false, "{found:?} {expected:?}"),
        }
    }
}

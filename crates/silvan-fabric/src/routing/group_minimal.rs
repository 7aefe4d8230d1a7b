//! Minimal routes between groups of switches: dragonfly and dragonfly+.

use std::collections::BTreeMap;

use silvan_core::{IdVec, Lid, PortNumber, SwitchId};

use super::distance::{SwitchGraph, UNREACHABLE};
use super::{ForwardingTables, RoutingError};
use crate::Fabric;

/// Computes routes that cross one cable between groups, if source and destination are in different groups, and inside groups the
/// fewest cables (J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA
/// 2008, section 4.1: minimal routing). `group` gives the group of a switch.
///
/// Among equal ports a destination has one by its index.
///
/// # Errors
///
/// If two groups have no cable between them, or a group is not connected.
pub(crate) fn group_minimal(
    fabric: &Fabric,
    group: impl Fn(SwitchId) -> u32,
) -> Result<ForwardingTables, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let groups: IdVec<SwitchId, u32> = fabric.switch_ids().map(group).collect();
    let mut members: BTreeMap<u32, Vec<SwitchId>> = BTreeMap::new();
    for switch in fabric.switch_ids() {
        members.entry(groups[switch]).or_default().push(switch);
    }
    let mut tables = ForwardingTables::new(fabric);
    // The destinations of each switch: its own LID, and its hosts, with the index that spreads them.
    let mut targets: IdVec<SwitchId, Vec<(Lid, usize)>> = fabric
        .switch_ids()
        .map(|switch| vec![(fabric.switch(switch).lid, switch.index())])
        .collect();
    for host in fabric.host_ids() {
        let (leaf, port) = fabric.host_attachment(host);
        let lid = fabric.host(host).lid;
        targets[leaf].push((lid, host.index()));
        tables.set(leaf, lid, Some(fabric.ports[port].number));
    }
    let mut ports: Vec<PortNumber> = Vec::new();
    for (&home, inside) in &members {
        for (&other, switches) in &members {
            if other == home {
                continue;
            }
            let leads_there = |switch: &SwitchId| {
                let mut peers = graph.neighbours(*switch).iter();
                peers.any(|(_, peer)| groups[*peer] == other)
            };
            let gates = inside.iter().copied().filter(leads_there);
            let distances = within(&graph, inside, gates);
            for &switch in inside {
                ports.clear();
                match distances[&switch] {
                    0 => ports.extend(ports_to(&graph, switch, |peer| groups[peer] == other)),
                    UNREACHABLE => {
                        return Err(disconnected(fabric, switch, switches[0]));
                    }
                    here => ports.extend(ports_to(&graph, switch, |peer| {
                        groups[peer] == home && distances[&peer] + 1 == here
                    })),
                }
                for (lid, index) in switches.iter().flat_map(|target| &targets[*target]) {
                    tables.set(switch, *lid, Some(ports[index % ports.len()]));
                }
            }
        }
        for &target in inside {
            let distances = within(&graph, inside, [target].into_iter());
            for &switch in inside.iter().filter(|switch| **switch != target) {
                let here = distances[&switch];
                if here == UNREACHABLE {
                    return Err(disconnected(fabric, switch, target));
                }
                ports.clear();
                ports.extend(ports_to(&graph, switch, |peer| {
                    groups[peer] == home && distances[&peer] + 1 == here
                }));
                for (lid, index) in &targets[target] {
                    tables.set(switch, *lid, Some(ports[index % ports.len()]));
                }
            }
        }
    }
    Ok(tables)
}

fn disconnected(fabric: &Fabric, from: SwitchId, to: SwitchId) -> RoutingError {
    let name = |switch: SwitchId| fabric.switch(switch).name.clone();
    RoutingError::Disconnected {
        from: name(from),
        to: name(to),
    }
}

/// The ports of a switch that lead to switches of a kind.
fn ports_to(
    graph: &SwitchGraph,
    switch: SwitchId,
    is_wanted: impl Fn(SwitchId) -> bool,
) -> impl Iterator<Item = PortNumber> {
    let neighbours = graph.neighbours(switch).iter();
    neighbours
        .filter(move |(_, peer)| is_wanted(*peer))
        .map(|(number, _)| *number)
}

/// Cables from each switch of a group to the nearest of `ends`, inside the group.
fn within(
    graph: &SwitchGraph,
    inside: &[SwitchId],
    ends: impl Iterator<Item = SwitchId>,
) -> BTreeMap<SwitchId, u32> {
    let members = inside.iter().map(|&at| (at, UNREACHABLE));
    let mut distances: BTreeMap<SwitchId, u32> = members.collect();
    let mut queue: Vec<SwitchId> = ends.collect();
    for end in &queue {
        distances.insert(*end, 0);
    }
    let mut head = 0;
    while let Some(&switch) = queue.get(head) {
        head += 1;
        let here = distances[&switch];
        for &(_, peer) in graph.neighbours(switch) {
            if distances.get(&peer) == Some(&UNREACHABLE) {
                distances.insert(peer, here + 1);
                queue.push(peer);
            }
        }
    }
    distances
}

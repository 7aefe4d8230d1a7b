use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, IdVec, PortNumber, SwitchId};

use super::alternatives::CollectedAlternatives;
use super::computed::{ComputedRoutes, Hierarchy, Parts};
use super::distance::{SwitchGraph, UNREACHABLE};
use super::{
    Alternatives, ForwardingTables, PathChoice, PathLanes, Routed, RoutingAlgorithm, RoutingError,
    RoutingInput,
};
use crate::Fabric;
use crate::generators::Generator;

/// Minimal routes between and inside groups of switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct GroupMinimal {}

impl RoutingAlgorithm for GroupMinimal {
    fn routes(&self, input: RoutingInput<'_>) -> Routed {
        Ok((group_minimal(input.fabric, groups_of(input)?)?, None))
    }

    /// The tables' ports: none leads over two cables between groups.
    fn alternatives(&self, input: RoutingInput<'_>) -> Result<Alternatives, RoutingError> {
        let RoutingInput { fabric, .. } = input;
        let mut collected = CollectedAlternatives::new(fabric);
        let groups = Groups::new(fabric, groups_of(input)?);
        groups.routes(fabric, |switch, targets, ports| {
            for &target in targets {
                collected.set(switch, target, ports);
            }
        })?;
        Ok(collected.alternatives)
    }

    fn computed(&self, input: RoutingInput<'_>) -> Option<(ForwardingTables, Option<PathLanes>)> {
        let topology = with_groups(input.topology)?;
        let group = |switch| topology.group(switch).unwrap_or(0);
        let routes = computed_group_minimal(input.fabric, group)?;
        Some((ForwardingTables::computed(input.fabric, routes), None))
    }

    /// The path turns back into a group, which on one lane can close a cycle.
    fn raises_lanes(&self, _choice: PathChoice) -> bool {
        true
    }
}

fn groups_of<'a>(input: RoutingInput<'a>) -> Result<impl Fn(SwitchId) -> u32 + 'a, RoutingError> {
    let topology = with_groups(input.topology).ok_or_else(|| RoutingError::Refused {
        key: "routing",
        problem: "group-minimal routes need a generator with groups of switches: dragonfly or \
                  dragonfly-plus"
            .to_owned(),
        hint: "use up-down instead".to_owned(),
    })?;
    Ok(move |switch| topology.group(switch).unwrap_or(0))
}

fn with_groups(topology: Option<&dyn Generator>) -> Option<&dyn Generator> {
    topology.filter(|topology| topology.group(SwitchId::new(0)).is_some())
}

/// Minimal routing over one cable between groups (J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven,
/// highly-scalable dragonfly topology", ISCA 2008, section 4.1); the index selects an equal port. Errors for groups
/// without a cable, or a disconnected group.
fn group_minimal(
    fabric: &Fabric,
    group: impl Fn(SwitchId) -> u32,
) -> Result<ForwardingTables, RoutingError> {
    let mut tables = ForwardingTables::new(fabric);
    let mut hosts: IdVec<SwitchId, Vec<HostId>> = IdVec::filled(Vec::new(), fabric.switch_count());
    for host in fabric.host_ids() {
        let (leaf, port) = fabric.host_attachment(host);
        hosts[leaf].push(host);
        tables.set_host(leaf, host, Some(fabric.ports[port].number));
    }
    let groups = Groups::new(fabric, group);
    groups.routes(fabric, |switch, targets, ports| {
        for &target in targets {
            if fabric.has_lids() {
                let port = ports[target.index() % ports.len()];
                tables.set(switch, fabric.switch(target).lid, Some(port));
            }
            for &host in &hosts[target] {
                let port = ports[host.index() % ports.len()];
                tables.set_host(switch, host, Some(port));
            }
        }
    })?;
    Ok(tables)
}

fn computed_group_minimal(
    fabric: &Fabric,
    group: impl Fn(SwitchId) -> u32,
) -> Option<ComputedRoutes> {
    let groups = Groups::new(fabric, group);
    let mut parts = Parts::new(fabric.switch_count(), 2);
    for (group, members) in groups.members.values().enumerate() {
        for (place, switch) in members.iter().enumerate() {
            parts.set(*switch, 0, group)?;
            parts.set(*switch, 1, place)?;
        }
    }
    let hierarchy = Hierarchy::new(parts)?;
    let mut routes = hierarchy.without_entries(fabric)?;
    let mut fits = true;
    let made = groups.routes(fabric, |switch, targets, ports| {
        fits &= hierarchy
            .set(&mut routes, switch, targets[0], ports)
            .is_some();
    });
    (made.is_ok() && fits).then_some(routes.0)
}

struct Groups {
    graph: SwitchGraph,
    of: IdVec<SwitchId, u32>,
    members: BTreeMap<u32, Vec<SwitchId>>,
}

impl Groups {
    fn new(fabric: &Fabric, group: impl Fn(SwitchId) -> u32) -> Self {
        let of: IdVec<SwitchId, u32> = fabric.switch_ids().map(group).collect();
        let mut members: BTreeMap<u32, Vec<SwitchId>> = BTreeMap::new();
        for switch in fabric.switch_ids() {
            members.entry(of[switch]).or_default().push(switch);
        }
        Self {
            graph: SwitchGraph::new(fabric),
            of,
            members,
        }
    }

    fn routes(
        &self,
        fabric: &Fabric,
        mut found: impl FnMut(SwitchId, &[SwitchId], &[PortNumber]),
    ) -> Result<(), RoutingError> {
        let Self { graph, of, members } = self;
        let mut ports: Vec<PortNumber> = Vec::new();
        for (&home, inside) in members {
            for (&other, switches) in members.iter().filter(|(other, _)| **other != home) {
                let leads_there = |switch: &SwitchId| {
                    let mut peers = graph.neighbours(*switch).iter();
                    peers.any(|(_, peer)| of[*peer] == other)
                };
                let gates = inside.iter().copied().filter(leads_there);
                let distances = within(graph, inside, gates);
                for &switch in inside {
                    ports.clear();
                    match distances[&switch] {
                        0 => ports.extend(ports_to(graph, switch, |peer| of[peer] == other)),
                        UNREACHABLE => {
                            return Err(disconnected(fabric, switch, switches[0]));
                        }
                        here => ports.extend(ports_to(graph, switch, |peer| {
                            of[peer] == home && distances[&peer] + 1 == here
                        })),
                    }
                    found(switch, switches, &ports);
                }
            }
            for &target in inside {
                let distances = within(graph, inside, [target].into_iter());
                for &switch in inside.iter().filter(|switch| **switch != target) {
                    let here = distances[&switch];
                    if here == UNREACHABLE {
                        return Err(disconnected(fabric, switch, target));
                    }
                    ports.clear();
                    ports.extend(ports_to(graph, switch, |peer| {
                        of[peer] == home && distances[&peer] + 1 == here
                    }));
                    found(switch, &[target], &ports);
                }
            }
        }
        Ok(())
    }
}

fn disconnected(fabric: &Fabric, from: SwitchId, to: SwitchId) -> RoutingError {
    let name = |switch: SwitchId| fabric.switch(switch).name.clone();
    RoutingError::Disconnected {
        from: name(from),
        to: name(to),
    }
}

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

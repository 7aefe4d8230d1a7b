use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{IdVec, PortNumber, SwitchId};

use super::alternatives::CollectedAlternatives;
use super::distance::{SwitchGraph, UNREACHABLE, route_to_switches};
use super::main_paths::spread_main_paths;
use super::{
    Alternatives, ForwardingTables, PathChoice, Routed, RoutingAlgorithm, RoutingError,
    RoutingInput,
};
use crate::Fabric;

/// Up towards a root and then down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct UpDown {
    /// Switches that are roots. Default: the top switches of a tree, or the switch from which the farthest host is nearest, whichever give
    /// shorter paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
}

impl RoutingAlgorithm for UpDown {
    fn routes(&self, input: RoutingInput<'_>) -> Routed {
        Ok((up_down(input.fabric, &self.roots)?, None))
    }

    fn alternatives(&self, input: RoutingInput<'_>) -> Result<Alternatives, RoutingError> {
        let graph = SwitchGraph::new(input.fabric);
        let order = Order::new(input.fabric, &graph, &self.roots)?;
        Ok(order.alternatives(input.fabric, &graph))
    }

    fn raises_lanes(&self, _choice: PathChoice) -> bool {
        false
    }
}

/// Computes routes up towards a root, then down (M. D. Schroeder et al., "Autonet: a high-speed, self-configuring local
/// area network using point-to-point links", IEEE Journal on Selected Areas in Communications 9(8), 1991).
///
/// Ranks are distances from the nearest root; a cable leads up to the lower rank or index. Legal paths over the fewest
/// cables are taken, except from a switch of a main path, which spread evenly over cables.
///
/// `roots` are names; without them the tops: switches without hosts or a neighbour farther from hosts. Else, or for
/// shorter paths or more ports, the centre: nearest farthest host, then distances, cables, index. Errors for an unknown
/// root, or roots that do not connect all hosts.
pub fn up_down(fabric: &Fabric, roots: &[String]) -> Result<ForwardingTables, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let order = Order::new(fabric, &graph, roots)?;
    let mut tables = ForwardingTables::new(fabric);
    route_to_switches(fabric, &graph, &mut tables)?;
    let all = IdVec::filled(true, fabric.host_count());
    spread_main_paths(fabric, &graph, &order, &order.place, &all, &mut tables);
    Ok(tables)
}

pub(super) struct Order {
    place: IdVec<SwitchId, u32>,
    switches: Vec<SwitchId>,
}

impl Order {
    fn new(fabric: &Fabric, graph: &SwitchGraph, roots: &[String]) -> Result<Self, RoutingError> {
        let leaves = leaves(fabric);
        if roots.is_empty() {
            let choices = [tops(graph, &leaves), centre(graph, &leaves)];
            let choices = choices.map(|roots| Self::below(fabric, graph, roots));
            let score = |order: &Self| order.score(graph, &leaves);
            let best = choices.into_iter().min_by_key(score);
            let best = best.expect("there are two choices");
            return match best.unconnected(graph, &leaves) {
                None => Ok(best),
                Some((from, to)) => Err(RoutingError::Disconnected {
                    from: fabric.switch(from).name.clone(),
                    to: fabric.switch(to).name.clone(),
                }),
            };
        }
        let named = roots.iter().map(|name| root(fabric, name));
        let named: Vec<SwitchId> = named.collect::<Result<_, _>>()?;
        let order = Self::below(fabric, graph, named);
        match order.unconnected(graph, &leaves) {
            None => Ok(order),
            Some((from, to)) => Err(refused(
                format!(
                    "no path leads up towards these roots and down from {:?} to {:?}",
                    fabric.switch(from).name,
                    fabric.switch(to).name
                ),
                "name switches that all others are below, or leave roots out".to_owned(),
            )),
        }
    }

    pub(super) fn below(
        fabric: &Fabric,
        graph: &SwitchGraph,
        roots: impl IntoIterator<Item = SwitchId>,
    ) -> Self {
        let ranks = graph.distances(roots);
        let mut switches: Vec<SwitchId> = fabric.switch_ids().collect();
        switches.sort_by_key(|switch| ranks[*switch]);
        let mut place = IdVec::filled(0, fabric.switch_count());
        for (index, switch) in switches.iter().enumerate() {
            place[*switch] = index as u32;
        }
        Self { place, switches }
    }

    fn is_up(&self, from: SwitchId, to: SwitchId) -> bool {
        self.place[to] < self.place[from]
    }

    pub(super) fn alternatives(&self, fabric: &Fabric, graph: &SwitchGraph) -> Alternatives {
        let mut collected = CollectedAlternatives::new(fabric);
        for (leaf, _) in collected.leaves(fabric) {
            let paths = self.paths_to(graph, leaf);
            for switch in fabric.switch_ids().filter(|switch| *switch != leaf) {
                collected.set(switch, leaf, &paths.ports(self, graph, switch));
            }
        }
        collected.alternatives
    }

    pub(super) fn unconnected(
        &self,
        graph: &SwitchGraph,
        leaves: &[(SwitchId, u64)],
    ) -> Option<(SwitchId, SwitchId)> {
        leaves.iter().find_map(|&(to, _)| {
            let lengths = self.paths_to(graph, to).lengths;
            let mut others = leaves.iter().map(|(from, _)| *from);
            let from = others.find(|from| lengths[*from] == UNREACHABLE)?;
            Some((from, to))
        })
    }

    /// Total length of paths between leaves, and number of ports; less is better.
    pub(super) fn score(
        &self,
        graph: &SwitchGraph,
        leaves: &[(SwitchId, u64)],
    ) -> (u64, Reverse<usize>) {
        let (mut cables, mut ports) = (0, 0);
        for &(to, _) in leaves {
            let paths = self.paths_to(graph, to);
            let lengths = leaves.iter().map(|(from, _)| paths.lengths[*from]);
            cables += lengths.map(u64::from).sum::<u64>();
            let all = self.switches.iter();
            ports += all
                .map(|switch| paths.ports(self, graph, *switch).len())
                .sum::<usize>();
        }
        (cables, Reverse(ports))
    }

    pub(super) fn paths_to(&self, graph: &SwitchGraph, leaf: SwitchId) -> Paths {
        let count = self.switches.len();
        let mut below = IdVec::filled(UNREACHABLE, count);
        below[leaf] = 0;
        let mut queue = vec![leaf];
        let mut head = 0;
        while let Some(&switch) = queue.get(head) {
            head += 1;
            for &(_, peer) in graph.neighbours(switch) {
                if self.is_up(switch, peer) && below[peer] == UNREACHABLE {
                    below[peer] = below[switch] + 1;
                    queue.push(peer);
                }
            }
        }
        let mut lengths = IdVec::filled(UNREACHABLE, count);
        let mut is_passed = IdVec::filled(false, count);
        for &switch in &self.switches {
            let neighbours = graph.neighbours(switch).iter().map(|(_, peer)| *peer);
            let mut least = below[switch];
            if !is_passed[switch] {
                for peer in neighbours.clone().filter(|peer| self.is_up(switch, *peer)) {
                    least = least.min(lengths[peer].saturating_add(1));
                }
            }
            lengths[switch] = least;
            if least != below[switch] || least == UNREACHABLE {
                continue;
            }
            for peer in neighbours.filter(|peer| !self.is_up(switch, *peer)) {
                is_passed[peer] |= below[peer].saturating_add(1) == least;
            }
        }
        Paths {
            lengths,
            below,
            is_passed,
        }
    }
}

pub(super) struct Paths {
    pub(super) lengths: IdVec<SwitchId, u32>,
    below: IdVec<SwitchId, u32>,
    is_passed: IdVec<SwitchId, bool>,
}

impl Paths {
    pub(super) fn ports(
        &self,
        order: &Order,
        graph: &SwitchGraph,
        switch: SwitchId,
    ) -> Vec<PortNumber> {
        let here = self.lengths[switch];
        let leads_nearer = |peer: SwitchId| match order.is_up(switch, peer) {
            true => !self.is_passed[switch] && self.lengths[peer].saturating_add(1) == here,
            false => here == self.below[switch] && self.below[peer].saturating_add(1) == here,
        };
        let neighbours = graph.neighbours(switch).iter();
        neighbours
            .filter(|(_, peer)| here != UNREACHABLE && leads_nearer(*peer))
            .map(|(number, _)| *number)
            .collect()
    }
}

pub(super) fn leaves(fabric: &Fabric) -> Vec<(SwitchId, u64)> {
    let mut hosts: IdVec<SwitchId, u64> = IdVec::filled(0, fabric.switch_count());
    for host in fabric.host_ids() {
        hosts[fabric.host_attachment(host).0] += 1;
    }
    let with_hosts = hosts.iter_enumerated().filter(|(_, hosts)| **hosts > 0);
    with_hosts.map(|(leaf, hosts)| (leaf, *hosts)).collect()
}

/// Switches without hosts and without a neighbour farther from hosts.
fn tops(graph: &SwitchGraph, leaves: &[(SwitchId, u64)]) -> Vec<SwitchId> {
    highest(graph, leaves.iter().map(|(leaf, _)| *leaf))
}

pub(super) fn highest(
    graph: &SwitchGraph,
    leaves: impl IntoIterator<Item = SwitchId>,
) -> Vec<SwitchId> {
    let heights = graph.distances(leaves);
    let is_top = |&(switch, height): &(SwitchId, &u32)| {
        let mut peers = graph.neighbours(switch).iter().map(|(_, peer)| *peer);
        *height > 0 && *height != UNREACHABLE && peers.all(|peer| heights[peer] <= *height)
    };
    let all = heights.iter_enumerated();
    all.filter(is_top).map(|(switch, _)| switch).collect()
}

/// Its farthest host is nearest.
fn centre(graph: &SwitchGraph, leaves: &[(SwitchId, u64)]) -> Vec<SwitchId> {
    let count = graph.len();
    let mut farthest: IdVec<SwitchId, u32> = IdVec::filled(0, count);
    let mut total: IdVec<SwitchId, u64> = IdVec::filled(0, count);
    for &(leaf, hosts) in leaves {
        for (switch, &distance) in graph.distances([leaf]).iter_enumerated() {
            farthest[switch] = farthest[switch].max(distance);
            total[switch] += u64::from(distance) * hosts;
        }
    }
    let distance = |(switch, farthest): &(SwitchId, &u32)| {
        let cables = Reverse(graph.neighbours(*switch).len());
        (**farthest, total[*switch], cables)
    };
    let nearest = farthest.iter_enumerated().min_by_key(distance);
    nearest.map(|(switch, _)| switch).into_iter().collect()
}

fn refused(problem: String, hint: String) -> RoutingError {
    RoutingError::Refused {
        key: "roots",
        problem,
        hint,
    }
}

pub(super) fn root(fabric: &Fabric, name: &str) -> Result<SwitchId, RoutingError> {
    let node = fabric.node_by_name(name);
    let switch = node.and_then(|node| fabric.nodes[node].as_switch());
    switch.ok_or_else(|| {
        let names = fabric
            .switch_ids()
            .map(|id| fabric.switch(id).name.as_str());
        let hint = match crate::fabric::nearest(name, names) {
            Some(nearest) => format!("did you mean {nearest:?}?"),
            None => "name switches of the fabric, or leave roots out".to_owned(),
        };
        refused(format!("there is no switch named {name:?}"), hint)
    })
}

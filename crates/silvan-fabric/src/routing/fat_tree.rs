use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, IdVec, SwitchId};

use super::distance::{SwitchGraph, UNREACHABLE, route_to_switches};
use super::main_paths::{hosts_by_switch, spread_main_paths};
use super::up_down::{Order, highest, leaves, root};
use super::{
    Alternatives, ForwardingTables, PathChoice, Routed, RoutingAlgorithm, RoutingError,
    RoutingInput,
};
use crate::Fabric;

/// Trees with missing cables, hosts at inner switches or leaves of different size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct FatTree {
    /// Switches that are roots. Default: found by their distances from compute nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Hosts whose routes are balanced first, without regard to those of other hosts. Default: the hosts at leaves, which are the
    /// switches with no switch below them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compute_nodes: Vec<String>,
}

impl FatTree {
    /// Checks that the cables form a tree for this routing. Errors as [`fat_tree`].
    pub fn check(&self, fabric: &Fabric) -> Result<(), RoutingError> {
        Tree::new(fabric, &SwitchGraph::new(fabric), self).map(|_| ())
    }
}

impl RoutingAlgorithm for FatTree {
    fn routes(&self, input: RoutingInput<'_>) -> Routed {
        Ok((fat_tree(input.fabric, self)?, None))
    }

    fn alternatives(&self, input: RoutingInput<'_>) -> Result<Alternatives, RoutingError> {
        let graph = SwitchGraph::new(input.fabric);
        let tree = Tree::new(input.fabric, &graph, self)?;
        Ok(tree.order.alternatives(input.fabric, &graph))
    }

    /// One lane is enough, since no path turns upwards again.
    fn raises_lanes(&self, _choice: PathChoice) -> bool {
        false
    }
}

/// Computes routes up and down a tree that may lack cables, with hosts at any switch (E. Zahavi, G. Johnson, D. J.
/// Kerbyson, M. Lang: Optimized InfiniBand fat-tree routing for shift all-to-all communication patterns, Concurrency
/// and Computation 22(2), 2010).
///
/// Ranks are distances from the nearest root. Each destination has a main path from a root to its leaf, spread evenly
/// over cables, as with [`d_mod_k`](super::d_mod_k). Compute nodes come first and count alone.
///
/// Roots are given, or the first set that makes a tree: switches without a neighbour farther from compute nodes
/// (without leaves that lost their hosts, unless that shortens paths), then the nearest of those equally far from nine
/// of ten compute nodes. Paths between hosts at several roots turn at one leaf, without deadlock. Errors for neighbours
/// of one rank, unknown roots or compute nodes, compute nodes at inner switches or without a path, or a fifth of hosts
/// at inner switches of a found tree.
pub fn fat_tree(fabric: &Fabric, keys: &FatTree) -> Result<ForwardingTables, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let tree = Tree::new(fabric, &graph, keys)?;
    let mut tables = ForwardingTables::new(fabric);
    route_to_switches(fabric, &graph, &mut tables)?;
    let Tree {
        ranks,
        order,
        is_compute,
    } = tree;
    spread_main_paths(fabric, &graph, &order, &ranks, &is_compute, &mut tables);
    Ok(tables)
}

/// Found trees have fewer than one in so many hosts at inner switches.
const MOST_INNER: usize = 5;

struct Tree {
    ranks: IdVec<SwitchId, u32>,
    order: Order,
    is_compute: IdVec<HostId, bool>,
}

impl Tree {
    fn new(fabric: &Fabric, graph: &SwitchGraph, keys: &FatTree) -> Result<Self, RoutingError> {
        let listed = compute_nodes(fabric, &keys.compute_nodes)?;
        let bottom = match &listed {
            Some(listed) => hosts_by_switch(fabric, |host| listed[host]),
            None => likely_leaves(graph, hosts_by_switch(fabric, |_| true)),
        };
        if !keys.roots.is_empty() {
            let roots = keys.roots.iter().map(|name| root(fabric, name));
            let roots: Vec<SwitchId> = roots.collect::<Result<_, _>>()?;
            return Self::below(fabric, graph, &roots, listed)
                .map_err(|refused| refused.at("roots"));
        }
        let all = match graph.len() {
            1 => fabric.switch_ids().collect(),
            _ => highest(graph, with_hosts(&bottom).map(|(leaf, _)| leaf)),
        };
        let attempt = |roots: &[SwitchId]| {
            let tree = Self::below(fabric, graph, roots, listed.clone())?;
            tree.with_hosts_at_leaves(listed.is_some())
        };
        let cables = |tree: &Self| tree.order.score(graph, &leaves(fabric)).0;
        let first = attempt(&covering(graph, &bottom, &all));
        match (first, attempt(&all)) {
            (Ok(first), Ok(second)) if cables(&second) < cables(&first) => Ok(second),
            (Ok(tree), _) | (Err(_), Ok(tree)) => Ok(tree),
            (Err(refused), Err(_)) => {
                attempt(&even(graph, &bottom)).map_err(|_| refused.at("routing"))
            }
        }
    }

    fn below(
        fabric: &Fabric,
        graph: &SwitchGraph,
        roots: &[SwitchId],
        listed: Option<IdVec<HostId, bool>>,
    ) -> Result<Self, Refused> {
        if roots.is_empty() {
            return Err(Refused::tree("all switches have hosts, so none is a root"));
        }
        let ranks = graph.distances(roots.iter().copied());
        check_ranks(fabric, graph, &ranks)?;
        let is_inner = |switch: SwitchId| {
            let mut peers = graph.neighbours(switch).iter();
            peers.any(|(_, peer)| ranks[*peer] > ranks[switch])
        };
        let is_at_leaf = |host: HostId| !is_inner(fabric.host_attachment(host).0);
        let is_compute = match listed {
            None => fabric.host_ids().map(is_at_leaf).collect(),
            Some(listed) => {
                let mut hosts = fabric.host_ids();
                match hosts.find(|host| listed[*host] && !is_at_leaf(*host)) {
                    Some(host) => return Err(Refused::inner_compute_node(fabric, host)),
                    None => listed,
                }
            }
        };
        let compute = hosts_by_switch(fabric, |host| is_compute[host]);
        let compute: Vec<(SwitchId, u64)> = with_hosts(&compute).collect();
        if compute.is_empty() {
            return Err(Refused::tree("all hosts are at switches above others"));
        }
        let order = Order::below(fabric, graph, roots.iter().copied());
        if let Some((from, to)) = order.unconnected(graph, &compute) {
            let [from, to] = [from, to].map(|switch| &fabric.switch(switch).name);
            return Err(Refused::tree(format!(
                "no path leads up from {from:?} and down to {to:?}"
            )));
        }
        let order = match order.unconnected(graph, &leaves(fabric)) {
            None => order,
            Some(_) => Order::below(fabric, graph, [turning_leaf(graph, &compute)]),
        };
        Ok(Self {
            ranks,
            order,
            is_compute,
        })
    }
}

impl Tree {
    /// Refuses a found tree with many hosts at inner switches, unless compute nodes are listed.
    fn with_hosts_at_leaves(self, is_listed: bool) -> Result<Self, Refused> {
        let (count, hosts) = (self.is_compute.iter(), self.is_compute.len());
        let inner = count.filter(|is_compute| !**is_compute).count();
        match is_listed || inner * MOST_INNER < hosts {
            true => Ok(self),
            false => Err(Refused::tree(format!(
                "{inner} of {hosts} hosts are at switches above others"
            ))),
        }
    }
}

fn check_ranks(
    fabric: &Fabric,
    graph: &SwitchGraph,
    ranks: &IdVec<SwitchId, u32>,
) -> Result<(), Refused> {
    for (switch, &rank) in ranks.iter_enumerated() {
        let node = fabric.switch(switch);
        if rank == UNREACHABLE {
            return Err(Refused::tree(format!("no root is above {:?}", node.name)));
        }
        let mut neighbours = graph.neighbours(switch).iter();
        if let Some((number, peer)) = neighbours.find(|(_, peer)| ranks[*peer] == rank) {
            return Err(Refused::tree(format!(
                "\"{}:{number}\" is cabled to {:?}, which is at the same rank",
                node.name,
                fabric.switch(*peer).name
            )));
        }
    }
    Ok(())
}

struct Refused {
    key: Option<&'static str>,
    problem: String,
    hint: &'static str,
}

impl Refused {
    fn tree(problem: impl Into<String>) -> Self {
        Self {
            key: None,
            problem: format!("fat-tree needs a tree: {}", problem.into()),
            hint: "use up-down instead, or name the switches at the top in fabric.roots or fabric.root-guid-file",
        }
    }

    fn inner_compute_node(fabric: &Fabric, host: HostId) -> Self {
        let switch = fabric.host_attachment(host).0;
        Self {
            key: Some("compute-nodes"),
            problem: format!(
                "the compute node {:?} is at {:?}, which is above other switches",
                fabric.host(host).name,
                fabric.switch(switch).name
            ),
            hint: "leave it out of the compute nodes",
        }
    }

    fn at(self, key: &'static str) -> RoutingError {
        RoutingError::Refused {
            key: self.key.unwrap_or(key),
            problem: self.problem,
            hint: self.hint.to_owned(),
        }
    }
}

fn compute_nodes(
    fabric: &Fabric,
    names: &[String],
) -> Result<Option<IdVec<HostId, bool>>, RoutingError> {
    let mut is_compute = IdVec::filled(false, fabric.host_count());
    for name in names {
        let node = fabric.node_by_name(name);
        let Some(host) = node.and_then(|node| fabric.nodes[node].as_host()) else {
            let hosts = fabric.host_ids().map(|id| fabric.host(id).name.as_str());
            let hint = match crate::fabric::nearest(name, hosts) {
                Some(nearest) => format!("did you mean {nearest:?}?"),
                None => "name hosts of the fabric, or leave compute-nodes out".to_owned(),
            };
            return Err(RoutingError::Refused {
                key: "compute-nodes",
                problem: format!("there is no host named {name:?}"),
                hint,
            });
        };
        is_compute[host] = true;
    }
    Ok((!names.is_empty()).then_some(is_compute))
}

fn with_hosts(hosts: &IdVec<SwitchId, u64>) -> impl Iterator<Item = (SwitchId, u64)> + '_ {
    let all = hosts.iter_enumerated();
    all.filter(|(_, hosts)| **hosts > 0)
        .map(|(switch, hosts)| (switch, *hosts))
}

/// Hosts by switch, 0 at likely inner switches: those with fewer hosts than their neighbours with hosts, the smallest
/// fraction first.
fn likely_leaves(graph: &SwitchGraph, mut hosts: IdVec<SwitchId, u64>) -> IdVec<SwitchId, u64> {
    const PRECISION: u64 = 1 << 20;
    let peers_of = |switch: SwitchId| {
        let mut peers: Vec<SwitchId> = { graph.neighbours(switch).iter() }
            .map(|(_, peer)| *peer)
            .collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    };
    let weight = |(switch, count): (SwitchId, u64)| {
        let around: u64 = peers_of(switch).into_iter().map(|peer| hosts[peer]).sum();
        (around > count).then_some((Reverse(around * PRECISION / count), switch))
    };
    let mut beside_hosts: Vec<_> = with_hosts(&hosts).filter_map(weight).collect();
    beside_hosts.sort_unstable();
    for (_, switch) in beside_hosts {
        if peers_of(switch).into_iter().any(|peer| hosts[peer] > 0) {
            hosts[switch] = 0;
        }
    }
    hosts
}

/// Switches with at least half of the most hosts below, and those whose neighbours all have hosts.
fn covering(graph: &SwitchGraph, hosts: &IdVec<SwitchId, u64>, tops: &[SwitchId]) -> Vec<SwitchId> {
    let heights = graph.distances(with_hosts(hosts).map(|(leaf, _)| leaf));
    let below = |top: SwitchId| {
        let mut is_below = IdVec::filled(false, graph.len());
        is_below[top] = true;
        let mut stack = vec![top];
        let mut count = 0;
        while let Some(switch) = stack.pop() {
            count += hosts[switch];
            for &(_, peer) in graph.neighbours(switch) {
                if heights[peer] < heights[switch] && !is_below[peer] {
                    is_below[peer] = true;
                    stack.push(peer);
                }
            }
        }
        count
    };
    let counts: Vec<(SwitchId, u64)> = tops.iter().map(|top| (*top, below(*top))).collect();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let covers = |(top, count): &(SwitchId, u64)| heights[*top] < 2 || 2 * count >= most;
    let covering = counts.into_iter().filter(covers);
    covering.map(|(top, _)| top).collect()
}

/// Nearest switches without hosts that are equally far from nine of ten hosts.
fn even(graph: &SwitchGraph, hosts: &IdVec<SwitchId, u64>) -> Vec<SwitchId> {
    let total: u64 = hosts.iter().sum();
    let mut at: IdVec<SwitchId, Vec<u64>> = IdVec::filled(Vec::new(), graph.len());
    for (leaf, count) in with_hosts(hosts) {
        for (switch, &distance) in graph.distances([leaf]).iter_enumerated() {
            if distance == UNREACHABLE {
                continue;
            }
            let bars = &mut at[switch];
            bars.resize(bars.len().max(distance as usize + 1), 0);
            bars[distance as usize] += count;
        }
    }
    let distance = |(switch, bars): (SwitchId, &Vec<u64>)| {
        let most = bars.iter().position(|bar| 10 * bar >= 9 * total)?;
        (hosts[switch] == 0).then_some((most, switch))
    };
    let found: Vec<(usize, SwitchId)> = at.iter_enumerated().filter_map(distance).collect();
    let least = found.iter().map(|(distance, _)| *distance).min();
    let nearest = found
        .into_iter()
        .filter(|(distance, _)| Some(*distance) == least);
    nearest.map(|(_, switch)| switch).collect()
}

/// Nearest to all others, then with the most cables.
fn turning_leaf(graph: &SwitchGraph, leaves: &[(SwitchId, u64)]) -> SwitchId {
    let far = |leaf: SwitchId| {
        let distances = graph.distances([leaf]);
        let total: u64 = { leaves.iter() }
            .map(|(other, hosts)| u64::from(distances[*other]) * hosts)
            .sum();
        (total, Reverse(graph.neighbours(leaf).len()), leaf)
    };
    let nearest = leaves.iter().map(|(leaf, _)| far(*leaf)).min();
    nearest.expect("a tree has compute nodes").2
}

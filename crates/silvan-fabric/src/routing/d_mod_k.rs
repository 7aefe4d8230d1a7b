use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, IdVec, PortNumber, SwitchId};

use super::computed::{ComputedRoutes, Hierarchy, Parts};
use super::distance::{SwitchGraph, UNREACHABLE, route_to_switches};
use super::{
    ForwardingTables, PathChoice, PathLanes, Routed, RoutingAlgorithm, RoutingError, RoutingInput,
};
use crate::Fabric;

/// The up-port of a fat tree by the index of the destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DModK {}

impl RoutingAlgorithm for DModK {
    fn routes(&self, input: RoutingInput<'_>) -> Routed {
        Ok((d_mod_k(input.fabric)?, None))
    }

    fn computed(&self, input: RoutingInput<'_>) -> Option<(ForwardingTables, Option<PathLanes>)> {
        let routes = computed_d_mod_k(input.fabric)?;
        Some((ForwardingTables::computed(input.fabric, routes), None))
    }

    /// No path turns upwards again, so one lane is enough.
    fn raises_lanes(&self, _choice: PathChoice) -> bool {
        false
    }
}

/// Computes d-mod-k tables for a fat tree (E. Zahavi: D-Mod-K routing providing non-blocking traffic for shift
/// permutations on real life fat trees, Technion CCIT report 776, 2010).
///
/// A switch above the destination sends down. Another one at level l (leaves: 1) sends up by port q = floor(d / (w_1
/// w_2 ... w_l)) mod w_(l+1), with d the [`HostId`] index and w_i the parents of a node of level i - 1 (w_1 = 1). All
/// packets to a destination come down through one root.
///
/// A level is the distance to the nearest host. Of several cables down, index d selects one by floor(d / (w_1 ... w_m))
/// at the level m where they meet, first cables first. Errors if the cables form no such tree.
pub fn d_mod_k(fabric: &Fabric) -> Result<ForwardingTables, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let tree = Tree::new(fabric, &graph)?;
    let mut tables = ForwardingTables::new(fabric);
    let mut down = DownPorts::new(fabric);
    for host in fabric.host_ids() {
        let (leaf, port) = fabric.host_attachment(host);
        down.lead_to(&tree, leaf);
        for switch in fabric.switch_ids() {
            let number = if switch == leaf {
                fabric.ports[port].number
            } else {
                tree.choose(switch, host, &down)
                    .ok_or_else(|| tree.no_way_up(fabric, switch, host))?
            };
            tables.set_host(switch, host, Some(number));
        }
    }
    route_to_switches(fabric, &graph, &mut tables)?;
    Ok(tables)
}

/// Computes the routes of [`d_mod_k`] to hosts from subtrees, if the fabric allows it.
pub fn computed_d_mod_k(fabric: &Fabric) -> Option<ComputedRoutes> {
    let graph = SwitchGraph::new(fabric);
    let tree = Tree::new(fabric, &graph).ok()?;
    let hierarchy = Hierarchy::new(tree.subtrees(fabric, &graph)?)?;
    let mut down = DownPorts::new(fabric);
    let routes = hierarchy.routes(fabric, |switch, leaf, ports| {
        down.lead_to(&tree, leaf);
        let level = tree.levels[switch] as usize;
        match (down.ports[switch].as_slice(), tree.up[switch].as_slice()) {
            ([], []) => Err(()),
            ([], up) => {
                ports.extend(up.iter().map(|(number, _)| *number));
                Ok(tree.divisors[level])
            }
            (several, _) => {
                ports.extend(several);
                Ok(tree.divisors[tree.meeting_level(switch, &down)])
            }
        }
    });
    let routes = routes.ok()??;
    tree.is_uniform(fabric, &hierarchy, &routes)
        .then_some(routes)
}

struct DownPorts {
    leaf: Option<SwitchId>,
    ports: IdVec<SwitchId, Vec<PortNumber>>,
    above: Vec<SwitchId>,
}

impl DownPorts {
    fn new(fabric: &Fabric) -> Self {
        Self {
            leaf: None,
            ports: IdVec::filled(Vec::new(), fabric.switch_count()),
            above: Vec::new(),
        }
    }

    fn lead_to(&mut self, tree: &Tree, leaf: SwitchId) {
        if self.leaf.replace(leaf) == Some(leaf) {
            return;
        }
        for switch in self.above.drain(..) {
            self.ports[switch].clear();
        }
        let mut frontier = vec![leaf];
        while !frontier.is_empty() {
            let mut above = Vec::new();
            for &switch in &frontier {
                above.extend(tree.up[switch].iter().map(|(_, parent)| *parent));
            }
            above.sort_unstable();
            above.dedup();
            for &parent in &above {
                let leads_down =
                    |(_, child): &&(PortNumber, SwitchId)| frontier.binary_search(child).is_ok();
                let cables = tree.down[parent].iter().filter(leads_down);
                self.ports[parent].extend(one_cable_after_another(cables));
            }
            self.above.extend(&above);
            frontier = above;
        }
    }
}

fn one_cable_after_another<'a>(
    cables: impl Iterator<Item = &'a (PortNumber, SwitchId)>,
) -> impl Iterator<Item = PortNumber> {
    let mut seen: HashMap<SwitchId, usize> = HashMap::new();
    let mut ports: Vec<(usize, PortNumber)> = cables
        .map(|(number, switch)| {
            let parallel = seen.entry(*switch).or_insert(0);
            *parallel += 1;
            (*parallel, *number)
        })
        .collect();
    ports.sort_unstable();
    ports.into_iter().map(|(_, number)| number)
}

struct Tree {
    /// One less than the level in the formula.
    levels: IdVec<SwitchId, u32>,
    up: IdVec<SwitchId, Vec<(PortNumber, SwitchId)>>,
    down: IdVec<SwitchId, Vec<(PortNumber, SwitchId)>>,
    /// w_1 ... w_l of the formula, at index l - 1.
    divisors: Vec<usize>,
}

impl Tree {
    fn new(fabric: &Fabric, graph: &SwitchGraph) -> Result<Self, RoutingError> {
        let leaves = fabric.host_ids().map(|host| fabric.host_attachment(host).0);
        let levels = graph.distances(leaves);
        let mut up = IdVec::filled(Vec::new(), fabric.switch_count());
        let mut down = up.clone();
        let mut widths: Vec<Option<usize>> = Vec::new();
        for switch in fabric.switch_ids() {
            let level = levels[switch];
            let name = |switch: SwitchId| &fabric.switch(switch).name;
            if level == UNREACHABLE {
                return Err(RoutingError::Disconnected {
                    from: name(switch).clone(),
                    to: fabric.host(HostId::new(0)).name.clone(),
                });
            }
            for &(number, peer) in graph.neighbours(switch) {
                if levels[peer] == level {
                    return Err(RoutingError::NotAFatTree {
                        problem: format!(
                            "{:?} and {:?} are neighbours at one level",
                            name(switch),
                            name(peer)
                        ),
                    });
                }
                let side = if levels[peer] > level {
                    &mut up
                } else {
                    &mut down
                };
                side[switch].push((number, peer));
            }
            let index = level as usize;
            if widths.len() <= index {
                widths.resize(index + 1, None);
            }
            let width = *widths[index].get_or_insert(up[switch].len());
            if width != up[switch].len() {
                return Err(RoutingError::NotAFatTree {
                    problem: format!(
                        "{:?} has {} cables upwards, another switch of its level {width}",
                        name(switch),
                        up[switch].len()
                    ),
                });
            }
        }
        let divisors = widths
            .iter()
            .scan(1, |product, width| {
                let divisor = *product;
                *product *= width.unwrap_or(1).max(1);
                Some(divisor)
            })
            .collect();
        Ok(Self {
            levels,
            up,
            down,
            divisors,
        })
    }

    /// Connected parts without the highest level, recursively down to single leaves. `None` for too many parts.
    fn subtrees(&self, fabric: &Fabric, graph: &SwitchGraph) -> Option<Parts> {
        let highest = self.levels.iter().copied().max().unwrap_or(0);
        let switches = fabric.switch_count();
        let mut parts = Parts::new(switches, highest as usize);
        let mut whole: IdVec<SwitchId, usize> = IdVec::filled(0, switches);
        let mut subtrees = 1;
        for (place, level) in (1..=highest).rev().enumerate() {
            let mut inside = vec![0; subtrees];
            let mut next: IdVec<SwitchId, Option<usize>> = IdVec::filled(None, switches);
            subtrees = 0;
            for first in fabric.switch_ids() {
                if self.levels[first] >= level || next[first].is_some() {
                    continue;
                }
                let part = inside[whole[first]];
                inside[whole[first]] += 1;
                next[first] = Some(subtrees);
                let mut stack = vec![first];
                while let Some(switch) = stack.pop() {
                    parts.set(switch, place, part)?;
                    for &(_, peer) in graph.neighbours(switch) {
                        if self.levels[peer] < level && next[peer].is_none() {
                            next[peer] = Some(subtrees);
                            stack.push(peer);
                        }
                    }
                }
                subtrees += 1;
            }
            whole = next.iter().map(|subtree| subtree.unwrap_or(0)).collect();
        }
        Some(parts)
    }

    fn is_uniform(&self, fabric: &Fabric, hierarchy: &Hierarchy, routes: &ComputedRoutes) -> bool {
        let mut down = DownPorts::new(fabric);
        let mut expected: HashMap<(usize, usize), usize> = HashMap::new();
        let highest = self.levels.iter().copied().max().unwrap_or(0) as usize;
        for host in fabric.host_ids() {
            let leaf = fabric.host_attachment(host).0;
            if down.leaf == Some(leaf) {
                continue;
            }
            down.lead_to(self, leaf);
            let mut above = vec![0; highest + 1];
            for &switch in &down.above {
                above[self.levels[switch] as usize] += 1;
                let ports = down.ports[switch].iter().map(|number| number.as_u8());
                if !ports.eq(routes.ports(switch, host)) {
                    return false;
                }
            }
            for place in 0..highest {
                let subtree = hierarchy.number_at(place, leaf);
                let found = above[highest - place];
                if *expected.entry((place, subtree)).or_insert(found) != found {
                    return false;
                }
            }
        }
        true
    }

    /// Down if possible, else up; `None` at the top of another subtree.
    fn choose(&self, switch: SwitchId, host: HostId, down: &DownPorts) -> Option<PortNumber> {
        let level = self.levels[switch] as usize;
        match (down.ports[switch].as_slice(), self.up[switch].as_slice()) {
            ([only], _) => Some(*only),
            ([], []) => None,
            ([], up) => Some(up[host.index() / self.divisors[level] % up.len()].0),
            (several, _) => {
                let quotient = host.index() / self.divisors[self.meeting_level(switch, down)];
                Some(several[quotient % several.len()])
            }
        }
    }

    /// Level of the switch in which all paths down to the leaf meet first.
    fn meeting_level(&self, switch: SwitchId, down: &DownPorts) -> usize {
        let mut frontier = vec![switch];
        loop {
            let mut below = Vec::new();
            for above in frontier {
                let leads_down =
                    |(number, _): &&(PortNumber, SwitchId)| down.ports[above].contains(number);
                let cables = self.down[above].iter().filter(leads_down);
                below.extend(cables.map(|(_, child)| *child));
            }
            below.sort_unstable();
            below.dedup();
            if let [only] = below.as_slice() {
                return self.levels[*only] as usize;
            }
            frontier = below;
        }
    }

    fn no_way_up(&self, fabric: &Fabric, switch: SwitchId, host: HostId) -> RoutingError {
        RoutingError::NotAFatTree {
            problem: format!(
                "{:?} is at the top but not above {:?}",
                fabric.switch(switch).name,
                fabric.host(host).name
            ),
        }
    }
}

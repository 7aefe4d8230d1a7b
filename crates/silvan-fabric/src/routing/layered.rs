use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, PortId, SwitchId};

use super::min_hop::{MinHop, min_hop_balanced};
use super::{
    ForwardingTables, PathChoice, PathLanes, PathServiceLevels, Routed, Routing, RoutingAlgorithm,
    RoutingError, RoutingInput,
};
use crate::Fabric;
use crate::generators::Generator;

/// Data lanes (InfiniBand Architecture Specification, volume 1, section 7.6.1).
const MOST_LANES: usize = 15;

/// Shortest paths, each on a lane on which no cycle of them can deadlock (LASH).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LayeredMinHop {}

impl RoutingAlgorithm for LayeredMinHop {
    fn routes(&self, input: RoutingInput<'_>) -> Routed {
        layered_min_hop(input.fabric)
    }

    /// Lanes depend on the path.
    fn substitute(&self, choice: PathChoice) -> Option<Routing> {
        choice.is_non_minimal().then(|| MinHop {}.into())
    }

    /// A class has all lanes, because the number depends on the routes.
    fn lanes_per_class(&self, _topology: Option<&dyn Generator>, data_vls: u8) -> u8 {
        data_vls
    }

    fn deadlock_hint(&self, lanes: u8) -> Option<String> {
        Some(format!("set vl.data-vls to {lanes}"))
    }
}

/// Computes balanced min-hop routes and a lane for each whole path (T. Skeie, O. Lysne, I. Theiss, "Layered shortest
/// path (LASH) routing in irregular system area networks", IPDPS 2002, section 3).
///
/// A path, by source switch and destination, gets the lowest lane without a cycle; `None` if one lane is enough. Errors
/// for unconnected switches, or more than 15 lanes.
pub fn layered_min_hop(
    fabric: &Fabric,
) -> Result<(ForwardingTables, Option<PathLanes>), RoutingError> {
    let tables = min_hop_balanced(fabric)?;
    let hosts = fabric.host_count();
    let mut levels = vec![0; fabric.switch_count() * hosts];
    let mut layers = vec![Layer::new(fabric)];
    let mut path = Vec::new();
    let mut leaves: Vec<SwitchId> = fabric
        .host_ids()
        .map(|host| fabric.host_attachment(host).0)
        .collect();
    leaves.sort_unstable();
    leaves.dedup();
    for leaf in leaves {
        for host in fabric.host_ids() {
            follow(fabric, &tables, (leaf, host), &mut path);
            let level = layers.iter_mut().position(|layer| layer.insert(&path));
            let level = match level {
                Some(level) => level,
                None if layers.len() == MOST_LANES => {
                    return Err(RoutingError::TooManyLanes { most: MOST_LANES });
                }
                None => {
                    let mut layer = Layer::new(fabric);
                    layer.insert(&path);
                    layers.push(layer);
                    layers.len() - 1
                }
            };
            levels[leaf.index() * hosts + host.index()] = level as u8;
        }
    }
    if layers.len() == 1 {
        return Ok((tables, None));
    }
    let level_of = |switch: SwitchId, host: HostId| levels[switch.index() * hosts + host.index()];
    let levels = PathServiceLevels::by_switch(fabric, level_of);
    Ok((tables, Some(PathLanes::by_level(fabric, levels))))
}

fn follow(
    fabric: &Fabric,
    tables: &ForwardingTables,
    (leaf, host): (SwitchId, HostId),
    path: &mut Vec<PortId>,
) {
    path.clear();
    let mut at = leaf;
    let next = |at: SwitchId| {
        let port = fabric.switch(at).port(tables.to_host(at, host)?)?;
        fabric.peer_switch(port)
    };
    while let Some((switch, entry)) = next(at) {
        path.push(entry);
        at = switch;
    }
}

/// Channels of one lane, by input port, with their followers.
struct Layer {
    followers: Vec<Vec<u32>>,
    refused: HashSet<(u32, u32)>,
    visited: Vec<u32>,
    search: u32,
}

impl Layer {
    fn new(fabric: &Fabric) -> Self {
        Self {
            followers: vec![Vec::new(); fabric.ports.len()],
            refused: HashSet::new(),
            visited: vec![0; fabric.ports.len()],
            search: 0,
        }
    }

    fn insert(&mut self, path: &[PortId]) -> bool {
        let edge = |pair: &[PortId]| (pair[0].index() as u32, pair[1].index() as u32);
        if path
            .windows(2)
            .any(|pair| self.refused.contains(&edge(pair)))
        {
            return false;
        }
        let mut added: Vec<u32> = Vec::new();
        for (from, to) in path.windows(2).map(edge) {
            if self.followers[from as usize].contains(&to) {
                continue;
            }
            if self.reaches(to, from) {
                if added.is_empty() {
                    self.refused.insert((from, to));
                }
                for from in added {
                    self.followers[from as usize].pop();
                }
                return false;
            }
            self.followers[from as usize].push(to);
            added.push(from);
        }
        true
    }

    fn reaches(&mut self, from: u32, to: u32) -> bool {
        self.search += 1;
        let mut stack = vec![from];
        while let Some(channel) = stack.pop() {
            if channel == to {
                return true;
            }
            if std::mem::replace(&mut self.visited[channel as usize], self.search) != self.search {
                stack.extend(&self.followers[channel as usize]);
            }
        }
        false
    }
}

//! Balanced min-hop: shortest paths, traffic spread evenly over equally short ports.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, IdVec, PortId, PortNumber, SwitchId};

use super::distance::{SwitchGraph, route_to_switches};
use super::{ForwardingTables, Routed, RoutingAlgorithm, RoutingError, RoutingInput};
use crate::Fabric;

/// Shortest paths, balanced over the ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MinHop {}

impl RoutingAlgorithm for MinHop {
    fn routes(&self, input: RoutingInput<'_>) -> Routed {
        Ok((min_hop_balanced(input.fabric)?, None))
    }
}

/// Computes minimal routes in any connected fabric.
///
/// Destinations are taken in the order of their LIDs. At each switch a destination gets, of the
/// ports that start a shortest path, the one that the fewest pairs of hosts use so far; of several,
/// the one with the lowest number. The result depends on the fabric alone.
///
/// Counting pairs, not destinations, matters from three levels on: a switch in the middle sees only
/// the destinations that the switches before it have sent its way, and has to spread those.
///
/// Minimal routes can depend on each other in a cycle, as on a ring: have them
/// [checked](crate::check::check).
///
/// # Errors
///
/// If two switches are not connected.
pub fn min_hop_balanced(fabric: &Fabric) -> Result<ForwardingTables, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let mut tables = ForwardingTables::new(fabric);
    route_to_switches(fabric, &graph, &mut tables)?;

    let mut hosts_at: IdVec<SwitchId, u64> = IdVec::filled(0, fabric.switch_count());
    for host in fabric.host_ids() {
        hosts_at[fabric.host_attachment(host).0] += 1;
    }
    let mut balance = Balance {
        pairs: IdVec::filled(0, fabric.ports.len()),
        sources: hosts_at.clone(),
    };
    let mut paths: Option<ShortestPaths> = None;
    let mut hosts: Vec<_> = fabric.host_ids().collect();
    // Stable: without LIDs it is the order of hosts.
    hosts.sort_by_key(|host| fabric.host(*host).lid);
    for host in hosts {
        let (leaf, leaf_port) = fabric.host_attachment(host);
        tables.set_host(leaf, host, Some(fabric.ports[leaf_port].number));
        let paths = match &mut paths {
            Some(paths) if paths.leaf == leaf => paths,
            other => other.insert(ShortestPaths::new(fabric, &graph, leaf)),
        };
        balance
            .sources
            .as_mut_slice()
            .copy_from_slice(hosts_at.as_slice());
        balance.spread(paths, host, &mut tables);
    }
    Ok(tables)
}

/// A port that starts a shortest path, and the switch it leads to.
struct Candidate {
    port: PortId,
    number: PortNumber,
    next: SwitchId,
}

/// All shortest paths to one leaf.
struct ShortestPaths {
    leaf: SwitchId,
    /// Every other switch, from the farthest to the nearest, with its ports towards the leaf.
    switches: Vec<(SwitchId, Vec<Candidate>)>,
}

impl ShortestPaths {
    fn new(fabric: &Fabric, graph: &SwitchGraph, leaf: SwitchId) -> Self {
        let distances = graph.distances([leaf]);
        let mut order: Vec<SwitchId> = fabric.switch_ids().filter(|id| *id != leaf).collect();
        order.sort_by_key(|switch| Reverse(distances[*switch]));
        let candidates = |switch: SwitchId| {
            let node = fabric.switch(switch);
            let ports = graph.shortest_ports(switch, &distances);
            let candidate = |number: PortNumber| {
                let port = node.port(number)?;
                let (next, _) = fabric.peer_switch(port)?;
                Some(Candidate { port, number, next })
            };
            (switch, ports.filter_map(candidate).collect())
        };
        Self {
            leaf,
            switches: order.into_iter().map(candidates).collect(),
        }
    }
}

/// How much each port has been given so far.
struct Balance {
    /// Pairs of hosts whose route leaves by the port.
    pairs: IdVec<PortId, u64>,
    /// Hosts whose packets to the current destination pass the switch, as far as is known yet.
    sources: IdVec<SwitchId, u64>,
}

impl Balance {
    /// Chooses the port of every switch but the leaf for one destination.
    fn spread(&mut self, paths: &ShortestPaths, host: HostId, tables: &mut ForwardingTables) {
        for (switch, candidates) in &paths.switches {
            let least = candidates
                .iter()
                .min_by_key(|candidate| self.pairs[candidate.port])
                .expect("routes to all switches exist, so the leaf is connected");
            let sources = self.sources[*switch];
            self.pairs[least.port] += sources;
            self.sources[least.next] += sources;
            tables.set_host(*switch, host, Some(least.number));
        }
    }
}

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distance::{SwitchGraph, route_to_switches};
use super::spread::{PathsTo, spread_destinations};
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

/// Computes minimal routes over the ports with the fewest pairs of hosts, or an error for unconnected switches.
///
/// They can depend on each other in a cycle, as on a ring: [check](crate::check::check) them.
pub fn min_hop_balanced(fabric: &Fabric) -> Result<ForwardingTables, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let mut tables = ForwardingTables::new(fabric);
    route_to_switches(fabric, &graph, &mut tables)?;

    spread_destinations(fabric, &mut tables, |leaf| {
        let distances = graph.distances([leaf]);
        let ports = |switch| graph.shortest_ports(switch, &distances);
        Ok(PathsTo::new(fabric, leaf, &distances, ports))
    })?;
    Ok(tables)
}

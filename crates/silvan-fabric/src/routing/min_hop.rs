//! Balanced min-hop: shortest paths, destinations spread evenly over equally short ports.

use silvan_units::{IdVec, PortId, PortNumber, SwitchId};

use super::distance::{SwitchGraph, route_to_switches};
use super::{ForwardingTables, RoutingError};
use crate::Fabric;

/// Computes minimal routes in any connected fabric.
///
/// Destinations are taken in the order of their LIDs. At each switch a destination gets, of the
/// ports that start a shortest path, the one that has the fewest destinations so far; of several,
/// the one with the lowest number. The result depends on the fabric alone.
///
/// Minimal routes can depend on each other in a circle, as on a ring: have them
/// [checked](crate::check::check).
///
/// # Errors
///
/// If two switches are not connected.
pub fn min_hop_balanced(fabric: &Fabric) -> Result<ForwardingTables, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let mut tables = ForwardingTables::new(fabric);
    route_to_switches(fabric, &graph, &mut tables)?;

    let mut load: IdVec<PortId, u32> = IdVec::filled(0, fabric.ports.len());
    // Per switch its ports that start a shortest path to the destination's leaf.
    let mut shortest: IdVec<SwitchId, Vec<PortNumber>> =
        IdVec::filled(Vec::new(), fabric.switch_count());
    let mut last_leaf = None;
    let mut hosts: Vec<_> = fabric.host_ids().collect();
    hosts.sort_by_key(|host| fabric.host(*host).lid);
    for host in hosts {
        let (leaf, leaf_port) = fabric.host_attachment(host);
        if last_leaf != Some(leaf) {
            let distances = graph.distances([leaf]);
            for switch in fabric.switch_ids() {
                shortest[switch].clear();
                shortest[switch].extend(graph.shortest_ports(switch, &distances));
            }
            last_leaf = Some(leaf);
        }
        let lid = fabric.host(host).lid;
        for switch in fabric.switch_ids() {
            let number = if switch == leaf {
                fabric.ports[leaf_port].number
            } else {
                let first_port = fabric.switch(switch).first_port.index();
                let port_id =
                    |number: PortNumber| PortId::new(first_port + usize::from(number.as_u8()) - 1);
                let least = shortest[switch]
                    .iter()
                    .copied()
                    .min_by_key(|number| load[port_id(*number)])
                    .expect("routes to all switches exist, so the leaf is connected");
                load[port_id(least)] += 1;
                least
            };
            tables.set(switch, lid, Some(number));
        }
    }
    Ok(tables)
}

//! A subnet and its loads in tables, as the browser page and the ring file hold them.

use serde::Serialize;
use silvan_core::{IdVec, NodeId, PortId, Rate};
use silvan_fabric::{Fabric, ForwardingTables, HostRole, Speed, Width};

use crate::observation::{Observation, PortLoad, data_rate};

const NO_ROW: u32 = u32::MAX;

/// A host or a switch.
#[derive(Clone, Debug, Serialize)]
pub struct MapNode {
    /// Name of the node.
    pub name: String,
    /// True for a host.
    pub is_host: bool,
    /// host, router, aggregation or switch.
    pub kind: &'static str,
    /// LID of the node.
    pub lid: u16,
    /// Its node GUID.
    pub guid: String,
    /// Number of ports of a switch; of a host, the number of its port on the adapter.
    pub ports: u8,
}

/// A subnet in tables.
#[derive(Clone, Debug, Serialize)]
pub struct SubnetMap {
    /// The hosts, then the switches.
    pub nodes: Vec<MapNode>,
    /// Ports with a cable, node by node: row of the node, number, row of the port at the other end, Gbit/s.
    pub ports: Vec<(u32, u8, u32, f64)>,
    /// Width and speed of the link of each port, and the Gbit/s that both of its ends support.
    pub links: Vec<(Width, Speed, Option<f64>)>,
    /// Fewest data lanes in use at a switch port; `None` if no port states them.
    pub data_vls: Option<u8>,
    /// Exits of each switch by host, switch by switch; 0: none. Empty without forwarding tables.
    #[serde(skip)]
    pub routes: Vec<u8>,
    #[serde(skip)]
    rows: Vec<PortId>,
}

impl SubnetMap {
    /// Lays out a subnet. `capable` has the rate that both ends of each link support, as far as it is known.
    pub fn new(
        fabric: &Fabric,
        tables: Option<&ForwardingTables>,
        capable: &IdVec<PortId, Option<Rate>>,
    ) -> Self {
        let hosts = fabric.host_ids().map(|host| fabric.node_of_host(host));
        let switches = fabric
            .switch_ids()
            .map(|switch| fabric.node_of_switch(switch));
        let order: Vec<NodeId> = hosts.chain(switches).collect();
        let is_cabled = |port: &PortId| fabric.ports[*port].link.is_some();
        let ports = |node: &NodeId| fabric.nodes[*node].ports().filter(is_cabled);
        let rows: Vec<PortId> = order.iter().flat_map(ports).collect();
        let mut node_rows = IdVec::filled(NO_ROW, fabric.nodes.len());
        for (row, node) in (0..).zip(&order) {
            node_rows[*node] = row;
        }
        let mut port_rows = IdVec::filled(NO_ROW, fabric.ports.len());
        for (row, port) in (0..).zip(&rows) {
            port_rows[*port] = row;
        }
        let laid_out = |&id: &PortId| {
            let port = &fabric.ports[id];
            let peer = port.peer.map_or(NO_ROW, |peer| port_rows[peer]);
            let rate = data_rate(fabric, id).map_or(0.0, |rate| rate.bits_per_sec() as f64 / 1e9);
            (node_rows[port.node], port.number.as_u8(), peer, rate)
        };
        let link = |&id: &PortId| {
            let link = &fabric.links[fabric.ports[id].link?];
            let capable = capable[id].map(|rate| rate.bits_per_sec() as f64 / 1e9);
            Some((link.kind.width, link.kind.speed, capable))
        };
        let routes = tables.map_or_else(Vec::new, |tables| {
            let of_switch = |switch| {
                let lids = fabric.host_ids().map(|host| fabric.host(host).lid);
                lids.map(move |lid| tables.get(switch, lid).map_or(0, |port| port.as_u8()))
            };
            fabric.switch_ids().flat_map(of_switch).collect()
        });
        Self {
            nodes: order
                .iter()
                .map(|&node| MapNode {
                    name: fabric.nodes[node].name.clone(),
                    is_host: fabric.nodes[node].as_host().is_some(),
                    kind: fabric.nodes[node].role.map_or("switch", HostRole::name),
                    lid: fabric.nodes[node].lid.as_u16(),
                    guid: fabric.nodes[node].guid.to_string(),
                    ports: match fabric.nodes[node].adapter_port {
                        Some(port) => port.as_u8(),
                        None => fabric.nodes[node].port_count,
                    },
                })
                .collect(),
            ports: rows.iter().map(laid_out).collect(),
            links: rows.iter().filter_map(link).collect(),
            data_vls: None,
            routes,
            rows,
        }
    }

    /// Load, part of time waiting and part congested of all ports: little-endian 32-bit floats, NaN if unknown.
    pub fn loads(&self, observation: &Observation) -> Vec<u8> {
        let column = |of: fn(&PortLoad) -> Option<f64>| {
            let value = move |&port: &PortId| {
                of(&observation.ports[port]).map_or(f32::NAN, |part| part as f32)
            };
            self.rows.iter().map(value).flat_map(f32::to_le_bytes)
        };
        let columns = column(|port| port.load).chain(column(|port| port.wait));
        columns.chain(column(|port| port.congested)).collect()
    }
}

//! Positions of ports and ends of cables, by the numbers of management.
//!
//! Every request reads them at every hop, so small tables next to the fabric hold them; the fabric's records also hold
//! names and GUIDs.

use silvan_core::{NodeId, PortId, PortNumber};
use silvan_fabric::Fabric;

use super::Subnet;
use super::adapters::own_number;

/// A node's ports.
#[derive(Clone, Copy, Debug)]
struct NodeLocation {
    first: PortId,
    count: u8,
    /// The port that represents the whole node.
    own: PortNumber,
    is_switch: bool,
}

#[derive(Clone, Copy, Debug)]
struct PortLocation {
    node: NodeId,
    peer: Option<PortId>,
    number: PortNumber,
}

/// The tables.
#[derive(Debug)]
pub(crate) struct Locations {
    nodes: Vec<NodeLocation>,
    ports: Vec<PortLocation>,
}

impl Locations {
    pub fn of(fabric: &Fabric) -> Self {
        let nodes = fabric.nodes.iter().map(|node| NodeLocation {
            first: node.first_port,
            count: node.port_count,
            own: own_number(node),
            is_switch: node.as_switch().is_some(),
        });
        let ports = fabric.ports.iter().map(|port| {
            let node = &fabric.nodes[port.node];
            PortLocation {
                node: port.node,
                peer: port.peer,
                number: match node.as_host() {
                    Some(_) => own_number(node),
                    None => port.number,
                },
            }
        });
        Self {
            nodes: nodes.collect(),
            ports: ports.collect(),
        }
    }
}

impl Subnet {
    /// The number of the port that represents the whole node.
    pub fn own_port(&self, node: NodeId) -> PortNumber {
        self.locations.nodes[node.index()].own
    }

    /// Returns the port of the fabric with this number.
    ///
    /// `None` means a switch's port 0, a port of an adapter that is another host, or a number beyond the last.
    pub fn port_id(&self, node: NodeId, number: PortNumber) -> Option<PortId> {
        let location = &self.locations.nodes[node.index()];
        if !location.is_switch {
            return (number == location.own).then_some(location.first);
        }
        let offset = number.as_u8().checked_sub(1)?;
        (offset < location.count).then(|| PortId::new(location.first.index() + usize::from(offset)))
    }

    /// The node and the number of a port as management counts.
    pub fn location(&self, port: PortId) -> (NodeId, PortNumber) {
        let location = &self.locations.ports[port.index()];
        (location.node, location.number)
    }

    /// The port at the other end of the cable, `None` if there is none.
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        self.locations.ports[port.index()].peer
    }
}

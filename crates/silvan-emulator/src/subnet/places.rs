//! Where ports stand and cables lead, as management counts. Every request asks for it at every hop of
//! its way, so it is kept in small tables beside the fabric, whose records hold names and GUIDs, too.

use silvan_core::{NodeId, PortId, PortNumber};
use silvan_fabric::Fabric;

use super::Subnet;
use super::adapters::own_number;

/// A node's ports.
#[derive(Clone, Copy, Debug)]
struct NodePlace {
    first: PortId,
    count: u8,
    /// The port that stands for the whole node.
    own: PortNumber,
    is_switch: bool,
}

/// A port of the fabric.
#[derive(Clone, Copy, Debug)]
struct PortPlace {
    node: NodeId,
    peer: Option<PortId>,
    number: PortNumber,
}

/// The tables.
#[derive(Debug)]
pub(crate) struct Places {
    nodes: Vec<NodePlace>,
    ports: Vec<PortPlace>,
}

impl Places {
    pub fn of(fabric: &Fabric) -> Self {
        let nodes = fabric.nodes.iter().map(|node| NodePlace {
            first: node.first_port,
            count: node.port_count,
            own: own_number(node),
            is_switch: node.as_switch().is_some(),
        });
        let ports = fabric.ports.iter().map(|port| {
            let node = &fabric.nodes[port.node];
            PortPlace {
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
    /// The number of the port that stands for the whole node.
    pub fn own_port(&self, node: NodeId) -> PortNumber {
        self.places.nodes[node.index()].own
    }

    /// The port of the fabric with this number, `None` for a switch's port 0, for a port of an adapter
    /// that is another host, and beyond the last.
    pub fn port_id(&self, node: NodeId, number: PortNumber) -> Option<PortId> {
        let place = &self.places.nodes[node.index()];
        if !place.is_switch {
            return (number == place.own).then_some(place.first);
        }
        let offset = number.as_u8().checked_sub(1)?;
        (offset < place.count).then(|| PortId::new(place.first.index() + usize::from(offset)))
    }

    /// The node and the number of a port as management counts.
    pub fn place(&self, port: PortId) -> (NodeId, PortNumber) {
        let place = &self.places.ports[port.index()];
        (place.node, place.number)
    }

    /// The port at the other end of the cable, `None` if there is none.
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        self.places.ports[port.index()].peer
    }
}

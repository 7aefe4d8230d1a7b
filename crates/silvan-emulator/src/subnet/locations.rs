//! Ports and cable ends by management numbers, in small tables, because every request reads them at every hop.

use silvan_core::{NodeId, PortId, PortNumber};
use silvan_fabric::Fabric;

use super::Subnet;
use super::adapters::own_number;

#[derive(Clone, Copy, Debug)]
struct NodeLocation {
    first: PortId,
    count: u8,
    own: PortNumber,
    is_switch: bool,
}

#[derive(Clone, Copy, Debug)]
struct PortLocation {
    node: NodeId,
    peer: Option<PortId>,
    number: PortNumber,
}

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
    pub fn own_port(&self, node: NodeId) -> PortNumber {
        self.locations.nodes[node.index()].own
    }

    /// `None` for a switch's port 0, a port that is another host, or a number beyond the last.
    pub fn port_id(&self, node: NodeId, number: PortNumber) -> Option<PortId> {
        let location = &self.locations.nodes[node.index()];
        if !location.is_switch {
            return (number == location.own).then_some(location.first);
        }
        let offset = number.as_u8().checked_sub(1)?;
        (offset < location.count).then(|| PortId::new(location.first.index() + usize::from(offset)))
    }

    pub fn location(&self, port: PortId) -> (NodeId, PortNumber) {
        let location = &self.locations.ports[port.index()];
        (location.node, location.number)
    }

    pub fn peer(&self, port: PortId) -> Option<PortId> {
        self.locations.ports[port.index()].peer
    }
}

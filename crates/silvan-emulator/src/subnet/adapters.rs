//! Adapters with several cabled ports: hosts in the data plane, ports of one node in management.

use std::collections::BTreeMap;

use silvan_core::{Guid, NodeId, PortNumber};
use silvan_fabric::{Fabric, Node, NodeKind};

use super::Subnet;

#[derive(Debug)]
pub(crate) struct Adapters {
    hosts: BTreeMap<(Guid, u8), NodeId>,
}

/// Port that represents the node: 0 of a switch, a host's own port of its adapter.
pub(crate) fn own_number(node: &Node) -> PortNumber {
    match node.kind {
        NodeKind::Switch(_) => PortNumber::new(0),
        NodeKind::Host(_) => node.adapter_port.unwrap_or(PortNumber::new(1)),
    }
}

impl Adapters {
    pub fn of(fabric: &Fabric) -> Self {
        let nodes = fabric.host_ids().map(|host| fabric.node_of_host(host));
        let key = |id: NodeId| {
            let node = &fabric.nodes[id];
            (node.guid, own_number(node).as_u8())
        };
        Self {
            hosts: nodes.map(|id| (key(id), id)).collect(),
        }
    }

    fn ports(&self, guid: Guid) -> impl DoubleEndedIterator<Item = (u8, NodeId)> {
        let range = self.hosts.range((guid, 0)..=(guid, u8::MAX));
        range.map(|(&(_, number), &node)| (number, node))
    }

    pub fn first(&self, guid: Guid) -> Option<NodeId> {
        self.ports(guid).next().map(|(_, node)| node)
    }

    pub fn port_count(&self, guid: Guid) -> u8 {
        self.ports(guid).next_back().map_or(1, |(number, _)| number)
    }

    pub fn name<'a>(&self, host: &'a Node) -> &'a str {
        let name = host.name.as_str();
        if self.ports(host.guid).count() < 2 {
            return name;
        }
        let mark = format!("/P{}", own_number(host).as_u8());
        name.strip_suffix(mark.as_str()).unwrap_or(name)
    }
}

impl Subnet {
    pub fn node_with_port(&self, node: NodeId, number: PortNumber) -> NodeId {
        if number == self.own_port(node) || self.state(node).switch.is_some() {
            return node;
        }
        let key = (self.fabric.nodes[node].guid, number.as_u8());
        self.adapters.hosts.get(&key).copied().unwrap_or(node)
    }
}

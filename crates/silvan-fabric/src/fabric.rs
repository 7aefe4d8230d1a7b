use std::collections::HashMap;
use std::fmt;

use silvan_core::{Guid, HostId, IdVec, Lid, LinkId, NodeId, PortId, PortNumber, SwitchId};

use crate::builder::generated_guid;
use crate::{FabricError, Link};

/// Kind of a node, with its position among nodes of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A switch.
    Switch(SwitchId),
    /// A host with one channel adapter port.
    Host(HostId),
}

/// Kind of device that a host's port belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HostRole {
    /// An adapter of a host.
    #[default]
    Adapter,
    /// A router, which receives the packets that leave the subnet.
    Router,
    /// An aggregation node (SHARP), which reduces data inside a switch.
    Aggregation,
}

impl HostRole {
    /// Returns the name in tables and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adapter => "host",
            Self::Router => "router",
            Self::Aggregation => "aggregation",
        }
    }
}

/// A switch or a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Switch or host.
    pub kind: NodeKind,
    /// Unique name.
    pub name: String,
    /// Node GUID.
    pub guid: Guid,
    /// Base LID of a switch's management port or a host's port, LMC 0; 0 with [more nodes than LIDs](Fabric::has_lids).
    pub lid: Lid,
    /// Port on the host's adapter, whose cabled ports are hosts of one node GUID; `None` for a switch.
    pub adapter_port: Option<PortNumber>,
    /// Kind of device that the host's port belongs to; `None` for a switch.
    pub role: Option<HostRole>,
    /// External port 1; the others follow.
    pub first_port: PortId,
    /// External ports are numbered 1 to this.
    pub port_count: u8,
}

impl Node {
    /// The switch's id, `None` for a host.
    pub fn as_switch(&self) -> Option<SwitchId> {
        match self.kind {
            NodeKind::Switch(switch) => Some(switch),
            NodeKind::Host(_) => None,
        }
    }

    /// The host's id, `None` for a switch.
    pub fn as_host(&self) -> Option<HostId> {
        match self.kind {
            NodeKind::Host(host) => Some(host),
            NodeKind::Switch(_) => None,
        }
    }

    /// The external ports in the order of their numbers.
    pub fn ports(&self) -> impl DoubleEndedIterator<Item = PortId> + ExactSizeIterator + use<> {
        let first = self.first_port.index();
        (first..first + usize::from(self.port_count)).map(PortId::new)
    }

    /// The external port of this number, `None` for port 0 and beyond the last.
    pub fn port(&self, number: PortNumber) -> Option<PortId> {
        let offset = number.as_u8().checked_sub(1)?;
        (offset < self.port_count)
            .then(|| PortId::new(self.first_port.index() + usize::from(offset)))
    }
}

/// An external port of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// The node it belongs to.
    pub node: NodeId,
    /// Number of the port on its node, from 1.
    pub number: PortNumber,
    /// Port GUID. All ports of a switch have its node GUID, because only the management port has a GUID.
    pub guid: Guid,
    /// The cable plugged in.
    pub link: Option<LinkId>,
    /// The port at the other end of the cable.
    pub peer: Option<PortId>,
}

/// Switches and hosts, their ports, and the cables between ports.
///
/// [`FabricBuilder`](crate::FabricBuilder) guarantees unique names, LIDs and GUIDs, consecutive ports of a node, mutual
/// `ports[p].peer`, and hosts with one port, cabled to a switch.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// All switches, then all hosts.
    pub nodes: IdVec<NodeId, Node>,
    /// All external ports, node by node.
    pub ports: IdVec<PortId, Port>,
    /// All cables.
    pub links: IdVec<LinkId, Link>,
    pub(crate) switches: IdVec<SwitchId, NodeId>,
    pub(crate) hosts: IdVec<HostId, NodeId>,
    pub(crate) nodes_by_lid: Vec<Option<NodeId>>,
    pub(crate) nodes_by_name: HashMap<String, NodeId>,
}

impl Fabric {
    /// The number of switches.
    pub fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// The number of hosts.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// All switches in order.
    pub fn switch_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = SwitchId> + ExactSizeIterator + use<> {
        self.switches.ids()
    }

    /// All hosts in order.
    pub fn host_ids(&self) -> impl DoubleEndedIterator<Item = HostId> + ExactSizeIterator + use<> {
        self.hosts.ids()
    }

    /// The node of a switch.
    pub fn node_of_switch(&self, switch: SwitchId) -> NodeId {
        self.switches[switch]
    }

    /// The node of a host.
    pub fn node_of_host(&self, host: HostId) -> NodeId {
        self.hosts[host]
    }

    /// A switch.
    #[inline]
    pub fn switch(&self, switch: SwitchId) -> &Node {
        &self.nodes[self.switches[switch]]
    }

    /// A host.
    #[inline]
    pub fn host(&self, host: HostId) -> &Node {
        &self.nodes[self.hosts[host]]
    }

    /// The only port of a host.
    pub fn host_port(&self, host: HostId) -> PortId {
        self.host(host).first_port
    }

    /// The switch port that a host is cabled to, and its switch.
    #[inline]
    pub fn host_attachment(&self, host: HostId) -> (SwitchId, PortId) {
        let attachment = self.ports[self.host_port(host)].peer.and_then(|port| {
            let switch = self.nodes[self.ports[port].node].as_switch()?;
            Some((switch, port))
        });
        attachment.expect("the builder has cabled every host to a switch")
    }

    /// The external port of this number, `None` for port 0 and beyond the node's last.
    pub fn port(&self, node: NodeId, number: PortNumber) -> Option<PortId> {
        self.nodes[node].port(number)
    }

    /// Returns true if a host was identified by its port GUID alone, so that its node GUID is generated.
    pub fn has_port_guid_only(&self, node: NodeId) -> bool {
        let record = &self.nodes[node];
        let Some(number) = record.adapter_port else {
            return false;
        };
        let usual = record.guid.as_u64().wrapping_add(u64::from(number.as_u8()));
        record.guid == generated_guid(node) && self.ports[record.first_port].guid.as_u64() != usual
    }

    /// The node with this LID.
    pub fn node_by_lid(&self, lid: Lid) -> Option<NodeId> {
        self.nodes_by_lid.get(lid.index()).copied().flatten()
    }

    /// The node with this name.
    pub fn node_by_name(&self, name: &str) -> Option<NodeId> {
        self.nodes_by_name.get(name).copied()
    }

    /// The node name that is spelled most like `name`, for messages about unknown names.
    pub fn nearest_name(&self, name: &str) -> Option<&str> {
        nearest(name, self.nodes.iter().map(|node| node.name.as_str()))
    }

    /// True if nodes have LIDs; a fabric of more than 49,151 nodes has none and cannot be managed.
    pub fn has_lids(&self) -> bool {
        self.nodes.len() <= usize::from(Lid::MAX_UNICAST.as_u16())
    }

    /// The error of what needs LIDs in a fabric without them. Errors if the fabric [has no LIDs](Self::has_lids).
    pub fn require_lids(&self) -> Result<(), FabricError> {
        let nodes = self.nodes.len();
        match self.has_lids() {
            true => Ok(()),
            false => Err(FabricError::LidsExhausted { nodes }),
        }
    }

    /// The highest LID in use.
    pub fn max_lid(&self) -> Lid {
        let max = self.nodes.iter().map(|node| node.lid).max();
        max.expect("the builder refuses a fabric without nodes")
    }

    /// The switch at the other end of the cable in `port`, and the port there; `None` for an empty port and for a host.
    #[inline]
    pub fn peer_switch(&self, port: PortId) -> Option<(SwitchId, PortId)> {
        let peer = self.ports[port].peer?;
        let switch = self.nodes[self.ports[peer].node].as_switch()?;
        Some((switch, peer))
    }

    /// The switch that a host is cabled to; `None` for a host without a cable to one.
    pub fn switch_of(&self, host: HostId) -> Option<SwitchId> {
        let first = self.host(host).first_port;
        self.peer_switch(first).map(|(switch, _)| switch)
    }

    /// Gives hosts other names. Errors: the place of the first name that another node has, and this name.
    pub fn rename_hosts(&mut self, names: Vec<(HostId, String)>) -> Result<(), (usize, String)> {
        for (host, _) in &names {
            self.nodes_by_name
                .remove(&self.nodes[self.hosts[*host]].name);
        }
        for (place, (host, name)) in names.into_iter().enumerate() {
            let node = self.hosts[host];
            if self.nodes_by_name.insert(name.clone(), node).is_some() {
                return Err((place, name));
            }
            self.nodes[node].name = name;
        }
        Ok(())
    }

    /// A copy without the cables in some ports, others in order. Panics for the cable of a host.
    #[must_use]
    pub fn without_cables(&self, ports: &[PortId]) -> Self {
        let mut fabric = self.clone();
        for &port in ports {
            for end in [Some(port), self.ports[port].peer].into_iter().flatten() {
                let node = &self.nodes[self.ports[end].node];
                assert!(node.as_switch().is_some(), "a host keeps its cable");
                fabric.ports[end].link = None;
                fabric.ports[end].peer = None;
            }
        }
        fabric.links = IdVec::default();
        for link in self.links.iter() {
            if fabric.ports[link.a].link.is_some() {
                let id = fabric.links.push(*link);
                fabric.ports[link.a].link = Some(id);
                fabric.ports[link.b].link = Some(id);
            }
        }
        fabric
    }

    /// A port as text: node name and port number, e.g. `leaf-03:19`.
    pub fn port_name(&self, port: PortId) -> impl fmt::Display + '_ {
        struct PortName<'f>(&'f str, PortNumber);

        impl fmt::Display for PortName<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}:{}", self.0, self.1)
            }
        }

        let Port { node, number, .. } = self.ports[port];
        PortName(&self.nodes[node].name, number)
    }
}

pub(crate) fn nearest<'n>(
    name: &str,
    candidates: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    const LEAST_SIMILARITY: f64 = 0.75;
    candidates
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

use std::collections::{HashMap, HashSet};

use silvan_core::document::{KeyPath, Refusal};
use silvan_core::{Guid, HostId, IdVec, Lid, LinkId, NodeId, PortId, PortNumber, SwitchId};
use thiserror::Error;

use crate::fabric::nearest;
use crate::{Fabric, HostRole, Link, LinkKind, Node, NodeKind, Port};

/// An invalid description of a fabric. Nothing has been built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A name that is empty.
    #[error("{name:?} cannot be a node name: it must not be empty")]
    BadName {
        /// The name.
        name: String,
    },
    /// Two nodes of one name.
    #[error("there are two nodes named {name:?}")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A name that no node has.
    #[error("there is no node named {name:?}")]
    UnknownNode {
        /// The name.
        name: String,
        /// The most similar name of a node.
        nearest: Option<String>,
    },
    /// A cable end that is not `name:port` or the name of a host.
    #[error("{text:?} is not a port")]
    BadEndpoint {
        /// The text.
        text: String,
    },
    /// A switch with no port or with more than 254.
    #[error("switch {name:?} has {ports} ports, it must have 1 to 254")]
    PortCount {
        /// The switch.
        name: String,
        /// Number of ports of the node.
        ports: usize,
    },
    /// A port number that the node does not have.
    #[error("{node:?} has ports 1 to {port_count}, not {number}")]
    NoSuchPort {
        /// The node.
        node: String,
        /// The port number asked for.
        number: PortNumber,
        /// The number of its last port.
        port_count: u8,
    },
    /// Two cables in one port.
    #[error("two cables are plugged into {port}")]
    PortUsedTwice {
        /// The port, as `name:port`.
        port: String,
    },
    /// A cable from a node to itself.
    #[error("a cable connects {node:?} to itself")]
    SelfCable {
        /// The node.
        node: String,
    },
    /// A cable between two hosts, which no switch could route.
    #[error("a cable connects the hosts {a:?} and {b:?}; a host needs a switch")]
    HostToHost {
        /// The first host.
        a: String,
        /// The other host.
        b: String,
    },
    /// A host without a cable.
    #[error("host {name:?} is not connected to a switch")]
    UnconnectedHost {
        /// The host.
        name: String,
        /// Position of the host, from 0.
        index: usize,
    },
    /// A LID that is not one of a single port.
    #[error(
        "{node:?} cannot have LID {lid}, it must be {} to {}",
        Lid::MIN_UNICAST,
        Lid::MAX_UNICAST
    )]
    BadLid {
        /// The node.
        node: String,
        /// The LID.
        lid: Lid,
    },
    /// Two nodes have one LID.
    #[error("{a:?} and {b:?} both have LID {lid}")]
    DuplicateLid {
        /// The first node.
        a: String,
        /// The other node.
        b: String,
        /// The LID of both nodes.
        lid: Lid,
    },
    /// Two ports have one GUID.
    #[error("{a:?} and {b:?} both have GUID {guid}")]
    DuplicateGuid {
        /// The first node.
        a: String,
        /// The other node.
        b: String,
        /// The GUID of both ports.
        guid: Guid,
    },
    /// No host at all.
    #[error("the fabric has no host")]
    NoHosts,
    /// More nodes than unicast LIDs, where nodes have to have LIDs: some are given, or the fabric is to be managed or exported.
    #[error(
        "{nodes} nodes need more LIDs than the {} unicast ones",
        Lid::MAX_UNICAST
    )]
    LidsExhausted {
        /// The number of switches and hosts.
        nodes: usize,
    },
    /// A parameter of a generator that makes no sense.
    #[error("{generator}: {problem}")]
    BadParameter {
        /// The generator's name in a scenario.
        generator: &'static str,
        /// The key of the parameter.
        key: &'static str,
        /// The value and its fault.
        problem: String,
        /// A valid value.
        hint: String,
    },
}

impl From<&FabricError> for Refusal {
    fn from(error: &FabricError) -> Self {
        use FabricError as E;
        let whole = || KeyPath::ROOT;
        let (key, hint): (KeyPath, String) = match error {
            E::BadName { .. } => ("name".into(), "choose a name such as \"leaf-03\"".into()),
            E::DuplicateName { .. } => (
                "name".into(),
                "rename one; switches and hosts share their names".into(),
            ),
            E::PortCount { .. } => ("ports".into(), "write e.g. 36".into()),
            E::UnknownNode {
                nearest: Some(nearest),
                ..
            } => (whole(), format!("did you mean {nearest:?}?")),
            E::UnknownNode { name, .. } => (
                whole(),
                format!("add a [[fabric.switch]] or [[fabric.host]] with name = {name:?}"),
            ),
            E::BadEndpoint { .. } => (
                whole(),
                "write e.g. \"leaf-03:19\"; a host has only port 1".into(),
            ),
            E::NoSuchPort { .. } => (
                whole(),
                "ports count from 1; choose a free one, or give the switch more".into(),
            ),
            E::PortUsedTwice { .. } => (whole(), "move one cable to a free port".into()),
            E::SelfCable { .. } => (whole(), "lead it to another switch or host".into()),
            E::HostToHost { .. } => (
                whole(),
                "add a [[fabric.switch]] and cable both hosts to it".into(),
            ),
            E::UnconnectedHost { name, index } => (
                KeyPath::from("host").index(*index),
                format!("add a [[fabric.cable]] from \"{name}:1\" to a port of a switch"),
            ),
            E::NoHosts => (
                whole(),
                "add a [[fabric.host]] with a [[fabric.cable]]".into(),
            ),
            E::BadLid { .. } => (whole(), "leave out the LID".into()),
            E::DuplicateLid { .. } | E::DuplicateGuid { .. } => (
                whole(),
                "give each node a different one, or leave it out".into(),
            ),
            E::LidsExhausted { .. } => (
                whole(),
                "leave out all LIDs and tables by LID: a fabric without them can be simulated, but not managed".into(),
            ),
            E::BadParameter { key, hint, .. } => ((*key).into(), hint.clone()),
        };
        Self::new(key, error.to_string(), hint)
    }
}

/// First 24 bits of generated GUIDs: locally administered (bit 1 of the first byte), so none is real hardware's.
const GUID_PREFIX: u64 = 0x02_53_56 << 40;

#[derive(Debug, Clone)]
struct NewNode {
    name: String,
    is_switch: bool,
    port_count: u8,
    identity: Identity,
}

/// Identity of a real node; missing parts are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity {
    /// LID of the host's port or the switch's management port.
    pub lid: Option<Lid>,
    /// Node GUID; ports of one adapter that are hosts of their own share it.
    pub guid: Option<Guid>,
    /// Port GUID of a host; by default the node GUID plus the port's number.
    pub port_guid: Option<Guid>,
    /// Number of the host's port on its adapter, from 1.
    pub adapter_port: Option<PortNumber>,
    /// Kind of device that the host's port belongs to.
    pub role: HostRole,
}

/// A port of a node that has been added; only meaningful to the builder that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    node: NodeHandle,
    number: PortNumber,
}

/// A node of this builder; a [`NodeId`] is given when the fabric is built, switches first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeHandle(usize);

impl NodeHandle {
    /// A port of this node; its number is checked when a cable is plugged in.
    pub const fn port(self, number: u8) -> Endpoint {
        Endpoint {
            node: self,
            number: PortNumber::new(number),
        }
    }
}

/// Collects switches, hosts and cables, and builds a [`Fabric`].
///
/// Ids, LIDs and GUIDs follow from the order of calls: switches, then hosts; LIDs count from 1 unless there are too
/// few.
///
/// ```
/// use silvan_fabric::{FabricBuilder, LinkKind, Speed, Width};
///
/// let cable = LinkKind::new(Width::X4, Speed::Qdr, "1 m".parse()?);
/// let mut builder = FabricBuilder::new();
/// let switch = builder.add_switch("S1", 36)?;
/// for (name, port) in [("A", 12), ("X", 11)] {
/// let host = builder.add_host(name)?;
/// builder.connect(host.port(1), switch.port(port), cable)?;
/// }
/// let fabric = builder.build()?;
/// assert_eq!(fabric.host_count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FabricBuilder {
    nodes: Vec<NewNode>,
    by_name: HashMap<String, NodeHandle>,
    cables: Vec<(Endpoint, Endpoint, LinkKind)>,
    used: HashSet<Endpoint>,
}

impl FabricBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a switch with external ports 1 to `ports`. Errors if the name is bad or taken, or `ports` is not 1 to 254.
    pub fn add_switch(
        &mut self,
        name: impl Into<String>,
        ports: usize,
    ) -> Result<NodeHandle, FabricError> {
        let name = name.into();
        match u8::try_from(ports) {
            Ok(port_count @ 1..=254) => self.add_node(name, true, port_count),
            _ => Err(FabricError::PortCount { name, ports }),
        }
    }

    /// Adds a host; its only port is number 1. Errors if the name is bad or taken.
    pub fn add_host(&mut self, name: impl Into<String>) -> Result<NodeHandle, FabricError> {
        self.add_node(name.into(), false, 1)
    }

    fn add_node(
        &mut self,
        name: String,
        is_switch: bool,
        port_count: u8,
    ) -> Result<NodeHandle, FabricError> {
        if name.is_empty() {
            return Err(FabricError::BadName { name });
        }
        let handle = NodeHandle(self.nodes.len());
        if self.by_name.insert(name.clone(), handle).is_some() {
            return Err(FabricError::DuplicateName { name });
        }
        self.nodes.push(NewNode {
            name,
            is_switch,
            port_count,
            identity: Identity::default(),
        });
        Ok(handle)
    }

    /// Sets a node's identity, which [`build`](Self::build) checks. Panics for a node of a larger builder.
    pub fn identify(&mut self, node: NodeHandle, identity: Identity) {
        self.nodes[node.0].identity = identity;
    }

    /// The port of `name:port`, or of a host's name; ambiguous names are read as `name:port`.
    /// [`connect`](Self::connect) checks the number.
    pub fn endpoint(&self, text: &str) -> Result<Endpoint, FabricError> {
        let bad = || FabricError::BadEndpoint {
            text: text.to_owned(),
        };
        let numbered = text
            .rsplit_once(':')
            .and_then(|(name, number)| Some((self.by_name.get(name)?, number)));
        if let Some((node, number)) = numbered {
            if let Ok(number) = number.parse() {
                return Ok(node.port(number));
            }
        }
        let Some(&node) = self.by_name.get(text) else {
            let name = text.rsplit_once(':').map_or(text, |(name, _)| name);
            return Err(match numbered {
                Some(_) => bad(),
                None => FabricError::UnknownNode {
                    name: name.to_owned(),
                    nearest: nearest(name, self.nodes.iter().map(|node| node.name.as_str()))
                        .map(str::to_owned),
                },
            });
        };
        if self.nodes[node.0].is_switch {
            return Err(bad());
        }
        Ok(node.port(1))
    }

    /// Plugs a cable into two free ports of different nodes, not both hosts. Panics for a node of a larger builder.
    pub fn connect(&mut self, a: Endpoint, b: Endpoint, kind: LinkKind) -> Result<(), FabricError> {
        for end in [a, b] {
            let node = &self.nodes[end.node.0];
            if end.number.as_u8() == 0 || end.number.as_u8() > node.port_count {
                return Err(FabricError::NoSuchPort {
                    node: node.name.clone(),
                    number: end.number,
                    port_count: node.port_count,
                });
            }
            if self.used.contains(&end) {
                return Err(FabricError::PortUsedTwice {
                    port: format!("{}:{}", node.name, end.number),
                });
            }
        }
        let (node_a, node_b) = (&self.nodes[a.node.0], &self.nodes[b.node.0]);
        if a.node == b.node {
            return Err(FabricError::SelfCable {
                node: node_a.name.clone(),
            });
        }
        if !node_a.is_switch && !node_b.is_switch {
            return Err(FabricError::HostToHost {
                a: node_a.name.clone(),
                b: node_b.name.clone(),
            });
        }
        self.used.insert(a);
        self.used.insert(b);
        self.cables.push((a, b, kind));
        Ok(())
    }

    /// Builds the fabric; each host needs a cable, LIDs and GUIDs are unique, LIDs for all or none.
    pub fn build(self) -> Result<Fabric, FabricError> {
        if self.nodes.iter().all(|node| node.is_switch) {
            return Err(FabricError::NoHosts);
        }
        let has_lids = self.nodes.len() <= usize::from(Lid::MAX_UNICAST.as_u16());
        if !has_lids && self.nodes.iter().any(|node| node.identity.lid.is_some()) {
            return Err(FabricError::LidsExhausted {
                nodes: self.nodes.len(),
            });
        }
        let mut fabric = Fabric {
            nodes: IdVec::with_capacity(self.nodes.len()),
            ports: IdVec::with_capacity(
                self.nodes
                    .iter()
                    .map(|node| usize::from(node.port_count))
                    .sum(),
            ),
            links: IdVec::with_capacity(self.cables.len()),
            switches: IdVec::new(),
            hosts: IdVec::new(),
            nodes_by_lid: Vec::new(),
            nodes_by_name: HashMap::with_capacity(self.nodes.len()),
        };
        let mut ids: Vec<Option<NodeId>> = vec![None; self.nodes.len()];
        let order = [true, false].into_iter().flat_map(|switches| {
            let nodes = self.nodes.iter().enumerate();
            nodes.filter(move |(_, node)| node.is_switch == switches)
        });
        let mut lids = Lids::new(&self.nodes)?;
        for (handle, node) in order {
            let given = node.identity.lid;
            let lid = match has_lids {
                true => given.unwrap_or_else(|| lids.next_free()),
                false => Lid::new(0),
            };
            ids[handle] = Some(append_node(&mut fabric, node, lid));
        }
        check_guids(&fabric)?;
        let port_of = |fabric: &Fabric, end: Endpoint| -> PortId {
            ids[end.node.0]
                .and_then(|node| fabric.port(node, end.number))
                .expect("connect has checked the port")
        };
        for (a, b, kind) in &self.cables {
            let (a, b) = (port_of(&fabric, *a), port_of(&fabric, *b));
            let link: LinkId = fabric.links.push(Link { a, b, kind: *kind });
            for (port, peer) in [(a, b), (b, a)] {
                fabric.ports[port].link = Some(link);
                fabric.ports[port].peer = Some(peer);
            }
        }
        for host in fabric.host_ids() {
            if fabric.ports[fabric.host_port(host)].peer.is_none() {
                return Err(FabricError::UnconnectedHost {
                    name: fabric.host(host).name.clone(),
                    index: host.index(),
                });
            }
        }
        Ok(fabric)
    }
}

struct Lids {
    taken: Vec<bool>,
    next: u16,
}

impl Lids {
    fn new(nodes: &[NewNode]) -> Result<Self, FabricError> {
        let mut owners: Vec<Option<&str>> = vec![None; usize::from(u16::MAX) + 1];
        for node in nodes {
            let Some(lid) = node.identity.lid else {
                continue;
            };
            if !lid.is_unicast() {
                return Err(FabricError::BadLid {
                    node: node.name.clone(),
                    lid,
                });
            }
            if let Some(other) = owners[lid.index()].replace(&node.name) {
                return Err(FabricError::DuplicateLid {
                    a: other.to_owned(),
                    b: node.name.clone(),
                    lid,
                });
            }
        }
        Ok(Self {
            taken: owners.iter().map(Option::is_some).collect(),
            next: Lid::MIN_UNICAST.as_u16(),
        })
    }

    /// A free LID exists, because there are no more nodes than LIDs.
    fn next_free(&mut self) -> Lid {
        while self.taken[usize::from(self.next)] {
            self.next += 1;
        }
        self.next += 1;
        Lid::new(self.next - 1)
    }
}

/// A switch shares its node GUID with its port, hosts of one adapter share their node GUID.
fn check_guids(fabric: &Fabric) -> Result<(), FabricError> {
    let duplicate = |a: &Node, b: &Node, guid| FabricError::DuplicateGuid {
        a: a.name.clone(),
        b: b.name.clone(),
        guid,
    };
    let mut owners = HashMap::with_capacity(fabric.nodes.len());
    for node in fabric.nodes.iter() {
        let guid = fabric.ports[node.first_port].guid;
        if let Some(other) = owners.insert(guid, node) {
            return Err(duplicate(other, node, guid));
        }
    }
    for host in fabric.host_ids() {
        let host = fabric.host(host);
        match owners.get(&host.guid) {
            Some(other) if matches!(other.kind, NodeKind::Switch(_)) => {
                return Err(duplicate(other, host, host.guid));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The usual port GUID of adapters: the node GUID plus the port's number.
fn default_port_guid(node: Guid, identity: &Identity) -> Guid {
    let number = identity.adapter_port.map_or(1, PortNumber::as_u8);
    Guid::new(node.as_u64().wrapping_add(u64::from(number)))
}

pub(crate) fn generated_guid(node: NodeId) -> Guid {
    Guid::new(GUID_PREFIX | (node.index() as u64 + 1) << 8)
}

fn append_node(fabric: &mut Fabric, new: &NewNode, lid: Lid) -> NodeId {
    let node = NodeId::new(fabric.nodes.len());
    let guid = new.identity.guid.unwrap_or_else(|| generated_guid(node));
    let kind = if new.is_switch {
        NodeKind::Switch(SwitchId::new(fabric.switches.len()))
    } else {
        NodeKind::Host(HostId::new(fabric.hosts.len()))
    };
    let first_port = PortId::new(fabric.ports.len());
    for number in 1..=new.port_count {
        let port_guid = match (new.is_switch, new.identity.port_guid) {
            (true, _) => guid,
            (false, Some(given)) => given,
            (false, None) => default_port_guid(guid, &new.identity),
        };
        fabric.ports.push(Port {
            node,
            number: PortNumber::new(number),
            guid: port_guid,
            link: None,
            peer: None,
        });
    }
    match kind {
        NodeKind::Switch(_) => {
            fabric.switches.push(node);
        }
        NodeKind::Host(_) => {
            fabric.hosts.push(node);
        }
    }
    if lid.is_unicast() {
        if fabric.nodes_by_lid.len() <= lid.index() {
            fabric.nodes_by_lid.resize(lid.index() + 1, None);
        }
        fabric.nodes_by_lid[lid.index()] = Some(node);
    }
    fabric.nodes_by_name.insert(new.name.clone(), node);
    fabric.nodes.push(Node {
        kind,
        name: new.name.clone(),
        guid,
        lid,
        adapter_port: match new.is_switch {
            true => None,
            false => Some(new.identity.adapter_port.unwrap_or(PortNumber::new(1))),
        },
        role: (!new.is_switch).then_some(new.identity.role),
        first_port,
        port_count: new.port_count,
    })
}

#[cfg(test)]
mod tests;

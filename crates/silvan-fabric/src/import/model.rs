use silvan_core::{DeviceId, Guid, Lid, PortNumber};

use crate::import::ImportWarning;
use crate::{
    Cable, Fabric, FabricBuilder, FabricError, HostRole, Identity, LinkKind, Speed, Width,
};

/// Switches, hosts and cables as a file describes them, checked and named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedFabric {
    /// Switches and hosts in the order of the file.
    pub nodes: Vec<ImportedNode>,
    /// Cables in the order of the file, each once.
    pub cables: Vec<ImportedCable>,
    /// Oddities of the file, in the order of its lines.
    pub warnings: Vec<ImportWarning>,
}

impl ImportedFabric {
    /// Builds the fabric with missing widths, speeds and lengths from `link`. Errors as [`FabricBuilder`].
    pub fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let mut builder = FabricBuilder::new();
        let mut handles = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let handle = match node.switch_ports {
                Some(ports) => builder.add_switch(node.name.as_str(), usize::from(ports))?,
                None => builder.add_host(node.name.as_str())?,
            };
            builder.identify(handle, node.identity());
            handles.push(handle);
        }
        for cable in &self.cables {
            let [from, to] = [cable.from, cable.to].map(|(node, port)| handles[node].port(port));
            let given = Cable {
                width: cable.width,
                speed: cable.speed,
                ..Cable::default()
            };
            let kind = given.or(link);
            builder.connect(from, to, kind)?;
        }
        builder.build()
    }

    /// Leaves out aggregation nodes and their cables, with a warning: they change neither routes nor traffic of hosts.
    #[must_use]
    pub fn without_aggregation(mut self) -> Self {
        let is_left_out = |node: &ImportedNode| node.kind == NodeKind::Aggregation;
        let Some(first) = self.nodes.iter().find(|node| is_left_out(node)) else {
            return self;
        };
        let line = first.line;
        let mut kept = 0;
        let positions: Vec<Option<usize>> = self
            .nodes
            .iter()
            .map(|node| {
                let position = (!is_left_out(node)).then_some(kept);
                kept += usize::from(position.is_some());
                position
            })
            .collect();
        let count = self.nodes.len() - kept;
        self.nodes.retain(|node| !is_left_out(node));
        self.cables = self
            .cables
            .into_iter()
            .filter_map(|mut cable| {
                cable.from.0 = positions[cable.from.0]?;
                cable.to.0 = positions[cable.to.0]?;
                Some(cable)
            })
            .collect();
        let nodes = if count == 1 {
            "node of a switch (SHARP) is"
        } else {
            "nodes of switches (SHARP) are"
        };
        self.warnings.push(ImportWarning {
            line,
            message: format!("{count} aggregation {nodes} left out"),
        });
        self.warnings.sort_by_key(|warning| warning.line);
        self
    }
}

impl ImportedNode {
    /// Returns the identity of the node.
    pub fn identity(&self) -> Identity {
        Identity {
            lid: self.lid,
            guid: self.guid,
            port_guid: self.port_guid,
            adapter_port: self.adapter_port,
            role: self.kind.role(),
        }
    }
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Forwards packets.
    Switch,
    /// Sends and receives packets.
    Adapter,
    /// Receives the packets that leave the subnet.
    Router,
    /// Reduces data inside a switch (SHARP): a port of the switch's chip, which tools list as an adapter.
    Aggregation,
}

impl NodeKind {
    const AGGREGATION_DEVICE: u32 = 0xcf09;

    /// The description of aggregation nodes, unless someone has changed it. Names of nodes start with it.
    pub const AGGREGATION_NAME: &str = "Mellanox Technologies Aggregation Node";

    fn role(self) -> HostRole {
        match self {
            Self::Router => HostRole::Router,
            Self::Aggregation => HostRole::Aggregation,
            Self::Adapter | Self::Switch => HostRole::Adapter,
        }
    }

    /// The kind of a node that is no switch, by its NodeDescription and device.
    pub fn of_adapter(is_router: bool, description: &str, device: Option<DeviceId>) -> Self {
        let of_device = device.is_some_and(|id| {
            id.vendor == DeviceId::MELLANOX && id.device == Self::AGGREGATION_DEVICE
        });
        match is_router {
            true => Self::Router,
            false if of_device || description == Self::AGGREGATION_NAME => Self::Aggregation,
            false => Self::Adapter,
        }
    }
}

/// A switch, or a port of an adapter or router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedNode {
    /// Unique name.
    pub name: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Vendor and device, if the file says.
    pub device: Option<DeviceId>,
    /// Line of the file that describes it; 0 if there is no file.
    pub line: usize,
    /// Number of ports of a switch, `None` for a host.
    pub switch_ports: Option<u8>,
    /// Node GUID.
    pub guid: Option<Guid>,
    /// Port GUID of a host.
    pub port_guid: Option<Guid>,
    /// Base LID.
    pub lid: Option<Lid>,
    /// Number of the host's port on its adapter.
    pub adapter_port: Option<PortNumber>,
}

/// A cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedCable {
    /// The first end: position in [`ImportedFabric::nodes`], and port number there (1 for a host).
    pub from: (usize, u8),
    /// The other end.
    pub to: (usize, u8),
    /// Lanes in use, if the file says.
    pub width: Option<Width>,
    /// Speed in use, if the file says.
    pub speed: Option<Speed>,
}

//! What an importer hands over.

use silvan_core::{Guid, Lid, PortNumber};

use crate::import::ImportWarning;
use crate::{Cable, Fabric, FabricBuilder, FabricError, Identity, LinkKind, Speed, Width};

/// Switches, hosts and cables as a file describes them, checked and named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedFabric {
    /// Switches and hosts in the order of the file.
    pub nodes: Vec<ImportedNode>,
    /// Cables in the order of the file, each once.
    pub cables: Vec<ImportedCable>,
    /// What is odd about the file, in the order of its lines.
    pub warnings: Vec<ImportWarning>,
}

impl ImportedFabric {
    /// Builds the fabric; cables have the width and speed of `link` where the file does not say, and
    /// its length.
    ///
    /// # Errors
    ///
    /// What [`FabricBuilder`] finds: no host, a LID or GUID of two nodes.
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
}

impl ImportedNode {
    /// What the node is known by.
    pub fn identity(&self) -> Identity {
        Identity {
            lid: self.lid,
            guid: self.guid,
            port_guid: self.port_guid,
            adapter_port: self.adapter_port,
        }
    }
}

/// A switch, or a port of an adapter or router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedNode {
    /// Unique name.
    pub name: String,
    /// Number of ports of a switch, `None` for a host.
    pub switch_ports: Option<u8>,
    /// Node GUID.
    pub guid: Option<Guid>,
    /// Port GUID of a host.
    pub port_guid: Option<Guid>,
    /// Base LID.
    pub lid: Option<Lid>,
    /// Which port of its adapter a host is.
    pub adapter_port: Option<PortNumber>,
}

/// A cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedCable {
    /// One end: position in [`ImportedFabric::nodes`], and port number there (1 for a host).
    pub from: (usize, u8),
    /// The other end.
    pub to: (usize, u8),
    /// Lanes in use, if the file says.
    pub width: Option<Width>,
    /// Speed in use, if the file says.
    pub speed: Option<Speed>,
}

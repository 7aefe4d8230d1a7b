use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Generator;
use super::row::Row;
use crate::routing::{MinHop, Routing};
use crate::{Fabric, FabricError, LinkKind};

/// A chain of switches, the parking-lot fabric: the flows of every switch join those that come down
/// the chain.
///
/// Hosts are on ports 1 to n, the previous switch on port n + 1, the next one on port n + 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Chain {
    /// Number of switches.
    pub switches: usize,
    /// Hosts at each switch.
    pub hosts_per_switch: usize,
}

impl Generator for Chain {
    fn default_routing(&self) -> Routing {
        MinHop {}.into()
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let row = Row {
            generator: Self::NAME,
            switches: self.switches,
            hosts_per_switch: self.hosts_per_switch,
            hosts_key: "hosts-per-switch",
            trunk_ports: 2,
            link,
        };
        let (mut builder, switches) = row.hosts_and_switches()?;
        row.connect_neighbours(&mut builder, &switches)?;
        builder.build()
    }
}

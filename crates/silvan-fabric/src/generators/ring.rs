use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Generator;
use super::row::Row;
use crate::routing::{MinHop, Routing};
use crate::{Fabric, FabricError, LinkKind};

/// A ring of switches. Minimal routes around it depend on each other in a cycle, so that a lossless
/// fabric of this shape can deadlock.
///
/// Hosts are on ports 1 to n, the previous switch on port n + 1, the next one on port n + 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Ring {
    /// Number of switches, at least 3.
    pub switches: usize,
    /// Hosts at each switch.
    pub hosts_per_switch: usize,
}

impl Generator for Ring {
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
        if self.switches < 3 {
            let problem = format!("{} switches, it must be 3 or more", self.switches);
            return Err(row.parameter("switches").bad(problem, "write 3 or more"));
        }
        let (mut builder, switches) = row.hosts_and_switches()?;
        row.connect_neighbours(&mut builder, &switches)?;
        row.connect(&mut builder, switches[switches.len() - 1], switches[0])?;
        builder.build()
    }
}

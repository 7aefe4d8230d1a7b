use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Generator;
use super::row::Row;
use crate::{Fabric, FabricError, LinkKind};

/// One switch with hosts on all its ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SingleSwitch {
    /// Number of hosts, which is the number of ports: 1 to 254.
    pub hosts: usize,
}

impl Default for SingleSwitch {
    fn default() -> Self {
        Self { hosts: 8 }
    }
}

impl Generator for SingleSwitch {
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        let row = Row {
            generator: Self::NAME,
            switches: 1,
            hosts_per_switch: self.hosts,
            hosts_key: "hosts",
            trunk_ports: 0,
            link,
        };
        row.hosts_and_switches()?.0.build()
    }
}

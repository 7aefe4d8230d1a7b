use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Generator, Grid};
use crate::routing::{DimensionOrder, Routing};
use crate::{Fabric, FabricError, LinkKind};

/// A mesh: switches at the points of a grid, each cabled to its neighbours in every dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Mesh {
    /// Switches along each dimension.
    pub sizes: Vec<usize>,
    /// Hosts at each switch.
    pub hosts_per_switch: usize,
}

impl Mesh {
    fn as_grid(&self) -> Grid {
        Grid {
            sizes: self.sizes.clone(),
            wraps: false,
            hosts_per_switch: self.hosts_per_switch,
        }
    }
}

impl Generator for Mesh {
    fn default_routing(&self) -> Routing {
        DimensionOrder {}.into()
    }

    fn grid(&self) -> Option<Grid> {
        Some(self.as_grid())
    }

    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError> {
        self.as_grid().build(link)
    }
}

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Generator, Grid};
use crate::routing::{DimensionOrder, Routing};
use crate::{Fabric, FabricError, LinkKind};

/// A torus: a mesh in which the ends of every row are joined (a k-ary n-cube where all sizes are equal).
/// With two data virtual lanes or more its rings have datelines and cannot deadlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Torus {
    /// Switches along each dimension, at least 3.
    pub sizes: Vec<usize>,
    /// Hosts at each switch.
    pub hosts_per_switch: usize,
}

impl Torus {
    fn as_grid(&self) -> Grid {
        Grid {
            sizes: self.sizes.clone(),
            wraps: true,
            hosts_per_switch: self.hosts_per_switch,
        }
    }
}

impl Generator for Torus {
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

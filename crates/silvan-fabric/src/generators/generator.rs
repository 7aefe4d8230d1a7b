//! The trait of a topology.

use super::Grid;
use crate::routing::{PathLanes, Routing, RoutingError, dimension_order};
use crate::{Fabric, FabricError, ForwardingTables, LinkKind};

/// Forwarding tables and, where they need several, the lanes of paths; or why there are none.
pub type Routed = Result<(ForwardingTables, Option<PathLanes>), RoutingError>;

/// A topology with its parameters.
pub trait Generator {
    /// Builds the fabric; all cables are of the kind `link` unless the topology has its own.
    ///
    /// # Errors
    ///
    /// A parameter is out of its range, a switch would have more than 254 ports, or there are more nodes than LIDs.
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError>;

    /// How the forwarding tables are made where the scenario names no routing.
    fn default_routing(&self) -> Routing {
        Routing::DModK
    }

    /// The coordinates of the switches, if they are at the points of a grid: dimension-order routing and the
    /// datelines of a torus follow them.
    fn grid(&self) -> Option<Grid> {
        None
    }

    /// Dimension-order routes through the fabric that it builds, `None` for a topology without dimensions.
    fn dimension_order(&self, fabric: &Fabric) -> Option<Routed> {
        Some(dimension_order(fabric, &self.grid()?))
    }
}

//! The trait of a topology.

use silvan_core::{IdVec, PortId, SwitchId};

use super::Grid;
use crate::routing::{
    LaneSteps, PathLanes, Routing, RoutingError, Waypoints, computed_dimension_order,
    computed_group_minimal, dimension_order, equal_kinds, group_minimal, kinds_between,
};
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

    /// The same routes to hosts, computed instead of tabulated, and the same lanes. `None` where there are only tables.
    fn computed_dimension_order(
        &self,
        fabric: &Fabric,
    ) -> Option<(ForwardingTables, Option<PathLanes>)> {
        computed_dimension_order(fabric, &self.grid()?)
    }

    /// The group of a switch, for a topology of groups that are joined by cables between them.
    fn group(&self, _switch: SwitchId) -> Option<u32> {
        None
    }

    /// How the forwarding tables are made where the scenario names no routing and paths over other switches are chosen.
    fn minimal_routing(&self) -> Routing {
        match (self.default_routing(), self.group(SwitchId::new(0))) {
            (_, Some(_)) => Routing::GroupMinimal,
            // Lanes follow from the path then.
            (Routing::LayeredMinHop, None) => Routing::MinHop,
            (routing, None) => routing,
        }
    }

    /// Minimal routes between and inside groups, `None` for a topology without groups.
    fn group_minimal(&self, fabric: &Fabric) -> Option<Routed> {
        self.group(SwitchId::new(0))?;
        let tables = group_minimal(fabric, |switch| self.group(switch).unwrap_or(0));
        Some(tables.map(|tables| (tables, None)))
    }

    /// The same routes to hosts, computed instead of tabulated. `None` where there are only tables.
    fn computed_group_minimal(
        &self,
        fabric: &Fabric,
    ) -> Option<(ForwardingTables, Option<PathLanes>)> {
        self.group(SwitchId::new(0))?;
        let routes = computed_group_minimal(fabric, |switch| self.group(switch).unwrap_or(0))?;
        Some((ForwardingTables::computed(fabric, routes), None))
    }

    /// The kind of the cable out of each port, for [`LaneSteps`](crate::routing::LaneSteps). A path on which kinds
    /// increase needs one lane. With groups, cables inside them are of kind 1 and others of kind 2; elsewhere all
    /// are of one kind, unless the topology has its own.
    fn cable_kinds(&self, fabric: &Fabric) -> IdVec<PortId, u8> {
        match self.group(SwitchId::new(0)) {
            Some(_) => kinds_between(fabric, |from, to| {
                1 + u8::from(self.group(from) != self.group(to))
            }),
            None => equal_kinds(fabric),
        }
    }

    /// The lanes of paths through the fabric that it builds, of which there is one.
    fn lane_steps(&self, fabric: &Fabric) -> LaneSteps {
        LaneSteps::new(self.cable_kinds(fabric), 1)
    }

    /// The switches that packets can be sent over.
    fn waypoints(&self, fabric: &Fabric) -> Waypoints {
        let group = |switch: SwitchId| self.group(switch).unwrap_or(switch.index() as u32);
        Waypoints::new(fabric, fabric.switch_ids().map(group).collect())
    }
}

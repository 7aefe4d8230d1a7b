use silvan_core::{IdVec, PortId, SwitchId};

use super::{FullRows, Grid};
use crate::routing::{
    DModK, LaneSteps, PathChoice, Routing, Waypoints, equal_kinds, kinds_between,
};
use crate::{Fabric, FabricError, LinkKind};

/// A topology with its parameters.
pub trait Generator {
    /// Builds the fabric with cables like `link` or the topology's own; fails for a parameter out of range, more than
    /// 254 ports, or too few LIDs.
    fn build(&self, link: LinkKind) -> Result<Fabric, FabricError>;

    /// Returns the routing of scenarios that name none.
    fn default_routing(&self) -> Routing {
        DModK {}.into()
    }

    /// Returns the routing of scenarios that name none, for this path choice.
    fn routing_for(&self, choice: PathChoice) -> Routing {
        let default = self.default_routing();
        let substitute = default.algorithm().and_then(|one| one.substitute(choice));
        substitute.unwrap_or(default)
    }

    /// Coordinates in a grid, for dimension-order routing and datelines.
    fn grid(&self) -> Option<Grid> {
        None
    }

    /// Coordinates in a grid with fully connected rows, for dimension-order routing.
    fn full_rows(&self) -> Option<FullRows> {
        None
    }

    /// The group of a switch, for a topology of groups that are joined by cables between them.
    fn group(&self, _switch: SwitchId) -> Option<u32> {
        None
    }

    /// The kind of the cable out of each port, for [`LaneSteps`](crate::routing::LaneSteps): increasing kinds need one
    /// lane. Inside groups it is 1, between them 2, elsewhere one kind.
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

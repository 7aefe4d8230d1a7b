use silvan_core::{IdVec, PortId, SwitchId};

use super::{FullRows, Grid};
use crate::routing::{
    DModK, LaneSteps, PathChoice, Routing, Waypoints, equal_kinds, kinds_between,
};
use crate::{Fabric, FabricError, LinkKind};

/// A topology with its parameters.
pub trait Generator {
    /// Builds the fabric; all cables are of the kind `link` unless the topology has its own. Errors: a parameter is out
    /// of its range, a switch would have more than 254 ports, or there are more nodes than LIDs.
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

    /// The coordinates of the switches, if they are at the points of a grid: dimension-order routing and the
    /// datelines of a torus follow them.
    fn grid(&self) -> Option<Grid> {
        None
    }

    /// The coordinates of the switches, if they are at the points of a grid with fully connected rows: dimension-order
    /// routing follows them.
    fn full_rows(&self) -> Option<FullRows> {
        None
    }

    /// The group of a switch, for a topology of groups that are joined by cables between them.
    fn group(&self, _switch: SwitchId) -> Option<u32> {
        None
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

use super::{
    Alternatives, ForwardingTables, PathChoice, PathLanes, Routing, RoutingError,
    minimal_alternatives,
};
use crate::Fabric;
use crate::generators::Generator;

/// Forwarding tables and, where they need several, the lanes of paths; or why there are none.
pub type Routed = Result<(ForwardingTables, Option<PathLanes>), RoutingError>;

/// Everything that routes are computed from.
#[derive(Clone, Copy)]
pub struct RoutingInput<'a> {
    /// Switches, hosts and cables.
    pub fabric: &'a Fabric,
    /// The generator of the fabric, which knows coordinates and groups of switches; `None` for a listed fabric.
    pub topology: Option<&'a dyn Generator>,
    /// Data virtual lanes that each port may have.
    pub data_vls: u8,
}

/// A routing algorithm with its keys.
pub trait RoutingAlgorithm {
    /// Computes the tables and lanes from the input alone; fails if the algorithm does not suit fabric or topology.
    fn routes(&self, input: RoutingInput<'_>) -> Routed;

    /// Returns routes without tables that lead over the same cables and lanes, for large fabrics, if the algorithm has them.
    fn computed(&self, _input: RoutingInput<'_>) -> Option<(ForwardingTables, Option<PathLanes>)> {
        None
    }

    /// Ports that switches may choose (`fabric.path-choice`), the tables' among them; fails for unconnected switches.
    fn alternatives(&self, input: RoutingInput<'_>) -> Result<Alternatives, RoutingError> {
        minimal_alternatives(input.fabric)
    }

    /// True if switches may choose [`alternatives`](Self::alternatives), without the lanes of [`routes`](Self::routes).
    fn allows_choice(&self) -> bool {
        true
    }

    /// The routing that replaces this one as the default of a topology, if switches choose paths. `None`: this one stays.
    fn substitute(&self, _choice: PathChoice) -> Option<Routing> {
        None
    }

    /// Returns true if the lane of a packet has to go up along its way, so that packets cannot deadlock.
    fn raises_lanes(&self, choice: PathChoice) -> bool {
        choice.is_among_shortest() && self.allows_choice()
    }

    /// Lanes that each class of service gets by default, of the `data_vls` of a port.
    fn lanes_per_class(&self, _topology: Option<&dyn Generator>, _data_vls: u8) -> u8 {
        1
    }

    /// Advice for routes that can deadlock, where `lanes` lanes would prevent that. `None`: use another routing.
    fn deadlock_hint(&self, _lanes: u8) -> Option<String> {
        None
    }
}

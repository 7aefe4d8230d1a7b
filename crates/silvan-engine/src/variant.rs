//! What an engine is compiled for: every fabric, or those that most studies use.

use silvan_fabric::Fabric;
use silvan_fabric::routing::Routes;

use crate::plane::Plane;
use silvan_model::{BecnCarrier, BuildError, EngineConfig};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::General {}
    impl Sealed for super::Specialised {}
    impl Sealed for super::Lookahead {}
}

/// How much an engine's hot loop has to ask.
pub trait EngineVariant: sealed::Sealed {
    /// Whether it is for plain fabrics only; [`CompiledFabric::is_specialisable`] says which they are.
    const SPECIALISED: bool;
    /// Whether events are taken window by window; [`CompiledFabric::has_lookahead`] says where they can be.
    const LOOKAHEAD: bool = false;
}

/// An engine for every fabric.
#[derive(Clone, Copy, Debug)]
pub struct General;

/// An engine for plain fabrics. What it need not ask is a tenth of a run's time.
#[derive(Clone, Copy, Debug)]
pub struct Specialised;

/// An engine for plain fabrics in which nothing has an effect elsewhere before some time has passed: within such
/// a window events of different ports are taken in any order.
#[derive(Clone, Copy, Debug)]
pub struct Lookahead;

impl EngineVariant for General {
    const SPECIALISED: bool = false;
}

impl EngineVariant for Specialised {
    const SPECIALISED: bool = true;
}

impl EngineVariant for Lookahead {
    const SPECIALISED: bool = true;
    const LOOKAHEAD: bool = true;
}

/// A fabric and its routes, ready to be run.
#[derive(Debug)]
pub struct CompiledFabric(pub(crate) Plane);

impl CompiledFabric {
    /// Compiles a fabric.
    ///
    /// # Errors
    /// A value of `config` that cannot be simulated, or a host without exactly one cable.
    pub fn new<'a>(
        fabric: &Fabric,
        routes: impl Into<Routes<'a>>,
        config: &EngineConfig,
    ) -> Result<Self, BuildError> {
        Plane::build(fabric, routes.into(), config).map(Self)
    }

    /// Whether an engine of the form [`Specialised`] can run it: one virtual lane, virtual output queues,
    /// round-robin arbitration without limits on reads or overtaking, switches of at most 64 ports, no output faster than an input
    /// of its switch, and service levels that do not depend on the path.
    pub fn is_specialisable(&self) -> bool {
        let plane = &self.0;
        plane.vls == 1
            && plane.reads.is_none()
            && plane.fifos.is_none()
            && !plane.oldest_first
            && !plane.mixed
            && plane.routing.keep_lanes()
            && plane.lanes.iter().all(|lane| lane.words == 1)
    }

    /// Whether an engine of the form [`Lookahead`] can run it: it is plain, it takes both a head and a credit
    /// a while to reach the next port, and switches do not choose among ports, nor destinations
    /// acknowledge.
    pub fn has_lookahead(&self) -> bool {
        let plane = &self.0;
        self.is_specialisable()
            && !plane.routing.has_choices()
            && plane.config.feedback.carrier == BecnCarrier::Cnp
            && plane.window().is_some()
    }

    /// The same with congestion control of which each port and each host has a part of its own.
    pub fn has_lookahead_with_control(&self) -> bool {
        self.has_lookahead() && self.0.knows_feedback()
    }
}

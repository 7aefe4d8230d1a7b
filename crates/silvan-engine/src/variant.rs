use silvan_fabric::Fabric;
use silvan_fabric::routing::Routes;

use crate::plane::Plane;
use silvan_model::{BecnCarrier, BuildError, EngineConfig};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::General {}
    impl Sealed for super::Lookahead {}
    impl Sealed for super::GeneralLookahead {}
    impl Sealed for super::Traced {}
}

/// The fabrics that an engine's hot loop supports.
pub trait EngineVariant: sealed::Sealed + Send {
    /// True if the engine is for [plain](CompiledFabric::is_plain) fabrics only.
    const PLAIN: bool = false;
    /// True if the engine processes events by lookahead windows; [`CompiledFabric::has_windows`] has the conditions.
    const LOOKAHEAD: bool = false;
    /// True if the engine can record packets hop by hop.
    const TRACES: bool = false;
    /// True if the engine has links with PFC.
    const PFC: bool = !Self::PLAIN;
}

/// An engine for every fabric.
#[derive(Clone, Copy, Debug)]
pub struct General;

/// An engine for plain fabrics, whose events affect other ports after some time: in windows, ports in any order.
#[derive(Clone, Copy, Debug)]
pub struct Lookahead;

/// A lookahead engine for every fabric whose switches have no immediate effect on each other.
#[derive(Clone, Copy, Debug)]
pub struct GeneralLookahead;

impl EngineVariant for General {}

/// An engine for every fabric that records packets hop by hop. The others have no code for it.
#[derive(Clone, Copy, Debug)]
pub struct Traced;

impl EngineVariant for Traced {
    const TRACES: bool = true;
}

impl EngineVariant for Lookahead {
    const PLAIN: bool = true;
    const LOOKAHEAD: bool = true;
}

impl EngineVariant for GeneralLookahead {
    const LOOKAHEAD: bool = true;
}

/// A fabric and its routes, ready to be run.
#[derive(Debug)]
pub struct CompiledFabric(pub(crate) Plane);

impl CompiledFabric {
    /// Compiles a fabric. Errors: a value of `config` that cannot be simulated, or a host without exactly one cable.
    pub fn new<'a>(
        fabric: &Fabric,
        routes: impl Into<Routes<'a>>,
        config: &EngineConfig,
    ) -> Result<Self, BuildError> {
        Plane::build(fabric, routes.into(), config).map(Self)
    }

    /// True if plain: credits, one lane, path-independent service levels, virtual output queues, unlimited round robin,
    /// at most 64 ports without choices, no output faster than an input.
    pub fn is_plain(&self) -> bool {
        let plane = &self.0;
        plane.vls == 1
            && plane.pauses.is_none()
            && plane.reads.is_none()
            && plane.fifos.is_none()
            && !plane.oldest_first
            && !plane.mixed
            && plane.routing.keep_lanes()
            && !plane.routing.has_choices()
            && plane.lanes.iter().all(|lane| lane.words == 1)
    }

    /// True if [`Lookahead`] fits: plain, without output buffers, and [`GeneralLookahead`] fits.
    pub fn has_lookahead(&self) -> bool {
        self.is_plain() && !self.0.orders_ports() && self.has_windows()
    }

    /// True if [`GeneralLookahead`] fits: heads, credits and pauses take time, and paths read no other switches.
    pub fn has_windows(&self) -> bool {
        let plane = &self.0;
        plane.transport.is_none()
            && (plane.routing.detours.as_ref()).is_none_or(|detours| detours.is_local())
            && plane.window().is_some()
    }

    /// Returns true if destinations restore order, so that they may hand over several packets at one instant.
    pub fn restores_order(&self) -> bool {
        self.0.reordering.is_some() && self.0.config.host.in_order
    }

    /// Follows messages, because packets of them may be lost: packets carry the number of their message.
    ///
    /// Has no effect if hosts retry, or if packets go over waypoints.
    pub fn follow_messages(&mut self) {
        self.0.follow_messages();
    }

    /// Lets packets carry the number of their message, for a workload that learns of each loss.
    ///
    /// Has no effect if hosts retry, or if packets go over waypoints.
    pub fn number_packets(&mut self) {
        self.0.number_packets();
    }

    /// Removes the retries of hosts.
    pub fn forget_retries(&mut self) {
        self.0.transport = None;
    }

    /// True if changes of congestion control at hosts, separate for each, are known before their window.
    pub fn knows_feedback(&self) -> bool {
        self.0.knows_feedback()
    }

    /// Returns true if destinations answer packets that no switch has marked.
    pub fn acknowledges(&self) -> bool {
        matches!(
            self.0.config.feedback.carrier(),
            BecnCarrier::AckPerPacket | BecnCarrier::AckPerMessage
        )
    }
}

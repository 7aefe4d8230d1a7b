//! A simulation as those see it who drive it: any control, any workload, any engine.
//!
//! The engine is generic over congestion control and workload, and is compiled for each combination that
//! it is used with. Nobody but `silvan-compiled` does that. Who starts a run says what it shall
//! consist of, [`AnySwitch`], [`AnySource`] and a workload, and is handed a [`Simulation`] by some
//! [`Engines`]; who emulates a live fabric, a [`LiveSimulation`]. So a change of the engine
//! leaves everything but the engine as it was compiled.

mod control;
pub mod meter;
pub mod paths;
mod simulation;

use silvan_fabric::Fabric;
use silvan_fabric::routing::Routes;
use silvan_interface::{BuildError, EngineConfig};
use silvan_workload::programs::Load;
use silvan_workload::traffic::Traffic;

pub use control::{AnySource, AnySwitch};
use meter::{MeteredAdapter, MeteredSwitch};
pub use simulation::{ClassTotals, LiveSimulation, Simulation};

/// The fabric of a simulation, and all that is set of its data plane.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// What is cabled to what.
    pub fabric: &'a Fabric,
    /// Where packets go.
    pub routes: Routes<'a>,
    /// Parameters of the data plane.
    pub config: &'a EngineConfig,
    /// Whether packets without a forwarding entry are discarded and counted; else they end the run.
    pub discards_unroutable: bool,
}

/// Who has engines compiled.
pub trait Engines {
    /// Starts a run.
    ///
    /// # Errors
    /// A value of the configuration that cannot be simulated, or a host without exactly one cable.
    fn start(
        &self,
        network: Network<'_>,
        switch: AnySwitch,
        source: AnySource,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError>;

    /// Starts one for a live fabric.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        traffic: Traffic,
    ) -> Result<Box<dyn LiveSimulation>, BuildError>;
}

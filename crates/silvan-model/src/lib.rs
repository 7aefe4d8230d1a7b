//! Parameters, results and interface of a simulation, without an engine: callers compile without `silvan-instances`.
//!
//! - [`EngineConfig`], counters, latencies, congestion trees, [`EngineError`].
//! - [`AnySwitch`] and [`AnySource`]: any congestion-control scheme as one type each.
//! - [`Simulation`] and [`LiveSimulation`]: a running engine; [`Engines`] starts them.
//!
//! ```
//! use silvan_model::{BuildError, EngineConfig};
//!
//! let mut config = EngineConfig::default();
//! assert_eq!(config.validate(), Ok(()));
//! config.data_vls = 16;
//! assert_eq!(config.validate(), Err(BuildError::DataVls(16)));
//! ```

pub mod bit_errors;
mod buffers;
mod build_error;
mod config;
mod faults;
mod latencies;
pub mod meter;
pub mod paths;
pub mod pfc;
mod readings;
mod simulation;
mod tracing;
mod trees;

pub use silvan_cc::notification::BecnCarrier;
use silvan_cc::schemes::Control;
use silvan_core::Time;
use silvan_fabric::Fabric;
use silvan_fabric::routing::Routes;
use silvan_workload::programs::Load;

pub use buffers::{CreditLoop, MOST_BUFFER};
pub use build_error::BuildError;
pub use config::{
    Arbitration, CrossbarFeed, EngineConfig, FastForward, FeedbackParams, FeedbackPath,
    HostArbitration, HostParams, LatencyStats, OutputBuffer, PacketParams, Queueing, RetryParams,
    Sink, SwitchParams, VlArbitration,
};
pub use faults::{Deadlock, EngineError, InvariantError, Loss};
pub use latencies::{LATENCY_MANTISSA, Latencies, latency_bucket};
pub use pfc::{PfcLimits, PfcParams};
pub use readings::{FlowProgress, HostCounters, LostPackets, OnWire};
pub use simulation::{Balance, ClassTotals, FabricChange, LiveSimulation, PortReading, Simulation};
pub use tracing::{PacketFilter, PacketHop, PacketKind};
pub use trees::{Forest, HostShare, Member, Role, Tree};

use meter::{MeteredAdapter, MeteredSwitch};

/// The latest instant of a run: 2^62 ps, about 53 days. Sums with it still fit into 64 bits.
pub const LATEST: Time = Time::from_ps(1 << 62);

/// The fabric of a simulation, and all that is set of its data plane.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// Nodes and their cables.
    pub fabric: &'a Fabric,
    /// Forwarding tables and lanes of the paths.
    pub routes: Routes<'a>,
    /// Parameters of the data plane.
    pub config: &'a EngineConfig,
    /// True if packets without a forwarding entry are discarded and counted; otherwise they end the run.
    pub discards_unroutable: bool,
    /// True if settings that delay credit returns may change during the run.
    pub may_delay_credits: bool,
    /// True if cables or sinks [change](Simulation::change_fabric) during the run. Such a run has no lookahead windows.
    pub changes_fabric: bool,
    /// True if faults may lose packets, so that messages are [followed](Simulation::lost).
    pub loses_packets: bool,
    /// Threads for the run, if it can be divided among them.
    pub threads: usize,
    /// The packets that are recorded hop by hop, if any. They take an engine of their own, which is slower.
    pub trace: Option<&'a PacketFilter>,
}

/// A set of compiled engines.
pub trait Engines {
    /// Starts a run; an error names an impossible value, or a host without exactly one cable.
    fn start(
        &self,
        network: Network<'_>,
        control: Control,
        load: Load,
    ) -> Result<Box<dyn Simulation>, BuildError>;

    /// Starts one for a live fabric. Errors as [`start`](Self::start).
    fn start_live(
        &self,
        network: Network<'_>,
        switch: MeteredSwitch,
        adapter: MeteredAdapter,
        load: Load,
    ) -> Result<Box<dyn LiveSimulation>, BuildError>;
}

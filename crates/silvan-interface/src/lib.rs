//! What the engine is told and what it tells: its parameters, the seam to the traffic, counters, trees
//! and faults.
//!
//! Nobody but who compiles the engine needs more of it than this. It is apart from `silvan-engine` so that
//! all others need not be compiled anew when the engine changes.
//!
//! ```
//! use silvan_interface::{BuildError, EngineConfig};
//!
//! let mut config = EngineConfig::default();
//! assert_eq!(config.validate(), Ok(()));
//! config.data_vls = 16;
//! assert_eq!(config.validate(), Err(BuildError::DataVls(16)));
//! ```

mod config;
mod faults;
mod latencies;
mod readings;
mod trees;

pub use config::{
    Arbitration, BecnCarrier, BecnPath, BuildError, EngineConfig, FeedbackParams, HostParams,
    LatencyStats, OutputBuffer, PacketParams, Queueing, Sink, SwitchParams, VlArbitration,
};
pub use faults::{Deadlock, InvariantError, RunError};
pub use latencies::Latencies;
pub use readings::{Discards, FlowProgress, HostCounters, OnWire, PortCounters};
pub use trees::{Forest, HostShare, Member, Role, Tree};

use std::io;

use silvan_model::BuildError;
use silvan_scenario::ScenarioError;
use silvan_sim::RunError;
use silvan_workload::traffic::TrafficError;
use thiserror::Error;

/// Why a fabric cannot be emulated, or no longer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The scenario, with congestion control added, does not hold.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The schedule of faults does not hold.
    #[error(transparent)]
    Faults(silvan_core::document::DocumentError),
    /// Packets are larger than InfiniBand allows.
    #[error("packet.mtu: MTU of {0} bytes; the live fabric has InfiniBand's MTUs, at most 4096")]
    Mtu(u64),
    /// Links are Ethernet.
    #[error(
        "link.flow-control: \"pfc\" is Ethernet; the live fabric has InfiniBand's links, \"credits\""
    )]
    Ethernet,
    /// There are more nodes than LIDs.
    #[error("{0}; such a fabric can be simulated, but not managed")]
    Fabric(#[from] silvan_fabric::FabricError),
    /// The engine cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Congestion control cannot be built.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The traffic does not work.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The data plane cannot go on.
    #[error(transparent)]
    Engine(#[from] silvan_model::EngineError),
    /// There is no node of this name.
    #[error("there is no host or switch named {0:?}")]
    NoSuchNode(String),
    /// Switches cannot show these devices.
    #[error(transparent)]
    Devices(#[from] crate::subnet::UnknownDevices),
    /// Simulated time cannot run at this speed.
    #[error("a time scale of {0}; it must be a number above 0")]
    TimeScale(f64),
    /// Somebody else serves under this name or port.
    #[error("{0} is in use")]
    AddressInUse(String),
    /// A socket cannot be set up or has failed.
    #[error("{what}: {source}")]
    Socket {
        /// Attempted action.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl EmulatorError {
    pub(crate) fn socket(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |error| Self::Socket {
            what,
            source: error.into(),
        }
    }
}

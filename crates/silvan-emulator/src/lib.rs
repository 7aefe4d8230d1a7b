//! The live fabric: a simulated data plane, paced to the wall clock and managed by real, unmodified InfiniBand tools.
//!
//! Tools reach it through the preload library `silvan-shim`, or through ibsim's umad2sim. Sockets carry their
//! datagrams, agents at every node answer, and settings take effect at once.
//!
//! The crate is empty without Linux: umad, epoll and abstract UNIX sockets exist there only.
#![cfg(target_os = "linux")]

pub(crate) mod agent;
mod clients;
mod command;
mod error;
mod faults;
mod loss;
mod management;
mod pace;
mod plane;
mod server;
mod subnet;
mod sysfs;
mod tables;
mod umad;
mod verbs;
mod view;
mod wire;

#[cfg(test)]
mod tests;

pub use clients::MadCounts;
pub use command::Command;
pub use error::EmulatorError;
pub use faults::FaultSchedule;
pub use management::{ControlAnswer, ManagementPlane};
pub use server::sockets::{Address, AllowedUsers};
pub use server::{Notices, Options, Server};
pub use subnet::{Setup, Sources, Start, SwitchDevices, UnknownDevices};

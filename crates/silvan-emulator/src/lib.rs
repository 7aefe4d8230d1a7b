//! The live fabric: a simulated data plane, paced to the wall clock and managed by unmodified InfiniBand tools, through
//! the preload library `silvan-shim` or ibsim's umad2sim. Empty without Linux's umad, epoll and abstract UNIX sockets.
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

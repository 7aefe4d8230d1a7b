//! The congestion manager of a real subnet: what `silvan dcms` runs.
//!
//! The DCMS itself is a state machine, [`machine`], that takes counters and returns decisions. A
//! simulation runs the same one. Everything else here is around it:
//!
//! - [`transport`]: how management datagrams leave and arrive; [`umad`] is the kernel's way, and the
//!   preload library of the live fabric makes it lead into an emulated fabric.
//! - [`client`]: many requests in flight, with timeouts and retries; answers that do not belong to a
//!   request are dropped.
//! - [`discovery`] finds switches and cables, [`watch`] numbers them, [`sweep`] reads counters.
//! - [`marking`] changes and restores Marking_Rates; [`journal`] remembers them before they are made, so
//!   that the next start can restore what a crash has left.
//! - [`lease`] lets one of several instances be in charge, and [`leased`] sends only while it is.
//! - [`daemon`] puts a manager together, [`manager`] is its loop, [`settings`] its configuration, [`event`] and [`log`] what it says, [`metrics`] what
//!   Prometheus reads at the [`endpoint`], [`observer`] what a page shows.
//!
//! [`umad`], [`leased`] and [`daemon`] exist on Linux only, as the kernel's interface does. The rest compiles
//! everywhere, because simulations use the state machine.
//!
//! Nothing that comes from the subnet is trusted: every number is bounded, a reading counts only if
//! the switch has just said who it is, and a setting is changed only after it has.

pub mod client;
#[cfg(target_os = "linux")]
pub mod daemon;
pub mod discovery;
pub mod endpoint;
pub mod event;
#[cfg(test)]
mod fake;
pub mod journal;
pub mod key;
pub mod lease;
#[cfg(target_os = "linux")]
pub mod leased;
pub mod log;
pub mod machine;
pub mod manager;
pub mod marking;
pub mod metrics;
pub mod observer;
pub mod rights;
pub mod section;
pub mod settings;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod transport;
#[cfg(target_os = "linux")]
pub mod umad;
pub mod watch;

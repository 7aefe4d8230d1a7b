//! The congestion manager of a real subnet: what `silvan dcms` runs.
//!
//! The DCMS itself is a state machine, [`silvan_cc::dcms`], that takes growth of counters and returns decisions. A
//! simulation runs the same one. [`silvan_subnet`] reads the subnet. The daemon is around both:
//!
//! - [`watch`] numbers switches and ports, [`meter`] sweeps them and gives the growth of their counters.
//! - [`marking`] changes and restores Marking_Rates; [`journal`] remembers them before they are made, so
//!   that the next start can restore what a crash has left.
//! - [`lease`] lets one of several instances be in charge, and [`leased`] sends only while it is.
//! - [`daemon`] puts a manager together, [`manager`] is its loop, [`settings`] its configuration, [`event`] and [`log`] what it says, [`metrics`] what
//!   Prometheus reads.
//!
//! [`leased`] and [`daemon`] exist on Linux only, as the kernel's interface does.
//!
//! Nothing that comes from the subnet is trusted: a setting is changed only after the switch has just answered with its
//! identity.

#[cfg(target_os = "linux")]
pub mod daemon;
pub mod event;
pub mod journal;
pub mod lease;
#[cfg(target_os = "linux")]
pub mod leased;
pub mod log;
pub mod manager;
pub mod marking;
pub mod meter;
pub mod metrics;
pub mod rights;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod watch;

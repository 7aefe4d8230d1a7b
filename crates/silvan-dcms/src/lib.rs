//! The congestion manager of a real subnet: what `silvan dcms` runs around the state machine [`silvan_cc::dcms`].
//!
//! - [`watch`] numbers switches and ports, [`meter`] gives the growth of their counters.
//! - [`marking`] changes and restores Marking_Rates, which [`journal`] remembers.
//! - [`lease`] keeps one instance in charge, and [`leased`] sends only while it is.
//! - [`daemon`] puts a manager together, [`manager`] is its loop.
//!
//! [`leased`] and [`daemon`] exist on Linux only. A setting is changed only after the switch has just answered with its
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

//! A client of a real subnet: what the congestion manager, the diagnosis and the exporter share.
//!
//! - [`transport`]: how management datagrams leave and arrive; [`umad`] is the kernel's way, and the
//!   preload library of the live fabric makes it lead into an emulated fabric.
//! - [`client`]: many requests in flight, with timeouts and retries; answers that do not belong to a
//!   request are dropped. [`key`] has the CC_Key of requests that set something.
//! - [`discovery`] finds switches and cables, [`tables`] reads forwarding tables and the LIDs of hosts.
//! - [`sweep`] reads counters, and keeps them as the bytes that came; [`ticks`] reads the unit of counters of time.
//! - [`metrics`] are those of all processes that read a subnet, [`endpoint`] serves a page of them, [`log`] writes
//!   events as lines.
//! - [`observer`] has a round of the congestion manager, for the program that shows it.
//! - [`fake`] is a subnet in memory, with faults, for tests of crates above. It is no feature: crates would be compiled
//!   once for tests and once without it.
//!
//! [`umad`] exists on Linux only, as the kernel's interface does.
//!
//! Nothing that comes from the subnet is trusted: every number is bounded, and a reading counts only if the node has
//! just answered with its identity.

pub mod client;
pub mod discovery;
pub mod endpoint;
pub mod fake;
pub mod key;
pub mod log;
pub mod metrics;
pub mod observer;
pub mod sweep;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod ticks;
pub mod transport;
#[cfg(target_os = "linux")]
pub mod umad;

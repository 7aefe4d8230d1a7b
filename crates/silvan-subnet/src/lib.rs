//! A client of a real subnet, shared by the congestion manager, the diagnosis and the exporter.
//!
//! - [`transport`] carries datagrams; [`umad`] is the kernel's interface (Linux only).
//! - [`client`] has requests in flight, with the CC_Key of [`key`].
//! - [`discovery`], [`tables`], [`sweep`] and [`ticks`] read switches, forwarding tables, counters and their unit of
//!   time.
//! - [`metrics`], [`endpoint`], [`log`] and [`observer`] show it.
//! - [`fake`] is a subnet in memory for tests of other crates; as a feature, it would compile crates twice.
//!
//! Nothing from the subnet is trusted: numbers are bounded, and a reading counts only after the node's identity.

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

//! The Dynamic Congestion Management System (mizero2017, section 3).
//!
//! The DCMS stands outside the fabric. At every sweep it reads three counters of each switch
//! port, PortXmitTimeCong (the paper's PortXmitCongTime), PortXmitWait and PortXmitData. Where a
//! congested port slows a neighbouring switch port down, it lowers the Marking_Rate of the congested
//! port, so that the sources of the congestion are throttled hard; when the victims are gone, or
//! after a time limit, it restores the default.
//!
//! - [`Dcms`] is the paper's Algorithms 1 to 3 as a state machine: counter differences in,
//!   [`Decision`]s with their reasons out.
//! - [`DcmsParameters`] are the paper's thresholds, in its units; [`DcmsSection`] are the keys that set them.
//! - [`DcmsController`] drives the machine in a simulation.
//!
//! A daemon on a real subnet drives the same machine by a clock that may go back: a low Marking_Rate whose time
//! cannot be measured is restored at once.
//!
//! Where the pseudocode and the text differ, the text is followed:
//! - Algorithm 3 skips ports whose interval count is 1 and increments the others; the count is set
//!   to 1 in Algorithm 2 and would stay there permanently. Here a port is skipped in the sweep that
//!   lowered it, and in no other.
//! - A port whose time limit is reached keeps its victims in the pseudocode, and so could never be
//!   lowered again because of them. The text wants "a second cycle": here they are forgotten
//!   when the default is restored.
//! - The limit is a number of sweeps in the pseudocode. With two inter-sweep intervals, and with
//!   sweeps that take longer than planned, only a time means the same throughout.
//! - A victim that was removed because its utilization dropped is added again if it waits for
//!   credits again, as Algorithm 2 says; that neither lowers the port again nor extends its
//!   time.

mod controller;
mod machine;
mod parameters;
mod section;
mod topology;

#[cfg(test)]
mod tests;

pub use controller::DcmsController;
pub use machine::{Action, Dcms, Decision, MarkingState, Reason};
pub use parameters::{CongestionTimeReads, DcmsError, DcmsParameters};
pub use section::DcmsSection;
pub use topology::{DcmsTopology, MarkingScope, Neighbour, SwitchPortInfo};

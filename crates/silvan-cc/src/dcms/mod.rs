//! The Dynamic Congestion Management System (mizero2017, section 3).
//!
//! The DCMS runs outside the fabric. At every sweep it reads three counters of each switch port: PortXmitTimeCong (the
//! paper's PortXmitCongTime), PortXmitWait and PortXmitData. If a congested port slows a neighbouring switch port down,
//! the DCMS lowers the Marking_Rate of the congested port, which throttles the sources hard. It restores the default
//! when the victims are gone, or after a time limit.
//!
//! - [`Dcms`] is the paper's Algorithms 1 to 3 as a state machine: counter differences in, [`Decision`]s with their
//!   reasons out.
//! - [`DcmsParameters`] are the paper's thresholds, in its units; [`DcmsSection`] are the keys that set them.
//! - [`DcmsController`] drives the machine in a simulation.
//!
//! A daemon on a real subnet drives the same machine by a clock that may go back. A low Marking_Rate whose time cannot
//! be measured is restored at once.
//!
//! If pseudocode and text differ, the machine follows the text:
//! - Algorithm 3 skips ports whose interval count is 1 and increments the others. Algorithm 2 sets the count to 1, so
//!   it would stay there permanently. Here only the sweep that lowered a port skips the port.
//! - In the pseudocode, a port keeps its victims at the time limit, so these victims could never lower it again. The
//!   text asks for "a second cycle": restoring the default removes the victims.
//! - In the pseudocode, the limit is a number of sweeps. Here it is a time, because sweeps may have two intervals and
//!   may take longer than planned.
//! - A victim that was removed because of its utilization is added again if it waits for credits again, as in Algorithm
//!   2. Its return neither lowers the port again nor extends the time.

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

//! The Dynamic Congestion Management System (mizero2017, section 3).
//!
//! At every sweep, the DCMS reads three counters of each switch port: PortXmitTimeCong (the paper's PortXmitCongTime),
//! PortXmitWait and PortXmitData. If a congested port slows a neighbouring switch port down, it lowers the Marking_Rate
//! of the congested port, which throttles the sources hard. It restores the default when the victims are gone, or after
//! a time limit.
//!
//! [`Dcms`] is Algorithms 1 to 3 as a state machine: counter differences in, [`Decision`]s with reasons out.
//! [`DcmsController`] drives it in a simulation; a daemon on a real subnet drives it by a clock that may go back.
//!
//! If pseudocode and text differ, the machine follows the text:
//! - Algorithm 3 skips ports whose interval count is 1, which Algorithm 2 sets: the count would stay there. Here only
//! the
//! sweep that lowered a port skips it.
//! - In the pseudocode, a port keeps its victims at the time limit, so they could never lower it again. The text asks
//! for
//! "a second cycle": restoring the default removes the victims.
//! - The limit is a time, not a number of sweeps, because sweeps may take longer than planned.
//! - A victim that was removed because of its utilization is added again if it waits for credits again (Algorithm 2).
//! Its return neither lowers the port again nor extends the time.

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

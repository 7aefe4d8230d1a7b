//! The Dynamic Congestion Management System (mizero2017, section 3).
//!
//! A congested port that slows a neighbour gets a low Marking_Rate, until the victims are gone or time is up. [`Dcms`]
//! is Algorithms 1 to 3 as a state machine. It follows the text where the pseudocode differs:
//! - Only the lowering sweep skips a port; Algorithm 3 would skip it forever at interval count 1.
//! - Restoring removes the victims, so that they can lower the port in "a second cycle".
//! - The limit is a time: sweeps may take longer than planned.
//! - A victim that waits again returns (Algorithm 2), without a new lowering or more time.

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

//! The C interface: `libsilvan`, and its header `include/silvan.h`.
//!
//! Drivers such as ASTRA-sim or SimAI decide what a cluster computes and sends; they need a network that says when a
//! message has arrived. Here it is one: a scenario's fabric, with congestion control and background load, behind a few
//! functions. The [session](silvan_sim::Session) of `silvan-sim` does the work, and knows no pointers.
//!
//! Nothing panics across the border: each function returns a status, and the text of an error is kept by thread. Pointers
//! to simulations are never followed; they are numbers in a table of the thread, so that one which is wrong or stale is found.
//! Callbacks send and start timers while the simulation runs: their requests are collected apart from it
//! (`driver.rs`), and taken up when they return.
//!
//! The tests of `tests/test_c_interface.py` compile drivers in C and C++ against the header and run them.

#![allow(
    unsafe_code,
    reason = "C hands over pointers, and its functions are called"
)]

mod driver;
mod failure;
mod interface;
mod open;
mod types;

pub use interface::*;
pub use types::*;

//! The C interface: `libsilvan`, and its header `include/silvan.h`.
//!
//! Drivers such as ASTRA-sim or SimAI send messages through a scenario's fabric, with congestion control and background
//! load. The [session](silvan_sim::Session) of `silvan-sim` does the work.
//!
//! No panic crosses the border: each function returns a status, and keeps the error's text by thread. Pointers to
//! simulations are never followed, because they are numbers in a table. Requests of callbacks are collected apart from
//! the running simulation (`driver.rs`).

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

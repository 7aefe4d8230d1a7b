//! The load of a simulation: which host sends what, to which host, and when.
//!
//! - [`traffic`]: rates and patterns, such as uniform traffic, incast, permutations, and V, C and B nodes.
//! - [`programs`]: message-passing programs, with ranks, messages, collectives and GOAL schedules.
//!
//! Both are workloads in the sense of [`silvan_cc::workload`]: the engine polls them for packets and
//! notifies them of deliveries. [`programs::Load`] runs programs next to traffic.

mod demand;
pub mod programs;
pub mod traffic;

pub use demand::Demand;

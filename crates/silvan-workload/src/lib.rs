//! The load of a simulation: [`traffic`] of rates and patterns, and message-passing [`programs`].
//!
//! Both are workloads of [`silvan_cc::workload`]; [`programs::Load`] joins them.

mod demand;
pub mod programs;
pub mod traffic;

pub use demand::Demand;

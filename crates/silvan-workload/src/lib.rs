//! The load of a simulation: [`traffic`] of rates and patterns, and message-passing [`programs`].

mod demand;
pub mod programs;
pub mod traffic;

pub use demand::Demand;

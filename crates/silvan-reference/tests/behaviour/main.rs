//! The reference model against closed forms, and the engine against the reference model.

#![allow(
    clippy::unwrap_used,
    reason = "a failed parse or build is a failed test"
)]

mod against_engine;
mod common;
mod credits;
mod latency;
mod sharing;

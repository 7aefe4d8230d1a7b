//! The reference model against closed forms.

#![allow(
    clippy::unwrap_used,
    reason = "a failed parse or build is a failed test"
)]

mod common;
mod credits;
mod latency;
mod sharing;

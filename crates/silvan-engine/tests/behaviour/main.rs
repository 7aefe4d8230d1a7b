//! Behaviour of the whole engine; each test has an oracle.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod common;
mod script;
mod spraying;

mod alternation;
mod bit_errors;
mod bypass;
mod charge;
mod closed_loop;
mod deadlock;
mod determinism;
mod extensions;
mod holding;
mod hooks;
mod invariants;
mod lanes;
mod latency;
mod levels;
mod long_runs;
mod lossless;
mod marking;
mod notifications;
mod partition;
mod pfc;
mod reconfiguration;
mod retries;
mod routing;
mod sharing;
mod speculation;
mod starvation;
mod throughput;
mod trees;

//! Whole runs and sessions, from scenario to tables, each with an oracle of its own. One binary, because each links all engines.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod estimate;
mod faults;
mod flows;
mod latency;
mod many_flows;
mod programs;
mod routing;
mod schemes;
mod sequences;
mod session;
mod settings;
mod trees;

//! Any text as a GOAL schedule, and small ones run.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "other tests need the rest")]
#[path = "../../crates/silvan-workload/tests/programs/common.rs"]
mod common;
#[path = "../../crates/silvan-workload/tests/programs/goal_law.rs"]
mod goal_law;

fuzz_target!(|bytes: &[u8]| goal_law::check(bytes));

//! Any text as a list of flows.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/silvan-workload/tests/traffic/flow_lines_law.rs"]
mod flow_lines_law;

fuzz_target!(|text: &str| flow_lines_law::check(text));

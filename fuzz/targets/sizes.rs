//! Any text as a file of the sizes of flows.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/silvan-workload/tests/traffic/cdf_law.rs"]
mod cdf_law;

fuzz_target!(|text: &str| cdf_law::check(text));

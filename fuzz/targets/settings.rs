//! Any text as the manager's configuration.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/silvan-dcms/tests/settings/law.rs"]
mod law;

fuzz_target!(|text: &str| law::check(text));

//! Any text as a topology: ibnetdiscover with and without -p, ibdiagnet's database, a net file of ibsim.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "other targets need the rest")]
#[path = "../../crates/silvan-fabric/tests/import/law.rs"]
mod law;

fuzz_target!(|text: &str| law::check_topology(text));

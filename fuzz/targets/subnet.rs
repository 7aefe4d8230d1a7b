//! A hostile subnet, whose answers drawn bytes change.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "another target needs the rest")]
#[path = "../../crates/silvan-subnet/tests/hostile/law.rs"]
mod law;

fuzz_target!(|bytes: &[u8]| law::play(bytes));

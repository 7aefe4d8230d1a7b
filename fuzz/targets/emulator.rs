//! Any bytes as what the clients of an emulated fabric do.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/silvan-emulator/tests/play/law.rs"]
mod law;

fuzz_target!(|bytes: &[u8]| law::play(bytes));

//! Any bytes as the commands of a hostile program.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/silvan-verbs/tests/verbs/law.rs"]
mod law;
#[allow(dead_code)]
#[path = "../../crates/silvan-verbs/tests/verbs/wire.rs"]
mod wire;
#[allow(dead_code)]
#[path = "../../crates/silvan-verbs/tests/verbs/world.rs"]
mod world;

fuzz_target!(|bytes: &[u8]| law::play(bytes));

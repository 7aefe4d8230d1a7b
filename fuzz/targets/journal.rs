//! Any bytes as the journal of the DCMS, with and without right checksums.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "tests need the rest")]
#[path = "../../crates/silvan-dcms/tests/journal/law.rs"]
mod law;

fuzz_target!(|bytes: &[u8]| {
    law::check(bytes);
    law::check(&law::sealed(bytes));
});

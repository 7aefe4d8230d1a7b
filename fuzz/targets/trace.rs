//! Any bytes as a trace; the first byte chooses the format.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "other tests need the rest")]
#[path = "../../crates/silvan-workload/tests/programs/trace_law.rs"]
mod trace_law;

fuzz_target!(|bytes: &[u8]| {
    if let Some((first, rest)) = bytes.split_first() {
        let mut examples = trace_law::examples();
        let (format, _) = examples.swap_remove(usize::from(*first) % examples.len());
        trace_law::check(format, rest);
    }
});

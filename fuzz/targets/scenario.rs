//! Any text as a scenario of a small fabric.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "another target needs the rest")]
#[path = "../../crates/silvan-scenario/tests/scenario/law.rs"]
mod law;

/// Largest number outside of quotes: a torus of thousands of hosts takes seconds.
const LARGEST: u64 = 40;

fuzz_target!(|text: &str| {
    if is_small(text) {
        law::check(text);
    }
});

fn is_small(text: &str) -> bool {
    // 0x, 0o, 0b and 1_000 are numbers, too.
    let outside = text.lines().filter(|line| !line.contains(['"', '\'']));
    outside.into_iter().all(|line| {
        let bytes = line.as_bytes();
        let has_prefix = |pair: &[u8]| pair[0] == b'0' && pair[1].is_ascii_alphabetic();
        let has_separator = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1] == b'_';
        let mut pairs = bytes.windows(2);
        let mut numbers = line.split(|c: char| !c.is_ascii_digit());
        !pairs.any(|pair| has_prefix(pair) || has_separator(pair))
            && numbers.all(|digits| {
                digits.is_empty() || digits.parse().is_ok_and(|number: u64| number <= LARGEST)
            })
    })
}

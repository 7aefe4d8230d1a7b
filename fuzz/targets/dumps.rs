//! Any text as counters and topology of a diagnosis.

#![no_main]

use libfuzzer_sys::fuzz_target;
use silvan_core::{GivenTicks, Span};
use silvan_diagnose::dumps::{Files, diagnose_files};

const TOPOLOGY: &str = r#"
Switch 4 "S-0000000000000001" # "left" base port 0 lid 1 lmc 0
[1] "H-0000000000000010"[1](11) # "a" lid 11 4xSDR
[2] "H-0000000000000020"[1](21) # "b" lid 12 4xSDR

Ca 1 "H-0000000000000010" # "a"
[1](11) "S-0000000000000001"[1] # lid 11 lmc 0 "left" lid 1 4xSDR

Ca 1 "H-0000000000000020" # "b"
[1](21) "S-0000000000000001"[2] # lid 12 lmc 0 "left" lid 1 4xSDR
"#;

fuzz_target!(|text: (&str, &str, bool)| {
    let (before, after, own) = text;
    let files = Files {
        topology: if own { before } else { TOPOLOGY },
        routes: None,
        before,
        after,
    };
    let ticks = GivenTicks::of_all(Span::from_ns(4));
    let _ = diagnose_files(files, Span::from_secs(1), &ticks);
});

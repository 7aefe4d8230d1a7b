//! Any text as a file of faults.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use silvan_scenario::Scenario;

#[allow(dead_code, reason = "another target needs the rest")]
#[path = "../../crates/silvan-scenario/tests/scenario/law.rs"]
mod law;

static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| {
    let text = "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n";
    Scenario::from_toml(text, "four.toml", &[]).expect("it is a scenario")
});

fuzz_target!(|text: &str| law::check_faults(text, SCENARIO.fabric()));

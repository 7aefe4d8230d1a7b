//! Scenario files from text to a validated scenario, and every way in which that can fail.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod bad_control;
mod bad_fabrics;
mod bad_text;
mod bad_values;
mod faults;
mod files;
mod generated;
mod law;
mod levels;
mod mutations;
mod pfc;
mod programs;
mod python;
mod round_trip;

use silvan_scenario::{Override, Scenario, ScenarioError};

/// Every key that has an effect of its own is set here.
const ALL_KEYS: &str = include_str!("all-keys.toml");

/// Scenario files that are shipped, by path.
const SHIPPED: [(&str, &str); 8] = [
    ("minimal", include_str!("../../../../examples/incast.toml")),
    (
        "parking-lot",
        include_str!("../../../../examples/parking-lot.toml"),
    ),
    ("two-vl", include_str!("../../../../examples/two-vl.toml")),
    (
        "explicit-fabric",
        include_str!("../../../../examples/explicit-fabric.toml"),
    ),
    (
        "table2",
        include_str!("../../../../studies/gran2012/table2.toml"),
    ),
    (
        "uniform-50",
        include_str!("../../../../python/silvan/bench/studies/uniform-50.toml"),
    ),
    (
        "uniform-100",
        include_str!("../../../../python/silvan/bench/studies/uniform-100.toml"),
    ),
    ("all-keys", ALL_KEYS),
];

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::from_toml(text, "file.toml", &[])
}

fn read_with(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<Override> = overrides
        .iter()
        .map(|(key, value)| Override::new(*key, *value))
        .collect();
    Scenario::from_toml(text, "file.toml", &overrides)
}

/// Returns the error of this text as one line; every error has a hint.
fn message(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => {
            assert!(error.hint().is_some(), "no hint: {error}");
            error.to_string()
        }
    }
}

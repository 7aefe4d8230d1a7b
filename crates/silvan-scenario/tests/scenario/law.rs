//! Properties of any text as a scenario, and as a file of faults.
//!
//! `mutations.rs` draws texts, and so do the fuzz targets `scenario` and `faults`.

use silvan_fabric::Fabric;
use silvan_scenario::faults::read_faults;
use silvan_scenario::{Scenario, ScenarioError};

/// A text is a scenario that its effective text gives again, or one error with its place.
///
/// # Panics
/// If neither holds.
pub fn check(text: &str) {
    match Scenario::from_toml(text, "file.toml", &[]) {
        Err(error) => check_located(&error, text),
        Ok(scenario) => {
            let effective = scenario.effective_toml();
            let again = Scenario::from_toml(effective, "file.toml", &[]).unwrap();
            assert_eq!(again.effective_toml(), effective);
        }
    }
}

/// A text is a list of faults of a fabric, or one error with its place.
///
/// # Panics
/// If neither holds.
pub fn check_faults(text: &str, fabric: &Fabric) {
    match read_faults(text, "file.toml", fabric) {
        Err(error) => check_located(&error, text),
        Ok(faults) => assert!(faults.iter().all(|fault| !fault.words.is_empty())),
    }
}

/// Checks properties of every error about a file.
pub fn check_located(error: &ScenarioError, text: &str) {
    let line = error.line().expect("an error about a file has a line");
    let column = error.column().expect("an error about a file has a column");
    let lines = text.split('\n').count();
    assert!(
        (1..=lines).contains(&line),
        "line {line} of {lines}: {error}"
    );
    let length = text.split('\n').nth(line - 1).unwrap().chars().count();
    assert!(
        (1..=length + 1).contains(&column),
        "column {column} of {length}: {error}"
    );
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    assert!(error.hint().is_some(), "no hint: {error}");
    assert!(
        error
            .to_string()
            .starts_with(&format!("file.toml:{line}: ")),
        "{error}"
    );
}

//! Properties of any text as a scenario.
//!
//! `mutations.rs` draws texts, and so does the fuzz target `scenario`.

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

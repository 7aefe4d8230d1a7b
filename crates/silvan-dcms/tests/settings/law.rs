//! Properties of any text as the manager's configuration.
//!
//! `main.rs` draws texts, and so does the fuzz target `settings`.

use silvan_dcms::settings::ManagerSettings;

/// Keys that make the reader open files or resolve names.
const OUTSIDE: [&str; 2] = ["listen", "cc-key-file"];

/// A text is a configuration, or one error with its line and a hint.
///
/// # Panics
/// If neither holds.
pub fn check(text: &str) {
    if OUTSIDE.iter().any(|key| text.contains(key)) || text.contains('\\') {
        return;
    }
    match ManagerSettings::from_toml(text, "dcms.toml") {
        Ok(settings) => {
            assert!(settings.dcms.validate().is_ok());
            assert!(settings.time_scale > 0.0);
        }
        Err(error) => {
            let line = error.line().expect("an error has a line");
            let lines = text.split('\n').count();
            assert!(
                (1..=lines).contains(&line),
                "line {line} of {lines}: {error}"
            );
            assert!(error.hint().is_some(), "no hint: {error}");
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
}

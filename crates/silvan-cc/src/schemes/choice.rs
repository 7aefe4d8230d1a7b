//! Parameters that only some values of another parameter have.

use silvan_core::document::KeyPath;

use super::SchemeError;

/// A parameter that only some choices of another key have.
pub(super) struct Parameter {
    /// Its key.
    pub key: &'static str,
    /// Whether it is given.
    pub given: bool,
    /// Whether the choice made has it.
    pub wanted: bool,
}

/// Checks that exactly the parameters of a choice are given, in the table at `table`.
pub(super) fn check_choice(
    table: &KeyPath,
    choice: &str,
    parameters: &[Parameter],
) -> Result<(), SchemeError> {
    let wanted = || {
        let keys = parameters.iter().filter(|parameter| parameter.wanted);
        let keys: Vec<&str> = keys.map(|parameter| parameter.key).collect();
        match keys.is_empty() {
            true => format!("{choice} has no parameters"),
            false => format!("{choice} needs {}", keys.join(", ")),
        }
    };
    for parameter in parameters {
        let message = match (parameter.given, parameter.wanted) {
            (true, false) => format!("{choice} has no such parameter"),
            (false, true) => "missing key".to_owned(),
            _ => continue,
        };
        return Err(SchemeError::new(
            table.key(parameter.key),
            message,
            wanted(),
        ));
    }
    Ok(())
}

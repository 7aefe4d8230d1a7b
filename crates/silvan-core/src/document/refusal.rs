use super::error::DocumentError;
use super::path::KeyPath;

/// A refused value: its key within the section, the fault, and the text to write. [`within`](Self::within) adds the
/// section's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The key.
    pub key: KeyPath,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl Refusal {
    /// A refusal of the value that `key` names.
    pub fn new(
        key: impl Into<KeyPath>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Prefixes the key with the path of its section.
    #[must_use]
    pub fn within(self, section: &KeyPath) -> Self {
        let key = section.join(&self.key);
        Self { key, ..self }
    }
}

impl From<Refusal> for DocumentError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.key, refusal.message).with_hint(refusal.hint)
    }
}

/// A key that only some choices of another key have.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The key.
    pub key: &'static str,
    /// True if it is given.
    pub given: bool,
    /// True if the chosen kind has this parameter.
    pub wanted: bool,
}

/// Checks that exactly a choice's parameters are given in `table`; an error names a missing or idle one.
pub fn check_choice(
    table: &KeyPath,
    choice: &str,
    parameters: &[Parameter],
) -> Result<(), Refusal> {
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
        let key = table.key(parameter.key);
        return Err(Refusal::new(key, message, wanted()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_stands_before_the_key_of_a_refusal() {
        let refusal = Refusal::new("high.1", "wrong", "leave it out");
        let error = DocumentError::from(refusal.within(&"vl".into()));
        assert_eq!(error.key(), &"vl.high.1".into());
        assert_eq!(error.to_string(), ": vl.high.1: wrong (hint: leave it out)");
        let whole = Refusal::new(KeyPath::ROOT, "wrong", "").within(&"vl".into());
        assert_eq!(whole.key, "vl".into());
    }

    #[test]
    fn choice_has_exactly_its_parameters() {
        let check = |slope: bool, first: bool| {
            let parameter = |key, given, wanted| Parameter { key, given, wanted };
            let parameters = [
                parameter("slope", slope, false),
                parameter("first", first, true),
            ];
            check_choice(&"cct".into(), "geometric", &parameters)
        };
        let refusal =
            |key: &str, message: &str| Err(Refusal::new(key, message, "geometric needs first"));
        assert_eq!(check(false, true), Ok(()));
        assert_eq!(
            check(true, true),
            refusal("cct.slope", "geometric has no such parameter")
        );
        assert_eq!(check(false, false), refusal("cct.first", "missing key"));
    }
}

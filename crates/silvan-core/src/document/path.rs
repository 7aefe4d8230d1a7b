use std::fmt;

use toml_edit::Value;

/// One step of a [`KeyPath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    /// A key of a table.
    Key(String),
    /// A position in a list, counted from 0.
    Index(usize),
}

/// The way from the root of a scenario to one value: `switch.buffer`, `traffic.flow.0.rate`.
///
/// ```
/// use silvan_core::document::KeyPath;
/// let path: KeyPath = "traffic.flow.0.rate".into();
/// assert_eq!(path.to_string(), "traffic.flow.0.rate");
/// assert_eq!(path.len(), 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyPath(Vec<PathStep>);

impl KeyPath {
    /// The path of the whole file.
    pub const ROOT: Self = Self(Vec::new());

    /// The path of `key` in the table that `self` names.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(PathStep::Key(key.to_owned()))
    }

    /// The path of element `index` in the list that `self` names.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(PathStep::Index(index))
    }

    /// The path of the value that `inner` names within the value of `self`.
    #[must_use]
    pub fn join(&self, inner: &Self) -> Self {
        Self([&*self.0, &*inner.0].concat())
    }

    /// The path without its last step; the root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Self {
        let keep = self.0.len().saturating_sub(1);
        Self(self.0[..keep].to_vec())
    }

    /// The steps from the root on.
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true for the root.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `prefix` names this value or a table or list around it.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }

    fn step(&self, step: PathStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

/// Splits at dots; a number is a position in a list, a part in quotes a key as TOML writes it.
impl From<&str> for KeyPath {
    fn from(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        loop {
            if let Some((key, behind)) = quoted(rest.trim_start()) {
                steps.push(PathStep::Key(key));
                match behind.strip_prefix('.') {
                    Some(more) => rest = more,
                    None => return Self(steps),
                }
                continue;
            }
            let (part, behind) = match rest.split_once('.') {
                Some((part, behind)) => (part.trim(), Some(behind)),
                None => (rest.trim(), None),
            };
            steps.push(match part.parse() {
                Ok(index) => PathStep::Index(index),
                Err(_) => PathStep::Key(part.to_owned()),
            });
            match behind {
                Some(more) => rest = more,
                None => return Self(steps),
            }
        }
    }
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|&first| matches!(first, '"' | '\''))?;
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, character)| {
        let ends = character == quote && !escaped;
        escaped = quote == '"' && character == '\\' && !escaped;
        ends
    });
    let (literal, behind) = text.split_at(end?.0 + 1);
    let behind = behind.trim_start();
    let follows = behind.is_empty() || behind.starts_with('.');
    let value: Value = literal.parse().ok().filter(|_| follows)?;
    Some((value.as_str()?.to_owned(), behind))
}

fn needs_quotes(key: &str) -> bool {
    key.is_empty()
        || key.contains(['.', '"', '\''])
        || key.trim() != key
        || key.parse::<usize>().is_ok()
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            match step {
                PathStep::Key(key) if needs_quotes(key) => {
                    write!(f, "{}", Value::from(key.as_str()))?;
                }
                PathStep::Key(key) => f.write_str(key)?,
                PathStep::Index(index) => write!(f, "{index}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyPath, PathStep};

    #[test]
    fn parts_in_quotes_are_keys_of_any_characters() {
        let key = |text: &str| PathStep::Key(text.to_owned());
        let cases = [
            (
                "sweep.vary.\"host.sink-rate\"",
                vec![key("sweep"), key("vary"), key("host.sink-rate")],
            ),
            (
                "fabric.tables.\"sw.1\".\"7\"",
                vec![key("fabric"), key("tables"), key("sw.1"), key("7")],
            ),
            (
                "a.'b.c' . 0.d",
                vec![key("a"), key("b.c"), PathStep::Index(0), key("d")],
            ),
            ("\"\\\"\\\\\".x", vec![key("\"\\"), key("x")]),
            // No key of TOML: taken as it stands.
            ("a.\"b", vec![key("a"), key("\"b")]),
            ("a.\"b\"c", vec![key("a"), key("\"b\"c")]),
        ];
        for (text, steps) in cases {
            let path = KeyPath::from(text);
            assert_eq!(path.steps(), steps, "{text}");
            assert_eq!(KeyPath::from(path.to_string().as_str()), path, "{text}");
        }
    }
}

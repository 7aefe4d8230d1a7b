//! Key paths: how a value of a scenario is named in errors, overrides and sweeps.

use std::fmt;

/// One step of a [`KeyPath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
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
pub struct KeyPath(Vec<Step>);

impl KeyPath {
    /// The path of the whole file.
    pub const ROOT: Self = Self(Vec::new());

    /// The path of `key` in the table that `self` names.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// The path of element `index` in the list that `self` names.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// The path without its last step; the root is its own parent.
    #[must_use]
    pub fn parent(&self) -> Self {
        let keep = self.0.len().saturating_sub(1);
        Self(self.0[..keep].to_vec())
    }

    /// The steps from the root on.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether this is the root.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `prefix` names this value or something around it.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

/// Splits at dots; a part of digits only is a position in a list.
impl From<&str> for KeyPath {
    fn from(text: &str) -> Self {
        let step = |part: &str| match part.parse() {
            Ok(index) => Step::Index(index),
            Err(_) => Step::Key(part.to_owned()),
        };
        Self(text.split('.').map(|part| step(part.trim())).collect())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            match step {
                Step::Key(key) => f.write_str(key)?,
                Step::Index(index) => write!(f, "{index}")?,
            }
        }
        Ok(())
    }
}

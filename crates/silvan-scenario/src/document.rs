//! TOML files of other programs of silvan, with the errors that scenarios have.

use serde::de::DeserializeOwned;

use crate::de;
use crate::error::ScenarioError;
use crate::path::KeyPath;
use crate::source::Source;

/// A TOML file that is not a scenario, and where in it each value stands.
#[derive(Debug, Clone)]
pub struct Document(Source);

impl Document {
    /// Parses the text; `name` is what errors call it, usually the path of its file.
    ///
    /// # Errors
    ///
    /// The first thing that is not TOML, with its line and a hint.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScenarioError> {
        Source::parse(text, name, &[]).map(Self)
    }

    /// Reads the values.
    ///
    /// # Errors
    ///
    /// The first unknown key, missing key or wrong value, with its line and a hint.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        de::from_item(self.0.root()).map_err(|error| self.0.locate(error))
    }

    /// An error about the value of a key such as `ports.allow.0`, with its line.
    pub fn error(&self, key: &str, message: impl Into<String>, hint: &str) -> ScenarioError {
        let error = ScenarioError::new(KeyPath::from(key), message).with_hint(hint);
        self.0.locate(error)
    }
}

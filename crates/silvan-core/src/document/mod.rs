//! TOML files read with errors that name file, line and key, and give a hint.

mod de;
mod error;
mod limit;
mod path;
mod refusal;
mod source;

use serde::de::DeserializeOwned;

pub use error::{DocumentError, nearest, suggest};
pub use limit::{Limit, bound};
pub use path::{KeyPath, PathStep};
pub use refusal::{Parameter, Refusal, check_choice};
pub use source::{Override, SourceText};

/// A TOML file without overrides, and where in it each value stands.
#[derive(Debug, Clone)]
pub struct Document(SourceText);

impl Document {
    /// Parses the text of the file `name`; errors have line and hint.
    pub fn parse(text: &str, name: &str) -> Result<Self, DocumentError> {
        SourceText::parse(text, name, &[]).map(Self)
    }

    /// Reads the values. Errors: the first unknown key, missing key or wrong value, with its line and a hint.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, DocumentError> {
        self.0.read().map_err(|error| self.0.locate(error))
    }

    /// An error about the value of a key such as `ports.allow.0`, with its line.
    pub fn error(&self, key: &str, message: impl Into<String>, hint: &str) -> DocumentError {
        let error = DocumentError::new(KeyPath::from(key), message).with_hint(hint);
        self.0.locate(error)
    }
}

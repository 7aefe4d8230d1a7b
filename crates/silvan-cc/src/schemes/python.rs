//! The scheme `python`: functions of a Python file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::KeyPath;

use super::callbacks::Callbacks;
use super::{AnySource, AnySwitch, Control, Declared, Scheme, SchemeError, Setup};

/// A scheme in Python. The file becomes part of the scenario, so that its hash is that of
/// what is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Python {
    /// The Python file of at most 256 MiB, seen from the folder of the scenario. It is replaced by its
    /// text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The text of the file, in place of `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Name of the text in error messages. Default: the name of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The function of the file that makes the scheme.
    pub function: String,
    /// Numbers for that function, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, f64>,
}

impl Default for Python {
    fn default() -> Self {
        Self {
            file: None,
            source: None,
            name: None,
            function: "scheme".to_owned(),
            parameters: BTreeMap::new(),
        }
    }
}

impl Declared for Python {}

impl Scheme for Python {
    type Switch = Callbacks;
    type Source = Callbacks;

    fn check(&self) -> Result<(), SchemeError> {
        let mut parameters = self.parameters.iter();
        match parameters.find(|(_, value)| !value.is_finite()) {
            Some((name, value)) => {
                let key = KeyPath::from("parameters").key(name);
                let message = format!("{value} is not a finite number");
                Err(SchemeError::new(key, message, "write e.g. 0.5"))
            }
            None => Ok(()),
        }
    }

    /// Python compiles the functions and starts such a run with them.
    fn build(&self, _: &Setup<'_>) -> Result<(Callbacks, Callbacks), SchemeError> {
        let message = "the scheme is in Python, which this program does not run";
        Err(SchemeError::new(
            "file",
            message,
            "start the run from Python",
        ))
    }
}

impl From<Callbacks> for Control {
    fn from(callbacks: Callbacks) -> Self {
        Self {
            switch: AnySwitch::Python(callbacks.clone()),
            source: AnySource::Python(callbacks),
        }
    }
}

//! The scheme `python`: functions of a Python file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A scheme of one's own in Python. The file becomes part of the scenario, so that its hash is that of
/// what is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PythonSection {
    /// The Python file of at most 256 MiB, seen from the folder of the scenario. It is replaced by its
    /// text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The text of the file, in place of `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What errors call the text. Default: the name of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The function of the file that makes the scheme.
    pub function: String,
    /// Numbers for that function, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, f64>,
}

impl Default for PythonSection {
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

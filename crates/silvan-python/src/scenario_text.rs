use pyo3::prelude::*;
use serde_json::Value;
use silvan_core::document::SourceText;
use silvan_scenario::{KeyPath, ScenarioError};

use crate::errors::scenario_error;
use crate::scenario::read_overrides;

/// The text of a scenario with its overrides, before names and values are checked: plug-ins replace their names in it.
#[pyclass(frozen, module = "silvan._silvan")]
pub struct ScenarioText(SourceText);

#[pymethods]
impl ScenarioText {
    /// Overrides are dotted keys and TOML literals.
    #[new]
    #[pyo3(signature = (text, source, overrides))]
    fn new(
        py: Python<'_>,
        text: &str,
        source: Option<&str>,
        overrides: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let overrides = read_overrides(overrides);
        let name = source.unwrap_or_default();
        py.detach(|| SourceText::parse(text, name, &overrides))
            .map(Self)
            .map_err(|error| scenario_error(py, &error))
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let tables = self.0.read::<Value>();
        let tables = tables.map_err(|error| scenario_error(py, &error))?;
        Ok(tables.to_string())
    }

    /// Source, line and column, if need be of the table around it.
    fn place(&self, key: &str) -> (Option<String>, Option<usize>, Option<usize>) {
        let error = ScenarioError::new(KeyPath::from(key), "");
        let error = self.0.locate(error);
        let source = Some(error.source_name()).filter(|name| !name.is_empty());
        (source.map(str::to_owned), error.line(), error.column())
    }
}

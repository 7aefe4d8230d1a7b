//! The sweep table: its keys must be keys of a scenario, and each of its values must be readable.

use silvan_core::document::SourceText;

use super::at;
use crate::parsed::{AxisValue, ScenarioFile, SweepSection};
use crate::{Override, ScenarioError};

pub(crate) fn assignment(key: &str, value: &AxisValue) -> Override {
    Override::new(key, toml_text(value))
}

pub(crate) fn check_sweep(
    sweep: &SweepSection,
    text: &str,
    overrides: &[Override],
) -> Result<(), ScenarioError> {
    // An override of the sweep holds all values; to read it with each of them takes the square of their number.
    let others = overrides.iter().filter(|change| !is_of_sweep(change));
    let others: Vec<Override> = others.cloned().collect();
    for (key, values) in &sweep.vary {
        let path = at("sweep.vary").key(key);
        if values.is_empty() {
            let error = ScenarioError::new(path, "a list without values gives no runs");
            return Err(error.with_hint("give at least one value, or leave the key out"));
        }
        for (index, value) in values.iter().enumerate() {
            let mut all = others.clone();
            all.push(assignment(key, value));
            let read = SourceText::parse(text, "", &all)
                .and_then(|source| source.read::<ScenarioFile>().map(drop));
            if let Err(error) = read {
                let hint = error.hint().map(str::to_owned);
                let error = ScenarioError::new(path.index(index), error.message());
                return Err(error.with_hint_if(hint));
            }
        }
    }
    Ok(())
}

fn is_of_sweep(change: &Override) -> bool {
    change.key == "sweep" || change.key.starts_with("sweep.")
}

fn toml_text(value: &AxisValue) -> String {
    toml_value(value).to_string()
}

fn toml_value(value: &AxisValue) -> toml_edit::Value {
    match value {
        AxisValue::Flag(flag) => (*flag).into(),
        AxisValue::Integer(number) => (*number).into(),
        AxisValue::Number(number) => (*number).into(),
        AxisValue::Text(text) => text.as_str().into(),
        AxisValue::List(values) => values
            .iter()
            .map(toml_value)
            .collect::<toml_edit::Array>()
            .into(),
    }
}

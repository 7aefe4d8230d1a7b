//! The JSON schema. Two extra keys feed the reference of keys: `x-type`, the type in words, and `x-unit`.

use serde_json::Value;
pub(crate) use silvan_core::schema::{
    BytesText, LengthText, RateText, SpanText, TYPE_KEY, UNIT_KEY,
};

use crate::parsed::ScenarioFile;

/// The JSON schema of a scenario file (draft 2020-12), for editors and validators.
pub fn json_schema() -> Value {
    schemars::schema_for!(ScenarioFile).into()
}

//! How the types of a scenario look in its JSON schema, and the schema itself.
//!
//! Two keys in addition to the standard ones carry what the reference of scenario keys shows: `x-type`, the
//! type in words, and `x-unit`, the units of a quantity or the unit of a number.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
pub(crate) use silvan_core::schema::{
    BytesText, LengthText, RateText, SlNumber, SpanText, TYPE_KEY, UNIT_KEY,
};
use silvan_fabric::{Speed, Width};

use crate::parsed::ScenarioFile;

/// The JSON schema of a scenario file (draft 2020-12), for editors and validators.
pub fn json_schema() -> Value {
    schemars::schema_for!(ScenarioFile).into()
}

/// Defines the schema of a type whose text form serde alone does not show.
macro_rules! described {
    ($(#[$meta:meta])* $type:ty, $name:literal, |$generator:ident| $schema:expr) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

/// Stands for a link width.
pub(crate) struct WidthName;

described!(WidthName, "width", |_generator| names(
    Width::ALL.iter().map(|width| width.name())
));

/// Stands for a link speed.
pub(crate) struct SpeedName;

described!(SpeedName, "speed", |_generator| names(
    Speed::ALL.iter().map(|speed| speed.name())
));

fn names(names: impl Iterator<Item = &'static str>) -> Schema {
    let names: Vec<Value> = names.map(|name| json!(name)).collect();
    json_schema!({ "enum": names })
}

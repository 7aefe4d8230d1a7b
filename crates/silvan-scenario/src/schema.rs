//! How the types of a scenario look in its JSON schema, and the schema itself.
//!
//! Two keys beside the standard ones carry what the reference of scenario keys shows: `x-type`, the
//! type in words, and `x-unit`, the units of a quantity or the unit of a number.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
pub(crate) use silvan_core::schema::{
    BytesText, LengthText, RateText, SlNumber, SpanText, TYPE_KEY, UNIT_KEY,
};
use silvan_fabric::{Speed, Width};

use crate::parsed::quantity::{ALL, RUN_SEED, SATURATING};
use crate::parsed::{HostChoice, Hotspots, LoadValue, RoleShare, ScenarioFile, SeedSource};

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

described!(HostChoice, "host choice", |generator| json_schema!({
    "anyOf": [
        { "const": ALL },
        generator.subschema_for::<Vec<String>>(),
        generator.subschema_for::<u32>(),
    ],
    "x-type": "`\"all\"`, list of host names, or number of hosts",
}));

/// The hosts of ranks: their order counts, so that none are drawn at random.
pub(crate) struct RankHosts;

described!(RankHosts, "rank hosts", |generator| json_schema!({
    "anyOf": [{ "const": ALL }, generator.subschema_for::<Vec<String>>()],
    "x-type": "`\"all\"` or list of host names",
}));

described!(Hotspots, "hotspots", |generator| json_schema!({
    "anyOf": [generator.subschema_for::<u32>(), generator.subschema_for::<Vec<String>>()],
    "x-type": "number of hosts or list of host names",
}));

described!(RoleShare, "share", |generator| json_schema!({
    "anyOf": [
        { "type": "number", "minimum": 0, "maximum": 1 },
        generator.subschema_for::<Vec<String>>(),
    ],
    "x-type": "fraction from 0 to 1, or list of host names",
}));

described!(LoadValue, "load", |generator| json_schema!({
    "anyOf": [
        { "const": SATURATING },
        { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
        generator.subschema_for::<RateText>(),
    ],
    "x-type": "`\"saturating\"`, fraction of the injection rate, or data rate",
    "x-unit": "Gbit/s, ...",
}));

described!(SeedSource, "seed", |generator| json_schema!({
    "anyOf": [{ "const": RUN_SEED }, generator.subschema_for::<u64>()],
    "x-type": "`\"run\"` or whole number",
}));

fn names(names: impl Iterator<Item = &'static str>) -> Schema {
    let names: Vec<Value> = names.map(|name| json!(name)).collect();
    json_schema!({ "enum": names })
}

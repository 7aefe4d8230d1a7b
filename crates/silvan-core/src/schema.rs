//! JSON schemas of quantities, by `#[schemars(with = "schema::SpanText")]`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::quantity::Dimension;
use crate::{Bytes, Length, Rate, Span};

/// Key of a schema: the type in words.
pub const TYPE_KEY: &str = "x-type";
/// Key of a schema: the units of a quantity, or the unit of a number.
pub const UNIT_KEY: &str = "x-unit";

macro_rules! quantity {
    ($name:ident, $quantity:ident, $module:ident, $type:literal, $units:literal) => {
        #[doc = concat!("Stands for ", $type, " as text.")]
        #[derive(Debug)]
        pub struct $name;

        impl JsonSchema for $quantity {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $name::json_schema(generator)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $type.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let dimension = &crate::$module::DIMENSION;
                json_schema!({
                    "type": "string",
                    "pattern": pattern(dimension),
                    "examples": [dimension.example],
                    "x-type": $type,
                    "x-unit": $units,
                })
            }
        }
    };
}

fn pattern(dimension: &Dimension) -> String {
    let units: Vec<&str> = dimension.units.iter().map(|unit| unit.name).collect();
    format!(r"^\s*[0-9]+(\.[0-9]+)?\s*({})\s*$", units.join("|"))
}

quantity!(SpanText, Span, time, "time span", "ps, ns, us, ms, s");
quantity!(
    BytesText,
    Bytes,
    bytes,
    "data size",
    "B, kB, KiB, MB, MiB, GB, GiB, TB, TiB"
);
quantity!(
    RateText,
    Rate,
    rate,
    "data rate",
    "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, or B/s with the prefixes of sizes"
);
quantity!(LengthText, Length, length, "length", "mm, cm, m, km");

/// Schema of a service level.
#[derive(Debug)]
pub struct SlNumber;

impl JsonSchema for SlNumber {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "service level".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer",
            "minimum": 0,
            "maximum": 15,
            "x-type": "0 to 15",
        })
    }
}

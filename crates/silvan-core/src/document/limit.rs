use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::StrDeserializer;
use serde::de::{Error, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::advice::Advised;
use crate::schema::{TYPE_KEY, UNIT_KEY};

const UNLIMITED: &str = "unlimited";

/// A value, or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit<T> {
    /// `"unlimited"`: nothing bounds it here.
    #[default]
    Unlimited,
    /// A largest value.
    At(T),
}

impl<T> Limit<T> {
    /// The bound, `None` where there is none.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Unlimited => None,
            Self::At(value) => Some(value),
        }
    }
}

impl<T> From<Option<T>> for Limit<T> {
    fn from(bound: Option<T>) -> Self {
        match bound {
            Some(value) => Self::At(value),
            None => Self::Unlimited,
        }
    }
}

/// `Option` for `serde(with)`: reads and writes an optional bound as a [`Limit`].
pub mod bound {
    use super::Limit;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the bound, or `"unlimited"`. Errors as the serializer.
    pub fn serialize<T: Serialize + Copy, S: Serializer>(
        bound: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Limit::from(*bound).serialize(serializer)
    }

    /// Reads a bound, or `"unlimited"`. Errors: Any other value.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        Limit::deserialize(deserializer).map(Limit::value)
    }
}

impl<T: Serialize> Serialize for Limit<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unlimited => serializer.serialize_str(UNLIMITED),
            Self::At(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Limit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LimitVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for LimitVisitor<T> {
            type Value = Limit<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "a value with its unit or \"unlimited\"";
                let hint = "write e.g. \"unlimited\"";
                Advised { message, hint }.fmt(f)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Limit<T>, E> {
                if text == UNLIMITED {
                    return Ok(Limit::Unlimited);
                }
                let text: StrDeserializer<'_, E> = text.into_deserializer();
                T::deserialize(text).map(Limit::At)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Limit<T>, E> {
                T::deserialize(number.into_deserializer()).map(Limit::At)
            }

            // A fraction is never "unlimited"; the bound's own type refuses it with its unit.
            fn visit_f64<E: Error>(self, number: f64) -> Result<Limit<T>, E> {
                T::deserialize(number.into_deserializer()).map(Limit::At)
            }
        }

        deserializer.deserialize_any(LimitVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Limit<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Limit_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = T::json_schema(generator);
        let what = value.get(TYPE_KEY).and_then(Value::as_str);
        let what = format!("{} or `\"unlimited\"`", what.unwrap_or("whole number"));
        let unit = value.get(UNIT_KEY).cloned();
        let mut schema = json_schema!({
            "anyOf": [{ "const": UNLIMITED }, value],
            TYPE_KEY: what,
        });
        if let Some(unit) = unit {
            schema.insert(UNIT_KEY.to_owned(), unit);
        }
        schema
    }
}

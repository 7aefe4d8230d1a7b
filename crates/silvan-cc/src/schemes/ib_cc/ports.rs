//! Sets of switch ports, as a scenario has them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use silvan_core::advice::Advised;

/// Some switch ports: `"none"`, `"hosts"` (those that lead to a host), `"all"`, or a list of
/// `"switch:port"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortSet {
    /// No port.
    None,
    /// The ports that lead to a host.
    Hosts,
    /// All ports of all switches.
    All,
    /// These ports.
    Names(Vec<String>),
}

impl PortSet {
    const NONE: &'static str = "none";
    const HOSTS: &'static str = "hosts";
    const ALL: &'static str = "all";
}

impl Serialize for PortSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str(Self::NONE),
            Self::Hosts => serializer.serialize_str(Self::HOSTS),
            Self::All => serializer.serialize_str(Self::ALL),
            Self::Names(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PortSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SetVisitor;

        impl<'de> Visitor<'de> for SetVisitor {
            type Value = PortSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "\"none\", \"hosts\", \"all\" or a list of \"switch:port\"";
                let hint = "write e.g. \"hosts\" or [\"leaf-03:19\"]";
                Advised { message, hint }.fmt(f)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PortSet, E> {
                match text {
                    PortSet::NONE => Ok(PortSet::None),
                    PortSet::HOSTS => Ok(PortSet::Hosts),
                    PortSet::ALL => Ok(PortSet::All),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<PortSet, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(PortSet::Names)
            }
        }

        deserializer.deserialize_any(SetVisitor)
    }
}

impl JsonSchema for PortSet {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ports".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "enum": [Self::NONE, Self::HOSTS, Self::ALL] },
                generator.subschema_for::<Vec<String>>(),
            ],
            "x-type": "`\"none\"`, `\"hosts\"`, `\"all\"`, or list of `\"switch:port\"`",
        })
    }
}

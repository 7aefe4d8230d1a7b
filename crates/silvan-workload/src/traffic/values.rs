use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use silvan_core::advice::Advised;
use silvan_core::schema::RateText;
use silvan_core::{HostId, Rate};

const ALL: &str = "all";
const RUN_SEED: &str = "run";
const SATURATING: &str = "saturating";

/// A host: by its name, as a scenario has it, or by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRef {
    /// The host of this name.
    Name(String),
    /// The host's number.
    Id(HostId),
}

impl From<HostId> for HostRef {
    fn from(host: HostId) -> Self {
        Self::Id(host)
    }
}

impl Serialize for HostRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => serializer.serialize_str(name),
            Self::Id(host) => serializer.collect_str(host),
        }
    }
}

impl<'de> Deserialize<'de> for HostRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Name)
    }
}

/// A choice of hosts: `"all"`, a list of names, or how many to draw at random.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// Every host.
    #[default]
    All,
    /// A list of hosts.
    Given(Vec<HostRef>),
    /// Number of distinct hosts, drawn at random.
    Random(u32),
    /// A file with a host in each line; for programs only.
    File(String),
}

impl Serialize for Selection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str(ALL),
            Self::Given(names) => names.serialize(serializer),
            Self::Random(count) => count.serialize(serializer),
            Self::File(file) => BTreeMap::from([("file", file)]).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChoiceVisitor;

        impl<'de> Visitor<'de> for ChoiceVisitor {
            type Value = Selection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "\"all\", a list of host names or a number of hosts";
                let hint = "write e.g. \"all\", [\"host-0000\"] or 4";
                Advised { message, hint }.fmt(f)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Selection, E> {
                match text {
                    ALL => Ok(Selection::All),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Selection, E> {
                u32::deserialize(count.into_deserializer()).map(Selection::Random)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Selection, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(Selection::Given)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Selection, A::Error> {
                match (
                    map.next_entry::<String, String>()?,
                    map.next_key::<String>()?,
                ) {
                    (Some((key, file)), None) if key == "file" => Ok(Selection::File(file)),
                    _ => Err(A::Error::invalid_type(Unexpected::Map, &self)),
                }
            }
        }

        deserializer.deserialize_any(ChoiceVisitor)
    }
}

/// The hotspots: how many, placed at random, or which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hotspots {
    /// Number of distinct hosts, drawn with the placement seed.
    Random(u32),
    /// A list of hosts.
    Given(Vec<HostRef>),
}

impl Default for Hotspots {
    fn default() -> Self {
        Self::Random(0)
    }
}

impl Serialize for Hotspots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Random(count) => count.serialize(serializer),
            Self::Given(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Hotspots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HotspotsVisitor;

        impl<'de> Visitor<'de> for HotspotsVisitor {
            type Value = Hotspots;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "a number of hosts or a list of host names";
                let hint = "write e.g. 1 or [\"host-0000\"]";
                Advised { message, hint }.fmt(f)
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Hotspots, E> {
                u32::deserialize(count.into_deserializer()).map(Hotspots::Random)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Hotspots, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(Hotspots::Given)
            }
        }

        deserializer.deserialize_any(HotspotsVisitor)
    }
}

/// The hosts that have a role: which fraction of all hosts, or which.
#[derive(Debug, Clone, PartialEq)]
pub enum RoleShare {
    /// Fraction of all hosts, 0 to 1, placed at random.
    Fraction(f64),
    /// A list of hosts.
    Given(Vec<HostRef>),
}

impl Default for RoleShare {
    fn default() -> Self {
        Self::Fraction(0.0)
    }
}

impl Serialize for RoleShare {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fraction(fraction) => fraction.serialize(serializer),
            Self::Given(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RoleShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShareVisitor;

        impl<'de> Visitor<'de> for ShareVisitor {
            type Value = RoleShare;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "a fraction of the hosts from 0 to 1 or a list of host names";
                let hint = "write e.g. 0.5 or [\"host-0000\"]";
                Advised { message, hint }.fmt(f)
            }

            fn visit_f64<E: Error>(self, fraction: f64) -> Result<RoleShare, E> {
                Ok(RoleShare::Fraction(fraction))
            }

            fn visit_i64<E: Error>(self, fraction: i64) -> Result<RoleShare, E> {
                Ok(RoleShare::Fraction(fraction as f64))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<RoleShare, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(RoleShare::Given)
            }
        }

        deserializer.deserialize_any(ShareVisitor)
    }
}

/// Offered load of a source: `"saturating"`, a fraction of the host's injection rate, or a rate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Load {
    /// As much as the host can inject: a message is always ready.
    #[default]
    Saturating,
    /// A fraction of the injection rate, above 0 and at most 1.
    Fraction(f64),
    /// A rate of payload.
    Rate(Rate),
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Saturating => serializer.serialize_str(SATURATING),
            Self::Fraction(fraction) => fraction.serialize(serializer),
            Self::Rate(rate) => rate.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LoadVisitor;

        impl Visitor<'_> for LoadVisitor {
            type Value = Load;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "\"saturating\", a fraction from 0 to 1 or a rate with its unit";
                let hint = "write e.g. \"saturating\", 0.5 or \"8 Gbit/s\"";
                Advised { message, hint }.fmt(f)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Load, E> {
                match text {
                    SATURATING => Ok(Load::Saturating),
                    _ => text.parse().map(Load::Rate).map_err(E::custom),
                }
            }

            fn visit_f64<E: Error>(self, fraction: f64) -> Result<Load, E> {
                Ok(Load::Fraction(fraction))
            }

            fn visit_i64<E: Error>(self, fraction: i64) -> Result<Load, E> {
                Ok(Load::Fraction(fraction as f64))
            }
        }

        deserializer.deserialize_any(LoadVisitor)
    }
}

/// Seed of a random choice: `"run"`, or a number that is constant over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeedSource {
    /// The seed of the run: another seed, another choice.
    #[default]
    Run,
    /// A fixed seed, independent of the seed of the run.
    Fixed(u64),
}

impl SeedSource {
    pub(crate) fn or(self, run: u64) -> u64 {
        match self {
            Self::Run => run,
            Self::Fixed(seed) => seed,
        }
    }
}

impl Serialize for SeedSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Run => serializer.serialize_str(RUN_SEED),
            Self::Fixed(seed) => seed.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SeedSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SeedVisitor;

        impl Visitor<'_> for SeedVisitor {
            type Value = SeedSource;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message = "a whole number or \"run\"";
                let hint = "write e.g. 7 or \"run\"";
                Advised { message, hint }.fmt(f)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SeedSource, E> {
                match text {
                    RUN_SEED => Ok(SeedSource::Run),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: Error>(self, seed: i64) -> Result<SeedSource, E> {
                u64::deserialize(seed.into_deserializer()).map(SeedSource::Fixed)
            }
        }

        deserializer.deserialize_any(SeedVisitor)
    }
}

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

described!(
    HostRef,
    "host",
    |_generator| json_schema!({ "type": "string" })
);

described!(Selection, "host choice", |generator| json_schema!({
    "anyOf": [
        { "const": ALL },
        generator.subschema_for::<Vec<HostRef>>(),
        generator.subschema_for::<u32>(),
    ],
    "x-type": "`\"all\"`, list of host names, or number of hosts; in programs also `{ file = NAME }`, a host in each line",
}));

/// The hosts of ranks: their order counts, so that none are drawn at random.
#[derive(Debug)]
pub struct RankHosts;

described!(RankHosts, "rank hosts", |generator| json_schema!({
    "anyOf": [{ "const": ALL }, generator.subschema_for::<Vec<HostRef>>()],
    "x-type": "`\"all\"` or list of host names",
}));

described!(Hotspots, "hotspots", |generator| json_schema!({
    "anyOf": [generator.subschema_for::<u32>(), generator.subschema_for::<Vec<HostRef>>()],
    "x-type": "number of hosts or list of host names",
}));

described!(RoleShare, "share", |generator| json_schema!({
    "anyOf": [
        { "type": "number", "minimum": 0, "maximum": 1 },
        generator.subschema_for::<Vec<HostRef>>(),
    ],
    "x-type": "fraction from 0 to 1, or list of host names",
}));

described!(Load, "load", |generator| json_schema!({
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

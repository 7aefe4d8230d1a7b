//! Values that several sections share and that may be of more than one kind: a
//! list of hosts or their number, a load as a fraction or as a rate.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IntoDeserializer, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use silvan_core::Rate;

pub(crate) const ALL: &str = "all";
pub(crate) const RUN_SEED: &str = "run";
pub(crate) const SATURATING: &str = "saturating";

/// A choice of hosts: `"all"`, a list of names, or how many to draw at random.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HostChoice {
    /// Every host.
    #[default]
    All,
    /// The hosts of these names.
    Names(Vec<String>),
    /// This many distinct hosts, drawn at random.
    Count(u32),
}

impl Serialize for HostChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str(ALL),
            Self::Names(names) => names.serialize(serializer),
            Self::Count(count) => count.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HostChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChoiceVisitor;

        impl<'de> Visitor<'de> for ChoiceVisitor {
            type Value = HostChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"all\", a list of host names or a number of hosts \
                     (write e.g. \"all\", [\"host-0000\"] or 4)",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<HostChoice, E> {
                match text {
                    ALL => Ok(HostChoice::All),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<HostChoice, E> {
                u32::deserialize(count.into_deserializer()).map(HostChoice::Count)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<HostChoice, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(HostChoice::Names)
            }
        }

        deserializer.deserialize_any(ChoiceVisitor)
    }
}

/// The hotspots: how many, placed at random, or which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hotspots {
    /// This many distinct hosts, drawn with the placement seed.
    Count(u32),
    /// The hosts of these names.
    Names(Vec<String>),
}

impl Default for Hotspots {
    fn default() -> Self {
        Self::Count(0)
    }
}

impl Serialize for Hotspots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::Names(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Hotspots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HotspotsVisitor;

        impl<'de> Visitor<'de> for HotspotsVisitor {
            type Value = Hotspots;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number of hosts or a list of host names (write e.g. 1 or [\"host-0000\"])",
                )
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Hotspots, E> {
                u32::deserialize(count.into_deserializer()).map(Hotspots::Count)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Hotspots, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(Hotspots::Names)
            }
        }

        deserializer.deserialize_any(HotspotsVisitor)
    }
}

/// The hosts that have a role: which fraction of all hosts, or which.
#[derive(Debug, Clone, PartialEq)]
pub enum RoleShare {
    /// This fraction of all hosts, 0 to 1, placed at random.
    Fraction(f64),
    /// The hosts of these names.
    Names(Vec<String>),
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
            Self::Names(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RoleShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShareVisitor;

        impl<'de> Visitor<'de> for ShareVisitor {
            type Value = RoleShare;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a fraction of the hosts from 0 to 1 or a list of host names \
                     (write e.g. 0.5 or [\"host-0000\"])",
                )
            }

            fn visit_f64<E: Error>(self, fraction: f64) -> Result<RoleShare, E> {
                Ok(RoleShare::Fraction(fraction))
            }

            fn visit_i64<E: Error>(self, fraction: i64) -> Result<RoleShare, E> {
                Ok(RoleShare::Fraction(fraction as f64))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<RoleShare, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(RoleShare::Names)
            }
        }

        deserializer.deserialize_any(ShareVisitor)
    }
}

/// How much a source offers: `"saturating"`, a fraction of the host's injection rate, or a rate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum LoadValue {
    /// As much as the host can inject: there is always a message ready.
    #[default]
    Saturating,
    /// A fraction of the injection rate, above 0 and at most 1.
    Fraction(f64),
    /// A rate of payload.
    Rate(Rate),
}

impl Serialize for LoadValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Saturating => serializer.serialize_str(SATURATING),
            Self::Fraction(fraction) => fraction.serialize(serializer),
            Self::Rate(rate) => rate.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LoadValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LoadVisitor;

        impl Visitor<'_> for LoadVisitor {
            type Value = LoadValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"saturating\", a fraction from 0 to 1 or a rate with its unit \
                     (write e.g. \"saturating\", 0.5 or \"8 Gbit/s\")",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<LoadValue, E> {
                match text {
                    SATURATING => Ok(LoadValue::Saturating),
                    _ => text.parse().map(LoadValue::Rate).map_err(E::custom),
                }
            }

            fn visit_f64<E: Error>(self, fraction: f64) -> Result<LoadValue, E> {
                Ok(LoadValue::Fraction(fraction))
            }

            fn visit_i64<E: Error>(self, fraction: i64) -> Result<LoadValue, E> {
                Ok(LoadValue::Fraction(fraction as f64))
            }
        }

        deserializer.deserialize_any(LoadVisitor)
    }
}

/// Where a random choice takes its seed from: `"run"`, or a number that stays the same in
/// every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeedSource {
    /// The seed of the run: another seed, another choice.
    #[default]
    Run,
    /// This seed, whatever the seed of the run.
    Fixed(u64),
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
                f.write_str("a whole number or \"run\" (write e.g. 7 or \"run\")")
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

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use silvan_cc::schemes::{Parameters, SchemeChoice, SchemeName};
use silvan_model::FeedbackParams;

use super::DcmsSection;

/// Congestion control.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ControlSection {
    /// The scheme, or a variant of it: its published settings for this fabric take the place of keys that are not written. Its
    /// parameters are in the table of the scheme's name.
    pub scheme: SchemeChoice,
    /// Parameters of notifications from the receiver back to the sender.
    pub feedback: FeedbackParams,
    /// A manager that watches port counters and changes Marking_Rate (mizero2017); none if absent.
    pub dcms: Option<DcmsSection>,
    /// The tables of all schemes.
    #[schemars(flatten)]
    pub parameters: Parameters,
}

const KEYS: [&str; 3] = ["scheme", "feedback", "dcms"];

const ALL_KEYS: [&str; KEYS.len() + SchemeName::TABLES.len()] = {
    let mut keys = [""; KEYS.len() + SchemeName::TABLES.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = if at < KEYS.len() {
            KEYS[at]
        } else {
            SchemeName::TABLES[at - KEYS.len()]
        };
        at += 1;
    }
    keys
};

impl Serialize for ControlSection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scheme", &self.scheme)?;
        self.parameters.write_keys(&mut map)?;
        map.serialize_entry("feedback", &self.feedback)?;
        if let Some(dcms) = &self.dcms {
            map.serialize_entry("dcms", dcms)?;
        }
        map.end()
    }
}

// The tables of the schemes are keys of this one. With serde's `flatten`, errors would lose their place.
impl<'de> Deserialize<'de> for ControlSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SectionVisitor;

        impl<'de> Visitor<'de> for SectionVisitor {
            type Value = ControlSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("struct ControlSection")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ControlSection, A::Error> {
                let mut section = ControlSection::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "scheme" => section.scheme = map.next_value()?,
                        "feedback" => section.feedback = map.next_value()?,
                        "dcms" => section.dcms = map.next_value()?,
                        name => {
                            if !section.parameters.read_key(name, &mut map)? {
                                return Err(A::Error::unknown_field(name, &ALL_KEYS));
                            }
                        }
                    }
                }
                Ok(section)
            }
        }

        deserializer.deserialize_struct("ControlSection", &ALL_KEYS, SectionVisitor)
    }
}

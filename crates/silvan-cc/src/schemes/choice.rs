use std::borrow::Cow;
use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{FabricFacts, SchemeName, Variant, variants};

/// A scheme by name, or a variant's; a scheme's name means its first variant unless one has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeChoice {
    name: &'static str,
    scheme: SchemeName,
}

struct Choices {
    all: Vec<SchemeChoice>,
    names: Vec<&'static str>,
    summaries: Vec<String>,
}

impl SchemeChoice {
    fn choices() -> &'static Choices {
        static CHOICES: OnceLock<Choices> = OnceLock::new();
        CHOICES.get_or_init(|| {
            let mut all: Vec<_> = SchemeName::ALL.iter().map(|&one| Self::from(one)).collect();
            let mut summaries: Vec<_> = all
                .iter()
                .map(|choice| choice.scheme.summary().to_owned())
                .collect();
            for (scheme, variant) in variants(&FabricFacts::NOMINAL) {
                let name = variant.name;
                if all.iter().all(|choice| choice.name != name) {
                    all.push(Self { name, scheme });
                    summaries.push(format!("A variant of `{}`.", scheme.as_str()));
                }
            }
            Choices {
                names: all.iter().map(|choice| choice.name).collect(),
                all,
                summaries,
            }
        })
    }

    /// All choices: the schemes in the order of their registration, then the other variants.
    pub fn all() -> &'static [Self] {
        &Self::choices().all
    }

    /// The choice of this name.
    pub fn find(name: &str) -> Option<Self> {
        let mut all = Self::all().iter();
        all.find(|choice| choice.name == name).copied()
    }

    /// Returns the name of the choice.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The scheme.
    pub const fn scheme(self) -> SchemeName {
        self.scheme
    }

    /// The variant on a fabric; `None` if the scheme has none.
    pub fn variant(self, facts: &FabricFacts<'_>) -> Option<Variant> {
        let mut variants = self.scheme.variants(facts);
        let named = variants
            .iter()
            .position(|variant| variant.name == self.name);
        (!variants.is_empty()).then(|| variants.swap_remove(named.unwrap_or(0)))
    }
}

impl From<SchemeName> for SchemeChoice {
    fn from(scheme: SchemeName) -> Self {
        Self {
            name: scheme.as_str(),
            scheme,
        }
    }
}

impl Default for SchemeChoice {
    fn default() -> Self {
        SchemeName::default().into()
    }
}

impl Serialize for SchemeChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for SchemeChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::find(&name).ok_or_else(|| D::Error::unknown_variant(&name, &Self::choices().names))
    }
}

impl JsonSchema for SchemeChoice {
    fn schema_name() -> Cow<'static, str> {
        "SchemeChoice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let Choices {
            names, summaries, ..
        } = Self::choices();
        let one_of: Vec<_> = names
            .iter()
            .zip(summaries)
            .map(|(name, summary)| {
                json_schema!({ "description": summary, "type": "string", "const": name })
            })
            .collect();
        json_schema!({ "oneOf": one_of })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use super::*;

    #[test]
    fn names_are_distinct_and_found() {
        let mut names = SchemeChoice::choices().names.clone();
        for (choice, name) in SchemeChoice::all().iter().zip(&names) {
            assert_eq!(SchemeChoice::find(name), Some(*choice));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(SchemeChoice::find("DCQCN"), None);
    }

    /// `vl-mapping` has variants of other names only, and the first one is vFtree.
    #[test]
    fn a_scheme_stands_for_its_first_variant() {
        let variant = |name| {
            let choice = SchemeChoice::find(name).unwrap();
            choice
                .variant(&FabricFacts::NOMINAL)
                .map(|variant| variant.name)
        };
        assert_eq!(variant("vl-mapping"), Some("vftree"));
        assert_eq!(variant("ib-cc"), Some("ib-cc"));
        assert_eq!(variant("ib-cc+table1"), Some("ib-cc+table1"));
        assert_eq!(variant("half"), None);
    }

    #[test]
    fn variants_have_the_same_names_on_any_fabric() {
        let other = FabricFacts {
            has_credits: false,
            hosts: 10_000,
            switches: 500,
            data_vls: 4,
            chooses_paths: true,
            ..FabricFacts::NOMINAL
        };
        let names = |facts: &FabricFacts<'_>| -> Vec<&str> {
            let variants = variants(facts).into_iter();
            variants.map(|(_, variant)| variant.name).collect()
        };
        assert_eq!(names(&FabricFacts::NOMINAL), names(&other));
    }
}

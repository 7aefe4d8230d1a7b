//! The names of congestion-control schemes: those built in, and those of one file each.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{EnumAccess, Error, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use silvan_cc::schemes::Choice;

/// A congestion-control scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// No congestion control.
    #[default]
    None,
    /// InfiniBand congestion control (IBA annex A10).
    IbCc,
    /// Marks by full input buffers, answered by rates and windows (santos2003).
    Ecn,
    /// Throttling by the host's own credits (pft2021).
    Pft,
    /// The two together: notifications, and the host's own credits.
    IbCcPft,
    /// Functions of a Python file.
    Python,
    /// One of those that have a file of their own.
    Own(Choice),
}

/// Those built in, with their names and what the reference of scenario keys says about them.
const BUILT_IN: [(Scheme, &str, &str); 6] = [
    (
        Scheme::None,
        "none",
        "No congestion control; the other keys of `control` have no effect.",
    ),
    (
        Scheme::IbCc,
        "ib-cc",
        "InfiniBand congestion control (IBA annex A10): the keys of `switch`, `adapter`, `port` and \
         `change`.",
    ),
    (
        Scheme::Ecn,
        "ecn",
        "Marks by full input buffers, answered by rates and windows (santos2003): the keys of `ecn`.",
    ),
    (
        Scheme::Pft,
        "pft",
        "Throttling by the host's own credits, without any notification (pft2021): the keys of `pft`.",
    ),
    (
        Scheme::IbCcPft,
        "ib-cc-pft",
        "`ib-cc` and `pft` together: a packet goes when both let it go.",
    ),
    (
        Scheme::Python,
        "python",
        "Functions of a Python file: the keys of `python`.",
    ),
];

const COUNT: usize = BUILT_IN.len() + Choice::ALL.len();

/// All names.
const NAMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        names[at] = if at < BUILT_IN.len() {
            BUILT_IN[at].1
        } else {
            Choice::NAMES[at - BUILT_IN.len()]
        };
        at += 1;
    }
    names
};

impl Scheme {
    /// All schemes, in the order of their names.
    fn all() -> impl Iterator<Item = Self> {
        let built_in = BUILT_IN.iter().map(|&(scheme, _, _)| scheme);
        built_in.chain(Choice::ALL.iter().map(|&choice| Self::Own(choice)))
    }
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = Self::all().zip(NAMES).find(|(scheme, _)| scheme == self);
        serializer.serialize_str(named.map_or("none", |(_, name)| name))
    }
}

impl<'de> Deserialize<'de> for Scheme {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Scheme;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("enum Scheme")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Scheme, A::Error> {
                let (name, rest) = data.variant::<String>()?;
                rest.unit_variant()?;
                let named = Scheme::all().zip(NAMES).find(|(_, known)| *known == name);
                named
                    .map(|(scheme, _)| scheme)
                    .ok_or_else(|| A::Error::unknown_variant(&name, &NAMES))
            }
        }

        deserializer.deserialize_enum("Scheme", &NAMES, NameVisitor)
    }
}

impl JsonSchema for Scheme {
    fn schema_name() -> Cow<'static, str> {
        "Scheme".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let built_in = BUILT_IN.iter().map(|&(_, name, meaning)| {
            json!({ "description": meaning, "type": "string", "const": name })
        });
        let own = Choice::ALL.iter().map(|choice| {
            let meaning = format!("{} The keys of `own.{}`.", choice.summary(), choice.name());
            json!({ "description": meaning, "type": "string", "const": choice.name() })
        });
        let every: Vec<Value> = built_in.chain(own).collect();
        json_schema!({ "description": "A congestion-control scheme.", "oneOf": every })
    }
}

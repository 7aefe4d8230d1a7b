//! The topology of `[fabric]`: its keys stand among those of the section.

use schemars::Schema;
use serde::de::DeserializeSeed;
use serde_json::{Map, Value, json};
use silvan_core::document::{SourceText, suggest};
use silvan_fabric::generators::{Kind, Topology};
use toml_edit::TableLike;

use crate::checks::at;
use crate::parsed::FabricSection;
use crate::{KeyPath, ScenarioError};

const SECTION: &str = "fabric";
const GENERATOR: &str = "generator";

/// The keys of a topology, and those of them that have no default.
struct Keys {
    all: Vec<String>,
    required: Vec<String>,
}

impl Keys {
    fn of(schema: &Value) -> Self {
        let all = schema["properties"].as_object();
        let required = schema["required"].as_array().into_iter().flatten();
        Self {
            all: all.into_iter().flat_map(Map::keys).cloned().collect(),
            required: required
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        }
    }

    fn wanted(&self, kind: Kind) -> String {
        match self.all.is_empty() {
            true => format!("{} has no parameters", kind.name()),
            false => {
                let is_optional = |key: &&String| !contains(&self.required, key);
                let optional: Vec<&str> = { self.all.iter().filter(is_optional) }
                    .map(String::as_str)
                    .collect();
                let parts = [
                    ("needs", self.required.join(", ")),
                    ("may have", optional.join(", ")),
                ];
                let parts = parts.iter().filter(|(_, keys)| !keys.is_empty());
                let parts: Vec<String> =
                    parts.map(|(verb, keys)| format!("{verb} {keys}")).collect();
                format!("{} {}", kind.name(), parts.join(", and "))
            }
        }
    }
}

/// Checks that the keys of `[fabric]` are those of the section and of its topology.
pub(crate) fn check_fabric_keys(source: &SourceText) -> Result<(), ScenarioError> {
    let section = source.root().get(SECTION);
    let Some(table) = section.and_then(|item| item.as_table_like()) else {
        return Ok(());
    };
    let kind = read_kind(source, table)?;
    let keys = kind.map(|kind| Keys::of(&kind.schema()));
    let own = Keys::of(&schemars::schema_for!(FabricSection).into()).all;
    for (key, _) in table.iter() {
        let of_kind = keys.as_ref().is_some_and(|keys| contains(&keys.all, key));
        if of_kind || contains(&own, key) {
            continue;
        }
        let error = |message: String| ScenarioError::new(at(SECTION).key(key), message);
        let of_another = || {
            Kind::ALL
                .iter()
                .any(|kind| contains(&Keys::of(&kind.schema()).all, key))
        };
        return Err(match (kind, &keys) {
            (Some(kind), Some(keys)) if of_another() => {
                let message = format!("{} has no such parameter", kind.name());
                error(message).with_hint(keys.wanted(kind))
            }
            (None, _) if of_another() => {
                let message = "this is a parameter of a generator, and there is none";
                let name = Topology::default().kind().name();
                error(message.to_owned()).with_hint(format!("add fabric.generator, e.g. {name:?}"))
            }
            _ => {
                let of_kind = keys.iter().flat_map(|keys| &keys.all);
                let known = of_kind.chain(&own).map(String::as_str);
                let wanted = || {
                    kind.zip(keys.as_ref())
                        .map(|(kind, keys)| keys.wanted(kind))
                };
                let hint = suggest(key, known).or_else(wanted);
                error("unknown key".to_owned()).with_hint_if(hint)
            }
        });
    }
    if let (Some(kind), Some(keys)) = (kind, keys) {
        let missing = keys.required.iter().find(|key| !table.contains_key(key));
        if let Some(key) = missing {
            let error = ScenarioError::new(at(SECTION).key(key), "missing key");
            return Err(error.with_hint(keys.wanted(kind)));
        }
    }
    Ok(())
}

fn contains(keys: &[String], key: &str) -> bool {
    keys.iter().any(|known| known == key)
}

/// The topology that the file names.
pub(crate) fn read_topology(source: &SourceText) -> Result<Option<Topology>, ScenarioError> {
    let section = source.root().get(SECTION);
    let Some(table) = section.and_then(|item| item.as_table_like()) else {
        return Ok(None);
    };
    match read_kind(source, table)? {
        None => Ok(None),
        Some(kind) => source.read_at(&at(SECTION), Seed(kind)).map(Some),
    }
}

fn read_kind(source: &SourceText, table: &dyn TableLike) -> Result<Option<Kind>, ScenarioError> {
    let key: KeyPath = at(SECTION).key(GENERATOR);
    match table.contains_key(GENERATOR) {
        true => source.read_at(&key, std::marker::PhantomData).map(Some),
        false => Ok(None),
    }
}

struct Seed(Kind);

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Topology;

    fn deserialize<D: serde::Deserializer<'de>>(self, table: D) -> Result<Topology, D::Error> {
        self.0.read(table)
    }
}

/// Adds the key `generator` and the keys of each topology to the schema of the section.
pub(crate) fn add_topologies(schema: &mut Schema) {
    let choice: Value = schemars::schema_for!(Kind).into();
    let mut generator = Map::new();
    let name = Topology::default().kind().name();
    let meaning = format!(
        "A topology, whose keys follow. Default: `{name}`, unless there is a file or lists."
    );
    generator.insert("description".to_owned(), json!(meaning));
    generator.insert("oneOf".to_owned(), choice["oneOf"].clone());
    let mut properties = Map::new();
    properties.insert(GENERATOR.to_owned(), Value::Object(generator));
    if let Some(own) = schema.get("properties").and_then(Value::as_object) {
        properties.extend(own.clone());
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    let cases = Kind::ALL.iter().map(|kind| {
        let mut keys = kind.schema();
        let then: Map<String, Value> = ["description", "properties", "required"]
            .into_iter()
            .filter_map(|part| Some((part.to_owned(), keys.get_mut(part)?.take())))
            .collect();
        let chosen = json!({ GENERATOR: { "const": kind.name() } });
        json!({ "if": { "properties": chosen, "required": [GENERATOR] }, "then": then })
    });
    schema.insert("allOf".to_owned(), cases.collect());
    schema.insert("unevaluatedProperties".to_owned(), json!(false));
}

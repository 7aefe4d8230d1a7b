use std::marker::PhantomData;
use std::sync::LazyLock;

use schemars::Schema;
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Map, Value, json};
use silvan_core::document::{SourceText, nearest, suggest};
use silvan_fabric::generators::{Kind, Topology};
use silvan_fabric::routing::{Routing, RoutingName};
use toml_edit::TableLike;

use crate::ScenarioError;
use crate::checks::at;
use crate::parsed::FabricSection;

const SECTION: &str = "fabric";
const GENERATOR: &str = "generator";
const ROUTING: &str = "routing";

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
}

struct Choice {
    name: &'static str,
    keys: Keys,
}

/// Keys of the section without those of its choices. The schema takes milliseconds, so it is built once.
static OWN: LazyLock<Vec<String>> =
    LazyLock::new(|| Keys::of(&schemars::schema_for!(FabricSection).into()).all);

static TOPOLOGIES: LazyLock<Vec<Choice>> = LazyLock::new(|| {
    let kinds = Kind::ALL.iter();
    let choice = |kind: &Kind| Choice::new(kind.name(), &kind.schema());
    kinds.map(choice).collect()
});

static ROUTINGS: LazyLock<Vec<Choice>> = LazyLock::new(|| {
    let names = RoutingName::ALL.iter();
    let choice = |name: &RoutingName| Choice::new(name.name(), &name.schema());
    names.map(choice).collect()
});

impl Choice {
    fn new(name: &'static str, schema: &Value) -> Self {
        let keys = Keys::of(schema);
        Self { name, keys }
    }

    fn topology(kind: Kind) -> &'static Self {
        Self::named(&TOPOLOGIES, kind.name())
    }

    fn routing(name: RoutingName) -> &'static Self {
        Self::named(&ROUTINGS, name.name())
    }

    fn named(choices: &'static [Self], name: &str) -> &'static Self {
        let found = choices.iter().find(|choice| choice.name == name);
        found.expect("every name has a schema")
    }

    fn has(&self, key: &str) -> bool {
        contains(&self.keys.all, key)
    }

    fn wanted(&self) -> String {
        let Self { name, keys } = self;
        if keys.all.is_empty() {
            return format!("{name} has no parameters");
        }
        let is_optional = |key: &&String| !contains(&keys.required, key);
        let optional: Vec<&str> = { keys.all.iter().filter(is_optional) }
            .map(String::as_str)
            .collect();
        let parts = [
            ("needs", keys.required.join(", ")),
            ("may have", optional.join(", ")),
        ];
        let parts = parts.iter().filter(|(_, keys)| !keys.is_empty());
        let parts: Vec<String> = parts.map(|(verb, keys)| format!("{verb} {keys}")).collect();
        format!("{name} {}", parts.join(", and "))
    }
}

pub(crate) fn check_fabric_keys(source: &SourceText) -> Result<(), ScenarioError> {
    let Some(table) = table(source) else {
        return Ok(());
    };
    let topology = read_name(source, table, GENERATOR)?.map(Choice::topology);
    let routing = read_name(source, table, ROUTING)?.map(Choice::routing);
    for (key, _) in table.iter() {
        let chosen = || topology.into_iter().chain(routing);
        if contains(&OWN, key) || chosen().any(|choice| choice.has(key)) {
            continue;
        }
        let error = |message: String| ScenarioError::new(at(SECTION).key(key), message);
        let foreign = |choice: &Choice| {
            let message = format!("{} has no such parameter", choice.name);
            error(message).with_hint(choice.wanted())
        };
        if TOPOLOGIES.iter().any(|choice| choice.has(key)) {
            let message = "this is a parameter of a generator, and there is none";
            let name = Topology::default().kind().name();
            let hint = format!("add fabric.generator, e.g. {name:?}");
            let missing = || error(message.to_owned()).with_hint(hint);
            return Err(topology.map_or_else(missing, foreign));
        }
        if let Some(other) = ROUTINGS.iter().find(|choice| choice.has(key)) {
            let message = format!("this is a parameter of the routing {:?}", other.name);
            let hint = format!("add fabric.routing = {:?}", other.name);
            let missing = || error(message).with_hint(hint);
            return Err(routing.map_or_else(missing, foreign));
        }
        // A file without a generator may mean the default one.
        let implied = match topology {
            Some(_) => None,
            None => Some(Choice::topology(Topology::default().kind())),
        };
        let of_choices = chosen().chain(implied).flat_map(|choice| &choice.keys.all);
        let near = nearest(key, of_choices.clone().map(String::as_str));
        let hint = match near.or_else(|| nearest(key, OWN.iter().map(String::as_str))) {
            Some(near) => Some(format!("did you mean {near:?}?")),
            None => suggest(key, of_choices.chain(OWN.iter()).map(String::as_str)),
        };
        let hint = hint.or_else(|| topology.map(Choice::wanted));
        let hint = hint.unwrap_or_else(|| "silvan schema prints all keys".to_owned());
        return Err(error("unknown key".to_owned()).with_hint(hint));
    }
    for choice in topology.into_iter().chain(routing) {
        let mut required = choice.keys.required.iter();
        if let Some(key) = required.find(|key| !table.contains_key(key)) {
            let error = ScenarioError::new(at(SECTION).key(key), "missing key");
            return Err(error.with_hint(choice.wanted()));
        }
    }
    Ok(())
}

fn contains(keys: &[String], key: &str) -> bool {
    keys.iter().any(|known| known == key)
}

pub(crate) fn read_topology(source: &SourceText) -> Result<Option<Topology>, ScenarioError> {
    read_choice(source, GENERATOR, TopologySeed)
}

pub(crate) fn read_routing(source: &SourceText) -> Result<Option<Routing>, ScenarioError> {
    read_choice(source, ROUTING, RoutingSeed)
}

fn read_choice<N: DeserializeOwned, S: for<'de> DeserializeSeed<'de, Value = T>, T>(
    source: &SourceText,
    key: &str,
    seed: fn(N) -> S,
) -> Result<Option<T>, ScenarioError> {
    let Some(table) = table(source) else {
        return Ok(None);
    };
    let name = read_name(source, table, key)?;
    name.map(|name| source.read_at(&at(SECTION), seed(name)))
        .transpose()
}

struct TopologySeed(Kind);

impl<'de> DeserializeSeed<'de> for TopologySeed {
    type Value = Topology;

    fn deserialize<D: serde::Deserializer<'de>>(self, table: D) -> Result<Topology, D::Error> {
        self.0.read(table)
    }
}

struct RoutingSeed(RoutingName);

impl<'de> DeserializeSeed<'de> for RoutingSeed {
    type Value = Routing;

    fn deserialize<D: serde::Deserializer<'de>>(self, table: D) -> Result<Routing, D::Error> {
        self.0.read(table)
    }
}

fn table(source: &SourceText) -> Option<&dyn TableLike> {
    source.root().get(SECTION)?.as_table_like()
}

fn read_name<T: DeserializeOwned>(
    source: &SourceText,
    table: &dyn TableLike,
    key: &str,
) -> Result<Option<T>, ScenarioError> {
    match table.contains_key(key) {
        true => { source.read_at(&at(SECTION).key(key), PhantomData) }.map(Some),
        false => Ok(None),
    }
}

pub(crate) fn add_choices(schema: &mut Schema) {
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
    let topologies = Kind::ALL.iter();
    let topologies = topologies.map(|kind| case(GENERATOR, kind.name(), kind.schema()));
    let routings = RoutingName::ALL.iter();
    let routings = routings
        .map(|name| (name.name(), name.schema()))
        .filter(|(_, keys)| keys["properties"].is_object())
        .map(|(name, keys)| case(ROUTING, name, keys));
    schema.insert("allOf".to_owned(), topologies.chain(routings).collect());
    schema.insert("unevaluatedProperties".to_owned(), json!(false));
}

fn case(key: &str, name: &str, mut keys: Value) -> Value {
    let then: Map<String, Value> = ["description", "properties", "required"]
        .into_iter()
        .filter_map(|part| Some((part.to_owned(), keys.get_mut(part)?.take())))
        .collect();
    json!({ "if": { "properties": { key: { "const": name } }, "required": [key] }, "then": then })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A key of a routing stands beside those of the section and of any topology.
    #[test]
    fn keys_of_routings_are_no_other_keys() {
        let mut others: BTreeSet<&String> = OWN.iter().collect();
        assert!(contains(&OWN, "routing") && contains(&OWN, "generator"));
        others.extend(TOPOLOGIES.iter().flat_map(|choice| &choice.keys.all));
        for routing in ROUTINGS.iter() {
            for key in &routing.keys.all {
                assert!(!others.contains(key), "{}: {key}", routing.name);
            }
        }
    }
}

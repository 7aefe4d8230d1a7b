use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

use crate::ScenarioError;
use crate::schema::json_schema;

const MOST_PLACES: usize = 3;
/// Most tables, lists and definitions within each other: values of sweeps are lists of themselves.
const DEEPEST: usize = 16;

/// At the root, where `--set` needs whole paths, the tables come before a similar name.
pub(crate) fn with_places(error: ScenarioError) -> ScenarioError {
    if !error.message().ends_with(": unknown key") {
        return error;
    }
    let path = error.key().to_string();
    let name = path.rsplit('.').next().unwrap_or_default();
    let mut places = places(name);
    // The keys of generators are those that are most often written without their table.
    if places.iter().any(|place| place.starts_with("fabric.")) {
        places.retain(|place| place.starts_with("fabric."));
    }
    if places.is_empty() || places.len() > MOST_PLACES {
        return error;
    }
    let places = places.join(" or ");
    let near = error.hint().filter(|hint| hint.starts_with("did you mean"));
    match (path == name, near, error.hint()) {
        (true, ..) | (false, None, None) => error.with_hint(format!("did you mean {places}?")),
        (false, Some(_), _) => error,
        (false, None, Some(hint)) => {
            let hint = format!("{hint}; elsewhere there is {places}");
            error.with_hint(hint)
        }
    }
}

/// Paths of each key. Listing them takes milliseconds, so it is done once.
static PLACES: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let root = json_schema();
    let mut found = BTreeMap::new();
    collect(&root, &root, "", &mut found, DEEPEST);
    found
});

fn places(name: &str) -> Vec<String> {
    let found = PLACES.get(name).into_iter().flatten();
    found.cloned().collect()
}

fn collect(
    root: &Value,
    schema: &Value,
    path: &str,
    found: &mut BTreeMap<String, BTreeSet<String>>,
    depth: usize,
) {
    if depth == 0 {
        return;
    }
    let target = schema["$ref"].as_str();
    if let Some(target) = target.and_then(|target| target.strip_prefix("#/$defs/")) {
        return collect(root, &root["$defs"][target], path, found, depth - 1);
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let inner = match path {
            "" => key.clone(),
            _ => format!("{path}.{key}"),
        };
        collect(root, property, &inner, found, depth - 1);
        found.entry(key.clone()).or_default().insert(inner);
    }
    for choices in ["anyOf", "oneOf", "allOf"] {
        for choice in schema[choices].as_array().into_iter().flatten() {
            collect(root, choice, path, found, depth);
            collect(root, &choice["then"], path, found, depth);
        }
    }
    if schema["items"].is_object() {
        collect(root, &schema["items"], path, found, depth - 1);
    }
}

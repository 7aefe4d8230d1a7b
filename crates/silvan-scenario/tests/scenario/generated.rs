//! Generated texts: the JSON schema and the reference of scenario keys.

use serde_json::Value;
use silvan_fabric::generators::Kind;
use silvan_scenario::{json_schema, reference_markdown};

use crate::{ALL_KEYS, read};

/// Keys of a JSON value as paths, lists without their positions.
fn key_paths(prefix: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let path = format!("{prefix}{key}");
                key_paths(&format!("{path}."), inner, out);
                out.push(path);
            }
        }
        Value::Array(values) => values
            .iter()
            .for_each(|inner| key_paths(prefix, inner, out)),
        _ => {}
    }
}

/// Oracle: the file that sets every key. The reference has a row or a section for each.
#[test]
fn the_reference_knows_every_key() {
    let reference = reference_markdown();
    let json = read(ALL_KEYS).unwrap().to_json();
    let mut paths = Vec::new();
    key_paths("", &json, &mut paths);
    // Below these, keys are names of the scenario's own.
    let own = [
        "control.python.parameters.",
        "fabric.tables.",
        "sweep.vary.",
    ];
    for path in paths
        .iter()
        .filter(|path| !own.iter().any(|own| path.starts_with(own)))
    {
        let (section, key) = path.rsplit_once('.').unwrap_or(("Top level", path));
        let headings = [
            format!("## {section}\n"),
            format!("## `[{section}]`\n"),
            format!("## `[[{section}]]`\n"),
        ];
        let start = headings.iter().find_map(|heading| reference.find(heading));
        let start = start.unwrap_or_else(|| panic!("no section for {path}"));
        let body = &reference[start + 3..];
        let body = &body[..body.find("\n## ").unwrap_or(body.len())];
        let is_section = reference.contains(&format!("[{path}]"));
        assert!(
            body.contains(&format!("\n| `{key}` | ")) || is_section,
            "{path} is not in the reference"
        );
    }
}

#[test]
fn every_row_of_the_reference_says_something() {
    let reference = reference_markdown();
    let rows = reference.lines().filter(|line| line.starts_with("| `"));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 5, "{row}");
        assert!(!cells[1].is_empty(), "no type: {row}");
        assert!(!cells[4].is_empty(), "no meaning: {row}");
        count += 1;
    }
    assert!(count > 80, "{count} rows");
}

/// Oracle: the registry of topologies. Each has its keys in the reference, and a scenario with one of them
/// misspelled is refused with the key and the keys that are allowed.
#[test]
fn every_topology_has_its_keys_in_the_reference() {
    let reference = reference_markdown();
    for kind in Kind::ALL {
        let name = kind.name();
        let heading = format!("\n### `[fabric]`, `generator = \"{name}\"`\n");
        let start = reference
            .find(&heading)
            .unwrap_or_else(|| panic!("{name} is missing"));
        let body = &reference[start + heading.len()..];
        let body = &body[..body.find("\n##").unwrap_or(body.len())];
        let schema = kind.schema();
        let keys: Vec<&String> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
            .collect();
        for key in &keys {
            assert!(body.contains(&format!("\n| `{key}` | ")), "{name}: {key}");
        }
        let error = read(&format!("[fabric]\ngenerator = \"{name}\"\nzzz-9 = 1\n"));
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("file.toml:3: fabric.zzz-9: unknown key"),
            "{error}"
        );
        for key in keys {
            assert!(error.contains(key), "{error}");
        }
    }
}

/// The committed page is the generated one:
/// `cargo run -p silvan-scenario --example reference > docs/reference/scenario.md`.
#[test]
fn the_committed_reference_is_up_to_date() {
    let committed = include_str!("../../../../docs/reference/scenario.md");
    assert!(
        committed == reference_markdown(),
        "docs/reference/scenario.md is out of date"
    );
}

/// Every property has a description, and tables refuse unknown keys.
#[test]
fn the_schema_describes_every_key() {
    fn visit(path: &str, schema: &Value) {
        if let Some(properties) = schema["properties"].as_object() {
            // Keys that depend on another key count as evaluated where that allows them.
            let rest = ["additionalProperties", "unevaluatedProperties"];
            let refused = rest.iter().any(|rest| schema[rest] == Value::Bool(false));
            assert!(refused, "{path}");
            for (key, property) in properties {
                assert!(property["description"].is_string(), "{path}.{key}");
            }
        }
    }
    let schema = json_schema();
    visit("root", &schema);
    let definitions = schema["$defs"].as_object().unwrap();
    assert!(definitions.len() > 20);
    for (name, definition) in definitions {
        visit(name, definition);
    }
}

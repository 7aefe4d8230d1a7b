//! What to do about text that cannot be read as a scenario.

use super::path::{KeyPath, PathStep};

/// What is expected of a table that chooses one of several kinds.
pub(super) const ONE_KEY: &str = "a table with one key";

/// Advice on text that is not TOML, by the parser's message.
pub(super) fn on_syntax(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "keep one of them; entries of a list have double brackets, e.g. [[traffic.flow]]"
    } else if message.contains("unclosed") || message.contains(" string, expected") {
        "the file may be cut short, or a quote or bracket is missing"
    } else if message.contains("must be quoted") {
        "put names and quantities in quotes, e.g. \"64 KiB\""
    } else {
        "write key = value, and text in quotes; the file may be cut short, or a quote or bracket \
         is missing"
    }
}

/// Advice on a value at `path` of another kind than `expected`, which is in an author's words.
pub(super) fn on_kind(path: &KeyPath, expected: &str) -> String {
    let advice = match expected {
        "a table" => return as_section(path),
        "true or false" => "write true or false, without quotes",
        "text in quotes" => "put it in quotes, e.g. \"x\"",
        "a number" => "write a number without quotes and unit, e.g. 0.5",
        ONE_KEY => "write a choice with its value, e.g. { fixed = \"64 KiB\" }",
        "a list" => return format!("write it in brackets, or entries as [[{path}]]"),
        list if list.starts_with("a list") => "write that many values in brackets, e.g. [0, 1]",
        _ => "write a whole number without quotes and unit, e.g. 1",
    };
    advice.to_owned()
}

fn as_section(path: &KeyPath) -> String {
    match path.steps().last() {
        Some(PathStep::Key(_)) => format!("write it as a section [{path}] with keys below"),
        Some(PathStep::Index(_)) => {
            format!(
                "write it as a section [[{}]] with keys below",
                path.parent()
            )
        }
        None => "write keys and sections".to_owned(),
    }
}

/// Advice on the key `field` that the table at `path` lacks.
pub(super) fn on_missing(path: &KeyPath, field: &str) -> String {
    let of_cable = path.starts_with(&KeyPath::from("fabric.cable"));
    let is_sequence = path.starts_with(&KeyPath::from("traffic.sequence"));
    let example = match field {
        "from" | "to" if of_cable => "\"S1:1\"",
        "to" if is_sequence => "[\"host-0000\"]",
        "from" | "to" => "\"host-0000\"",
        "name" | "switch" => "\"S1\"",
        "ports" => "36",
        "size" => "\"64 KiB\"",
        "at" => "\"1 ms\"",
        "shape" => "\"linear\"",
        "fault" => return "add a table [[fault]]".to_owned(),
        _ if *path == KeyPath::ROOT => return format!("add {field}"),
        _ => return format!("add {field} to {path}"),
    };
    format!("add it, e.g. {field} = {example}")
}

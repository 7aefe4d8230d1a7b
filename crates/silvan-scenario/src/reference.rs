use std::fmt::Write;

use serde_json::Value;

use crate::schema::{TYPE_KEY, UNIT_KEY, json_schema};

/// Every scenario key with type, unit, default and meaning, as Markdown: one table per section.
pub fn reference_markdown() -> String {
    let schema = json_schema();
    let mut sections = Vec::new();
    let mut top = Section {
        heading: "Top level".to_owned(),
        meaning: text(&schema, "description"),
        rows: Vec::new(),
        cases: Vec::new(),
    };
    let reader = Reader { root: &schema };
    reader.read_table(&schema, "", &mut top, &mut sections);
    let mut out = String::from(HEADER);
    for section in std::iter::once(&top).chain(&sections) {
        section.write("##", &mut out);
    }
    out
}

const HEADER: &str = "\
# Scenario keys

Generated from the types of the scenario crate; do not edit.

Quantities are text with a unit, such as `\"150 us\"`; a number without one is an error, and so is an
unknown key. A value is set on the command line by its path: `--set switch.buffer=\"64 KiB\"`, or
`--set traffic.flow.0.load=0.5` for the first entry of a list.

";

struct Section {
    heading: String,
    meaning: String,
    rows: Vec<ReferenceRow>,
    cases: Vec<Section>,
}

struct ReferenceRow {
    key: String,
    kind: String,
    unit: String,
    default: String,
    meaning: String,
}

impl Section {
    fn write(&self, level: &str, out: &mut String) {
        let Self {
            heading, meaning, ..
        } = self;
        let _ = writeln!(out, "{level} {heading}\n\n{meaning}\n");
        if !self.rows.is_empty() {
            self.write_rows(out);
        }
        for case in &self.cases {
            case.write(&format!("{level}#"), out);
        }
    }

    fn write_rows(&self, out: &mut String) {
        out.push_str("| key | type | unit | default | meaning |\n|---|---|---|---|---|\n");
        for row in &self.rows {
            let cells = [&row.key, &row.kind, &row.unit, &row.default, &row.meaning];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out.push('\n');
    }
}

struct Reader<'a> {
    root: &'a Value,
}

impl<'a> Reader<'a> {
    fn read_table(
        &self,
        schema: &'a Value,
        prefix: &str,
        section: &mut Section,
        sections: &mut Vec<Section>,
    ) {
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|keys| keys.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        for (key, property) in properties {
            let target = self.resolve(property);
            if self.has_no_keys(target) {
                continue;
            }
            let elements = self.resolve(&target["items"]);
            let path = format!("{prefix}{key}");
            let has_own_type = [target, elements].iter().any(|s| s[TYPE_KEY].is_string());
            let (inner, heading) = if is_table(target) && !has_own_type {
                (target, format!("`[{path}]`"))
            } else if is_table(elements) && !has_own_type {
                (elements, format!("`[[{path}]]`"))
            } else {
                let meaning = self.meaning(property);
                let (meaning, stated) = split_default(&meaning);
                section.rows.push(ReferenceRow {
                    key: format!("`{key}`"),
                    kind: self.kind(property),
                    unit: self.unit(property),
                    default: match stated {
                        Some(stated) => stated,
                        None => default(property, required.contains(&key.as_str())),
                    },
                    meaning,
                });
                continue;
            };
            let mut nested = Section {
                heading,
                meaning: text(property, "description"),
                rows: Vec::new(),
                cases: Vec::new(),
            };
            let position = sections.len();
            self.read_table(inner, &format!("{path}."), &mut nested, sections);
            sections.insert(position, nested);
        }
        let cases = schema["allOf"].as_array().into_iter().flatten();
        let cases = cases.filter_map(|case| self.case(case, &section.heading));
        section.cases = cases.collect();
    }

    fn case(&self, case: &'a Value, heading: &str) -> Option<Section> {
        let (key, value) = case["if"]["properties"].as_object()?.iter().next()?;
        let keys = &case["then"];
        let mut section = Section {
            heading: format!("{heading}, `{key} = {}`", value["const"]),
            meaning: text(keys, "description"),
            rows: Vec::new(),
            cases: Vec::new(),
        };
        self.read_table(keys, "", &mut section, &mut Vec::new());
        Some(section)
    }

    fn has_no_keys(&self, schema: &'a Value) -> bool {
        let mut properties = schema["properties"].as_object().into_iter().flatten();
        schema["type"] == "object"
            && schema["additionalProperties"] == false
            && properties.all(|(_, property)| self.has_no_keys(self.resolve(property)))
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/$defs/"))
        {
            return self.resolve(&self.root["$defs"][name]);
        }
        match alternatives(schema).as_slice() {
            [only] => self.resolve(only),
            _ => schema,
        }
    }

    fn kind(&self, schema: &'a Value) -> String {
        let schema = self.resolve(schema);
        if let Some(kind) = schema[TYPE_KEY].as_str() {
            return kind.to_owned();
        }
        let names = enum_names(schema);
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
            return names.join(", ");
        }
        match type_name(schema) {
            "array" if schema["prefixItems"].is_array() => "pair of whole numbers".to_owned(),
            "array" => format!("list of {}", plural(&self.kind(&schema["items"]))),
            "object" => "table".to_owned(),
            "string" => "text".to_owned(),
            "integer" => match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
                (Some(min), Some(max)) => format!("{min} to {max}"),
                _ => "whole number".to_owned(),
            },
            "number" => format!("number{}", bounds(schema)),
            "boolean" => "`true`, `false`".to_owned(),
            other => other.to_owned(),
        }
    }

    fn unit(&self, schema: &'a Value) -> String {
        let own = schema[UNIT_KEY].as_str();
        own.or_else(|| self.resolve(schema)[UNIT_KEY].as_str())
            .unwrap_or_default()
            .to_owned()
    }

    fn meaning(&self, property: &'a Value) -> String {
        let mut meaning = text(property, "description");
        let variants = self.resolve(property)["oneOf"].as_array();
        for variant in variants.into_iter().flatten() {
            if let Some(name) = variant["const"].as_str() {
                let what = text(variant, "description");
                let _ = write!(meaning, " `{name}`: {what}");
            }
        }
        meaning
    }
}

fn is_table(schema: &Value) -> bool {
    schema["properties"].is_object()
}

fn alternatives(schema: &Value) -> Vec<&Value> {
    let choices = schema["anyOf"].as_array();
    choices
        .into_iter()
        .flatten()
        .filter(|choice| choice["type"] != "null")
        .collect()
}

fn enum_names(schema: &Value) -> Vec<&str> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let documented = schema["oneOf"].as_array().into_iter().flatten();
    plain
        .filter_map(Value::as_str)
        .chain(documented.filter_map(|variant| variant["const"].as_str()))
        .collect()
}

fn type_name(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(types) => types
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null")
            .unwrap_or_default(),
        name => name.as_str().unwrap_or_default(),
    }
}

fn bounds(schema: &Value) -> String {
    let words = [
        ("exclusiveMinimum", "above"),
        ("minimum", "from"),
        ("exclusiveMaximum", "below"),
        ("maximum", "at most"),
    ];
    let words = words.iter().filter_map(|(key, word)| {
        let bound = schema[key].as_f64()?;
        Some(format!("{word} {bound}"))
    });
    let words: Vec<_> = words.collect();
    match words.is_empty() {
        true => String::new(),
        false => format!(" {}", words.join(", ")),
    }
}

fn default(property: &Value, is_required: bool) -> String {
    match &property["default"] {
        _ if is_required => "required".to_owned(),
        Value::Null => String::new(),
        value => format!("`{value}`"),
    }
}

fn split_default(meaning: &str) -> (String, Option<String>) {
    let Some((before, after)) = meaning.split_once(" Default: ") else {
        return (meaning.to_owned(), None);
    };
    let (stated, rest) = after.split_once(". ").unwrap_or((after, ""));
    let meaning = format!("{before} {rest}");
    let stated = stated.strip_suffix('.').unwrap_or(stated);
    (meaning.trim_end().to_owned(), Some(stated.to_owned()))
}

fn plural(kind: &str) -> String {
    match kind {
        "text" => "texts".to_owned(),
        "cable" => "cables".to_owned(),
        "whole number" => "whole numbers".to_owned(),
        "data size" => "data sizes".to_owned(),
        "pair of whole numbers" => "pairs of whole numbers".to_owned(),
        other => other.to_owned(),
    }
}

fn text(schema: &Value, key: &str) -> String {
    let text = schema[key].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

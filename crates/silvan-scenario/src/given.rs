//! Values that a scenario's author gave; all other values are comments, which follow an override.

use std::collections::BTreeMap;

use toml_edit::{Array, InlineTable, Item, Key, Table, Value};

use crate::KeyPath;
use crate::effective::is_list_of_tables;

#[derive(Debug, Clone)]
pub(crate) enum Given {
    Whole,
    Table(BTreeMap<String, Given>),
    List(Vec<Given>),
}

/// Values given as a file: table, key of the file, and keys of its contents.
const FILES: [(&[&str], &str, &[&str]); 6] = [
    (&["fabric"], "hosts-file", &["host-names"]),
    (&["fabric"], "file", &["switch", "host", "cable"]),
    (
        &["fabric"],
        "routing-file",
        &["routing", "linear-tables", "path-sl", "sl-to-vl"],
    ),
    (&["fabric"], "root-guid-file", &["routing", "roots"]),
    (&["fabric"], "cn-guid-file", &["routing", "compute-nodes"]),
    (&["control", "python"], "file", &["source", "name"]),
];

const LISTED_FILES: [(&str, &str); 2] = [("program", "trace"), ("flow-file", "list")];

impl Given {
    pub(crate) fn of(root: &Item) -> Self {
        let mut given = Self::of_item(root);
        for (path, file, contents) in FILES {
            let table = path.iter().try_fold(&mut given, |at, key| at.get_mut(key));
            if let Some(Self::Table(keys)) = table {
                if keys.contains_key(file) {
                    keys.extend(contents.iter().map(|&key| (key.to_owned(), Self::Whole)));
                }
            }
        }
        let traffic = given.get_mut("traffic");
        if let Some(Self::List(programs)) = traffic.and_then(|table| table.get_mut("program")) {
            let programs = programs.iter_mut();
            programs
                .filter(|entry| {
                    entry
                        .get("hosts")
                        .is_some_and(|hosts| hosts.get("file").is_some())
                })
                .for_each(|entry| entry.insert("hosts"));
        }
        for (kind, contents) in LISTED_FILES {
            let traffic = given.get_mut("traffic");
            let entries = traffic.and_then(|table| table.get_mut(kind));
            if let Some(Self::List(entries)) = entries {
                let entries = entries.iter_mut();
                entries
                    .filter(|entry| entry.get("file").is_some())
                    .for_each(|entry| entry.insert(contents));
            }
        }
        given
    }

    fn of_item(item: &Item) -> Self {
        match item {
            Item::None => Self::Table(BTreeMap::new()),
            Item::Value(value) => Self::of_value(value),
            Item::Table(table) => Self::of_table(table),
            Item::ArrayOfTables(tables) => Self::List(tables.iter().map(Self::of_table).collect()),
        }
    }

    fn of_table(table: &Table) -> Self {
        let keys = table.iter();
        Self::Table(
            keys.map(|(key, item)| (key.to_owned(), Self::of_item(item)))
                .collect(),
        )
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::InlineTable(table) => {
                let keys = table.iter();
                Self::Table(
                    keys.map(|(key, value)| (key.to_owned(), Self::of_value(value)))
                        .collect(),
                )
            }
            Value::Array(array) if is_list_of_tables(array) => {
                Self::List(array.iter().map(Self::of_value).collect())
            }
            _ => Self::Whole,
        }
    }

    pub(crate) fn insert(&mut self, key: &str) {
        if let Self::Table(keys) = self {
            keys.insert(key.to_owned(), Self::Whole);
        }
    }

    pub(crate) fn insert_in(&mut self, section: &str, key: &str) {
        if let Self::Table(sections) = self {
            let section = sections.entry(section.to_owned());
            section
                .or_insert_with(|| Self::Table(BTreeMap::new()))
                .insert(key);
        }
    }

    fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Whole => Some(self),
            Self::Table(keys) => keys.get(key),
            Self::List(_) => None,
        }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match self {
            Self::Table(keys) => keys.get_mut(key),
            Self::Whole | Self::List(_) => None,
        }
    }

    fn entry(&self, index: usize) -> Option<&Self> {
        match self {
            Self::Whole => Some(self),
            Self::List(entries) => entries.get(index),
            Self::Table(_) => None,
        }
    }
}

pub(crate) struct Origins<'a> {
    pub published: &'a [KeyPath],
    pub variant: &'a str,
    pub tables: Vec<&'a str>,
}

impl Origins<'_> {
    fn of(&self, path: &str) -> Option<String> {
        let path = KeyPath::from(path);
        if self.published.iter().any(|key| path.starts_with(key)) {
            return Some(format!("published settings of {} here", self.variant));
        }
        let control = KeyPath::ROOT.key("control");
        let mut tables = self.tables.iter();
        let is_own = tables.any(|table| path.starts_with(&control.key(table)));
        is_own.then(|| "default of the parameter".to_owned())
    }
}

pub(crate) fn to_toml(document: &Table, given: &Given, origins: &Origins<'_>) -> String {
    let mut writer = Writer {
        text: String::new(),
        origins,
    };
    writer.table(document, "", Some(given));
    writer.text.trim_start().to_owned()
}

struct Writer<'a> {
    text: String,
    origins: &'a Origins<'a>,
}

impl Writer<'_> {
    fn table(&mut self, table: &Table, path: &str, given: Option<&Given>) {
        for (key, item) in table {
            if let Item::Value(value) = item {
                let origin = self.origins.of(&format!("{path}.{}", key_text(key)));
                self.value(key, value, given.and_then(|given| given.get(key)), origin);
            }
        }
        for (key, item) in table {
            let given = given.and_then(|given| given.get(key));
            let name = key_text(key);
            let path = match path {
                "" => name,
                _ => format!("{path}.{name}"),
            };
            match item {
                Item::Table(inner) => {
                    let has_values = inner.iter().any(|(_, item)| item.is_value());
                    if has_values || inner.is_empty() {
                        self.header(&format!("[{path}]"), given.is_some());
                    }
                    self.table(inner, &path, given);
                }
                Item::ArrayOfTables(tables) => {
                    for (index, inner) in tables.iter().enumerate() {
                        let given = given.and_then(|given| given.entry(index));
                        self.header(&format!("[[{path}]]"), given.is_some());
                        self.table(inner, &path, given);
                    }
                }
                Item::Value(_) | Item::None => {}
            }
        }
    }

    fn header(&mut self, text: &str, is_given: bool) {
        self.text.push('\n');
        self.line(text, is_given);
    }

    fn value(&mut self, key: &str, value: &Value, given: Option<&Given>, origin: Option<String>) {
        let assignment = |value: &Value| format!("{} = {}", key_text(key), plain(value));
        let Some(given) = given else {
            let origin = origin.map_or_else(String::new, |origin| format!("  # {origin}"));
            return self.line(&format!("{}{origin}", assignment(value)), false);
        };
        let some = given_part(value, given);
        let (some, all) = (assignment(&some), assignment(value));
        self.line(&some, true);
        if some != all {
            self.line(&all, false);
        }
    }

    fn line(&mut self, text: &str, is_given: bool) {
        for line in text.lines() {
            if !is_given {
                self.text.push_str("# ");
            }
            self.text.push_str(line);
            self.text.push('\n');
        }
    }
}

fn given_part(value: &Value, given: &Given) -> Value {
    match (value, given) {
        (Value::InlineTable(table), Given::Table(_)) => {
            let mut part = InlineTable::new();
            for (key, value) in table {
                if let Some(given) = given.get(key) {
                    part.insert(key, given_part(value, given));
                }
            }
            part.into()
        }
        (Value::Array(array), Given::List(_)) => {
            let entries = array.iter().enumerate();
            let parts = entries.map(|(index, value)| match given.entry(index) {
                Some(given) => given_part(value, given),
                None => value.clone(),
            });
            parts.collect::<Array>().into()
        }
        _ => value.clone(),
    }
}

fn plain(value: &Value) -> String {
    value.to_string().trim().to_owned()
}

fn key_text(key: &str) -> String {
    Key::new(key).to_string().trim().to_owned()
}

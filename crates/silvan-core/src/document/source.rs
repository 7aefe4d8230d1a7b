use std::borrow::Cow;
use std::ops::Range;

use serde::de::{DeserializeOwned, DeserializeSeed};
use toml_edit::{Document, InlineTable, Item, Table, Value};

use super::de;
use super::error::DocumentError;
use super::path::{KeyPath, PathStep};

const VALUES: usize = 2_000_000;

/// More steps of a key than any format has.
const STEPS: usize = 32;

/// One `--set key=value`, kept as written for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Key of the value to set, e.g. `traffic.flow.0.rate`.
    pub key: String,
    /// The value as TOML (`4`, `true`, `[1, 2]`, `"64 KiB"`), or text without its quotes (`64 KiB`).
    pub value: String,
}

impl Override {
    /// Sets `key` to `value`.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }

    /// A long key and a long value, such as a program's table, are cut.
    fn source_name(&self) -> String {
        format!("--set {}={}", cut(&self.key, 200), cut(&self.value, 40))
    }

    fn error(&self, path: KeyPath, message: String, hint: &str) -> DocumentError {
        let error = DocumentError::new(path, message).with_hint(hint);
        error.at(&self.source_name(), None)
    }
}

/// The TOML document after the overrides. Items that are in the file keep their spans.
#[derive(Debug, Clone)]
pub struct SourceText {
    name: String,
    text: String,
    root: Item,
    overrides: Vec<(KeyPath, Override)>,
}

impl SourceText {
    /// Parses `text` and applies `overrides` in order; an error is the first text that is not TOML, or a misplaced
    /// override.
    pub fn parse(text: &str, name: &str, overrides: &[Override]) -> Result<Self, DocumentError> {
        check_values(text).map_err(|error| error.at(name, None))?;
        let document = Document::parse(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            DocumentError::new(KeyPath::ROOT, error.message())
                .with_hint(on_syntax(error.message()))
                .at(name, Some(position(text, start)))
        })?;
        let mut source = Self {
            name: name.to_owned(),
            text: text.to_owned(),
            root: document.into_item(),
            overrides: Vec::new(),
        };
        for change in overrides {
            source.apply(change)?;
        }
        Ok(source)
    }

    /// Applies one more override to a copy of the text. Errors: it has no place.
    pub fn with_override(&self, change: &Override) -> Result<Self, DocumentError> {
        let mut changed = self.clone();
        changed.apply(change)?;
        Ok(changed)
    }

    /// Adds missing keys to a copy and returns them, except in tables that are values, which are refused.
    #[must_use]
    pub fn with_defaults(
        &self,
        defaults: impl IntoIterator<Item = (KeyPath, Value)>,
    ) -> (Self, Vec<KeyPath>) {
        let mut filled = self.clone();
        let mut added = Vec::new();
        for (path, value) in defaults {
            if self.has(&path) {
                continue;
            }
            let start = Ok(ItemMut::Item(&mut filled.root));
            let place = path
                .steps()
                .iter()
                .fold(start, |at, step| at.and_then(|at| at.enter(step)));
            if place.is_ok_and(|place| place.set(value)) {
                added.push(path);
            }
        }
        (filled, added)
    }

    /// Returns true if the text, with its overrides, has a value at the path.
    pub fn has(&self, path: &KeyPath) -> bool {
        self.item(path).is_some_and(|item| !item.is_none())
    }

    fn item(&self, path: &KeyPath) -> Option<&Item> {
        let mut steps = path.steps().iter();
        steps.try_fold(&self.root, |item, step| match step {
            PathStep::Key(key) => item.get(key.as_str()),
            PathStep::Index(index) => item.get(*index),
        })
    }

    /// The root table.
    pub fn root(&self) -> &Item {
        &self.root
    }

    /// Reads the values up to the first wrong key or value; [`locate`](Self::locate) adds its place.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, DocumentError> {
        de::from_item(&self.root)
    }

    /// Reads one key with a seed; a missing one is empty. Errors as [`read`](Self::read).
    pub fn read_at<'de, T: DeserializeSeed<'de>>(
        &self,
        path: &KeyPath,
        seed: T,
    ) -> Result<T::Value, DocumentError> {
        de::read_item(self.item(path).unwrap_or(&Item::None), path, seed)
    }

    /// Adds the place: the override, the value's line, or the section's line for a missing value. Errors in other files
    /// keep theirs.
    pub fn locate(&self, error: DocumentError) -> DocumentError {
        if !error.source_name().is_empty() {
            return error;
        }
        let mut path = error.key().clone();
        loop {
            let in_file = self.span_of_existing(&path);
            let set_by = self
                .overrides
                .iter()
                .rev()
                .find(|(set, _)| *set == path || (in_file.is_none() && set.starts_with(&path)));
            if let Some((_, change)) = set_by {
                return error.at(&change.source_name(), None);
            }
            if let Some(span) = in_file {
                return error.at(&self.name, Some(position(&self.text, span.start)));
            }
            path = path.parent();
        }
    }

    /// Span of the key (or list element) at exactly this path.
    fn span_of_existing(&self, path: &KeyPath) -> Option<Range<usize>> {
        let mut current = ItemRef::Item(&self.root);
        let mut span = Some(0..0);
        for step in path.steps() {
            let (next, next_span) = current.enter(step)?;
            current = next;
            span = next_span;
        }
        span
    }

    fn apply(&mut self, change: &Override) -> Result<(), DocumentError> {
        let path = KeyPath::from(change.key.as_str());
        let empty = |step: &PathStep| matches!(step, PathStep::Key(key) if key.is_empty());
        if path.steps().iter().any(empty) {
            let message = format!("{:?} is not a key", change.key);
            let hint = "write it as --set section.key=value";
            return Err(change.error(KeyPath::ROOT, message, hint));
        }
        if path.len() > STEPS {
            let message = format!("a key of {} parts; at most {STEPS}", path.len());
            let hint = "write it as --set section.key=value";
            return Err(change.error(KeyPath::ROOT, message, hint));
        }
        let value: Value = change
            .value
            .trim()
            .parse()
            .unwrap_or_else(|_| change.value.trim().into());

        let mut current = ItemMut::Item(&mut self.root);
        let mut so_far = KeyPath::ROOT;
        for step in path.steps() {
            current = current.enter(step).map_err(|problem| {
                let message = problem.describe(&so_far, step);
                change.error(path.clone(), message, problem.advice())
            })?;
            so_far = match step {
                PathStep::Key(key) => so_far.key(key),
                PathStep::Index(index) => so_far.index(*index),
            };
        }
        if !current.set(value) {
            let message = "an entry of a list of tables can only be set to a table";
            let hint = "set one of its keys, or all as { key = value }";
            return Err(change.error(path, message.to_owned(), hint));
        }
        self.overrides.push((path, change.clone()));
        Ok(())
    }
}

/// Returns the first `longest` characters, with dots where more follow.
fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        None => text.into(),
        Some((end, _)) => format!("{}...", &text[..end]).into(),
    }
}

/// Advice on text that is not TOML, by the message of the parser, which tells its errors apart in no other way.
fn on_syntax(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "keep one of them; entries of a list have double brackets, e.g. [[traffic.flow]]"
    } else if message.contains("unclosed") || message.contains(" string, expected") {
        "the file may be cut short, or a quote or bracket is missing"
    } else if message.contains("number overflowed") {
        "the largest is 9223372036854775807"
    } else if message.contains("must be quoted") {
        "put names and quantities in quotes, e.g. \"64 KiB\""
    } else {
        "write key = value, and text in quotes; the file may be cut short, or a quote or bracket \
         is missing"
    }
}

/// Each value takes hundreds of bytes once it is read.
fn check_values(text: &str) -> Result<(), DocumentError> {
    let values = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'=' | b'['));
    let count = values.count();
    if count <= VALUES {
        return Ok(());
    }
    let message = format!("the text has about {count} values; at most {VALUES} are read");
    let error = DocumentError::new(KeyPath::ROOT, message);
    Err(error.with_hint("shorten its lists; a forwarding table is one text in linear-tables"))
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

enum ItemRef<'a> {
    Item(&'a Item),
    Value(&'a Value),
    Table(&'a Table),
}

impl<'a> ItemRef<'a> {
    fn enter(self, step: &PathStep) -> Option<(ItemRef<'a>, Option<Range<usize>>)> {
        match (self, step) {
            (ItemRef::Item(Item::Value(value)), step) => ItemRef::Value(value).enter(step),
            (ItemRef::Item(Item::Table(table)), step) => ItemRef::Table(table).enter(step),
            (ItemRef::Item(Item::ArrayOfTables(tables)), PathStep::Index(index)) => {
                let table = tables.get(*index)?;
                Some((ItemRef::Table(table), table.span()))
            }
            (ItemRef::Table(table), PathStep::Key(key)) => {
                let (key, item) = table.get_key_value(key)?;
                Some((ItemRef::Item(item), key_span(key.span(), item.span())))
            }
            (ItemRef::Value(Value::InlineTable(table)), PathStep::Key(key)) => {
                let (key, item) = table.get_key_value(key)?;
                Some((ItemRef::Item(item), key_span(key.span(), item.span())))
            }
            (ItemRef::Value(Value::Array(array)), PathStep::Index(index)) => {
                let value = array.get(*index)?;
                Some((ItemRef::Value(value), value.span()))
            }
            // A key of digits only, such as a host named "7", looks like a position in a path.
            (current @ (ItemRef::Table(_) | ItemRef::Value(_)), PathStep::Index(index)) => {
                current.enter_numeric_key(*index)
            }
            _ => None,
        }
    }

    fn enter_numeric_key(self, index: usize) -> Option<(ItemRef<'a>, Option<Range<usize>>)> {
        let is_table = match self {
            ItemRef::Table(_) => true,
            ItemRef::Value(value) => value.is_inline_table(),
            ItemRef::Item(_) => false,
        };
        is_table.then(|| self.enter(&PathStep::Key(index.to_string())))?
    }
}

/// A section header has no span of its own.
fn key_span(key: Option<Range<usize>>, item: Option<Range<usize>>) -> Option<Range<usize>> {
    match (key, item) {
        // The key of a section is the one inside its header: prefer the header's start, so that
        // the place is that of the bracket.
        (Some(key), Some(item)) if item.start <= key.start => Some(item),
        (Some(key), _) => Some(key),
        (None, item) => item,
    }
}

enum ItemMut<'a> {
    Item(&'a mut Item),
    Value(&'a mut Value),
    Table(&'a mut Table),
}

enum PathError {
    NotATable,
    NotAList,
    TooShort(usize),
}

impl PathError {
    fn describe(&self, so_far: &KeyPath, step: &PathStep) -> String {
        match (self, step) {
            (Self::TooShort(len), PathStep::Index(index)) => {
                format!("{so_far} has {len} entries, there is no entry {index} (they count from 0)")
            }
            (Self::NotAList, _) => format!("{so_far} is not a list"),
            _ => format!("{so_far} is not a table"),
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::TooShort(_) => "name one that is there, or add the entry to the file",
            Self::NotATable => "name an entry of a list by its number, e.g. traffic.flow.0.load",
            Self::NotAList => "leave out the number",
        }
    }
}

impl<'a> ItemMut<'a> {
    fn enter(self, step: &PathStep) -> Result<ItemMut<'a>, PathError> {
        let current = match self {
            ItemMut::Item(Item::Value(value)) => ItemMut::Value(value),
            ItemMut::Item(Item::Table(table)) => ItemMut::Table(table),
            ItemMut::Item(item @ Item::None) => {
                *item = Item::Table(Table::new());
                return ItemMut::Item(item).enter(step);
            }
            other => other,
        };
        match (current, step) {
            (ItemMut::Item(Item::ArrayOfTables(tables)), PathStep::Index(index)) => {
                let len = tables.len();
                let table = tables.get_mut(*index).ok_or(PathError::TooShort(len))?;
                Ok(ItemMut::Table(table))
            }
            (ItemMut::Value(Value::Array(array)), PathStep::Index(index)) => {
                let len = array.len();
                let value = array.get_mut(*index).ok_or(PathError::TooShort(len))?;
                Ok(ItemMut::Value(value))
            }
            (ItemMut::Item(Item::ArrayOfTables(_)) | ItemMut::Value(Value::Array(_)), _) => {
                Err(PathError::NotATable)
            }
            (ItemMut::Table(table), step) => {
                let item = table.entry(&key_text(step)).or_insert(Item::None);
                Ok(ItemMut::Item(item))
            }
            (ItemMut::Value(Value::InlineTable(table)), step) => {
                // Steps remain, so the missing value is a table.
                let missing = InlineTable::new();
                Ok(ItemMut::Value(table.get_or_insert(key_text(step), missing)))
            }
            (ItemMut::Value(_), PathStep::Index(_)) => Err(PathError::NotAList),
            _ => Err(PathError::NotATable),
        }
    }

    fn set(self, value: Value) -> bool {
        match (self, value) {
            (ItemMut::Item(item), value) => *item = Item::Value(value),
            (ItemMut::Value(current), value) => *current = value,
            (ItemMut::Table(table), Value::InlineTable(inline)) => *table = inline.into_table(),
            (ItemMut::Table(_), _) => return false,
        }
        true
    }
}

fn key_text(step: &PathStep) -> String {
    match step {
        PathStep::Key(key) => key.clone(),
        PathStep::Index(index) => index.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn defaults_fill_what_is_missing() {
        let text = "[control]\nmine = { step = 2 }\nother = 7\n";
        let overrides = [Override::new("control.third.rate", "5")];
        let source = SourceText::parse(text, "plain.toml", &overrides).unwrap();
        let keys = [
            "control.mine.step",
            "control.mine.first.deep",
            "control.other.step",
            "control.third.rate",
            "control.fourth.step",
        ];
        let defaults = keys.map(|key| (KeyPath::from(key), 1.into()));
        let (filled, added) = source.with_defaults(defaults);
        let added: Vec<_> = added.iter().map(ToString::to_string).collect();
        assert_eq!(added, ["control.mine.first.deep", "control.fourth.step"]);
        let expected = json!({ "control": {
            "mine": { "step": 2, "first": { "deep": 1 } },
            "other": 7,
            "third": { "rate": 5 },
            "fourth": { "step": 1 },
        } });
        assert_eq!(filled.read::<Value>().unwrap(), expected);
    }

    #[test]
    fn a_text_with_overrides_is_read_as_plain_values() {
        let text = "[fabric]\nsizes = [2, 3]\n[[traffic.shift]]\nload = 0.5\nname = \"a\"\n";
        let overrides = [
            Override::new("traffic.shift.0.load", "1"),
            Override::new("control.mine.step", "\"2 us\""),
        ];
        let source = SourceText::parse(text, "plain.toml", &overrides).unwrap();
        let expected = json!({
            "fabric": { "sizes": [2, 3] },
            "traffic": { "shift": [{ "load": 1, "name": "a" }] },
            "control": { "mine": { "step": "2 us" } },
        });
        assert_eq!(source.read::<Value>().unwrap(), expected);
        let place = |key: &str| {
            let error = source.locate(DocumentError::new(KeyPath::from(key), ""));
            (error.source_name().to_owned(), error.line())
        };
        assert_eq!(
            place("traffic.shift.0.name"),
            ("plain.toml".to_owned(), Some(5))
        );
        assert_eq!(
            place("traffic.shift.0.size"),
            ("plain.toml".to_owned(), Some(3))
        );
        let set = "--set control.mine.step=\"2 us\"".to_owned();
        assert_eq!(place("control.mine.step"), (set, None));
    }
}

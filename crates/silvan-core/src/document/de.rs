//! A serde deserializer over a TOML document that tracks the key path.
//!
//! Unlike `toml_edit`'s own, unknown keys, missing keys and wrong types stay data until the message is made.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use toml_edit::{Item, Table, TableLike, Value};

use super::error::{DocumentError, suggest};
use super::path::{KeyPath, PathStep};
use crate::advice;

const ABBREVIATION: usize = 3;

/// The error has a key path but no place.
pub(super) fn from_item<T: DeserializeOwned>(item: &Item) -> Result<T, DocumentError> {
    read_item(item, &KeyPath::ROOT, PhantomData)
}

pub(super) fn read_item<'de, T: DeserializeSeed<'de>>(
    item: &Item,
    path: &KeyPath,
    seed: T,
) -> Result<T::Value, DocumentError> {
    let node = TomlNode {
        kind: TomlKind::of(item),
        path: path.clone(),
    };
    node.read(seed).map_err(|error| error.0)
}

/// A [`DocumentError`] under construction; without a path until it passes a [`TomlNode`].
#[derive(Debug)]
struct DeError(DocumentError, Shape);

#[derive(Debug)]
enum Shape {
    Finished,
    Message {
        text: String,
        hint: String,
    },
    Unknown {
        field: String,
        expected: &'static [&'static str],
    },
    Missing(&'static str),
    TomlKind {
        text: String,
        remedy: Remedy,
    },
}

impl DeError {
    fn open(shape: Shape) -> Self {
        Self(DocumentError::new(KeyPath::ROOT, ""), shape)
    }

    fn message(text: String, hint: String) -> Self {
        Self::open(Shape::Message { text, hint })
    }

    fn within(self, path: &KeyPath) -> Self {
        let error = match self.1 {
            Shape::Finished => self.0,
            Shape::Message { text, hint } => DocumentError::new(path.clone(), text).with_hint(hint),
            Shape::Unknown { field, expected } => {
                let hint = suggest_or_list(&field, expected);
                DocumentError::new(path.key(&field), "unknown key").with_hint(hint)
            }
            Shape::Missing(field) => {
                let error = DocumentError::new(path.key(field), "missing key");
                error.with_hint(on_missing(path, field))
            }
            Shape::TomlKind { text, remedy } => {
                DocumentError::new(path.clone(), text).with_hint(remedy.at(path))
            }
        };
        Self(error, Shape::Finished)
    }
}

impl fmt::Display for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for DeError {}

impl de::Error for DeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let (text, hint) = advice::parts(&message);
        let hint = hint.unwrap_or_else(|| "choose a number in that range, e.g. 0".to_owned());
        Self::message(text, hint)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let Expectation { words, remedy } = Expectation::of(expected);
        let found = match remedy {
            Remedy::OneKey => "an empty one".to_owned(),
            _ => describe(found),
        };
        let text = format!("expected {words}, found {found}");
        Self::open(Shape::TomlKind { text, remedy })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        let Expectation { words, remedy } = Expectation::of(expected);
        let text = format!("expected {words}, found {len} values");
        Self::open(Shape::TomlKind { text, remedy })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        // Similar abbreviations, such as link speeds, have different meanings: list all of them.
        let is_known = |name: &&str| name.eq_ignore_ascii_case(variant);
        let is_abbreviation = variant.chars().count() <= ABBREVIATION;
        let hint = match is_abbreviation && !expected.iter().any(is_known) {
            true => list(expected),
            false => suggest_or_list(variant, expected),
        };
        Self::message(format!("unknown value {variant:?}"), hint)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::open(Shape::Unknown {
            field: field.to_owned(),
            expected,
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::open(Shape::Missing(field))
    }
}

fn suggest_or_list(name: &str, known: &'static [&'static str]) -> String {
    suggest(name, known.iter().copied()).unwrap_or_else(|| list(known))
}

fn list(known: &[&str]) -> String {
    format!("known here: {}", known.join(", "))
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

struct Expectation {
    words: String,
    remedy: Remedy,
}

impl Expectation {
    /// Translates serde's words; those with an [`Advised`](advice::Advised) text stay.
    fn of(expected: &dyn Expected) -> Self {
        let (text, hint) = advice::parts(expected);
        if let Some(hint) = hint {
            let remedy = Remedy::Text(hint.into());
            return Self {
                words: text,
                remedy,
            };
        }
        let whole = || Remedy::text("write a whole number without quotes and unit, e.g. 1");
        let values = || Remedy::text("write that many values in brackets, e.g. [0, 1]");
        let (words, remedy) = match text.as_str() {
            "u8" => ("a whole number from 0 to 255", whole()),
            "u16" => ("a whole number from 0 to 65535", whole()),
            "u32" => ("a whole number from 0 to 4294967295", whole()),
            "u64" | "usize" => ("a whole number that is not negative", whole()),
            "i64" => ("a whole number", whole()),
            "f64" => (
                "a number",
                Remedy::text("write a number without quotes and unit, e.g. 0.5"),
            ),
            "a boolean" => (
                "true or false",
                Remedy::text("write true or false, without quotes"),
            ),
            "a string" => (
                "text in quotes",
                Remedy::text("put it in quotes, e.g. \"x\""),
            ),
            "a sequence" => ("a list", Remedy::List),
            "a map" => ("a table", Remedy::Section),
            text if text.starts_with("struct ") => ("a table", Remedy::Section),
            // A table without a key, from which serde chooses a variant.
            "enum" => ("a table with one key", Remedy::OneKey),
            text if text.starts_with("enum ") => ("a name in quotes", whole()),
            text if text.starts_with("a tuple of size ") => {
                let words = text.replace("a tuple of size ", "a list of length ");
                let remedy = values();
                return Self { words, remedy };
            }
            text if text.starts_with("a list") => (text, values()),
            text => (text, whole()),
        };
        Self {
            words: words.to_owned(),
            remedy,
        }
    }
}

#[derive(Debug)]
enum Remedy {
    Text(Cow<'static, str>),
    /// For a table that chooses one of several kinds.
    OneKey,
    List,
    Section,
}

impl Remedy {
    fn text(text: &'static str) -> Self {
        Self::Text(text.into())
    }

    fn at(self, path: &KeyPath) -> String {
        match (self, path.steps().last()) {
            (Self::Text(text), _) => text.into_owned(),
            (Self::OneKey, _) => {
                "write a choice with its value, e.g. { fixed = \"64 KiB\" }".to_owned()
            }
            (Self::List, _) => format!("write it in brackets, or entries as [[{path}]]"),
            (Self::Section, Some(PathStep::Key(_))) => {
                format!("write it as a section [{path}] with keys below")
            }
            (Self::Section, Some(PathStep::Index(_))) => {
                let list = path.parent();
                format!("write it as a section [[{list}]] with keys below")
            }
            (Self::Section, None) => "write keys and sections".to_owned(),
        }
    }
}

/// Advice on the key `field` that the table at `path` lacks.
fn on_missing(path: &KeyPath, field: &str) -> String {
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

fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value:?}"),
        Unexpected::Str(text) => format!("the text {text:?}"),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

struct TomlNode<'a> {
    kind: TomlKind<'a>,
    path: KeyPath,
}

impl TomlNode<'_> {
    /// Errors of later checks get the path, too.
    fn read<'de, T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DeError> {
        let path = self.path.clone();
        seed.deserialize(self).map_err(|error| error.within(&path))
    }
}

enum TomlKind<'a> {
    Table(&'a dyn TableLike),
    List(Vec<TomlKind<'a>>),
    Scalar(&'a Value),
    Nothing,
}

impl<'a> TomlKind<'a> {
    fn of(item: &'a Item) -> Self {
        match item {
            Item::Table(table) => Self::of_table(table),
            Item::ArrayOfTables(tables) => Self::List(tables.iter().map(Self::of_table).collect()),
            Item::Value(value) => Self::of_value(value),
            Item::None => Self::Nothing,
        }
    }

    fn of_table(table: &'a Table) -> Self {
        Self::Table(table)
    }

    fn of_value(value: &'a Value) -> Self {
        match value {
            Value::InlineTable(table) => Self::Table(table),
            Value::Array(array) => Self::List(array.iter().map(Self::of_value).collect()),
            scalar => Self::Scalar(scalar),
        }
    }
}

impl<'de> de::Deserializer<'de> for TomlNode<'_> {
    type Error = DeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        let path = &self.path;
        let result = match self.kind {
            TomlKind::Table(table) => visitor.visit_map(Entries {
                entries: Box::new(table.iter()),
                next: None,
                path,
            }),
            TomlKind::List(values) => {
                let expected = values.len();
                let mut elements = Elements {
                    values: values.into_iter().enumerate(),
                    path,
                };
                visitor.visit_seq(&mut elements).and_then(|value| {
                    let read = expected - elements.values.len();
                    let wanted = format!("a list of length {read}");
                    match elements.values.len() {
                        0 => Ok(value),
                        _ => Err(de::Error::invalid_length(expected, &wanted.as_str())),
                    }
                })
            }
            TomlKind::Scalar(value) => match value {
                Value::String(text) => visitor.visit_str(text.value()),
                Value::Integer(number) => visitor.visit_i64(*number.value()),
                Value::Float(number) => visitor.visit_f64(*number.value()),
                Value::Boolean(flag) => visitor.visit_bool(*flag.value()),
                _ => Err(DeError::message(
                    "a date is no value of a scenario".to_owned(),
                    "put text in quotes; a time span looks like \"150 us\"".to_owned(),
                )),
            },
            TomlKind::Nothing => visitor.visit_unit(),
        };
        result.map_err(|error| error.within(path))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeError> {
        visitor.visit_newtype_struct(self)
    }

    /// A list is no table: serde would read its elements as the values of the keys in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        if let TomlKind::List(_) = self.kind {
            let expected = format!("struct {name}");
            let error: DeError = de::Error::invalid_type(Unexpected::Seq, &expected.as_str());
            return Err(error.within(&self.path));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        let path = self.path.clone();
        let TomlKind::Scalar(Value::String(text)) = self.kind else {
            let choices = format!("write one of: {}", quoted(variants));
            let result = self.deserialize_str(visitor);
            return result.map_err(|error| {
                let error = error.within(&path).0.with_hint(choices);
                DeError(error, Shape::Finished)
            });
        };
        let variant: StrDeserializer<'_, DeError> = text.value().as_str().into_deserializer();
        visitor
            .visit_enum(variant)
            .map_err(|error| error.within(&path))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Elements<'a> {
    values: std::iter::Enumerate<std::vec::IntoIter<TomlKind<'a>>>,
    path: &'a KeyPath,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = DeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DeError> {
        let Some((index, kind)) = self.values.next() else {
            return Ok(None);
        };
        let path = self.path.index(index);
        TomlNode { kind, path }.read(seed).map(Some)
    }
}

struct Entries<'a> {
    entries: Box<dyn Iterator<Item = (&'a str, &'a Item)> + 'a>,
    next: Option<(&'a str, &'a Item)>,
    path: &'a KeyPath,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = DeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DeError> {
        self.next = self.entries.next();
        let Some((key, _)) = self.next else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, DeError> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeError> {
        let (key, item) = self.next.take().unwrap_or(("", &Item::None));
        let kind = TomlKind::of(item);
        let path = self.path.key(key);
        TomlNode { kind, path }.read(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        match self.entries.size_hint() {
            (least, Some(most)) if least == most => Some(least),
            _ => None,
        }
    }
}

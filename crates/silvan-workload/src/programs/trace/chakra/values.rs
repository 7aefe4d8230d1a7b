//! JSON values, of which only needed parts are kept, because a value may be large.

use std::collections::BTreeMap;
use std::fmt::{Formatter, Result as Written};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::{MOST_RANKS, TraceError, TracePlace};
use super::attributes::Given;

pub(super) fn whole(value: f64) -> Option<u64> {
    // Every smaller whole number is a float.
    const MOST: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && (0.0..=MOST).contains(&value)).then_some(value as u64)
}

pub(super) fn in_words(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(_) => text.to_owned(),
        Err(_) => format!("{text:?}"),
    }
}

#[derive(Debug)]
pub(super) enum Json {
    Null,
    Flag(bool),
    Number(Given),
    Text(String),
    List(List),
    Object(Option<Box<Json>>),
}

#[derive(Debug, Default)]
pub(super) struct List {
    has_false: bool,
    /// All elements are true, false, 1 or 0.
    is_flags: bool,
    /// The first element that is no whole number.
    wrong: Option<String>,
}

impl Json {
    pub fn words(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Flag(value) => value.to_string(),
            Self::Number(Ok(number)) => number.to_string(),
            Self::Number(Err(text)) => text.clone(),
            Self::Text(text) => in_words(text),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub fn number(&self) -> Given {
        match self {
            Self::Flag(value) => Ok((*value).into()),
            Self::Number(given) => given.clone(),
            // Protobuf writes 64-bit numbers as text.
            Self::Text(text) => text.parse().map_err(|_| in_words(text)),
            other => Err(other.words()),
        }
    }

    pub fn group(&self) -> Option<String> {
        match self {
            Self::Text(text) if text.is_empty() => None,
            Self::Text(text) => Some(text.clone()),
            other => other.number().ok().map(|number| number.to_string()),
        }
    }

    pub fn all_true(&self) -> Result<bool, String> {
        match self {
            Self::List(list) if list.is_flags => Ok(!list.has_false),
            Self::List(_) => Err("a list of something else".to_owned()),
            Self::Object(Some(values)) => values.all_true(),
            other => Err(other.words()),
        }
    }

    pub fn ids(&self, name: &str) -> Result<(), String> {
        match self {
            Self::List(List {
                wrong: Some(text), ..
            }) => Err(format!("{name} has {text}, no id of a node")),
            Self::List(_) => Ok(()),
            other => Err(format!("{name} is {}, no list", other.words())),
        }
    }
}

pub(super) struct Any<'a> {
    /// Receives a list's whole numbers, up to a maximum count.
    pub numbers: Option<(&'a mut Vec<u64>, usize)>,
}

pub(super) const ANY: Any<'static> = Any { numbers: None };

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = Json;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Flag(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(Ok(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(
            u64::try_from(value).map_err(|_| value.to_string()),
        ))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(
            whole(value).ok_or_else(|| format!("{value:?}")),
        ))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Json, A::Error> {
        let mut list = List {
            is_flags: true,
            ..List::default()
        };
        while let Some(element) = elements.next_element_seed(ANY)? {
            let is_flag = matches!(element, Json::Flag(_) | Json::Number(Ok(0 | 1)));
            list.is_flags &= is_flag;
            match element.number() {
                Ok(number) => {
                    list.has_false |= number == 0;
                    if let Some((numbers, most)) = &mut self.numbers {
                        if numbers.len() == *most {
                            let message = format!("it has more than {most} numbers");
                            return Err(A::Error::custom(message));
                        }
                        numbers.push(number);
                    }
                }
                Err(text) if list.wrong.is_none() => list.wrong = Some(text),
                Err(_) => {}
            }
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut values = None;
        while let Some(key) = entries.next_key_seed(among(&["values"]))? {
            match key {
                Some(_) => values = Some(Box::new(entries.next_value_seed(ANY)?)),
                None => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Json::Object(values))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Name<F>(pub F);

pub(super) fn among(names: &[&str]) -> Name<impl Fn(&str) -> Option<usize>> {
    Name(|name: &str| names.iter().position(|known| *known == name))
}

impl<'de, T, F: Fn(&str) -> Option<T>> DeserializeSeed<'de> for Name<F> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: Fn(&str) -> Option<T>> Visitor<'_> for Name<F> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok((self.0)(name))
    }
}

pub(super) type Groups = BTreeMap<String, Vec<u32>>;

/// Groups from a node's inputs: JSON that may contain JSON as text.
pub(super) fn named_groups(text: &str) -> Groups {
    let mut groups = Groups::new();
    collect(text, &mut groups, 8);
    groups
}

fn collect(text: &str, groups: &mut Groups, depth: u32) {
    let mut found = Groups::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Named {
        groups: &mut found,
        depth,
    };
    if value.deserialize(&mut deserializer).is_ok() && deserializer.end().is_ok() {
        groups.extend(found);
        return;
    }
    // Chakra's converter writes a Python list whose only text is the JSON.
    let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return;
    };
    if depth > 1 && text.starts_with(['[', '(']) && start < end {
        collect(&format!("[{}]", &text[start..=end]), groups, depth - 1);
    }
}

struct Named<'a> {
    groups: &'a mut Groups,
    depth: u32,
}

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.depth {
            0 => IgnoredAny::deserialize(deserializer).map(drop),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Named<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        collect(text, self.groups, self.depth - 1);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let depth = self.depth - 1;
        loop {
            let groups = &mut *self.groups;
            if elements
                .next_element_seed(Named { groups, depth })?
                .is_none()
            {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let (mut name, mut ranks) = (None, None);
        while let Some(key) = entries.next_key_seed(among(&["pg_name", "ranks"]))? {
            match key {
                Some(0) => name = entries.next_value_seed(ANY)?.group(),
                Some(_) => {
                    let mut numbers = Vec::new();
                    let most = MOST_RANKS as usize;
                    let list = Any {
                        numbers: Some((&mut numbers, most)),
                    };
                    let list = entries.next_value_seed(list)?;
                    let numbers = numbers.into_iter().map(|rank| u32::try_from(rank).ok());
                    ranks = list.ids("").ok().and_then(|()| numbers.collect());
                }
                None => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        if let (Some(name), Some(ranks)) = (name, ranks) {
            self.groups.insert(name, ranks);
        }
        Ok(())
    }
}

pub(super) fn groups(text: &str) -> Result<Groups, TraceError> {
    let groups: Groups = serde_json::from_str(text).map_err(|error| {
        let line = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1);
        TraceError::line(line, error.to_string(), "write e.g. {\"0\": [0, 1, 2, 3]}")
    })?;
    match groups.iter().find(|(_, ranks)| ranks.is_empty()) {
        Some((name, _)) => {
            let message = format!("group {name:?} is empty");
            Err(TraceError::new(
                TracePlace::Whole,
                message,
                "list its ranks, or leave it out",
            ))
        }
        None => Ok(groups),
    }
}

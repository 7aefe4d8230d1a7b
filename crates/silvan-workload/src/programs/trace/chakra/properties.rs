use std::fmt::{Formatter, Result as Written};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::attributes::Attributes;
use super::values::{ANY, Json, Name};

pub(super) fn set(attributes: &mut Attributes, name: &str, value: &Json) -> Result<(), String> {
    match name {
        "pg_name" | "comm_group" => attributes.set_group(name, value.group()),
        "involved_dim" => attributes.set_dimensions(value.all_true()),
        _ => attributes.set(name, value.number()),
    }
}

pub(super) struct Properties<'a> {
    pub attributes: &'a mut Attributes,
}

impl<'de> DeserializeSeed<'de> for Properties<'_> {
    type Value = Result<(), String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Properties<'_> {
    type Value = Result<(), String>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut wrong = Ok(());
        loop {
            let attributes = &mut *self.attributes;
            match elements.next_element_seed(Property { attributes })? {
                None => return Ok(wrong),
                Some(Err(message)) if wrong.is_ok() => wrong = Err(message),
                Some(_) => {}
            }
        }
    }
}

struct Property<'a> {
    attributes: &'a mut Attributes,
}

impl<'de> DeserializeSeed<'de> for Property<'_> {
    type Value = Result<(), String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Property<'_> {
    type Value = Result<(), String>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let is_value = |name: &str| match name {
            "name" => Some(false),
            _ => (name.ends_with("Val") || name.ends_with("List")).then_some(true),
        };
        let (mut name, mut value, mut is_twice) = (None, None, false);
        while let Some(key) = entries.next_key_seed(Name(is_value))? {
            let slot = match key {
                Some(true) => &mut value,
                Some(false) => &mut name,
                None => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            is_twice |= slot.replace(entries.next_value_seed(ANY)?).is_some();
        }
        let name = match &name {
            Some(Json::Text(name)) => name.as_str(),
            _ => "",
        };
        Ok(match value {
            _ if is_twice => Err(format!("the property {name:?} has two names or values")),
            Some(value) if !value.is_null() => set(self.attributes, name, &value),
            _ => Ok(()),
        })
    }
}

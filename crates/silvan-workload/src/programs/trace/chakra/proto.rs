use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, int32, message, skip_field, string, uint64,
};
use prost::{DecodeError, Message};

use super::super::{TraceError, TracePlace};
use super::attributes::{Attributes, Given};
use super::ranks::{MOST_WAITS, Ranks};
use super::values::{in_words, named_groups, whole};
use super::{NODE_HINT, Node, check_version};

#[derive(Clone, PartialEq, Message)]
struct Values {
    #[prost(string, tag = "1")]
    values: String,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(
        oneof = "Value",
        tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29"
    )]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(BoolList),
    #[prost(string, tag = "29")]
    Text(String),
}

#[derive(Clone, PartialEq, Message)]
struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    values: Vec<bool>,
}

impl Value {
    fn number(&self) -> Given {
        let whole = |value: f64| whole(value).ok_or_else(|| value.to_string());
        match *self {
            Self::Int32(value) | Self::Sint32(value) | Self::Sfixed32(value) => {
                value.try_into().map_err(|_| value.to_string())
            }
            Self::Int64(value) | Self::Sint64(value) | Self::Sfixed64(value) => {
                value.try_into().map_err(|_| value.to_string())
            }
            Self::Uint32(value) | Self::Fixed32(value) => Ok(value.into()),
            Self::Uint64(value) | Self::Fixed64(value) => Ok(value),
            Self::Bool(value) => Ok(value.into()),
            Self::Double(value) => whole(value),
            Self::Float(value) => whole(value.into()),
            Self::Text(ref text) => text.parse().map_err(|_| in_words(text)),
            Self::Bools(_) => Err("a list".to_owned()),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            other => other.number().ok().map(|number| number.to_string()),
        }
    }
}

struct Messages<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Messages<'a> {
    fn next(&mut self) -> Result<Option<(&'a [u8], u64)>, TraceError> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at as u64;
        let mut rest = &self.bytes[self.at..];
        let wrong = |message: String| {
            TraceError::new(
                TracePlace::Byte(start),
                message,
                "the file may have been cut off",
            )
        };
        let length = decode_varint(&mut rest)
            .map_err(|error| wrong(format!("the length of a message cannot be read: {error}")))?;
        let message = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length));
        let Some(message) = message else {
            return Err(wrong(format!(
                "a message of {length} bytes starts here, but only {} are left",
                rest.len()
            )));
        };
        self.at = self.bytes.len() - rest.len() + message.len();
        Ok(Some((message, start)))
    }
}

const HINT: &str = "the file is no Chakra trace, or damaged";

pub(super) fn read(bytes: &[u8], ranks: &mut Ranks) -> Result<(), TraceError> {
    let mut messages = Messages { bytes, at: 0 };
    let decoded = |error: DecodeError, at: u64| {
        TraceError::new(TracePlace::Byte(at), error.to_string(), HINT)
    };
    let Some((first, at)) = messages.next()? else {
        return Err(TraceError::new(
            TracePlace::Whole,
            "the file is empty",
            HINT,
        ));
    };
    let checked = metadata(first).map_err(|error| decoded(error, at))?;
    checked.map_err(|message| TraceError::new(TracePlace::Byte(at), message, HINT))?;
    while let Some((message, at)) = messages.next()? {
        let fields = Fields::read(message).map_err(|error| decoded(error, at))?;
        if fields.name.contains("process_group") {
            if let Some(inputs) = &fields.inputs {
                ranks.name(named_groups(&inputs.values));
            }
        }
        let node = fields.node(ranks.rank());
        let added = node
            .map_err(|message| (message, NODE_HINT))
            .and_then(|node| ranks.add(node));
        added.map_err(|(message, hint)| TraceError::new(TracePlace::Byte(at), message, hint))?;
    }
    Ok(())
}

/// The first message has the version, and attributes that no node needs.
fn metadata(mut bytes: &[u8]) -> Result<Result<(), String>, DecodeError> {
    let mut version = String::new();
    while !bytes.is_empty() {
        let (tag, wire) = decode_key(&mut bytes)?;
        let context = DecodeContext::default();
        match tag {
            1 => string::merge(wire, &mut version, &mut bytes, context)?,
            2 => skip_field(wire, tag, &mut bytes, context)?,
            _ => {
                let message = format!("the first message has field {tag}, so it is no metadata");
                return Ok(Err(message));
            }
        }
    }
    Ok(check_version(&version))
}

#[derive(Default)]
struct Fields {
    id: u64,
    name: String,
    kind: i32,
    after: Vec<u64>,
    control: Vec<u64>,
    micros: u64,
    inputs: Option<Values>,
    attributes: Attributes,
    wrong: Option<String>,
}

impl Fields {
    fn read(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Self::default();
        while !bytes.is_empty() {
            let (tag, wire) = decode_key(&mut bytes)?;
            fields.field(tag, wire, &mut bytes)?;
        }
        Ok(fields)
    }

    fn field(&mut self, tag: u32, wire: WireType, bytes: &mut &[u8]) -> Result<(), DecodeError> {
        let context = DecodeContext::default();
        match tag {
            1 => uint64::merge(wire, &mut self.id, bytes, context),
            2 => string::merge(wire, &mut self.name, bytes, context),
            3 => int32::merge(wire, &mut self.kind, bytes, context),
            4 | 5 if self.after.len() + self.control.len() + numbers(wire, bytes) > MOST_WAITS => {
                let message = format!("it waits for more than {MOST_WAITS} others");
                self.wrong.get_or_insert(message);
                skip_field(wire, tag, bytes, context)
            }
            4 => uint64::merge_repeated(wire, &mut self.control, bytes, context),
            5 => uint64::merge_repeated(wire, &mut self.after, bytes, context),
            7 => uint64::merge(wire, &mut self.micros, bytes, context),
            8 => {
                let inputs = self.inputs.get_or_insert_default();
                message::merge(wire, inputs, bytes, context)
            }
            10 => {
                let mut attribute = Attribute::default();
                message::merge(wire, &mut attribute, bytes, context)?;
                if let Err(message) = set(&mut self.attributes, &attribute) {
                    self.wrong.get_or_insert(message);
                }
                Ok(())
            }
            _ => skip_field(wire, tag, bytes, context),
        }
    }

    fn node(self, rank: usize) -> Result<Node, String> {
        let id = self.id;
        let kind = u64::try_from(self.kind).unwrap_or(0);
        let work = match self.wrong {
            None => self.attributes.work(kind, self.micros, rank),
            Some(message) => Err(message),
        };
        Ok(Node {
            id,
            name: self.name,
            work: work.map_err(|error| format!("node {id}: {error}"))?,
            after: self.after,
            control: self.control,
        })
    }
}

/// Upper bound of packed numbers: each ends with a byte whose highest bit is 0.
fn numbers(wire: WireType, mut bytes: &[u8]) -> usize {
    if wire != WireType::LengthDelimited {
        return 1;
    }
    let length = decode_varint(&mut bytes).unwrap_or(0);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let ends = bytes.iter().take(length).filter(|byte| **byte < 0x80);
    ends.count()
}

fn set(attributes: &mut Attributes, attribute: &Attribute) -> Result<(), String> {
    let Some(value) = &attribute.value else {
        return Ok(());
    };
    match attribute.name.as_str() {
        name @ ("pg_name" | "comm_group") => {
            attributes.set_group(name, value.text().filter(|text| !text.is_empty()))
        }
        "involved_dim" => attributes.set_dimensions(match value {
            Value::Bools(list) => Ok(!list.values.contains(&false)),
            other => Err(other
                .number()
                .map_or_else(|text| text, |number| number.to_string())),
        }),
        name => attributes.set(name, value.number()),
    }
}

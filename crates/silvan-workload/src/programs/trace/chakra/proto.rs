//! Chakra traces in protobuf: messages one after the other, each behind its length.

use std::collections::BTreeMap;

use prost::Message;

use super::super::{TraceError, TracePlace};
use super::{Attributes, Given, NODE_HINT, Node, Rank, json};

#[derive(Clone, PartialEq, Message)]
struct GlobalMetadata {
    #[prost(string, tag = "1")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct NodeMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    inputs: Option<Values>,
    #[prost(message, repeated, tag = "10")]
    attr: Vec<Attribute>,
}

/// The values of a node's inputs, as text.
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
        let whole = |value: f64| json::whole(value).ok_or_else(|| value.to_string());
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
            Self::Text(ref text) => text.parse().map_err(|_| json::in_words(text)),
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

/// Messages of a file, one after the other.
struct Messages<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Messages<'a> {
    /// The next message and where it starts; `None` at the end.
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
        let length = prost::encoding::decode_varint(&mut rest)
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

const HINT: &str = "the file is no Chakra trace of version 0.0.4, or damaged";

/// Reads the trace of a rank.
pub(super) fn read(bytes: &[u8], rank: usize) -> Result<Rank, TraceError> {
    let mut messages = Messages { bytes, at: 0 };
    let decoded = |error: prost::DecodeError, at: u64| {
        TraceError::new(TracePlace::Byte(at), error.to_string(), HINT)
    };
    let Some((first, at)) = messages.next()? else {
        return Err(TraceError::new(
            TracePlace::Whole,
            "the file is empty",
            HINT,
        ));
    };
    let metadata = GlobalMetadata::decode(first).map_err(|error| decoded(error, at))?;
    if !metadata.version.starts_with("0.0.") {
        let message = format!("version {:?}: 0.0.4 is known", metadata.version);
        return Err(TraceError::new(TracePlace::Byte(at), message, HINT));
    }
    let (mut nodes, mut groups) = (Vec::new(), BTreeMap::new());
    while let Some((message, at)) = messages.next()? {
        let message = NodeMessage::decode(message).map_err(|error| decoded(error, at))?;
        if message.name.contains("process_group") {
            if let Some(inputs) = &message.inputs {
                json::named_groups(&inputs.values, &mut groups);
            }
        }
        let node = node(message, rank)
            .map_err(|message| TraceError::new(TracePlace::Byte(at), message, NODE_HINT))?;
        nodes.push(node);
    }
    Ok((nodes, groups))
}

fn node(message: NodeMessage, rank: usize) -> Result<Node, String> {
    let mut attributes = Attributes::default();
    for attribute in &message.attr {
        let Some(value) = &attribute.value else {
            continue;
        };
        match attribute.name.as_str() {
            "pg_name" | "comm_group" => {
                attributes.group = value.text().filter(|text| !text.is_empty())
            }
            "involved_dim" => {
                attributes.is_partial =
                    matches!(value, Value::Bools(list) if list.values.contains(&false));
            }
            name => attributes.set(name, value.number()),
        }
    }
    let kind = u64::try_from(message.kind).unwrap_or(0);
    let work = attributes
        .work(kind, message.duration_micros, rank)
        .map_err(|error| format!("node {}: {error}", message.id))?;
    let after = [message.ctrl_deps, message.data_deps].concat();
    Ok(Node {
        id: message.id,
        name: message.name,
        work,
        after,
    })
}

//! Chakra traces in JSON, in both spellings: a `workload_graph` with a list of nodes, and the messages of the protobuf format one
//! after the other, as protobuf writes them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::{TraceError, TracePlace};
use super::{Attributes, Given, NODE_HINT, Node, Rank};

const HINT: &str = "write a workload_graph, or the nodes as chakra_jsonizer does";

/// The text of a trace in JSON, `None` of one in protobuf.
pub(super) fn text(bytes: &[u8]) -> Option<&[u8]> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let start = text.iter().find(|byte| !b" \t\r\n".contains(byte));
    match start {
        // In a protobuf trace, the length of the first message comes before its first field, and neither is one of these.
        Some(b'{' | b'[') => Some(text),
        None if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// A number that has no fraction and is not negative.
pub(super) fn whole(value: f64) -> Option<u64> {
    // Up to here every whole number has a float.
    const MOST: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && (0.0..=MOST).contains(&value)).then_some(value as u64)
}

fn number(value: &Value) -> Given {
    let number = match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        // Protobuf writes numbers of 64 bits as text.
        Value::String(text) => text.parse().ok(),
        Value::Bool(value) => Some((*value).into()),
        _ => None,
    };
    number.ok_or_else(|| match value {
        Value::String(text) => in_words(text),
        other => other.to_string(),
    })
}

/// A text that is a number as that number, another one in quotes.
pub(super) fn in_words(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(_) => text.to_owned(),
        Err(_) => format!("{text:?}"),
    }
}

/// Reads the trace of a rank.
pub(super) fn read(bytes: &[u8], rank: usize) -> Result<Rank, TraceError> {
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let line_at = |at: usize| {
        let breaks = bytes[..at.min(bytes.len())]
            .iter()
            .filter(|byte| **byte == b'\n');
        breaks.count() as u32 + 1
    };
    let (mut nodes, mut groups) = (Vec::new(), BTreeMap::new());
    let mut first = true;
    loop {
        let at = stream.byte_offset();
        let skipped = bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace());
        let line = line_at(at + skipped.count());
        let Some(value) = stream.next() else {
            break;
        };
        let wrong = |message: String| TraceError::line(line, message, HINT);
        let wrong_node = |message: String| TraceError::line(line, message, NODE_HINT);
        let value = value.map_err(|error| {
            let line = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1);
            TraceError::line(line, error.to_string(), "the file may have been cut off")
        })?;
        let Value::Object(object) = value else {
            return Err(wrong("a value that is no object".to_owned()));
        };
        match object.get("workload_graph") {
            Some(Value::Array(list)) => {
                for (place, entry) in list.iter().enumerate() {
                    let node = entry.as_object().map(|entry| graph_node(entry, rank));
                    let node = node.unwrap_or_else(|| Err("it is no object".to_owned()));
                    let node = node.map_err(|error| format!("entry {place}: {error}"));
                    nodes.push(node.map_err(wrong_node)?);
                }
            }
            Some(_) => return Err(wrong("workload_graph is no list".to_owned())),
            None if first && object.contains_key("version") => {}
            None => {
                let node = message_node(&object, &mut groups, rank);
                nodes.push(node.map_err(wrong_node)?);
            }
        }
        first = false;
    }
    match first {
        true => Err(TraceError::new(
            TracePlace::Whole,
            "the file is empty",
            HINT,
        )),
        false => Ok((nodes, groups)),
    }
}

/// A list of the ids of nodes.
fn ids(object: &Map<String, Value>, key: &str) -> Result<Vec<u64>, String> {
    match object.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|value| number(value).map_err(|text| format!("{key} has {text}, no id of a node")))
            .collect(),
        Some(other) => Err(format!("{key} is {other}, no list")),
    }
}

fn text_of(object: &Map<String, Value>, key: &str) -> String {
    let value = object.get(key).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

fn value_of(object: &Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    let value = object.get(key).filter(|value| !value.is_null());
    super::number(value.map(number).as_ref(), key)
}

/// A node of a `workload_graph`.
fn graph_node(object: &Map<String, Value>, rank: usize) -> Result<Node, String> {
    let id = value_of(object, "Id")?.ok_or("it has no Id")?;
    let of_node = |error: String| format!("node {id}: {error}");
    let value = |key: &str| value_of(object, key).map_err(of_node);
    let group = object.get("pg_name").or_else(|| object.get("comm_group"));
    let mut attributes = Attributes {
        group: group.and_then(group_name),
        ..Attributes::default()
    };
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        attributes.set(key, number(value));
    }
    let kind = value("NodeType")?.unwrap_or(0);
    let work = attributes.work(kind, value("runtime")?.unwrap_or(0), rank);
    Ok(Node {
        id,
        name: text_of(object, "Name"),
        work: work.map_err(of_node)?,
        after: [ids(object, "ctrl_deps")?, ids(object, "data_deps")?].concat(),
    })
}

fn group_name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => number(other).ok().map(|number| number.to_string()),
    }
}

/// The names of the types of nodes, in the order of their numbers.
const TYPES: [&str; 11] = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
    "STORAGE_NODE",
    "BATCH_NODE",
    "CHECKPOINT_NODE",
];

/// A node as protobuf writes it: what is zero is left out.
fn message_node(
    object: &Map<String, Value>,
    groups: &mut BTreeMap<String, Vec<u32>>,
    rank: usize,
) -> Result<Node, String> {
    let id = value_of(object, "id")?.unwrap_or(0);
    let kind = match object.get("type") {
        Some(Value::String(name)) => {
            let place = TYPES.iter().position(|known| known == name);
            place.ok_or_else(|| format!("node {id}: {name:?} is no type of node"))? as u64
        }
        _ => value_of(object, "type")?.unwrap_or(0),
    };
    let name = text_of(object, "name");
    let inputs = object.get("inputs").and_then(|inputs| inputs.get("values"));
    if let Some(values) = inputs
        .and_then(Value::as_str)
        .filter(|_| name.contains("process_group"))
    {
        named_groups(values, groups);
    }
    let mut attributes = Attributes::default();
    for attribute in object
        .get("attr")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(attribute) = attribute.as_object() else {
            continue;
        };
        let value = attribute
            .iter()
            .find(|(key, _)| key.ends_with("Val") || key.ends_with("List"))
            .map_or(&Value::Null, |(_, value)| value);
        match attribute.get("name").and_then(Value::as_str).unwrap_or("") {
            "pg_name" | "comm_group" => attributes.group = group_name(value),
            "involved_dim" => {
                let list = value.get("values").and_then(Value::as_array);
                attributes.is_partial = list.is_some_and(|list| list.contains(&Value::Bool(false)));
            }
            name if !value.is_null() => attributes.set(name, number(value)),
            _ => {}
        }
    }
    let micros = value_of(object, "durationMicros")?.unwrap_or(0);
    Ok(Node {
        id,
        name,
        work: attributes
            .work(kind, micros, rank)
            .map_err(|error| format!("node {id}: {error}"))?,
        after: [ids(object, "ctrlDeps")?, ids(object, "dataDeps")?].concat(),
    })
}

/// Reads groups of ranks from the inputs of a node on process groups: JSON, in which JSON may stand as text.
pub(super) fn named_groups(text: &str, groups: &mut BTreeMap<String, Vec<u32>>) {
    if let Ok(value) = serde_json::from_str(text) {
        collect_groups(&value, groups, 8);
    }
}

fn collect_groups(value: &Value, groups: &mut BTreeMap<String, Vec<u32>>, depth: u32) {
    if depth == 0 {
        return;
    }
    match value {
        Value::String(text) => {
            if let Ok(value) = serde_json::from_str(text) {
                collect_groups(&value, groups, depth - 1);
            }
        }
        Value::Array(list) => {
            for value in list {
                collect_groups(value, groups, depth - 1);
            }
        }
        Value::Object(object) => {
            let name = object.get("pg_name").and_then(group_name);
            let ranks = object.get("ranks").and_then(Value::as_array);
            if let (Some(name), Some(ranks)) = (name, ranks) {
                let ranks = ranks.iter().map(|rank| number(rank).ok()?.try_into().ok());
                if let Some(ranks) = ranks.collect() {
                    groups.insert(name, ranks);
                }
            }
        }
        _ => {}
    }
}

/// Reads a file with groups of ranks, by name: `{"0": [0, 1, 2, 3]}`.
pub(super) fn groups(text: &str) -> Result<BTreeMap<String, Vec<u32>>, TraceError> {
    let groups: BTreeMap<String, Vec<u32>> = serde_json::from_str(text).map_err(|error| {
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

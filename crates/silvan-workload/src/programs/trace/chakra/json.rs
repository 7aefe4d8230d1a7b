//! Chakra traces in JSON: a `workload_graph` with nodes, or the protobuf messages in sequence. Nodes are stored as
//! read, without the text.

use std::fmt::{Formatter, Result as Written};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::{TraceError, TracePlace};
use super::attributes::{Attributes, number};
use super::properties::{Properties, set};
use super::ranks::{MOST_WAITS, Ranks, Wrong};
use super::values::{ANY, Any, Groups, Json, among, named_groups};
use super::{NODE_HINT, Node, check_version};

const HINT: &str = "write a workload_graph, or the nodes as chakra_jsonizer does";
const TRUNCATED: &str = "the file may have been cut off";

pub(super) fn text(bytes: &[u8]) -> Option<&[u8]> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let start = text.iter().find(|byte| !b" \t\r\n".contains(byte));
    match start {
        // A protobuf trace starts with a length and a field number, neither of which is one of these.
        Some(b'{' | b'[') => Some(text),
        None if !text.is_empty() => Some(text),
        _ => None,
    }
}

pub(super) fn read(bytes: &[u8], ranks: &mut Ranks) -> Result<(), TraceError> {
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    let breaks = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let at_line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX).max(1);
    let mut reader = Reader {
        ranks,
        is_first: true,
        has_graph: false,
        wrong: None,
        expected: String::new(),
    };
    let (mut start, mut line) = (0, 1);
    while let Some(value) = stream.next() {
        value.map_err(|error| {
            TraceError::line(at_line(error.line()), error.to_string(), TRUNCATED)
        })?;
        let end = stream.byte_offset();
        let value = &bytes[start..end];
        reader.expect("a value that is no object");
        let mut deserializer = serde_json::Deserializer::from_slice(value);
        let entry = Entry {
            reader: &mut reader,
            place: None,
        };
        if let Err(error) = entry.deserialize(&mut deserializer) {
            let (message, hint) = match reader.wrong.take() {
                Some(wrong) => wrong,
                None if error.is_data() => (reader.expected, HINT),
                None => (error.to_string(), TRUNCATED),
            };
            let line = line + error.line().max(1) - 1;
            return Err(TraceError::line(at_line(line), message, hint));
        }
        reader.is_first = false;
        line += breaks(value);
        start = end;
    }
    match reader.is_first {
        true => Err(TraceError::new(
            TracePlace::Whole,
            "the file is empty",
            HINT,
        )),
        false => Ok(()),
    }
}

struct Reader<'a> {
    ranks: &'a mut Ranks,
    is_first: bool,
    has_graph: bool,
    /// A mistake that JSON allows.
    wrong: Option<Wrong>,
    expected: String,
}

impl Reader<'_> {
    fn fail<E: Error>(&mut self, message: String, hint: &'static str) -> E {
        self.wrong = Some((message, hint));
        E::custom("")
    }

    fn expect(&mut self, message: &str) {
        self.expected.clear();
        self.expected.push_str(message);
    }
}

const GRAPH: [&str; 18] = [
    "Id",
    "Name",
    "NodeType",
    "runtime",
    "ctrl_deps",
    "data_deps",
    "pg_name",
    "comm_group",
    "involved_dim",
    "is_cpu_op",
    "comm_type",
    "comm_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "num_ops",
    "root_rank",
    "comm_root",
];

const MESSAGE: [&str; 12] = [
    "id",
    "name",
    "type",
    "durationMicros",
    "ctrlDeps",
    "dataDeps",
    "inputs",
    "attr",
    "version",
    "workload_graph",
    "nodes",
    "traceEvents",
];

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

struct Entry<'a, 'r> {
    reader: &'a mut Reader<'r>,
    place: Option<u64>,
}

#[derive(Default)]
struct Fields {
    id: Option<Json>,
    kind: Option<Json>,
    micros: Option<Json>,
    name: String,
    after: Vec<u64>,
    control: Vec<u64>,
    attributes: Attributes,
    inputs: Option<Json>,
    version: Option<Json>,
    is_graph: bool,
    has_others: bool,
}

const PYTORCH: [(&str, &str, &str); 2] = [
    (
        "nodes",
        "a PyTorch execution trace of the host, not a Chakra trace",
        "link it with the Kineto trace (chakra_trace_link), then convert it (chakra_converter PyTorch)",
    ),
    (
        "traceEvents",
        "a Kineto trace of PyTorch's profiler, not a Chakra trace",
        "link it with the host's execution trace (chakra_trace_link), then convert it (chakra_converter PyTorch)",
    ),
];

impl<'de> DeserializeSeed<'de> for Entry<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { reader, place } = self;
        let names = match place {
            Some(_) => &GRAPH[..],
            None => &MESSAGE[..],
        };
        let of_entry = |id: Option<&Json>, message: String| match (id, place) {
            (Some(id), _) => format!("node {}: {message}", id.words()),
            (None, Some(place)) => format!("entry {place}: {message}"),
            (None, None) => message,
        };
        let mut fields = Fields::default();
        let mut seen = 0_u32;
        while let Some(key) = entries.next_key_seed(among(names))? {
            let Some(key) = key else {
                entries.next_value::<IgnoredAny>()?;
                fields.has_others = true;
                continue;
            };
            let name = names[key];
            if let Some((_, what, hint)) = PYTORCH.iter().find(|(list, ..)| *list == name) {
                if reader.is_first {
                    return Err(reader.fail((*what).to_owned(), hint));
                }
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            if seen & 1 << key != 0 {
                let message = of_entry(fields.id.as_ref(), format!("{name} is there twice"));
                return Err(reader.fail(message, NODE_HINT));
            }
            seen |= 1 << key;
            match fields.read(name, &mut entries, reader)? {
                Ok(()) => {}
                Err(message) => {
                    let message = of_entry(fields.id.as_ref(), message);
                    return Err(reader.fail(message, NODE_HINT));
                }
            }
        }
        if fields.is_graph {
            return Ok(());
        }
        let is_metadata = fields.version.is_some() || !fields.has_others;
        let is_first = reader.is_first && place.is_none();
        if let (true, true, None, None) = (is_first, is_metadata, &fields.id, &fields.kind) {
            let version = match &fields.version {
                None => Ok(()),
                Some(Json::Text(text)) => check_version(text),
                Some(other) => Err(format!(
                    "version is {}: write e.g. \"1.0.0\"",
                    other.words()
                )),
            };
            return version.map_err(|message| reader.fail(message, HINT));
        }
        let added = match fields.node(place.is_none(), reader.ranks.rank()) {
            Ok((node, groups)) => {
                reader.ranks.name(groups);
                reader.ranks.add(node)
            }
            Err(message) => Err((of_entry(None, message), NODE_HINT)),
        };
        added.map_err(|(message, hint)| reader.fail(message, hint))
    }
}

type Checked<E> = Result<Result<(), String>, E>;

impl Fields {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        entries: &mut A,
        reader: &mut Reader<'_>,
    ) -> Checked<A::Error> {
        match name {
            "workload_graph" => {
                self.is_graph = true;
                if std::mem::replace(&mut reader.has_graph, true) {
                    return Ok(Err("a second workload_graph".to_owned()));
                }
                reader.expect("workload_graph is no list");
                entries.next_value_seed(Graph { reader })?;
                return Ok(Ok(()));
            }
            "attr" => {
                reader.expect("attr is no list of objects");
                return entries.next_value_seed(Properties {
                    attributes: &mut self.attributes,
                });
            }
            "ctrl_deps" | "data_deps" | "ctrlDeps" | "dataDeps" => {
                let waits = self.after.len() + self.control.len();
                let most = MOST_WAITS - waits.min(MOST_WAITS);
                reader.expect("a node waits for too many others");
                let numbers = match name {
                    "ctrl_deps" | "ctrlDeps" => &mut self.control,
                    _ => &mut self.after,
                };
                let list = Any {
                    numbers: Some((numbers, most)),
                };
                return Ok(entries.next_value_seed(list)?.ids(name));
            }
            _ => {}
        }
        let value = entries.next_value_seed(ANY)?;
        if value.is_null() {
            return Ok(Ok(()));
        }
        let done = match name {
            "Id" | "id" => {
                self.id = Some(value);
                Ok(())
            }
            "NodeType" | "type" => {
                self.kind = Some(value);
                Ok(())
            }
            "runtime" | "durationMicros" => {
                self.micros = Some(value);
                Ok(())
            }
            "Name" | "name" => {
                if let Json::Text(text) = value {
                    self.name = text;
                }
                Ok(())
            }
            "inputs" => {
                self.inputs = Some(value);
                Ok(())
            }
            "version" => {
                self.version = Some(value);
                Ok(())
            }
            _ => set(&mut self.attributes, name, &value),
        };
        Ok(done)
    }

    fn node(self, is_message: bool, rank: usize) -> Result<(Node, Groups), String> {
        let value = |value: &Option<Json>, name: &str| {
            number(value.as_ref().map(Json::number).as_ref(), name)
        };
        let names = match is_message {
            true => ["id", "type", "durationMicros"],
            false => ["Id", "NodeType", "runtime"],
        };
        // A message may omit zeros.
        let id = match value(&self.id, names[0])? {
            None if !is_message => return Err("it has no Id".to_owned()),
            id => id.unwrap_or(0),
        };
        let of_node = |error: String| format!("node {id}: {error}");
        let kind = match &self.kind {
            Some(Json::Text(name)) if is_message => {
                let place = TYPES.iter().position(|known| known == name);
                place.ok_or_else(|| of_node(format!("{name:?} is no type of node")))? as u64
            }
            kind => value(kind, names[1]).map_err(of_node)?.unwrap_or(0),
        };
        let micros = value(&self.micros, names[2]).map_err(of_node)?;
        let groups = match &self.inputs {
            Some(Json::Object(Some(values))) if self.name.contains("process_group") => {
                match &**values {
                    Json::Text(text) => named_groups(text),
                    _ => Groups::new(),
                }
            }
            _ => Groups::new(),
        };
        let work = self.attributes.work(kind, micros.unwrap_or(0), rank);
        let node = Node {
            id,
            name: self.name,
            work: work.map_err(of_node)?,
            after: self.after,
            control: self.control,
        };
        Ok((node, groups))
    }
}

struct Graph<'a, 'r> {
    reader: &'a mut Reader<'r>,
}

impl<'de> DeserializeSeed<'de> for Graph<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Graph<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter<'_>) -> Written {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut place = 0_u64;
        loop {
            self.reader
                .expect(&format!("entry {place}: it is no object"));
            let entry = Entry {
                reader: &mut *self.reader,
                place: Some(place),
            };
            if elements.next_element_seed(entry)?.is_none() {
                return Ok(());
            }
            place += 1;
        }
    }
}

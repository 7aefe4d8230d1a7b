//! Chakra execution traces: what each rank computes and communicates, and what waits for what.
//!
//! S. Sridharan et al., "Chakra: Advancing Performance Benchmarking and Co-design using Standardized Execution Traces",
//! arXiv:2305.14516, 2023; version 0.0.4 of MLCommons. Every rank has a file: protobuf ([`proto`]) or JSON ([`json`]).
//! Groups of ranks are in a JSON file, or in nodes with metadata.

mod json;
mod nodes;
mod proto;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{MOST_BYTES, TraceError, TraceFormat, TracePlace, TraceSettings};
use crate::programs::collective::Operation;
use crate::programs::schedule::Schedule;

/// The format.
#[derive(Debug)]
pub struct Chakra;

impl TraceFormat for Chakra {
    fn endings(&self) -> &'static [&'static str] {
        &["et", "json"]
    }

    fn import(&self, files: Vec<Vec<u8>>, groups: Option<&str>) -> Result<String, TraceError> {
        let mut trace = Trace::default();
        let count = files.len();
        for (rank, bytes) in files.into_iter().enumerate() {
            let read = match bytes.first() {
                // No protobuf trace starts with a message of the length of these characters.
                Some(b'{' | b' ' | b'\n' | b'[') => json::read(&bytes),
                _ => proto::read(&bytes),
            };
            let (nodes, found) = read.map_err(|error| error.in_file(rank))?;
            trace.ranks.push(nodes);
            trace.groups.extend(found);
        }
        if let Some(text) = groups {
            trace.groups = json::groups(text).map_err(|error| error.in_file(count))?;
        }
        serde_json::to_string(&trace).map_err(|error| {
            TraceError::new(TracePlace::Whole, error.to_string(), "correct the trace")
        })
    }

    fn schedules(
        &self,
        text: &str,
        settings: &TraceSettings,
    ) -> Result<Vec<Arc<Schedule>>, TraceError> {
        let trace: Trace = serde_json::from_str(text).map_err(|error| {
            let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
            let hint = "name the files of the ranks as file instead";
            TraceError::line(line, error.to_string(), hint)
        })?;
        nodes::schedules(&trace, settings)
    }
}

/// The traces of all ranks, without what does not matter here.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    ranks: Vec<Vec<Node>>,
    /// Groups of ranks, by name. An empty list is all ranks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    groups: BTreeMap<String, Vec<u32>>,
}

/// A node of a rank.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    id: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    work: NodeWork,
    /// Nodes that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<u64>,
}

impl Node {
    fn label(&self) -> String {
        match self.name.as_str() {
            "" => format!("node {}", self.id),
            name => format!("node {} ({name})", self.id),
        }
    }
}

/// What a node does.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum NodeWork {
    /// Nothing that takes time.
    Metadata,
    /// Takes a time on the accelerator, or on the host.
    Compute { micros: u64, ops: u64, host: bool },
    /// Sends a message.
    Send { to: u32, bytes: u64, tag: u32 },
    /// Receives a message.
    Receive { from: u32, bytes: u64, tag: u32 },
    /// A collective operation of a group; `None` is all ranks.
    Collective {
        operation: Operation,
        bytes: u64,
        group: Option<String>,
        root: u32,
    },
}

/// A rank's nodes, and the groups that they name.
type Rank = (Vec<Node>, BTreeMap<String, Vec<u32>>);

/// The properties of a node in any of the formats.
#[derive(Debug, Default)]
struct Attributes {
    is_cpu_op: Option<bool>,
    comm_type: Option<u64>,
    comm_size: Option<u64>,
    comm_src: Option<u64>,
    comm_dst: Option<u64>,
    comm_tag: Option<u64>,
    num_ops: Option<u64>,
    root: Option<u64>,
    group: Option<String>,
    /// Whether only some dimensions of a network take part.
    is_partial: bool,
}

const MEMORY_LOAD: u64 = 2;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;
/// The last type of nodes: those beyond the collective operations read and write files.
const LAST_TYPE: u64 = 10;

impl Attributes {
    /// What a node of this type does; an error is what is wrong with it.
    fn work(self, kind: u64, micros: u64) -> Result<NodeWork, String> {
        let is_message = (SEND..=COLLECTIVE).contains(&kind) && self.is_cpu_op != Some(true);
        if !is_message {
            return match kind {
                1 => Ok(NodeWork::Metadata),
                MEMORY_LOAD..=LAST_TYPE => Ok(NodeWork::Compute {
                    micros,
                    ops: self.num_ops.unwrap_or(0),
                    host: kind != 4 || self.is_cpu_op == Some(true),
                }),
                _ => Err(format!(
                    "{kind} is no type of node: 1 to {LAST_TYPE} are known"
                )),
            };
        }
        let bytes = match self.comm_size {
            Some(bytes) if bytes <= MOST_BYTES => bytes,
            Some(bytes) => {
                return Err(format!("{bytes} bytes: at most {MOST_BYTES} are supported"));
            }
            None if kind == COLLECTIVE && self.comm_type == Some(9) => 0,
            None => return Err("it has no comm_size".to_owned()),
        };
        let number = |value: Option<u64>, name: &str| {
            let value = value.ok_or_else(|| format!("it has no {name}"))?;
            u32::try_from(value).map_err(|_| format!("{name} is {value}: it has 32 bits"))
        };
        match kind {
            SEND => Ok(NodeWork::Send {
                to: number(self.comm_dst, "comm_dst")?,
                bytes,
                tag: number(self.comm_tag.or(Some(0)), "comm_tag")?,
            }),
            RECEIVE => Ok(NodeWork::Receive {
                from: number(self.comm_src, "comm_src")?,
                bytes,
                tag: number(self.comm_tag.or(Some(0)), "comm_tag")?,
            }),
            _ if self.is_partial => Err(
                "involved_dim leaves out dimensions of a network; groups of ranks are read"
                    .to_owned(),
            ),
            _ => Ok(NodeWork::Collective {
                operation: operation(self.comm_type)?,
                bytes,
                group: self.group,
                root: number(self.root.or(Some(0)), "the root")?,
            }),
        }
    }
}

fn operation(comm_type: Option<u64>) -> Result<Operation, String> {
    Ok(match comm_type {
        Some(0) => Operation::Allreduce,
        Some(1) => Operation::Reduce,
        Some(2) => Operation::Allgather,
        Some(3) => Operation::Incast,
        Some(4) => Operation::Scatter,
        Some(5) => Operation::Broadcast,
        Some(6) => Operation::Alltoall,
        Some(7 | 8) => Operation::ReduceScatter,
        Some(9) => Operation::Barrier,
        Some(other) => return Err(format!("comm_type is {other}: 0 to 9 are known")),
        None => return Err("it has no comm_type".to_owned()),
    })
}

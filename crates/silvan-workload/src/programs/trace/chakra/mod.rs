//! Chakra execution traces: what each rank computes and communicates, and what waits for what.
//!
//! S. Sridharan et al., "Chakra: Advancing Performance Benchmarking and Co-design using Standardized Execution Traces",
//! arXiv:2305.14516, 2023; version 0.0.4 of MLCommons. Every rank has a file: protobuf ([`proto`]) or JSON ([`json`]).
//! Groups of ranks are in a JSON file, or in nodes with metadata.

mod json;
mod messages;
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
            let read = match json::text(&bytes) {
                Some(text) => json::read(text, rank),
                None => proto::read(&bytes, rank),
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
        /// The rank that has another part than all others; `None` is the first one of the group.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<u32>,
    },
}

/// A rank's nodes, and the groups that they name.
type Rank = (Vec<Node>, BTreeMap<String, Vec<u32>>);

/// A number of a node, or what is there instead of a whole number that is not negative.
type Given = Result<u64, String>;

/// The properties of a node in any of the formats.
#[derive(Debug, Default)]
struct Attributes {
    is_cpu_op: Option<bool>,
    comm_type: Option<Given>,
    comm_size: Option<Given>,
    comm_src: Option<Given>,
    comm_dst: Option<Given>,
    comm_tag: Option<Given>,
    num_ops: Option<Given>,
    root: Option<Given>,
    group: Option<String>,
    /// Whether only some dimensions of a network take part.
    is_partial: bool,
}

/// The number of this name, if the node has it.
fn number(given: Option<&Given>, name: &str) -> Result<Option<u64>, String> {
    match given {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(*number)),
        Some(Err(text)) => Err(format!(
            "{name} is {text}: whole numbers from 0 are supported"
        )),
    }
}

/// What to do about a node that is wrong.
const NODE_HINT: &str = "correct the node, or leave it out";

const MEMORY_LOAD: u64 = 2;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;
/// The last type of nodes: those beyond the collective operations read and write files.
const LAST_TYPE: u64 = 10;

impl Attributes {
    /// Keeps a property that a node may have under this name.
    fn set(&mut self, name: &str, given: Given) {
        let slot = match name {
            "comm_type" => &mut self.comm_type,
            "comm_size" => &mut self.comm_size,
            "comm_src" => &mut self.comm_src,
            "comm_dst" => &mut self.comm_dst,
            "comm_tag" => &mut self.comm_tag,
            "num_ops" => &mut self.num_ops,
            "root_rank" | "comm_root" => &mut self.root,
            "is_cpu_op" => {
                self.is_cpu_op = given.ok().map(|number| number != 0);
                return;
            }
            _ => return,
        };
        *slot = Some(given);
    }

    /// What a node of this type does on this rank; an error is what is wrong with it.
    fn work(self, kind: u64, micros: u64, rank: usize) -> Result<NodeWork, String> {
        let is_message = (SEND..=COLLECTIVE).contains(&kind) && self.is_cpu_op != Some(true);
        if !is_message {
            return match kind {
                1 => Ok(NodeWork::Metadata),
                MEMORY_LOAD..=LAST_TYPE => Ok(NodeWork::Compute {
                    micros,
                    ops: number(self.num_ops.as_ref(), "num_ops")?.unwrap_or(0),
                    host: kind != 4 || self.is_cpu_op == Some(true),
                }),
                _ => Err(format!(
                    "{kind} is no type of node: 1 to {LAST_TYPE} are known"
                )),
            };
        }
        let comm_type = number(self.comm_type.as_ref(), "comm_type")?;
        let bytes = match number(self.comm_size.as_ref(), "comm_size")? {
            Some(bytes) if bytes <= MOST_BYTES => bytes,
            Some(bytes) => {
                return Err(format!("{bytes} bytes: at most {MOST_BYTES} are supported"));
            }
            None if kind == COLLECTIVE && comm_type == Some(9) => 0,
            None => return Err("it has no comm_size".to_owned()),
        };
        let short = |given: Option<&Given>, name: &str| {
            let value = number(given, name)?.ok_or_else(|| format!("it has no {name}"))?;
            u32::try_from(value).map_err(|_| format!("{name} is {value}: it has 32 bits"))
        };
        let own = |given: Option<&Given>, name: &str, what: &str| match number(given, name)? {
            Some(other) if other != rank as u64 => Err(format!(
                "{name} is {other}, but this is a {what} of rank {rank}"
            )),
            _ => Ok(()),
        };
        let zero = Ok(0);
        let tag = || short(self.comm_tag.as_ref().or(Some(&zero)), "comm_tag");
        match kind {
            SEND => {
                own(self.comm_src.as_ref(), "comm_src", "send")?;
                Ok(NodeWork::Send {
                    to: short(self.comm_dst.as_ref(), "comm_dst")?,
                    bytes,
                    tag: tag()?,
                })
            }
            RECEIVE => {
                own(self.comm_dst.as_ref(), "comm_dst", "receive")?;
                Ok(NodeWork::Receive {
                    from: short(self.comm_src.as_ref(), "comm_src")?,
                    bytes,
                    tag: tag()?,
                })
            }
            _ if self.is_partial => Err(
                "involved_dim leaves out dimensions of a network; groups of ranks are read"
                    .to_owned(),
            ),
            _ => {
                let operation = operation(comm_type)?;
                let root = match operation.has_root() {
                    true => self.root.as_ref(),
                    false => None,
                };
                Ok(NodeWork::Collective {
                    operation,
                    bytes,
                    group: self.group.clone(),
                    root: root.map(|_| short(root, "the root")).transpose()?,
                })
            }
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

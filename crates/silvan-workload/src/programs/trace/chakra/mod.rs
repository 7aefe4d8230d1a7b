//! Chakra execution traces: what each rank computes and communicates, and what waits for what.
//!
//! S. Sridharan et al., "Chakra: Advancing Performance Benchmarking and Co-design using Standardized Execution Traces",
//! arXiv:2305.14516, 2023; version 0.0.4 of MLCommons. Every rank has a file: protobuf ([`proto`]) or JSON ([`json`]).
//! Groups of ranks are in a JSON file, or in nodes with metadata.

mod attributes;
mod json;
mod messages;
mod nodes;
mod properties;
mod proto;
mod ranks;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TraceError, TraceFormat, TracePlace, TraceSettings};
use crate::programs::collective::Operation;
use crate::programs::schedule::Schedule;
use ranks::Ranks;

/// The format.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chakra {}

impl TraceFormat for Chakra {
    fn endings(&self) -> &'static [&'static str] {
        &["et", "json"]
    }

    fn import(&self, files: Vec<Vec<u8>>, groups: Option<&str>) -> Result<String, TraceError> {
        let mut ranks = Ranks::default();
        let count = files.len();
        for (rank, bytes) in files.into_iter().enumerate() {
            ranks.begin();
            let read = match json::text(&bytes) {
                Some(text) => json::read(text, &mut ranks),
                None => proto::read(&bytes, &mut ranks),
            };
            read.map_err(|error| error.in_file(rank))?;
        }
        let mut trace = ranks.end();
        if let Some(text) = groups {
            trace.groups = values::groups(text).map_err(|error| error.in_file(count))?;
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

/// What to do about a node that is wrong.
const NODE_HINT: &str = "correct the node, or leave it out";

/// Refuses other versions than those that are read.
fn check_version(version: &str) -> Result<(), String> {
    match version.starts_with("0.0.") {
        true => Ok(()),
        false => Err(format!("version {version:?}: 0.0.4 is known")),
    }
}

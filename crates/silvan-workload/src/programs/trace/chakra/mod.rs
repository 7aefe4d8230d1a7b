//! Chakra execution traces (S. Sridharan et al., "Chakra: Advancing Performance Benchmarking and Co-design using
//! Standardized Execution Traces", arXiv:2305.14516, 2023; versions 0.0.4 to 1.0.0 of MLCommons).
//!
//! Every rank has a file in protobuf ([`proto`]) or JSON ([`json`]); groups are in a JSON file, or in nodes.

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Chakra {
    /// Control dependencies that nodes wait for; for traces from files.
    pub control_dependencies: ControlDependencies,
}

impl Chakra {
    /// The default keys.
    pub const DEFAULT: Self = Self {
        control_dependencies: ControlDependencies::Existing,
    };
}

impl Default for Chakra {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Control dependencies that nodes wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControlDependencies {
    /// Dependencies on nodes of the file. A warning counts the other dependencies, whose nodes Chakra's converter has
    /// removed.
    Existing,
    /// None: nodes wait for data dependencies only.
    Ignored,
}

impl TraceFormat for Chakra {
    fn endings(&self) -> &'static [&'static str] {
        &["et", "json"]
    }

    fn import(&self, files: Vec<Vec<u8>>, groups: Option<&str>) -> Result<String, TraceError> {
        let mut ranks = Ranks::default();
        let count = files.len();
        for (rank, bytes) in files.into_iter().enumerate() {
            ranks.begin(self.control_dependencies);
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

    fn warnings(&self, text: &str) -> Vec<String> {
        let count = text.strip_prefix(DANGLING).map_or("", |rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            &rest[..end.unwrap_or(rest.len())]
        });
        match count {
            "" => Vec::new(),
            count => vec![format!(
                "{count} control dependencies on nodes that the trace does not have are ignored"
            )],
        }
    }
}

const DANGLING: &str = "{\"dangling\":";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    #[serde(default, skip_serializing_if = "is_zero")]
    dangling: u64,
    ranks: Vec<Vec<Node>>,
    /// By name; an empty list means all ranks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    groups: BTreeMap<String, Vec<u32>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    id: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    work: NodeWork,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<u64>,
    #[serde(skip)]
    control: Vec<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Node {
    fn label(&self) -> String {
        match self.name.as_str() {
            "" => format!("node {}", self.id),
            name => format!("node {} ({name})", self.id),
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum NodeWork {
    Metadata,
    Compute {
        micros: u64,
        ops: u64,
        host: bool,
    },
    Send {
        to: u32,
        bytes: u64,
        tag: u32,
    },
    Receive {
        from: u32,
        bytes: u64,
        tag: u32,
    },
    /// `None` means all ranks.
    Collective {
        operation: Operation,
        bytes: u64,
        group: Option<String>,
        /// Rank with a different part; `None` means the group's first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<u32>,
    },
}

const NODE_HINT: &str = "correct the node, or leave it out";

/// Converters leave the version empty and write an attribute `schema`.
fn check_version(version: &str) -> Result<(), String> {
    let is_known = version.is_empty() || version.starts_with("0.0.") || version.starts_with("1.");
    match is_known {
        true => Ok(()),
        false => Err(format!("version {version:?}: 0.0.4 to 1.0.0 are supported")),
    }
}

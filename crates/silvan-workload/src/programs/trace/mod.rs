//! Traces and lists of real applications, read into a schedule per rank.
//!
//! A format is a module, whose keys implement [`TraceFormat`], and a line in `with_formats`.

mod binary_goal;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::Span;

use crate::programs::collective::{Algorithm, Operation};
use crate::programs::draft::Pipeline;
use crate::programs::nccl::{Nccl, NcclCall, NcclChoice};
use crate::programs::schedule::Schedule;
use crate::programs::stream::Stream;

macro_rules! with_formats {
    ($next:ident $($rest:tt)*) => {
        $next! { $($rest)* {
            goal::Goal = "goal", "A GOAL schedule (LogGOPSim, ATLAHS), as text or as `txt2bin` writes it.";
            chakra::Chakra = "chakra", "Chakra execution traces (MLCommons, ASTRA-sim), one file for each rank, in protobuf or JSON.";
            aicb::Aicb = "aicb", "A list of AICB, comma-separated or in SimAI's form.";
            connections::Connections = "connections", "The connections of a connection matrix of htsim.";
        } }
    };
}
pub(crate) use with_formats;

macro_rules! declare_formats {
    ({ $($module:ident::$format:ident = $name:literal, $summary:literal;)* }) => {
        $(
            pub mod $module;
            pub use $module::$format;
        )*

        /// The keys of each format that has any.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct FormatKeys {
            $(
                #[doc = $summary]
                #[serde(rename = $name, skip_serializing_if = "is_default")]
                pub $module: $format,
            )*
        }

        impl FormatKeys {
            /// Returns true if no format has other keys than by default.
            pub fn is_default(&self) -> bool {
                is_default(self)
            }

            /// Names of the formats that have other keys than by default.
            pub fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
                let all = [$(($name, is_default(&self.$module))),*];
                all.into_iter().filter(|(_, is_default)| !is_default).map(|(name, _)| name)
            }
        }
    };
}

with_formats! { declare_formats }

fn is_default<T: Default + PartialEq>(keys: &T) -> bool {
    *keys == T::default()
}

pub(crate) const MOST_RANKS: u32 = 1 << 20;

pub(crate) const MOST_OPS: u64 = 1 << 25;

/// First tag of collective operations, above those of sends and receives.
pub(crate) const COLLECTIVE_TAG: u32 = 1 << 31;

pub(crate) const LONGEST: Span = Span::from_secs(20 * 3_600);

pub(crate) const MOST_BYTES: u64 = 1 << 40;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePlace {
    /// The file as a whole.
    Whole,
    /// A line, from 1.
    Line(u32),
    /// A byte, from 0.
    Byte(u64),
    /// None in a file: the ranks that the program has room for.
    Ranks,
}

/// A trace that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TraceError {
    /// Number of the file, from 0.
    pub file: usize,
    /// Place in the file.
    pub place: TracePlace,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: &'static str,
}

impl TraceError {
    /// An error in the only file.
    pub fn new(place: TracePlace, message: impl Into<String>, hint: &'static str) -> Self {
        Self {
            file: 0,
            place,
            message: message.into(),
            hint,
        }
    }

    pub(crate) fn line(line: u32, message: impl Into<String>, hint: &'static str) -> Self {
        Self::new(TracePlace::Line(line), message, hint)
    }

    #[must_use]
    pub(crate) fn in_file(mut self, file: usize) -> Self {
        self.file = file;
        self
    }
}

/// Algorithm of a collective operation of a trace, by its size: the first rule that fits holds.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodRule {
    /// The operation; `None` is any.
    pub operation: Option<Operation>,
    /// Largest size in bytes; `None` is any.
    pub up_to: Option<u64>,
    /// The algorithm; `None` is the default of the operation.
    pub algorithm: Option<Algorithm>,
    /// The pieces that its data are cut into.
    pub pipeline: Pipeline,
}

/// Settings that a trace does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSettings {
    /// Places for ranks on the hosts.
    pub places: u32,
    /// Ranks side by side that share a server.
    pub local: u32,
    /// Algorithms of collective operations.
    pub methods: Vec<MethodRule>,
    /// Arithmetic operations per second, for nodes that have a number of operations instead of a time.
    pub operations_per_second: Option<f64>,
    /// Properties of servers for the choices of `nccl`.
    pub nccl: NcclSettings,
}

/// Servers that NCCL chooses algorithms for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NcclSettings {
    /// The keys.
    pub keys: Nccl,
    /// Rate of a rank's share of the adapters of its server, in GB/s.
    pub rank_rate: f64,
    /// Rate of a ring within a server, in GB/s.
    pub local_rate: f64,
}

impl NcclSettings {
    /// NCCL's choice for an operation of ranks with `local` on each server.
    pub fn choose(
        &self,
        operation: Operation,
        bytes: u64,
        ranks: u32,
        local: u32,
    ) -> Option<NcclChoice> {
        let local = match local {
            0 => 1,
            _ if ranks % local > 0 => 1,
            local => local,
        };
        self.keys.choose(&NcclCall {
            operation,
            bytes,
            ranks,
            local,
            server_rate: self.rank_rate * f64::from(local),
            local_rate: self.local_rate,
        })
    }

    fn method(
        &self,
        operation: Operation,
        bytes: u64,
        (ranks, local): (u32, u32),
    ) -> Option<(Algorithm, Pipeline)> {
        let choice = self.choose(operation, bytes, ranks, local)?;
        let pipeline = Pipeline {
            channels: choice.channels,
            chunk: Some(choice.chunk),
            protocol: choice.protocol,
            launch: choice.launch,
            lag: self.keys.lag(&choice),
        };
        Some((choice.algorithm.algorithm(), pipeline))
    }
}

impl TraceSettings {
    /// Algorithm and pieces of a collective operation of so many ranks, with so many on each server.
    pub fn method(
        &self,
        operation: Operation,
        bytes: u64,
        group: (u32, u32),
    ) -> (Algorithm, Pipeline) {
        let fits = |rule: &&MethodRule| {
            rule.operation.is_none_or(|wanted| wanted == operation)
                && rule.up_to.is_none_or(|limit| bytes <= limit)
                && rule
                    .algorithm
                    .is_none_or(|algorithm| operation.is_done_by(algorithm))
        };
        let rule = self.methods.iter().find(fits);
        let algorithm = rule.and_then(|rule| rule.algorithm);
        if algorithm == Some(Algorithm::Nccl) {
            return self.nccl_method(operation, bytes, group);
        }
        (
            algorithm.unwrap_or(operation.default_algorithm()),
            rule.map_or(Pipeline::default(), |rule| rule.pipeline),
        )
    }

    /// NCCL's algorithm and pieces; without a choice, those of the operation's default.
    pub fn nccl_method(
        &self,
        operation: Operation,
        bytes: u64,
        group: (u32, u32),
    ) -> (Algorithm, Pipeline) {
        let chosen = self.nccl.method(operation, bytes, group);
        chosen.unwrap_or((operation.default_algorithm(), Pipeline::default()))
    }

    /// Returns the number of adjacent members of a group that share a server; 1 if they are not spread evenly.
    pub fn local_members(&self, ranks: &[u32]) -> u32 {
        let server = |rank: u32| rank / self.local.max(1);
        let first = ranks
            .iter()
            .take_while(|rank| server(**rank) == server(ranks[0]));
        let size = first.count();
        let even = ranks.chunks(size).all(|chunk| {
            chunk.len() == size && chunk.iter().all(|r| server(*r) == server(chunk[0]))
        });
        let servers: Vec<u32> = ranks.chunks(size).map(|chunk| server(chunk[0])).collect();
        let mut distinct = servers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        match even && distinct.len() == servers.len() {
            true => size as u32,
            false => 1,
        }
    }
}

/// A format of traces, with its keys.
pub trait TraceFormat: Sync {
    /// Endings of file names where each rank has a file of its own, `NAME.RANK.ENDING`; none where one file has all.
    fn endings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Makes one text of all files and of a file with groups of ranks, or returns the first mistake.
    fn import(&self, files: Vec<Vec<u8>>, groups: Option<&str>) -> Result<String, TraceError>;

    /// Returns warnings on that text: on parts of the files that are ignored.
    fn warnings(&self, _text: &str) -> Vec<String> {
        Vec::new()
    }

    /// Reads the text as a stream if it has more operations than [`schedules`](Self::schedules) can hold.
    fn stream(
        &self,
        _text: &str,
        _settings: &TraceSettings,
    ) -> Result<Option<Arc<Stream>>, TraceError> {
        Ok(None)
    }

    /// Reads that text. Errors: the first mistake.
    fn schedules(
        &self,
        text: &str,
        settings: &TraceSettings,
    ) -> Result<Vec<Arc<Schedule>>, TraceError>;
}

pub(crate) fn only(files: Vec<Vec<u8>>) -> Vec<u8> {
    files.into_iter().next().unwrap_or_default()
}

pub(crate) fn check_length(ops: u64) -> Result<(), String> {
    match ops > MOST_OPS {
        true => Err(format!(
            "the trace has more than {MOST_OPS} operations with those of its collective operations"
        )),
        false => Ok(()),
    }
}

pub(crate) fn check_places(ranks: u64, settings: &TraceSettings) -> Result<(), TraceError> {
    let places = settings.places;
    match ranks > u64::from(places) {
        true => Err(TraceError::new(
            TracePlace::Ranks,
            format!("{ranks} ranks do not fit on {places} places"),
            "add hosts, or more ranks per host",
        )),
        false => Ok(()),
    }
}

pub(crate) fn first_few(
    count: usize,
    names: impl Iterator<Item = String>,
    separator: &str,
) -> String {
    const SHOWN: usize = 8;
    let first: Vec<String> = names.take(SHOWN).collect();
    match count > SHOWN {
        true => format!("{}{separator}… ({count} in all)", first.join(separator)),
        false => first.join(separator),
    }
}

pub(crate) const SHORTEN: &str =
    "use larger chunks, fewer channels, or an algorithm with fewer messages";

//! The kinds of traffic, and their list. A kind is a module, whose keys implement [`TrafficKind`], and a line in the
//! list at the end of this file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Sl, schema};

use super::build::Builder;
use super::check::Checker;
use super::error::{Entry, TrafficError};
use crate::programs::Sharp;
use crate::programs::nccl::Nccl;
use crate::programs::section::{GpcnetSection, HpccSection, Messaging, MethodEntry, ProgramEntry};

pub(crate) trait TrafficKind {
    /// Checks the keys, and adds sources to hosts.
    fn build(&self, check: &Checker, builder: &mut Builder) -> Result<(), TrafficError>;

    /// Service levels with their keys.
    fn levels(&self) -> Vec<(&'static str, Sl)>;

    /// Name in the statistics, if any; default `KIND-1`, `KIND-2`, ...
    fn name_mut(&mut self) -> Option<&mut Option<String>> {
        None
    }

    /// Name in the statistics, if any.
    fn name(&self) -> Option<&str> {
        None
    }
}

macro_rules! register {
    (
        single { $($one:ident::$One:ident = $one_name:literal, $one_summary:literal;)* }
        lists { $($list:ident::$List:ident = $list_name:literal, $list_summary:literal;)* }
    ) => {
        $(mod $one; pub use $one::$One;)*
        $(mod $list; pub use $list::$List;)*

        /// Traffic of the run: senders, receivers and messages. Entries add up: a host may be part of several.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct TrafficSection {
            /// Size of a message. Default: two packets of MTU size (gran2012, section IV).
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<schema::BytesText>")]
            pub message: Option<Bytes>,
            /// Maximum messages queued per throttled flow; beyond it the host picks another destination.
            pub backlog: u16,
            /// True if hosts may send to themselves: random destinations are drawn from all hosts, and a flow may end
            /// at its sender. Such messages take the sender's injection rate, but do not enter the fabric.
            pub loopback: bool,
            $(
                #[doc = $one_summary]
                #[serde(rename = $one_name, skip_serializing_if = "Option::is_none")]
                pub $one: Option<$One>,
            )*
            $(
                #[doc = $list_summary]
                #[serde(rename = $list_name, skip_serializing_if = "Vec::is_empty")]
                pub $list: Vec<$List>,
            )*
            /// Message-passing programs.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub program: Vec<ProgramEntry>,
            /// The benchmark GPCNeT.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub gpcnet: Option<GpcnetSection>,
            /// The communication of the benchmark HPCC.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub hpcc: Option<HpccSection>,
            /// Algorithms of programs' collective operations, by size: the first entry that fits holds.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub collective: Vec<MethodEntry>,
            /// Aggregation trees (SHARP) of programs with the algorithm `sharp`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub sharp: Option<Sharp>,
            /// Servers of programs with the algorithm `nccl`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub nccl: Option<Nccl>,
            /// Packets and processor cost of programs' messages.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub messaging: Option<Messaging>,
        }

        impl Default for TrafficSection {
            /// No traffic.
            fn default() -> Self {
                Self {
                    message: None,
                    backlog: 64,
                    loopback: false,
                    $($one: None,)*
                    $($list: Vec::new(),)*
                    program: Vec::new(),
                    collective: Vec::new(),
                    gpcnet: None,
                    hpcc: None,
                    sharp: None,
                    nccl: None,
                    messaging: None,
                }
            }
        }

        impl TrafficSection {
            /// The keys of all kinds, in the order of their registration.
            pub const KINDS: &[&str] = &[$($one_name,)* $($list_name),*];

            /// All entries, in the order in which their classes are numbered.
            fn entries(&self) -> impl Iterator<Item = (Entry, &dyn TrafficKind)> {
                let entries = std::iter::empty::<(Entry, &dyn TrafficKind)>();
                $(
                    let entries = entries.chain(self.$one.iter().map(|kind| {
                        (Entry::single($one_name), kind as &dyn TrafficKind)
                    }));
                )*
                $(
                    let entries = entries.chain(self.$list.iter().enumerate().map(|(index, kind)| {
                        (Entry::listed($list_name, index), kind as &dyn TrafficKind)
                    }));
                )*
                entries
            }

            /// The entries that have names, with the default of each.
            fn names_mut(&mut self) -> impl Iterator<Item = (String, &mut Option<String>)> {
                let names = std::iter::empty();
                $(
                    let names = names.chain(self.$list.iter_mut().enumerate().filter_map(|(index, kind)| {
                        Some((Entry::listed($list_name, index).default_name(), kind.name_mut()?))
                    }));
                )*
                names
            }
        }
    };
}

register! {
    single {
        nodes::Nodes = "nodes", "V nodes send to random hosts (victims), C nodes only to a hotspot (contributors), B nodes p % of the time to a hotspot, otherwise to random hosts (gran2012, sections III to V).";
    }
    lists {
        uniform::Uniform = "uniform", "Destinations drawn uniformly from all other hosts.";
        permutation::Permutation = "permutation", "Every host sends to one other, every host receives from one other.";
        incast::Incast = "incast", "Many hosts send to one.";
        flow::Flow = "flow", "Single flows.";
        flows::Flows = "flows", "Many flows, with sizes from a distribution.";
        flow_file::FlowFile = "flow-file", "Flows of a file, with sender, receiver, size and start of each.";
        sequence::Sequence = "sequence", "Hosts that send to a list of hosts in turn, each message when the last one was delivered.";
    }
}

impl TrafficSection {
    /// Packets of MTU size in a message (gran2012, section IV).
    pub const DEFAULT_MESSAGE_PACKETS: u64 = 2;

    /// Adds the sources of all entries, in the order of the registration.
    pub(crate) fn build(&self, builder: &mut Builder) -> Result<(), TrafficError> {
        for (entry, kind) in self.entries() {
            let check = builder.checker(entry);
            kind.build(&check, builder)?;
        }
        Ok(())
    }

    /// Names every entry that has no name as the statistics name it.
    pub fn fill_names(&mut self) {
        for (default, name) in self.names_mut() {
            name.get_or_insert(default);
        }
    }

    /// The names of all entries that have one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries().filter_map(|(_, kind)| kind.name())
    }

    /// The service levels of all entries, each with its place.
    pub fn levels(&self) -> Vec<(Entry, &'static str, Sl)> {
        let of = |(entry, kind): (Entry, &dyn TrafficKind)| {
            let levels = kind.levels().into_iter();
            levels.map(move |(key, sl)| (entry, key, sl))
        };
        self.entries().flat_map(of).collect()
    }
}

pub(crate) use flow::FlowSource;
pub use flows::FlowPattern;
pub(crate) use flows::MOST_OUTSTANDING;
pub use permutation::Pattern;

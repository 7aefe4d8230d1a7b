use std::fmt;

use silvan_core::document::{KeyPath, Refusal};
use silvan_core::{Bytes, HostId, Rate, Time};

use crate::traffic::flow_lines::FlowLineError;
use crate::traffic::kinds::MOST_OUTSTANDING;
use crate::traffic::sizes::CdfError;
use crate::traffic::spec::UnknownHost;

/// A traffic description that cannot be built, with the place of the fault. Nothing is left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficError {
    /// The entry at fault.
    pub entry: Entry,
    /// The key at fault, as a scenario spells it; empty where it is the entry as a whole.
    pub key: &'static str,
    /// Position of the fault in a list, from 0.
    pub index: Option<usize>,
    /// The fault.
    pub reason: Reason,
}

impl std::error::Error for TrafficError {}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            entry, key, reason, ..
        } = self;
        match *key {
            "" => write!(f, "{entry}: {reason}"),
            _ => write!(f, "{entry}, {key}: {reason}"),
        }
    }
}

/// An entry of the traffic description; prints as the table of the scenario that holds it, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key of its kind; empty for settings of all entries.
    pub kind: &'static str,
    /// Position in the list of its kind, from 0; `None` if the kind has one entry.
    pub index: Option<usize>,
}

impl Entry {
    /// Settings for all entries.
    pub const ALL: Self = Self::single("");

    /// The entry of a kind that has one.
    pub const fn single(kind: &'static str) -> Self {
        Self { kind, index: None }
    }

    /// An entry of a kind that has a list, counted from 0.
    pub const fn listed(kind: &'static str, index: usize) -> Self {
        let index = Some(index);
        Self { kind, index }
    }

    /// Returns the key in a scenario.
    pub fn key(self) -> KeyPath {
        let kind = match self.kind {
            "" => "traffic".into(),
            kind => KeyPath::from("traffic").key(kind),
        };
        match self.index {
            Some(index) => kind.index(index),
            None => kind,
        }
    }

    pub(crate) fn default_name(self) -> String {
        format!("{}-{}", self.kind, self.index.unwrap_or_default() + 1)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("traffic")?;
        if !self.kind.is_empty() {
            write!(f, ".{}", self.kind)?;
        }
        match self.index {
            Some(index) => write!(f, " {}", index + 1),
            None => Ok(()),
        }
    }
}

/// Why a value of the traffic description is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A host that the fabric does not have.
    #[error("{host} is outside the fabric of {hosts} hosts")]
    OutsideFabric {
        /// The host asked for.
        host: HostId,
        /// Hosts of the fabric.
        hosts: usize,
    },
    /// A host named twice where it may be named once.
    #[error("{0} appears twice")]
    Repeated(HostId),
    /// Traffic from a host to itself.
    #[error("{0} would send to itself")]
    ToItself(HostId),
    /// More hosts asked for than there are.
    #[error("{wanted} hosts requested, {available} available")]
    TooFewHosts {
        /// Number asked for.
        wanted: usize,
        /// Number there is.
        available: usize,
    },
    /// A fabric in which a host has no other to send to.
    #[error("this traffic needs at least 2 hosts, and the fabric has {0}")]
    NoOtherHost(usize),
    /// A list without hosts where at least one is needed.
    #[error("at least one host is needed")]
    NoHosts,
    /// A file of hosts outside programs.
    #[error("a file of hosts is for programs")]
    FileOfHosts,
    /// C nodes, or B nodes with p above 0, without hotspots.
    #[error("C nodes, and B nodes with p above 0, need at least one hotspot")]
    NoHotspots,
    /// A fraction below 0, above 1 or not a number.
    #[error("{0} is not between 0 and 1")]
    NotAFraction(f64),
    /// A percentage below 0, above 100 or not a number.
    #[error("{0} is not between 0 and 100 per cent")]
    NotAPercentage(f64),
    /// Roles of which some are fractions and some are lists.
    #[error("this is a fraction, but another role is a list of hosts")]
    MixedRoles,
    /// A key that another choice needs, not the one that was made.
    #[error("{choice} has no such parameter")]
    UnwantedKey {
        /// The choice.
        choice: &'static str,
        /// The key that it needs.
        wanted: Option<&'static str>,
    },
    /// A key that a choice needs.
    #[error("missing key")]
    MissingKey {
        /// The choice.
        choice: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A name that is no host's.
    #[error(transparent)]
    UnknownHost(#[from] UnknownHost),
    /// Fractions that sum to more than 1.
    #[error("the fractions v, c and b sum to {0}, more than 1")]
    FractionSum(f64),
    /// A size of zero bytes.
    #[error("zero bytes")]
    ZeroBytes,
    /// A size beyond what the packet format can hold.
    #[error("{0} is more than 4 GiB")]
    TooLarge(Bytes),
    /// A list that is gone through zero times.
    #[error("zero iterations send nothing")]
    ZeroIterations,
    /// A span of zero where time must pass.
    #[error("zero time")]
    ZeroSpan,
    /// A source that comes and goes has a load that does not saturate.
    #[error("only a source that saturates while it is on can come and go")]
    OnOffUnsaturated,
    /// A backlog of zero messages, with which a throttled destination could not be set aside.
    #[error("a backlog of at least one message is needed")]
    ZeroBacklog,
    /// An end at or before the start.
    #[error("the end ({end}) is not after the start ({start})")]
    EndBeforeStart {
        /// The start.
        start: Time,
        /// The end.
        end: Time,
    },
    /// A load of nothing.
    #[error("a load of zero offers nothing; leave the entry out")]
    ZeroLoad,
    /// A load above what a host can inject.
    #[error("{rate} is more than the injection rate of {host}, {injection}")]
    AboveInjection {
        /// The load.
        rate: Rate,
        /// The sender.
        host: HostId,
        /// Injection rate of the host.
        injection: Rate,
    },
    /// A permutation that the number of hosts does not allow.
    #[error("the bit complement needs a power of two of hosts, the fabric has {0}")]
    NotAPowerOfTwo(usize),
    /// A list of receivers whose length is not the number of hosts.
    #[error("{given} receivers for {hosts} hosts")]
    WrongLength {
        /// Length of the list.
        given: usize,
        /// Hosts of the fabric.
        hosts: usize,
    },
    /// Flows that saturate: their sizes make no load.
    #[error("flows have a load below saturation")]
    FlowsSaturate,
    /// Neither a load nor a number of flows on their way nor an interval.
    #[error("nothing says when flows start")]
    NoPace,
    /// More than one pace.
    #[error("another key says when flows start")]
    TwoPaces,
    /// A closed loop without a flow.
    #[error("zero flows on their way send nothing")]
    ZeroOutstanding,
    /// More flows on their way than fit in memory.
    #[error(
        "{outstanding} flows on their way at each of {hosts} hosts; at most {MOST_OUTSTANDING} together are supported"
    )]
    Outstanding {
        /// Flows of a sender.
        outstanding: u64,
        /// Senders.
        hosts: usize,
    },
    /// An entry without a flow.
    #[error("zero flows send nothing")]
    ZeroFlows,
    /// A transpose of a matrix that is not square.
    #[error("a transpose needs a square number of hosts, the fabric has {0}")]
    NotASquare(usize),
    /// Racks that do not divide the fabric.
    #[error("racks of {size} hosts do not divide {hosts} hosts into at least two racks")]
    RackSize {
        /// Hosts in a rack.
        size: u32,
        /// Hosts of the fabric.
        hosts: usize,
    },
    /// A range of sizes that is empty.
    #[error("the sizes end at {to}, not above {from}")]
    SizeRange {
        /// The smallest.
        from: Bytes,
        /// The largest.
        to: Bytes,
    },
    /// A flow that is too large.
    #[error("{0} is more than 1 TiB")]
    FlowTooLarge(Bytes),
    /// A Pareto distribution without an exponent.
    #[error("{0} is no exponent of a Pareto distribution")]
    ParetoShape(f64),
    /// Points that are no cumulative distribution.
    #[error("point {}: {}", .0.place + 1, .0.message)]
    Cdf(Box<CdfError>),
    /// A file that has not been read.
    #[error("the file {0:?} has not been read")]
    UnreadFile(String),
    /// A list of flows without a file.
    #[error("missing key")]
    NoFlowFile,
    /// A line of a list that is no flow.
    #[error("{file}line {line}: {0}", file = of_file(.1.as_deref()), line = .0.line)]
    FlowLine(Box<FlowLineError>, Option<String>),
    /// Two entries with the same name in the statistics.
    #[error("the name {0:?} is taken")]
    NameTaken(String),
    /// More classes than the statistics can distinguish.
    #[error("more than 65,536 traffic classes")]
    TooManyClasses,
}

fn of_file(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("{name}, "))
}

impl Reason {
    fn hint(&self) -> String {
        let hint = match self {
            Self::OutsideFabric { .. } => "name a host of the fabric",
            Self::Repeated(_) => "name each host once",
            Self::ToItself(_) => {
                "choose another receiver, or for a flow or a sequence set traffic.loopback to true"
            }
            Self::TooFewHosts { available, .. } => {
                return format!("ask for at most {available}, or enlarge the fabric");
            }
            Self::NoOtherHost(_) => "enlarge the fabric",
            Self::NoHosts => "name at least one host",
            Self::FileOfHosts => "list the names of hosts",
            Self::NoHotspots => "set traffic.nodes.hotspots, e.g. to 1",
            Self::NotAFraction(_) => "write e.g. 0.5 for one half",
            Self::NotAPercentage(_) => "write e.g. 60 for 60 %",
            Self::FractionSum(_) => "lower one of them; the rest of the hosts is idle",
            Self::MixedRoles => "give all roles in the same way",
            Self::UnwantedKey {
                choice,
                wanted: None,
            } => return format!("{choice} has no parameters"),
            Self::UnwantedKey {
                choice,
                wanted: Some(key),
            }
            | Self::MissingKey { choice, key } => return format!("{choice} needs {key}"),
            Self::UnknownHost(unknown) => return unknown.hint.clone(),
            Self::ZeroBytes => "write e.g. \"4 KiB\"",
            Self::TooLarge(_) => "write e.g. \"4 KiB\"; a flow's bytes may be more",
            Self::ZeroIterations => "write 1 or more, or \"unlimited\"",
            Self::ZeroSpan => "write e.g. \"1 ms\", or \"unlimited\" where that is allowed",
            Self::OnOffUnsaturated => "leave out the load or rate, or the times on and off",
            Self::ZeroBacklog => "write 1 or more",
            Self::EndBeforeStart { .. } => "choose a later end, or leave it out",
            Self::ZeroLoad => "write e.g. 0.5 to offer half the injection rate",
            Self::AboveInjection { .. } => {
                "lower it, or write \"saturating\" for as much as the host can inject"
            }
            Self::NotAPowerOfTwo(_) => "use the pattern \"random\" or \"shift\" instead",
            Self::WrongLength { hosts, .. } => {
                return format!("list {hosts} receivers, one for each host");
            }
            Self::FlowsSaturate => "write e.g. load = 0.5",
            Self::NoPace => "set load, e.g. to 0.5; or outstanding, e.g. to 4, for a closed loop",
            Self::TwoPaces => "use one of load, outstanding and interval",
            Self::ZeroOutstanding => "write 1 or more",
            Self::Outstanding { .. } => "write e.g. 4",
            Self::ZeroFlows => "write 1 or more, or \"unlimited\"",
            Self::NotASquare(_) => "use another pattern, or a fabric of n x n hosts",
            Self::RackSize { .. } => {
                "choose a divisor of the number of hosts, from 2 to half of it"
            }
            Self::SizeRange { .. } => "let `to` be larger than `from`",
            Self::FlowTooLarge(_) => "write e.g. \"1 MiB\"",
            Self::ParetoShape(_) => "write e.g. 1.2",
            Self::Cdf(error) => error.hint,
            Self::UnreadFile(_) => "give its contents in the scenario",
            Self::NoFlowFile => "name the file of the flows, or write its lines as list",
            Self::FlowLine(error, _) => error.hint,
            Self::NameTaken(_) => "choose another name, or leave it out",
            Self::TooManyClasses => "use fewer entries",
        };
        hint.to_owned()
    }
}

impl From<&TrafficError> for Refusal {
    fn from(error: &TrafficError) -> Self {
        let TrafficError {
            entry,
            key,
            index,
            reason,
        } = error;
        let at = match *key {
            "" => entry.key(),
            // The traffic checks the MTU, whose key is elsewhere.
            "mtu" => "packet.mtu".into(),
            key => entry.key().key(key),
        };
        let at = match index {
            Some(index) => at.index(*index),
            None => at,
        };
        Self::new(at, reason.to_string(), reason.hint())
    }
}

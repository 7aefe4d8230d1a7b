//! What can be wrong with a traffic description.

use std::fmt;

use silvan_core::{Bytes, HostId, Rate, Time};

/// A traffic description that cannot be built, with the place of the fault. Nothing is left behind.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{entry}, {key}: {reason}")]
pub struct TrafficError {
    /// The entry at fault.
    pub entry: Entry,
    /// The key at fault, as a scenario spells it.
    pub key: &'static str,
    /// What is wrong.
    pub reason: Reason,
}

/// An entry of the traffic description; prints as the table of the scenario that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Settings for all entries.
    Traffic,
    /// The V, C and B nodes.
    Nodes,
    /// A uniform entry, counted from 0.
    Uniform(usize),
    /// A permutation, counted from 0.
    Permutation(usize),
    /// An incast, counted from 0.
    Incast(usize),
    /// A flow, counted from 0.
    Flow(usize),
    /// A sequence, counted from 0.
    Sequence(usize),
}

/// Entries are counted from 1 in the text.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Traffic => write!(f, "traffic"),
            Self::Nodes => write!(f, "traffic.nodes"),
            Self::Uniform(index) => write!(f, "traffic.uniform {}", index + 1),
            Self::Permutation(index) => write!(f, "traffic.permutation {}", index + 1),
            Self::Incast(index) => write!(f, "traffic.incast {}", index + 1),
            Self::Flow(index) => write!(f, "traffic.flow {}", index + 1),
            Self::Sequence(index) => write!(f, "traffic.sequence {}", index + 1),
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
    #[error("{wanted} hosts wanted, {available} available")]
    TooFewHosts {
        /// Number asked for.
        wanted: usize,
        /// Number there is.
        available: usize,
    },
    /// A list without hosts where at least one is needed.
    #[error("at least one host is needed")]
    NoHosts,
    /// C nodes, or B nodes with p above 0, without hotspots.
    #[error("C nodes, and B nodes with p above 0, need at least one hotspot")]
    NoHotspots,
    /// A fraction below 0, above 1 or not a number.
    #[error("{0} is not between 0 and 1")]
    NotAFraction(f64),
    /// Fractions that do not sum to 1.
    #[error("the fractions sum to {0}, not to 1")]
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
        /// Its injection rate.
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
    /// Two entries with the same name in the statistics.
    #[error("the name {0:?} is taken")]
    NameTaken(String),
    /// More classes than the statistics can tell apart.
    #[error("more than 65,536 traffic classes")]
    TooManyClasses,
}

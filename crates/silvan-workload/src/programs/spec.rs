use std::sync::Arc;

use silvan_core::{HostId, Sl, Span, Time};

use crate::programs::op::Steps;
use crate::programs::schedule::Schedule;

/// The program of one rank.
#[derive(Debug)]
pub enum Script {
    /// A sequence of operations.
    Sequence(Box<dyn Steps>),
    /// Operations that wait for each other.
    Schedule(Arc<Schedule>),
    /// Operations that wait for each other, over and over. All wait for operation 0, after which each round is measured.
    Loop {
        /// The operations of a round.
        schedule: Arc<Schedule>,
        /// Number of rounds; `None` is without end.
        times: Option<u64>,
    },
    /// Requests of a [`Driver`](crate::programs::Driver) at run time.
    External,
}

/// Some ranks with a program, which only talk to each other.
#[derive(Debug)]
pub struct JobSpec {
    /// The name.
    pub name: String,
    /// Number of the traffic class that its packets are counted under.
    pub class: u16,
    /// Service level of its packets.
    pub sl: Sl,
    /// Start of the ranks.
    pub start: Time,
    /// True if the run may end before this job.
    pub background: bool,
    /// Host and program of every rank.
    pub ranks: Vec<(HostId, Script)>,
    /// Adapters of every rank, if each has several. The first one is its host.
    pub rails: Vec<Box<[HostId]>>,
    /// Ranks that are slower than their program, each at most once.
    pub stragglers: Vec<Straggler>,
    /// Names of what is measured.
    pub labels: Vec<String>,
    /// The last ranks, if they belong to no host's program.
    pub helpers: Helpers,
}

/// The last ranks of a job, which work in adapters or in switches. They are not counted among its ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Helpers {
    /// Number of these ranks.
    pub ranks: u32,
    /// Time from the arrival of a message at an aggregation node to its reduction or its copies; `None` in adapters.
    pub in_switches: Option<Span>,
}

/// A rank that starts later, or computes longer, than its program says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Straggler {
    /// Number of the rank in its job.
    pub rank: u32,
    /// Time from the job's start to the rank's.
    pub delay: Span,
    /// Factor of the length of each computation.
    pub compute_factor: f64,
}

use silvan_core::{HostId, PortId};

/// Why a tree grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Hosts send more to one host than its link carries.
    Incast,
    /// Flows to several hosts need more than a cable between switches carries.
    Overload,
    /// The link of the root is slower than its ports support.
    DegradedLink,
    /// The receiver takes less than its link carries.
    SlowReceiver,
    /// The link replays bad packets, and has less time for others.
    BadCable,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Incast,
        Self::Overload,
        Self::DegradedLink,
        Self::SlowReceiver,
        Self::BadCable,
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incast => "incast",
            Self::Overload => "overload",
            Self::DegradedLink => "degraded link",
            Self::SlowReceiver => "slow receiver",
            Self::BadCable => "bad cable",
        }
    }
}

/// Confidence in a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Something that it is based on is missing.
    Low,
    /// Counters and forwarding tables agree; flows are estimated.
    Medium,
    /// In addition, notifications name the senders.
    High,
}

/// A host that contributes to a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Contributor {
    /// The host.
    pub host: HostId,
    /// Rate through the root, estimated, in bit/s.
    pub bits_per_s: f64,
    /// Part of the time for which its port waits.
    pub wait: Option<f64>,
    /// Notifications that it has received per second.
    pub becn_per_s: Option<f64>,
    /// The host that most of it goes to.
    pub destination: HostId,
}

/// A host that a tree slows down.
#[derive(Clone, Debug, PartialEq)]
pub struct Victim {
    /// The host.
    pub host: HostId,
    /// Rate through branches and past the root, estimated, in bit/s.
    pub bits_per_s: f64,
    /// Part of the time for which its port waits.
    pub wait: Option<f64>,
    /// The branch that it shares with the contributors.
    pub branch: PortId,
}

/// A port that waits because of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Branch {
    /// The port.
    pub port: PortId,
    /// Ports from here to the root.
    pub depth: u32,
    /// The port that it waits for.
    pub parent: PortId,
}

/// A congestion tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The port where congestion starts.
    pub root: PortId,
    /// Why.
    pub cause: Cause,
    /// Confidence in the cause.
    pub confidence: Confidence,
    /// Ports that wait because of it, nearest first; those of hosts, too.
    pub branches: Vec<Branch>,
    /// Number of hosts that send through the root, including small senders.
    pub senders: usize,
    /// Hosts that send through the root, the largest first.
    pub contributors: Vec<Contributor>,
    /// Hosts that are slowed down, the largest first.
    pub victims: Vec<Victim>,
}

/// All trees of a subnet, the largest first.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The trees.
    pub trees: Vec<Tree>,
    /// True if notifications of congestion control were used.
    pub used_marks: bool,
    /// True if only flows through busy ports were estimated.
    pub is_partial: bool,
    /// Blocked ports that no tree explains.
    pub unexplained: Vec<PortId>,
    /// Pairs of hosts without a path in the tables.
    pub unroutable: usize,
}

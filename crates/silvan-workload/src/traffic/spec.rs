//! The plain description of the traffic, as a scenario gives it.
//!
//! Nothing here is checked; [`Traffic::new`](crate::traffic::Traffic::new) does that. Field names are
//! the kebab-case keys that errors name.

use silvan_core::{Bytes, HostId, Rate, Sl, Span, Time};

/// What the traffic must know of the fabric and of the run.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Payload rate at which each host can inject, by [`HostId`]: the smaller of its injection
    /// rate and of what its link leaves after headers. Shares and load fractions refer to it.
    pub injection: Vec<Rate>,
    /// Largest payload of a packet.
    pub mtu: Bytes,
    /// Seed of the run; every stream of random numbers derives from it.
    pub seed: u64,
}

/// All traffic of a scenario. Entries add up: a host may be part of several.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficSpec {
    /// Size of a message; `None` is two packets of MTU size (gran2012, section IV).
    pub message: Option<Bytes>,
    /// Maximum messages queued per throttled flow; beyond it the host picks another destination.
    pub backlog: u16,
    /// Whether messages are sent in the order in which a host makes them, each as a whole; else each
    /// destination has a queue of its own.
    pub fifo: bool,
    /// Whether a host may send to itself: destinations are drawn from all hosts, and a flow may end where
    /// it starts.
    pub loopback: bool,
    /// V, C and B nodes.
    pub nodes: Option<NodesSpec>,
    /// Uniformly distributed destinations.
    pub uniform: Vec<UniformSpec>,
    /// One fixed destination per host, all different.
    pub permutation: Vec<PermutationSpec>,
    /// Many senders to one receiver.
    pub incast: Vec<IncastSpec>,
    /// Single flows.
    pub flow: Vec<FlowSpec>,
    /// Hosts that send to a list of hosts in turn, one message at a time.
    pub sequence: Vec<SequenceSpec>,
}

impl TrafficSpec {
    /// Messages that a throttled queue pair holds back by default.
    pub const DEFAULT_BACKLOG: u16 = 64;
}

impl Default for TrafficSpec {
    /// No traffic, with default message size and backlog.
    fn default() -> Self {
        Self {
            message: None,
            backlog: Self::DEFAULT_BACKLOG,
            fifo: false,
            loopback: false,
            nodes: None,
            uniform: Vec::new(),
            permutation: Vec::new(),
            incast: Vec::new(),
            flow: Vec::new(),
            sequence: Vec::new(),
        }
    }
}

/// V nodes send to random hosts (victims), C nodes only to a hotspot (contributors), B nodes p % of the
/// time to a hotspot, otherwise to random hosts (gran2012, sections III to V and Frame I).
///
/// All of them always have something to send, as fast as their injection rate allows.
#[derive(Clone, Debug, PartialEq)]
pub struct NodesSpec {
    /// Who is what.
    pub roles: Roles,
    /// Share of a B node's traffic that goes to its hotspot, 0 to 1.
    pub p: f64,
    /// The hotspots, one for each subset of the C and of the B nodes.
    pub hotspots: Hotspots,
    /// Time after which all hotspots move to new random hosts; `None`: they stay.
    pub hotspot_lifetime: Option<Span>,
    /// How much a class of a B node may make up for when it was held back.
    pub catch_up: CatchUp,
    /// How far a class of a B node may run ahead of its share of time, measured in time at the
    /// whole injection rate; `None` is eight messages. It must leave room for chance: with
    /// none, the two classes would alternate in lockstep on all hosts.
    pub run_ahead: Option<Span>,
    /// Seed of the placement of roles and hotspots; `None` is the seed of the run.
    pub placement_seed: Option<u64>,
    /// Size of a message, instead of [`TrafficSpec::message`].
    pub message: Option<Bytes>,
    /// Service level.
    pub sl: Sl,
}

/// Which hosts are V, C and B nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Roles {
    /// Fractions of all hosts, placed at random; they and `idle` must sum to 1. Counts are rounded
    /// by largest remainder (see [`crate::traffic::Traffic::role`]).
    Fractions {
        /// Share of V nodes.
        v: f64,
        /// Share of C nodes.
        c: f64,
        /// Share of B nodes.
        b: f64,
        /// Share of hosts that send nothing.
        idle: f64,
    },
    /// The hosts by name; all others send nothing.
    Lists {
        /// The V nodes.
        v: Vec<HostId>,
        /// The C nodes.
        c: Vec<HostId>,
        /// The B nodes.
        b: Vec<HostId>,
    },
}

/// Where the hotspots are at the start.
#[derive(Clone, Debug, PartialEq)]
pub enum Hotspots {
    /// This many different hosts, drawn at random.
    Random(u32),
    /// These hosts. If the hotspots move, the following ones are drawn at random.
    Given(Vec<HostId>),
}

/// How much a class of a B node may send later of what it could not send in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchUp {
    /// All of it: the cap is the class's share of all time since the start, as Frame I of gran2012
    /// literally reads.
    Unlimited,
    /// At most what its share of this span amounts to; older claims expire.
    Within(Span),
}

/// How much a source offers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// As much as the host can inject: the source always has a message ready.
    Saturating,
    /// A fraction of the host's injection rate, above 0 and at most 1; 1 is the same as
    /// [`Load::Saturating`].
    Fraction(f64),
    /// A payload rate, at most the host's injection rate.
    Rate(Rate),
}

/// How the messages of a source that does not saturate follow each other. Messages that cannot
/// leave in time queue up without limit and follow as soon as they can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Exponential gaps: a Poisson process.
    #[default]
    Poisson,
    /// Equal gaps. Where many hosts share an entry, each gets a random phase.
    Periodic,
}

/// When an entry makes messages. Those made before the end are sent to their last byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first instant.
    pub start: Time,
    /// No message is made at or after this instant; `None`: no end.
    pub end: Option<Time>,
}

/// Mean times for which a source is on and off, both exponentially distributed. Each time on is a new
/// flow to congestion control; a message that was begun is sent to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOffSpec {
    /// Mean time on.
    pub on: Span,
    /// Mean time off.
    pub off: Span,
}

/// A choice of hosts.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// Every host (in an incast, every host but the receiver).
    All,
    /// These hosts.
    Given(Vec<HostId>),
    /// This many different hosts, drawn at random (in an incast, never the receiver).
    Random(u32),
}

/// Messages to destinations drawn uniformly from all other hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformSpec {
    /// Name in the statistics; `None`: `uniform-1`, `uniform-2`, ...
    pub name: Option<String>,
    /// The senders.
    pub from: Selection,
    /// Offered load of each sender.
    pub load: Load,
    /// Gaps between messages.
    pub spacing: Spacing,
    /// When.
    pub window: Window,
    /// Size of a message, instead of [`TrafficSpec::message`].
    pub message: Option<Bytes>,
    /// Service level.
    pub sl: Sl,
}

/// Who sends to whom in a permutation.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A random derangement: a permutation in which no host sends to itself.
    Random,
    /// Host h sends to host (h + k) modulo the number of hosts.
    Shift(u32),
    /// Host h sends to the host whose number has every bit of h inverted; the number of hosts must
    /// be a power of two.
    BitComplement,
    /// The receiver of each host, by [`HostId`]; each host appears once and never at its own place.
    Given(Vec<HostId>),
}

/// Every host sends to one other host, every host receives from one other host.
#[derive(Clone, Debug, PartialEq)]
pub struct PermutationSpec {
    /// Name in the statistics; `None`: `permutation-1`, ...
    pub name: Option<String>,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// Offered load of each host.
    pub load: Load,
    /// Gaps between messages.
    pub spacing: Spacing,
    /// When.
    pub window: Window,
    /// Size of a message, instead of [`TrafficSpec::message`].
    pub message: Option<Bytes>,
    /// Service level.
    pub sl: Sl,
}

/// Many hosts send to one.
#[derive(Clone, Debug, PartialEq)]
pub struct IncastSpec {
    /// Name in the statistics; `None`: `incast-1`, ...
    pub name: Option<String>,
    /// The senders.
    pub from: Selection,
    /// The receiver.
    pub to: HostId,
    /// Bytes that each sender sends; `None`: until the end.
    pub bytes: Option<Bytes>,
    /// Offered load of each sender.
    pub load: Load,
    /// Gaps between messages.
    pub spacing: Spacing,
    /// When.
    pub window: Window,
    /// When within that it is on, if not all the time; only a saturating load can come and go.
    pub on_off: Option<OnOffSpec>,
    /// Size of a message, instead of [`TrafficSpec::message`].
    pub message: Option<Bytes>,
    /// Service level.
    pub sl: Sl,
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Name in the statistics; `None`: `flow-1`, ...
    pub name: Option<String>,
    /// The sender.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
    /// Bytes to send; `None`: until the end. The last message is shorter if they are not a
    /// multiple of the message size.
    pub bytes: Option<Bytes>,
    /// Offered load. Its messages have equal gaps, the first one starts with the flow.
    pub load: Load,
    /// When.
    pub window: Window,
    /// When within that it is on, if not all the time; only a saturating load can come and go.
    pub on_off: Option<OnOffSpec>,
    /// Size of a message, instead of [`TrafficSpec::message`].
    pub message: Option<Bytes>,
    /// Service level.
    pub sl: Sl,
}

/// A host that sends one message to each host of a list in turn. Each message starts when the one
/// before has been delivered completely (a closed loop).
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceSpec {
    /// Name in the statistics; `None`: `sequence-1`, ...
    pub name: Option<String>,
    /// The sender.
    pub from: HostId,
    /// The receivers, in the order of their messages. A host may stand in the list more than once.
    pub to: Vec<HostId>,
    /// How often the sender goes through the list; `None`: until the end.
    pub iterations: Option<u64>,
    /// Time from the delivery of a message to the start of the next one.
    pub pause: Span,
    /// When.
    pub window: Window,
    /// Size of a message, instead of [`TrafficSpec::message`].
    pub message: Option<Bytes>,
    /// Service level.
    pub sl: Sl,
}

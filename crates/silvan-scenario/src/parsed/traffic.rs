//! Who sends what to whom, when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Sl, Span};

use super::{
    GpcnetSection, HostChoice, Hotspots, HpccSection, Limit, LoadValue, MessagingSection,
    ProgramEntry, RoleShare, SeedSource,
};
use crate::schema;

/// Who sends what to whom. Entries add up: a host may be part of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrafficSection {
    /// Size of a message. Default: two packets of MTU size (gran2012, section IV).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Maximum messages queued per throttled flow; beyond it the host picks another destination.
    pub backlog: u16,
    /// Whether hosts may send to themselves: random destinations are drawn from all hosts, and a flow may
    /// end where it starts. Such messages take the sender's injection rate, but do not enter the fabric.
    pub loopback: bool,
    /// V nodes send to random hosts (victims), C nodes only to a hotspot (contributors), B nodes p % of
    /// the time to a hotspot, otherwise to random hosts (gran2012, sections III to V).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodesSection>,
    /// Destinations drawn uniformly from all other hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uniform: Vec<UniformEntry>,
    /// Every host sends to one other, every host receives from one other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permutation: Vec<PermutationEntry>,
    /// Many hosts send to one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incast: Vec<IncastEntry>,
    /// Single flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<FlowEntry>,
    /// Hosts that send to a list of hosts in turn, each message when the last one was delivered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<SequenceEntry>,
    /// Message-passing programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<ProgramEntry>,
    /// The benchmark GPCNeT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpcnet: Option<GpcnetSection>,
    /// The communication of the benchmark HPCC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpcc: Option<HpccSection>,
    /// How messages of programs become packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messaging: Option<MessagingSection>,
}

impl Default for TrafficSection {
    fn default() -> Self {
        Self {
            message: None,
            backlog: silvan_workload::traffic::TrafficSpec::DEFAULT_BACKLOG,
            loopback: false,
            nodes: None,
            uniform: Vec::new(),
            permutation: Vec::new(),
            incast: Vec::new(),
            flow: Vec::new(),
            sequence: Vec::new(),
            program: Vec::new(),
            gpcnet: None,
            hpcc: None,
            messaging: None,
        }
    }
}

/// V, C and B nodes and their hotspots; all of them always have something to send. A V node sends
/// to destinations drawn uniformly, a C node to its hotspot, a B node both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct NodesSection {
    /// The V nodes: a fraction of all hosts, or a list of names. The three roles are given in the
    /// same way; hosts without a role send nothing.
    pub v: RoleShare,
    /// The C nodes.
    pub c: RoleShare,
    /// The B nodes.
    pub b: RoleShare,
    /// Share of time that a B node gives to its hotspot, in per cent, 0 to 100.
    #[schemars(extend("x-unit" = "%"))]
    pub p: f64,
    /// The hotspots: their number, or a list of names. The C nodes and the B nodes are divided
    /// evenly among them.
    pub hotspots: Hotspots,
    /// Time after which all hotspots move to new random hosts.
    #[schemars(with = "Limit<schema::SpanText>")]
    pub hotspot_lifetime: Limit<Span>,
    /// A blocked B node may later exceed its share to catch up on at most this much missed time.
    /// Unlimited is Frame I of gran2012 to the letter.
    #[schemars(with = "Limit<schema::SpanText>")]
    pub catch_up: Limit<Span>,
    /// How far a class of a B node may run ahead of its share, as time at the whole injection
    /// rate. Default: eight messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub run_ahead: Option<Span>,
    /// Seed of the placement of roles and hotspots: a number, or that of the run.
    pub placement_seed: SeedSource,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

impl Default for NodesSection {
    fn default() -> Self {
        Self {
            v: RoleShare::default(),
            c: RoleShare::default(),
            b: RoleShare::default(),
            p: 0.0,
            hotspots: Hotspots::default(),
            hotspot_lifetime: Limit::Unlimited,
            catch_up: Limit::Unlimited,
            run_ahead: None,
            placement_seed: SeedSource::default(),
            message: None,
            sl: Sl::ZERO,
        }
    }
}

/// How the messages of a source that does not saturate follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpacingKind {
    /// Exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps, with a random phase for each host.
    Periodic,
}

/// Messages to destinations drawn uniformly from all other hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UniformEntry {
    /// Name in the statistics. Default: `uniform-1`, `uniform-2`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The senders.
    pub from: HostChoice,
    /// Offered load of each sender.
    pub load: LoadValue,
    /// Gaps between messages, if the load does not saturate.
    pub spacing: SpacingKind,
    /// Time of the first message.
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no message starts.
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

impl Default for UniformEntry {
    fn default() -> Self {
        Self {
            name: None,
            from: HostChoice::All,
            load: LoadValue::default(),
            spacing: SpacingKind::default(),
            start: Span::ZERO,
            end: Limit::Unlimited,
            message: None,
            sl: Sl::ZERO,
        }
    }
}

/// Who sends to whom in a permutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatternKind {
    /// A random permutation in which no host sends to itself.
    #[default]
    Random,
    /// Host h sends to host h + `shift`, modulo the number of hosts.
    Shift,
    /// Host h sends to the host whose number has every bit of h inverted; the number of hosts must
    /// be a power of two.
    BitComplement,
    /// The receivers stand in `to`.
    Given,
}

/// Every host sends to one other host, every host receives from one other host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PermutationEntry {
    /// Name in the statistics. Default: `permutation-1`, `permutation-2`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who sends to whom.
    pub pattern: PatternKind,
    /// Distance between sender and receiver; for the pattern `shift` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<u32>,
    /// Receiver of each host, in the order of the hosts; for the pattern `given` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// Offered load of each host.
    pub load: LoadValue,
    /// Gaps between messages, if the load does not saturate.
    pub spacing: SpacingKind,
    /// Time of the first message.
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no message starts.
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

impl Default for PermutationEntry {
    fn default() -> Self {
        Self {
            name: None,
            pattern: PatternKind::default(),
            shift: None,
            to: None,
            load: LoadValue::default(),
            spacing: SpacingKind::default(),
            start: Span::ZERO,
            end: Limit::Unlimited,
            message: None,
            sl: Sl::ZERO,
        }
    }
}

/// Mean times for which a source comes and goes; both are exponentially distributed. Each time on is a
/// new flow to congestion control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OnOffSection {
    /// Mean time on.
    #[schemars(with = "schema::SpanText")]
    pub on: Span,
    /// Mean time off.
    #[schemars(with = "schema::SpanText")]
    pub off: Span,
}

/// Many hosts send to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IncastEntry {
    /// Name in the statistics. Default: `incast-1`, `incast-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The receiver.
    pub to: String,
    /// The senders; `"all"` leaves out the receiver.
    #[serde(default)]
    pub from: HostChoice,
    /// Bytes that each sender sends.
    #[serde(default)]
    #[schemars(with = "Limit<schema::BytesText>")]
    pub bytes: Limit<Bytes>,
    /// Offered load of each sender.
    #[serde(default)]
    pub load: LoadValue,
    /// Gaps between messages, if the load does not saturate.
    #[serde(default)]
    pub spacing: SpacingKind,
    /// Time of the first message.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no message starts.
    #[serde(default)]
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Mean times on and off: `{ on = "1 ms", off = "1 ms" }`. Always on unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOffSection>,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[serde(default = "zero_sl")]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlowEntry {
    /// Name in the statistics. Default: `flow-1`, `flow-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Bytes to send; the last message is shorter if they are no multiple of the message size.
    #[serde(default)]
    #[schemars(with = "Limit<schema::BytesText>")]
    pub bytes: Limit<Bytes>,
    /// Offered load; its messages have equal gaps.
    #[serde(default)]
    pub load: LoadValue,
    /// Time of the first message.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no message starts.
    #[serde(default)]
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Mean times on and off: `{ on = "1 ms", off = "1 ms" }`. Always on unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOffSection>,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[serde(default = "zero_sl")]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

/// A host that sends one message to each host of a list in turn, in a closed loop: a message starts when
/// the one before has been delivered completely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SequenceEntry {
    /// Name in the statistics. Default: `sequence-1`, `sequence-2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The sender.
    pub from: String,
    /// The receivers, in the order of their messages; a host may be listed more than once.
    pub to: Vec<String>,
    /// How often the sender goes through the list.
    #[serde(default = "one_iteration")]
    pub iterations: Limit<u64>,
    /// Time from the delivery of a message to the start of the next one: the delay of the acknowledgement
    /// and the overhead of the sender.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub pause: Span,
    /// Time of the first message.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub start: Span,
    /// Time from which on no message starts.
    #[serde(default)]
    #[schemars(with = "Limit<schema::SpanText>")]
    pub end: Limit<Span>,
    /// Size of a message, if it is not that of the section `traffic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub message: Option<Bytes>,
    /// Service level.
    #[serde(default = "zero_sl")]
    #[schemars(with = "schema::SlNumber")]
    pub sl: Sl,
}

fn one_iteration() -> Limit<u64> {
    Limit::At(1)
}

pub(super) fn zero_sl() -> Sl {
    Sl::ZERO
}

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use silvan_core::advice::Advised;
use silvan_core::{Bytes, Span};
use silvan_model::{FastForward, LatencyStats};

use crate::schema;

/// Measurements of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ProbeSection {
    /// Time between samples of the time series. It must divide both the warm-up and the duration of the run. The time
    /// series and congestion trees of a run may take 4 GiB. Default: the longest that divides both and gives 100 to
    /// 1,000 samples, else 100 intervals that differ. By default a run that ends with its programs starts with short
    /// intervals and merges pairs of them, so that it has at least 50 samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub interval: Option<Span>,
    /// True to sample the counters of every port, too.
    pub ports: bool,
    /// True to sample the deliveries of every traffic class, too; each flow is a class.
    pub classes: bool,
    /// True to sample the limits that congestion control sets to flows, too (CCTI or rate), in the table `flow_limits`:
    /// up to 10 million rows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub flow_limits: bool,
    /// Granularity of latency histograms.
    pub latency: LatencyStats,
    /// True to record single messages of programs and steps of their ranks, in the tables `program_messages` and
    /// `program_steps`: up to 10 million of each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub messages: bool,
    /// True to simulate each finished program once more, alone in the empty fabric and without congestion control,
    /// which gives its slowdown.
    pub slowdown: bool,
    /// Search for congestion trees; without this table there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trees: Option<TreesSection>,
    /// Packets to record hop by hop, in the table `packet_hops`; without this table none are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketsSection>,
}

impl Default for ProbeSection {
    fn default() -> Self {
        Self {
            interval: None,
            ports: false,
            classes: false,
            flow_limits: false,
            messages: false,
            latency: LatencyStats::default(),
            slowdown: true,
            trees: None,
            packets: None,
        }
    }
}

/// Search for congestion trees.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TreesSection {
    /// Time between two samples; the first comes after one interval. Default: a hundredth of the
    /// duration.
    #[schemars(with = "Option<schema::SpanText>")]
    pub interval: Option<Span>,
    /// Bytes on the wire that must wait for an output Port VL for it to be the root of a tree.
    /// Default: half an input buffer of a switch.
    #[schemars(with = "Option<schema::BytesText>")]
    pub threshold: Option<Bytes>,
    /// Most packets that samples read per packet-hop of the run. A sample is omitted if the last one read more than
    /// 4,096 packets, and more than that part of the packet-hops since. The last sample before the end of
    /// `run.duration` is always taken. Default: no limit, every sample is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_per_hop: Option<f64>,
}

/// Packets to record hop by hop: up to 10 million hops. The run is slower.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PacketsSection {
    /// Ports whose packets are recorded when they leave it: `"SWITCH:NUMBER"`, or the name of a host.
    pub ports: Vec<String>,
    /// Flows whose packets are recorded at each port on their way.
    pub flows: Vec<FlowEnds>,
}

/// All packets from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlowEnds {
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
}

/// Duration and seed of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RunSection {
    /// Time at the start that the totals leave out; shorter than the duration.
    #[schemars(with = "schema::SpanText")]
    pub warm_up: Span,
    /// Simulated time from start to end, warm-up included; not zero.
    #[schemars(with = "schema::SpanText")]
    pub duration: Span,
    /// Seed of all random choices; the same seed gives the same results.
    pub seed: u64,
    /// Threads that simulate the run, or `"auto"` to choose by the size of the fabric, the rate of its links and the
    /// idle processors. Results do not depend on it. One thread is used with `ugal-g`, `host.in-order` if packets may
    /// overtake each other, a single switch, delays below 16.4 ns, recorded packets, or the scheme `python`. Several
    /// runs at once also use one thread each, except for the last few. At most one run per processor is in progress.
    #[serde(skip_serializing_if = "Threads::is_one")]
    pub threads: Threads,
    /// Leaps over repeating states, such as long messages of programs. They are exact to the picosecond; results do not
    /// depend on them. A run leaps on one thread, by lookahead windows, with credits, and without congestion control or
    /// with `ib-cc`, if its traffic is programs alone. `"on"` reports why a run does not leap.
    #[serde(skip_serializing_if = "FastForward::is_auto")]
    pub fast_forward: FastForward,
}

impl Default for RunSection {
    fn default() -> Self {
        Self {
            warm_up: Span::ZERO,
            duration: Span::from_ms(10),
            seed: 1,
            threads: Threads::default(),
            fast_forward: FastForward::default(),
        }
    }
}

/// Number of threads that simulate a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Threads {
    /// A fixed number.
    Count(NonZeroU16),
    /// A number that suits the run and the machine.
    Auto(Auto),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    Auto,
}

impl Threads {
    /// A number that suits the run and the machine.
    pub const AUTO: Self = Self::Auto(Auto::Auto);

    fn is_one(&self) -> bool {
        *self == Self::default()
    }
}

struct ThreadsVisitor;

impl Visitor<'_> for ThreadsVisitor {
    type Value = Threads;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = "a number of threads, 1 to 65535, or \"auto\"";
        let hint = "write 1, or \"auto\" to choose by fabric and idle processors";
        Advised { message, hint }.fmt(f)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Threads, E> {
        let count = u16::try_from(number).ok().and_then(NonZeroU16::new);
        count
            .map(Threads::Count)
            .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Threads, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Threads, E> {
        match text {
            "auto" => Ok(Threads::AUTO),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ThreadsVisitor)
    }
}

impl JsonSchema for Threads {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "threads".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 65535 }, { "const": "auto" }],
            schema::TYPE_KEY: "whole number or `\"auto\"`",
        })
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::Count(NonZeroU16::MIN)
    }
}

/// Values to vary; every combination is a run of its own, at most 100,000 in all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SweepSection {
    /// Number of seeds per combination, counted up from that of the run; 0 is the same as 1.
    pub seeds: u32,
    /// Lists of values by key path in quotes: `"traffic.nodes.p" = [0, 10, 20]`.
    pub vary: BTreeMap<String, Vec<AxisValue>>,
}

impl SweepSection {
    /// Returns true if no key varies.
    pub fn is_empty(&self) -> bool {
        self.seeds == 0 && self.vary.is_empty()
    }
}

/// A value that a key takes in a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected true or false, a number, text or a list of these (vary the keys of a \
                 section one by one)"
)]
pub enum AxisValue {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text: a name, or a quantity with its unit.
    Text(String),
    /// A list of such values.
    List(Vec<AxisValue>),
}

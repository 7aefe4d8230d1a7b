//! Congestion control.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Sl, Span};

use super::quantity::ALL;
use super::{
    DcmsSection, EcnSection, Limit, PftSection, PortOverride, PythonSection, Scheme,
    SettingChangeEntry,
};
use crate::schema;

/// Congestion control.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ControlSection {
    /// The scheme.
    pub scheme: Scheme,
    /// Detection and marking at the switches.
    pub switch: SwitchControlSection,
    /// Reaction of the channel adapters.
    pub adapter: AdapterSection,
    /// The scheme `ecn`.
    pub ecn: EcnSection,
    /// The scheme `pft`.
    pub pft: PftSection,
    /// Schemes of one file each, by name.
    pub own: silvan_cc::schemes::Parameters,
    /// The scheme `python`; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<PythonSection>,
    /// How notifications travel from the receiver back to the sender.
    pub feedback: FeedbackSection,
    /// A manager that watches port counters and changes Marking_Rate (mizero2017); none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dcms: Option<DcmsSection>,
    /// Ports with settings of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortOverride>,
    /// Settings that change during the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<SettingChangeEntry>,
}

/// How Marking_Rate chooses the packets that stay unmarked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Marking {
    /// Exactly that many between two marked ones, counted per Port VL.
    #[default]
    Counter,
    /// At random, with that mean.
    Random,
}

/// Some switch ports: `"none"`, `"hosts"` (those that lead to a host), `"all"`, or a list of
/// `"switch:port"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortSet {
    /// No port.
    None,
    /// The ports that lead to a host.
    Hosts,
    /// All ports of all switches.
    All,
    /// These ports.
    Names(Vec<String>),
}

impl PortSet {
    pub(crate) const NONE: &'static str = "none";
    pub(crate) const HOSTS: &'static str = "hosts";
}

impl Serialize for PortSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str(Self::NONE),
            Self::Hosts => serializer.serialize_str(Self::HOSTS),
            Self::All => serializer.serialize_str(ALL),
            Self::Names(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PortSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::value::SeqAccessDeserializer;
        use serde::de::{Error, SeqAccess, Unexpected, Visitor};

        struct SetVisitor;

        impl<'de> Visitor<'de> for SetVisitor {
            type Value = PortSet;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "\"none\", \"hosts\", \"all\" or a list of \"switch:port\" \
                     (write e.g. \"hosts\" or [\"leaf-03:19\"])",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PortSet, E> {
                match text {
                    PortSet::NONE => Ok(PortSet::None),
                    PortSet::HOSTS => Ok(PortSet::Hosts),
                    ALL => Ok(PortSet::All),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<PortSet, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(PortSet::Names)
            }
        }

        deserializer.deserialize_any(SetVisitor)
    }
}

/// Detection and marking at the switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwitchControlSection {
    /// Threshold weight, 0 (never marks) to 15 (marks earliest).
    #[schemars(range(max = 15))]
    pub threshold: u8,
    /// Bytes queued for a Port VL that weight 15 stands for; the weights between are evenly spaced.
    /// Default: three packets of MTU size with their headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub threshold_lowest: Option<Bytes>,
    /// Bytes queued for a Port VL that weight 1 stands for. Default: the input buffer of a port, or
    /// `threshold-lowest` if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub threshold_highest: Option<Bytes>,
    /// Bytes queued for a Port VL that the weights 1 to 15 stand for, instead of evenly spaced ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<schema::BytesText>>")]
    pub threshold_table: Option<Vec<Bytes>>,
    /// Smallest packet that is marked; 0 marks all.
    #[schemars(extend("x-unit" = "64 B"))]
    pub packet_size: u8,
    /// Mean number of packets left unmarked between two marked ones.
    #[schemars(extend("x-unit" = "packets"))]
    pub marking_rate: u16,
    /// How the packets that stay unmarked are chosen.
    pub marking: Marking,
    /// Ports that enter the congestion state even without credits (Victim_Mask).
    pub victim_mask: PortSet,
    /// Ports that starve their neighbour of credits (Credit_Mask): when a packet leaves an input
    /// buffer that is as full as `credit-threshold` says, its credits go back late by
    /// `credit-return-delay`. This is the model's reading of a setting that public sources only
    /// name. Full is what the neighbour has no credits for, so that one that sends all it can gets
    /// a buffer's worth of credits per round trip with the delay in it.
    pub credit_mask: PortSet,
    /// How full the input buffer of a Port VL must be (CS_Threshold): a weight, 0 (never) to 15
    /// (soonest), that stands for as many bytes as the same `threshold`.
    #[schemars(range(max = 15))]
    pub credit_threshold: u8,
    /// How much later credits go back (CS_ReturnDelay), relative to the packet's time on the link;
    /// rounded to the nearest entry that a Congestion Control Table could have.
    #[schemars(extend("x-unit" = "packet times"))]
    pub credit_return_delay: f64,
}

impl Default for SwitchControlSection {
    fn default() -> Self {
        Self {
            threshold: 15,
            threshold_lowest: None,
            threshold_highest: None,
            threshold_table: None,
            packet_size: 0,
            marking_rate: 0,
            marking: Marking::default(),
            victim_mask: PortSet::Hosts,
            credit_mask: PortSet::None,
            credit_threshold: 15,
            credit_return_delay: 0.0,
        }
    }
}

/// What CC throttles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Each queue pair: a source, a destination and a service level.
    #[default]
    Qp,
    /// Each service level of a host.
    Sl,
}

/// Shape of the Congestion Control Table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CctShape {
    /// Entry i delays by `slope` times i packet times.
    Linear,
    /// Entry 1 delays by `first` packet times, each further one by `ratio` times the one before.
    Geometric,
    /// The entries stand in `entries`.
    Given,
}

/// The Congestion Control Table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CctSection {
    /// Shape of the table.
    pub shape: CctShape,
    /// Delay that each step of the index adds (`linear`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packet times"))]
    pub slope: Option<f64>,
    /// Delay of entry 1 (`geometric`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packet times"))]
    pub first: Option<f64>,
    /// Delay of an entry over that of the one before (`geometric`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// All entries from index 0 on as pairs `[shift, multiplier]`: shift 0 to 3, multiplier 0 to
    /// 16383, the delay being multiplier / 2^shift packet times (`given`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<(u8, u16)>>,
}

impl Default for CctSection {
    fn default() -> Self {
        Self {
            shape: CctShape::Linear,
            slope: Some(1.0),
            first: None,
            ratio: None,
            entries: None,
        }
    }
}

/// Reaction of the channel adapters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AdapterSection {
    /// Steps that the index into the table (CCTI) goes up at each BECN.
    pub ccti_increase: u8,
    /// Largest index.
    pub ccti_limit: u16,
    /// Smallest index; one above 0 delays every packet.
    pub ccti_min: u8,
    /// Time between two steps down; 0 stops the timer.
    #[schemars(extend("x-unit" = "1.024 us"))]
    pub ccti_timer: u16,
    /// Index from which on the adapter logs a congestion event; 0 logs nothing.
    pub trigger_threshold: u8,
    /// What is throttled.
    pub level: Level,
    /// The table of delays: `{ shape = "linear", slope = 0.95 }`.
    pub cct: CctSection,
}

impl Default for AdapterSection {
    fn default() -> Self {
        Self {
            ccti_increase: 1,
            ccti_limit: 127,
            ccti_min: 0,
            ccti_timer: 150,
            trigger_threshold: 0,
            level: Level::default(),
            cct: CctSection::default(),
        }
    }
}

/// What carries a notification (BECN) back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// A congestion notification packet for each marked packet.
    #[default]
    Cnp,
    /// The acknowledgement of each packet.
    AckPerPacket,
    /// The acknowledgement of each message.
    AckPerMessage,
}

/// Which way a notification goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackPath {
    /// Past the fabric: it arrives a constant time after delivery.
    #[default]
    OutOfBand,
    /// As a packet of its own through the fabric.
    InBand,
}

/// How notifications travel from the receiver back to the sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FeedbackSection {
    /// What carries a notification. Default: `cnp`; with the scheme `ecn` `ack-per-packet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier: Option<Carrier>,
    /// Which way it goes.
    pub path: FeedbackPath,
    /// Time from delivery to arrival at the source (`out-of-band`).
    #[schemars(with = "schema::SpanText")]
    pub delay: Span,
    /// Service level of the notification (`in-band`). Default: that of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SlNumber>")]
    pub sl: Option<Sl>,
    /// Size of the notification on the wire (`in-band`).
    #[schemars(with = "schema::BytesText")]
    pub bytes: Bytes,
    /// Whether the notification leaves the host before any waiting data packet (`in-band`).
    pub priority: bool,
    /// A flow gets at most one notification in this time. Default: `"unlimited"`; with the scheme
    /// `dcqcn` 50 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Limit<schema::SpanText>>")]
    pub coalesce: Option<Limit<Span>>,
    /// Bytes that each CNP takes of `host.injection-rate` at the host that sends it, and of
    /// `host.sink-rate` at the host that receives it, at most 4 KiB; 0 for none. Acknowledgements
    /// take nothing.
    #[schemars(with = "schema::BytesText")]
    pub charge: Bytes,
}

impl Default for FeedbackSection {
    fn default() -> Self {
        Self {
            carrier: None,
            path: FeedbackPath::default(),
            delay: Span::from_us(2),
            sl: None,
            // LRH, BTH, 16 bytes of payload, ICRC, VCRC (IBA annex A10, CNP format).
            bytes: Bytes::from_bytes(42),
            priority: true,
            coalesce: None,
            charge: Bytes::from_bytes(64),
        }
    }
}

//! The parameters of InfiniBand's congestion control, as a scenario has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, schema};

use super::overrides::{PortOverride, SettingChangeEntry};
use super::ports::PortSet;
use super::settings::{ControlLevel, MarkingMode};

/// InfiniBand congestion control (IBA annex A10).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct IbCc {
    /// Detection and marking at the switches.
    pub switch: SwitchSection,
    /// Reaction of the channel adapters.
    pub adapter: AdapterSection,
    /// Ports with settings of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortOverride>,
    /// Settings that change during the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<SettingChangeEntry>,
}

/// Detection and marking at the switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwitchSection {
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
    pub marking: MarkingMode,
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

impl Default for SwitchSection {
    fn default() -> Self {
        Self {
            threshold: 15,
            threshold_lowest: None,
            threshold_highest: None,
            threshold_table: None,
            packet_size: 0,
            marking_rate: 0,
            marking: MarkingMode::default(),
            victim_mask: PortSet::Hosts,
            credit_mask: PortSet::None,
            credit_threshold: 15,
            credit_return_delay: 0.0,
        }
    }
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
    pub level: ControlLevel,
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
            level: ControlLevel::default(),
            cct: CctSection::default(),
        }
    }
}

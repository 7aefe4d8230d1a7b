//! Settings of single ports, and settings that change during the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Sl, Span, schema};

/// Settings of one port, or of all ports of one switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortOverride {
    /// Name of the switch.
    pub switch: String,
    /// Number of the port. Default: all ports of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// Threshold weight, 0 to 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 15))]
    pub threshold: Option<u8>,
    /// Smallest packet that is marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "64 B"))]
    pub packet_size: Option<u8>,
    /// Mean number of packets left unmarked between two marked ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub marking_rate: Option<u16>,
    /// Whether the port enters the congestion state even without credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victim_mask: Option<bool>,
    /// Whether the port starves its neighbour of credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_mask: Option<bool>,
    /// Weight that says how full an input buffer must be for that, 0 to 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 15))]
    pub credit_threshold: Option<u8>,
    /// How much later credits go back then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packet times"))]
    pub credit_return_delay: Option<f64>,
}

/// Settings that change at an instant of the run: those of a switch, or those of all adapters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SettingChangeEntry {
    /// When.
    #[schemars(with = "schema::SpanText")]
    pub at: Span,
    /// Name of the switch, for settings of its ports. Default: all switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Number of the port. Default: all ports of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// Threshold weight, 0 to 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 15))]
    pub threshold: Option<u8>,
    /// Smallest packet that is marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "64 B"))]
    pub packet_size: Option<u8>,
    /// Mean number of packets left unmarked between two marked ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub marking_rate: Option<u16>,
    /// Whether the port enters the congestion state even without credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victim_mask: Option<bool>,
    /// Whether the port starves its neighbour of credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_mask: Option<bool>,
    /// Weight that says how full an input buffer must be for that, 0 to 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 15))]
    pub credit_threshold: Option<u8>,
    /// How much later credits go back then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packet times"))]
    pub credit_return_delay: Option<f64>,
    /// Service level of the adapters' settings. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SlNumber>")]
    pub sl: Option<Sl>,
    /// Time between two steps down of the index, at all adapters; 0 stops the timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "1.024 us"))]
    pub ccti_timer: Option<u16>,
    /// Steps that the index goes up at each BECN, at all adapters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ccti_increase: Option<u8>,
}

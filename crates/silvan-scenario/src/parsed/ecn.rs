//! The scheme `ecn`: marks by full input buffers, rates and windows at the sources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which packets a switch marks when an input buffer becomes full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMarking {
    /// Those in the full buffer.
    Naive,
    /// All in the switch that wait for an output that the full buffer has a packet for.
    ProposedScan,
    /// As many as wait for such an output, the next ones that it sends.
    #[default]
    ProposedCounters,
}

/// How a source's rate answers acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnResponse {
    /// It stays as it is; only the window limits.
    Fixed,
    /// Additive increase, multiplicative decrease.
    Aimd,
    /// Fast increase, multiplicative decrease.
    Fimd,
    /// Linear inter-packet delay.
    #[default]
    Lipd,
    /// As the tables say.
    Given,
}

/// Which rates there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnRates {
    /// Any.
    #[default]
    Continuous,
    /// That of the link over 1 + ipd, with an inter-packet delay ipd of 0 to 255 packet times.
    Discrete,
}

/// Explicit congestion notification with rate control and a window limit (santos2003).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EcnSection {
    /// Which packets are marked.
    pub marking: EcnMarking,
    /// How rates answer marks.
    pub response: EcnResponse,
    /// What a mark divides the rate by (`aimd`, `fimd`), above 1.
    pub decrease_factor: f64,
    /// Which rates there are; tables are always discrete.
    pub rates: EcnRates,
    /// Smallest rate of a flow as a fraction of its link's. With discrete rates it is 1/256.
    pub min_rate: f64,
    /// First rate of a flow as a fraction of its link's.
    pub initial_rate: f64,
    /// Whether a flow starts with the rate that the last one between its two hosts left, instead of
    /// the first.
    pub persistent: bool,
    /// Most packets of a flow that are under way at once.
    #[schemars(extend("x-unit" = "packets"))]
    pub window: u16,
    /// Largest window. If it is more than `window`, the window is adjusted together with the rate: it
    /// opens at full rate, and marks halve it before they lower the rate. Default: `window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub window_max: Option<u16>,
    /// For each inter-packet delay the packets acknowledged without a mark until the next step up, and
    /// the delay after it: 256 pairs (`given`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increase_table: Option<Vec<(u16, u8)>>,
    /// For each inter-packet delay that after a mark: 256 entries (`given`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decrease_table: Option<Vec<u8>>,
}

impl Default for EcnSection {
    fn default() -> Self {
        Self {
            marking: EcnMarking::default(),
            response: EcnResponse::default(),
            decrease_factor: 2.0,
            rates: EcnRates::default(),
            min_rate: silvan_cc::schemes::ecn::MIN_RATE,
            initial_rate: 1.0,
            persistent: true,
            window: 1,
            window_max: None,
            increase_table: None,
            decrease_table: None,
        }
    }
}

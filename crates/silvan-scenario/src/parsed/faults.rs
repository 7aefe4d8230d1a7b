use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Rate, Span};
use silvan_fabric::{Speed, Width};

use crate::schema;

/// Kind of a fault, which determines its other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The cable in `port` is cut.
    Cut,
    /// The cable in `port` carries no more than `width`, `speed` and `rate`. A link runs at its full width or on one lane.
    Degrade,
    /// SymbolErrorCounter of `port` grows by `per-second`, in the live fabric alone. No packet is lost.
    SymbolErrors,
    /// `port` receives bits that are wrong: at `bit-error-rate` on their own, and in bursts at `burst-bit-error-rate`.
    BitErrors,
    /// `host` receives payload at `rate` at most, for packets that leave its switch from then on.
    Slow,
    /// `switch` is off.
    Reboot,
    /// `percent` of all management datagrams are lost, in the live fabric alone.
    Lose,
}

impl FaultKind {
    /// Returns the name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Degrade => "degrade",
            Self::SymbolErrors => "symbol-errors",
            Self::BitErrors => "bit-errors",
            Self::Slow => "slow",
            Self::Reboot => "reboot",
            Self::Lose => "lose",
        }
    }
}

/// A fault of a cable, a host or a switch: from the start, or for a time, once or again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FaultEntry {
    /// Kind of the fault.
    #[serde(rename = "do")]
    pub kind: FaultKind,
    /// Simulated time at which it begins.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub at: Span,
    /// Duration. Default: without end.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub lasts: Option<Span>,
    /// Time from one beginning to the next, longer than `for`. Default: it comes once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub every: Option<Span>,
    /// Port with the cable: `"NODE:NUMBER"`, or the name of a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Name of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Name of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Most lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
    /// Highest speed of a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Highest rate: of the data of a degraded cable, or of the payload that a slow host receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub rate: Option<Rate>,
    /// Symbol errors in a simulated second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// Probability that a bit is wrong outside bursts, 0 to 0.001. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_error_rate: Option<f64>,
    /// Probability that a bit is wrong in a burst, 0 to 0.001. Default: no bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_bit_error_rate: Option<f64>,
    /// Mean duration of a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub burst_length: Option<Span>,
    /// Mean time from the end of a burst to the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub burst_spacing: Option<Span>,
    /// True if the link replays bad packets; false if `port` discards them. Default: true for cables of FDR and faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmission: Option<bool>,
    /// Time from the end of a bad packet to its replay. Default: twice the propagation and `switch.credit-delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub replay_latency: Option<Span>,
    /// Time that the link takes to come up after a cut, a reboot or too many bit errors. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub retraining: Option<Span>,
    /// Share of management datagrams, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Seed of the choice of datagrams. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::document::Limit;
use silvan_core::{Span, schema};

use super::{CongestionTimeReads, DcmsParameters};

/// The Dynamic Congestion Management System (mizero2017, section 3). Its thresholds are in the
/// counters' own units and hold for one `interval`. The Marking_Rate that it restores is
/// `control.ib-cc.switch.marking-rate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DcmsSection {
    /// Time from one sweep of the counters to the next.
    #[schemars(with = "schema::SpanText")]
    pub interval: Span,
    /// Time between sweeps while a congestion event is in progress. Default: `interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub busy_interval: Option<Span>,
    /// A tick of PortXmitWait and PortXmitTimeCong.
    #[schemars(with = "schema::SpanText")]
    pub tick: Span,
    /// Growth of PortXmitTimeCong above which a port is congested (T_C).
    #[schemars(extend("x-unit" = "ticks per interval"))]
    pub congestion_threshold: u64,
    /// Growth of PortXmitWait above which the rate of a port is reduced (T_W).
    #[schemars(extend("x-unit" = "ticks per interval"))]
    pub rate_reduction_threshold: u64,
    /// Fall of PortXmitData's growth from one sweep to the next by which a victim's flows are known
    /// to be gone (T_D).
    #[schemars(extend("x-unit" = "4-byte words per interval"))]
    pub utilization_change_threshold: u64,
    /// Longest time for which a Marking_Rate is kept low (T_I).
    #[schemars(with = "schema::SpanText")]
    pub low_duration: Span,
    /// The low Marking_Rate.
    #[schemars(extend("x-unit" = "packets"))]
    pub low_marking_rate: u16,
    /// Sweeps between two readings of PortXmitTimeCong at all ports; 1 reads all ports at every
    /// sweep. Other sweeps read ports that were congested before.
    #[schemars(range(min = 1))]
    pub rescan: u32,
    /// Most switches with a lowered Marking_Rate at once.
    pub max_low_switches: Limit<u32>,
}

impl Default for DcmsSection {
    fn default() -> Self {
        let paper = DcmsParameters::mizero2017();
        Self {
            interval: paper.interval,
            busy_interval: None,
            tick: paper.tick,
            congestion_threshold: paper.congestion_threshold,
            rate_reduction_threshold: paper.rate_reduction_threshold,
            utilization_change_threshold: paper.utilization_change_threshold,
            low_duration: paper.low_duration,
            low_marking_rate: paper.low_marking_rate,
            rescan: 1,
            max_low_switches: Limit::Unlimited,
        }
    }
}

impl DcmsSection {
    /// Returns the parameters of the state machine, with the Marking_Rate that it restores.
    pub fn parameters(&self, default_marking_rate: u16) -> DcmsParameters {
        DcmsParameters {
            interval: self.interval,
            busy_interval: self.busy_interval,
            tick: self.tick,
            congestion_threshold: self.congestion_threshold,
            rate_reduction_threshold: self.rate_reduction_threshold,
            utilization_change_threshold: self.utilization_change_threshold,
            low_duration: self.low_duration,
            low_marking_rate: self.low_marking_rate,
            default_marking_rate,
            congestion_time: match self.rescan {
                1 => CongestionTimeReads::Everywhere,
                rescan => CongestionTimeReads::WhereSeen { rescan },
            },
            max_low_switches: self.max_low_switches.value(),
        }
    }
}

use silvan_core::Span;
use thiserror::Error;

/// Ports whose PortXmitTimeCong is read (mizero2017, section 3.2: "historical information on ports that experience
/// congestion").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionTimeReads {
    /// All switch ports, at every sweep.
    Everywhere,
    /// Ports that were congested before; all ports at every `rescan`-th sweep, starting with the first.
    WhereSeen {
        /// Sweeps from one check of all ports to the next.
        rescan: u32,
    },
}

/// Thresholds and settings for one nominal inter-sweep interval (tau); other spans are compared as rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DcmsParameters {
    /// Nominal inter-sweep interval, for which the thresholds hold.
    pub interval: Span,
    /// Inter-sweep interval while a congestion event is in progress; `None` for the nominal one.
    pub busy_interval: Option<Span>,
    /// Duration of one tick of PortXmitWait and PortXmitTimeCong.
    pub tick: Span,
    /// T_C: a port whose congestion time grows by more ticks than this is congested.
    pub congestion_threshold: u64,
    /// T_W: a port that waits for credits for more ticks than this has its rate reduced.
    pub rate_reduction_threshold: u64,
    /// T_D: a victim whose PortXmitData (4-byte words) falls by this much between sweeps carries victim flows no more.
    pub utilization_change_threshold: u64,
    /// T_I: longest time for which a Marking_Rate is kept low.
    pub low_duration: Span,
    /// The low Marking_Rate.
    pub low_marking_rate: u16,
    /// The default Marking_Rate.
    pub default_marking_rate: u16,
    /// Ports whose PortXmitTimeCong is read.
    pub congestion_time: CongestionTimeReads,
    /// Most switches with a lowered Marking_Rate at once; `None` for no limit.
    pub max_low_switches: Option<u32>,
}

impl DcmsParameters {
    /// mizero2017's Experiment II (section 4.3) with the longer limit: T_W 27.4 million, T_C 8 million.
    ///
    /// Its interval, unprinted, is one second by figure 5(b), and T_D 10 % of a 4x QDR link.
    pub const fn mizero2017() -> Self {
        Self {
            interval: Span::from_secs(1),
            busy_interval: None,
            tick: Span::from_ns(22),
            congestion_threshold: 8_000_000,
            rate_reduction_threshold: 27_400_000,
            utilization_change_threshold: 100_000_000,
            low_duration: Span::from_secs(12),
            low_marking_rate: 0,
            default_marking_rate: 128,
            congestion_time: CongestionTimeReads::Everywhere,
            max_low_switches: None,
        }
    }

    /// Checks that the parameters can be used. Errors: [`DcmsError`] for the first that cannot.
    pub fn validate(&self) -> Result<(), DcmsError> {
        for (parameter, span) in [
            ("interval", self.interval),
            ("busy interval", self.busy_interval.unwrap_or(self.interval)),
            ("tick", self.tick),
            ("low-rate duration", self.low_duration),
        ] {
            if span.is_zero() {
                return Err(DcmsError::Zero(parameter));
            }
        }
        if self.low_marking_rate >= self.default_marking_rate {
            return Err(DcmsError::LowNotBelowDefault {
                low: self.low_marking_rate,
                default: self.default_marking_rate,
            });
        }
        let most = self.interval.as_ps() / self.tick.as_ps();
        for (parameter, threshold) in [
            ("T_C", self.congestion_threshold),
            ("T_W", self.rate_reduction_threshold),
        ] {
            if threshold == 0 {
                return Err(DcmsError::AlwaysReached { parameter });
            }
            if threshold >= most {
                return Err(DcmsError::NeverReached {
                    parameter,
                    threshold,
                    most,
                });
            }
        }
        if self.congestion_time == (CongestionTimeReads::WhereSeen { rescan: 0 }) {
            return Err(DcmsError::Zero(
                "number of sweeps between checks of all ports",
            ));
        }
        if self.max_low_switches == Some(0) {
            return Err(DcmsError::Zero("number of switches that may be lowered"));
        }
        Ok(())
    }
}

/// A parameter of the DCMS that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DcmsError {
    /// Something is zero that must not be.
    #[error("the {0} is zero")]
    Zero(&'static str),
    /// Lowering would not lower.
    #[error("the low Marking_Rate is {low}, it must be below the default, which is {default}")]
    LowNotBelowDefault {
        /// The low rate.
        low: u16,
        /// The default rate.
        default: u16,
    },
    /// Every port would be congested, or a victim.
    #[error("{parameter} is 0 ticks, which every port that carries traffic exceeds")]
    AlwaysReached {
        /// The threshold's name in the paper.
        parameter: &'static str,
    },
    /// A counter of time cannot grow faster than time.
    #[error("{parameter} is {threshold} ticks, but an interval has only {most}")]
    NeverReached {
        /// The threshold's name in the paper.
        parameter: &'static str,
        /// The given threshold, in ticks.
        threshold: u64,
        /// Ticks of an interval.
        most: u64,
    },
}

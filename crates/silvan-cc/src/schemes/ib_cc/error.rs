use thiserror::Error;

/// A parameter that cannot be used. Nothing has been changed when one is returned.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A number outside the range of its field.
    #[error("{parameter} is {value}, it must be {min} to {max}")]
    OutOfRange {
        /// The field's name in the InfiniBand specification.
        parameter: &'static str,
        /// The given value.
        value: u64,
        /// The smallest legal value.
        min: u64,
        /// The largest legal value.
        max: u64,
    },
    /// CCTI_Limit points behind the last entry of the table.
    #[error("CCTI_Limit is {limit}, but the congestion control table has {entries} entries")]
    LimitBeyondTable {
        /// CCTI_Limit.
        limit: u16,
        /// Entries in the table.
        entries: usize,
    },
    /// CCTI_Min lies above CCTI_Limit.
    #[error("CCTI_Min is {min}, it must not be above CCTI_Limit, which is {limit}")]
    MinAboveLimit {
        /// CCTI_Min.
        min: u8,
        /// CCTI_Limit.
        limit: u16,
    },
    /// Entry 0 delays packets, but a flow at CCTI 0 experiences no delay (gran2012, section II.2).
    #[error(
        "entry 0 of the congestion control table must be 0, it delays by {packet_times} packet times"
    )]
    FirstEntryDelays {
        /// The delay of entry 0, in packet times.
        packet_times: f64,
    },
    /// A delay that no table entry can express.
    #[error(
        "entry {index} of the congestion control table is {packet_times} packet times, it must be 0 to 16383"
    )]
    DelayNotRepresentable {
        /// Index of the entry.
        index: usize,
        /// The delay asked for, in packet times.
        packet_times: f64,
    },
    /// A higher threshold weight must not mean more bytes than a lower one.
    #[error("threshold weight {weight} is {bytes} bytes, more than weight {}", weight - 1)]
    ThresholdsIncrease {
        /// The weight that breaks the order.
        weight: u8,
        /// Bytes of the threshold.
        bytes: u32,
    },
    /// A threshold of no bytes would put idle ports in the congestion state.
    #[error("threshold weight {weight} is 0 bytes, write at least 1")]
    ThresholdZero {
        /// The weight.
        weight: u8,
    },
    /// A Port VL would never leave the congestion state.
    #[error(
        "a hysteresis of {hysteresis} bytes is not less than the threshold at weight 15, {lowest} bytes"
    )]
    HysteresisTooLarge {
        /// Bytes of the hysteresis.
        hysteresis: u32,
        /// Bytes of the lowest threshold.
        lowest: u32,
    },
    /// The port is not a switch port.
    #[error("{port} is not a port of a switch")]
    NotASwitchPort {
        /// The port.
        port: silvan_core::PortId,
    },
    /// The switch is not in the fabric.
    #[error("there is no {switch}")]
    NoSuchSwitch {
        /// The switch.
        switch: silvan_core::SwitchId,
    },
    /// The host is not in the fabric.
    #[error("there is no {host}")]
    NoSuchHost {
        /// The host.
        host: silvan_core::HostId,
    },
}

impl ParameterError {
    /// Returns the hint.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::OutOfRange {
                parameter: "Threshold",
                ..
            } => "15 marks earliest, 0 never",
            Self::OutOfRange { min, max, .. } => {
                return format!("write a whole number from {min} to {max}");
            }
            Self::LimitBeyondTable { entries, .. } => {
                let largest = entries.saturating_sub(1);
                return format!(
                    "set control.ib-cc.adapter.ccti-limit to {largest} at most, or add entries"
                );
            }
            Self::MinAboveLimit { .. } => "0 is usual",
            Self::FirstEntryDelays { .. } => "start the list with [0, 0]",
            Self::DelayNotRepresentable { .. } => {
                "lower the slope, the ratio or control.ib-cc.adapter.ccti-limit, and keep them positive"
            }
            Self::ThresholdsIncrease { .. } => {
                "a higher weight marks earlier: sizes fall from weight 1 to 15"
            }
            Self::ThresholdZero { .. } => "write e.g. \"6 KiB\"",
            Self::HysteresisTooLarge { .. } => {
                "lower control.ib-cc.switch.threshold-hysteresis, or raise threshold-lowest"
            }
            _ => "name a port of a switch",
        };
        hint.to_owned()
    }
}

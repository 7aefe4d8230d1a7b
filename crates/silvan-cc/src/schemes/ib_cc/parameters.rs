use silvan_core::Sl;

use super::adapter::{AdapterParameters, IbAdapter};
use super::cct::CongestionControlTable;
use super::error::ParameterError;
use super::list::{CongestionEntry, MarkingSetting, StarvationSetting};
use super::settings::{ControlLevel, MarkingMode, PortSelection};
use super::switch::{IbSwitch, SwitchParameters};
use super::threshold::{ThresholdMap, ThresholdWeight};
use crate::schemes::SwitchPort;

/// The parameters of InfiniBand congestion control in a fabric.
///
/// ```
/// use silvan_cc::schemes::ib_cc::{IbParameters, ThresholdMap};
///
/// // What gran2012 does not print: the table's values and what a threshold means in bytes.
/// let threshold_map = ThresholdMap::Linear { lowest_bytes: 6_222, highest_bytes: 65_536 };
/// let mut parameters = IbParameters::gran2012(0.95, threshold_map)?;
/// assert_eq!(parameters.adapter.entries[0].ccti_timer, 150);
///
/// parameters.switch.marking.marking_rate = 8;
/// let adapters = parameters.build_adapter(648, 1)?;
/// # Ok::<(), silvan_cc::schemes::ib_cc::ParameterError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IbParameters {
    /// Parameters of the switches.
    pub switch: SwitchParameters,
    /// Parameters of the channel adapters.
    pub adapter: AdapterParameters,
}

impl IbParameters {
    /// Table I of gran2012, Victim_Mask at ports to hosts (footnote 2), QP level (section II.2). Unprinted: a table of
    /// `cct_slope` packet times per step, and thresholds in bytes.
    pub fn gran2012(cct_slope: f64, threshold_map: ThresholdMap) -> Result<Self, ParameterError> {
        Self::uniform(
            MarkingSetting {
                threshold: ThresholdWeight::MAX,
                ..MarkingSetting::default()
            },
            CongestionEntry {
                ccti_timer: 150,
                ccti_increase: 1,
                ..CongestionEntry::default()
            },
            CongestionControlTable::linear(cct_slope, 127)?,
            threshold_map,
        )
    }

    /// gran2010 (slide "Parameter Values"), a testbed of few hosts; else [`gran2012`](Self::gran2012), with its errors.
    pub fn gran2010(cct_slope: f64, threshold_map: ThresholdMap) -> Result<Self, ParameterError> {
        let mut parameters = Self::gran2012(cct_slope, threshold_map)?;
        parameters.switch.marking.marking_rate = 1;
        parameters.switch.marking.packet_size = 8;
        Ok(parameters)
    }

    /// mizero2017, section 4.3: Threshold 15, CCTI_Increase 1, CCTI_Timer 75, Marking_Rate 128.
    ///
    /// Section 4.2 prints CCTI_Limit 0, under which no flow is throttled; here 127. Unprinted: Packet_Size and
    /// CCTI_Min, here 0; else as [`gran2012`](Self::gran2012).
    pub fn mizero2017(cct_slope: f64, threshold_map: ThresholdMap) -> Result<Self, ParameterError> {
        let mut parameters = Self::gran2012(cct_slope, threshold_map)?;
        parameters.switch.marking.marking_rate = 128;
        for entry in &mut parameters.adapter.entries {
            entry.ccti_timer = 75;
        }
        Ok(parameters)
    }

    fn uniform(
        marking: MarkingSetting,
        entry: CongestionEntry,
        table: CongestionControlTable,
        threshold_map: ThresholdMap,
    ) -> Result<Self, ParameterError> {
        let parameters = Self {
            switch: SwitchParameters {
                marking,
                starvation: StarvationSetting::default(),
                victim_ports: PortSelection::ToHosts,
                credit_ports: PortSelection::None,
                threshold_map,
                hysteresis_bytes: 0,
                marking_mode: MarkingMode::Counter,
            },
            adapter: AdapterParameters {
                entries: [entry; Sl::COUNT],
                level: ControlLevel::QueuePair,
                table,
            },
        };
        parameters.validate()?;
        Ok(parameters)
    }

    /// Errors as [`SwitchParameters::validate`] and [`AdapterParameters::validate`].
    pub fn validate(&self) -> Result<(), ParameterError> {
        self.switch.validate()?;
        self.adapter.validate()
    }

    /// The switches' part for a fabric; see [`IbSwitch::new`]. Errors as [`IbSwitch::new`].
    pub fn build_switch(
        &self,
        ports: &[Option<SwitchPort>],
        data_vls: u8,
        seed: u64,
    ) -> Result<IbSwitch, ParameterError> {
        IbSwitch::new(&self.switch, ports, data_vls, seed)
    }

    /// The adapters' part for a fabric; see [`IbAdapter::new`]. Errors as [`IbAdapter::new`].
    pub fn build_adapter(&self, hosts: usize, seed: u64) -> Result<IbAdapter, ParameterError> {
        IbAdapter::new(&self.adapter, hosts, seed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use super::*;

    const MAP: ThresholdMap = ThresholdMap::Linear {
        lowest_bytes: 6_222,
        highest_bytes: 65_536,
    };

    /// Oracle: the numbers as the papers print them (gran2012 Table I; gran2010, "Parameter
    /// Values"; mizero2017, sections 4.2 and 4.3).
    #[test]
    fn printed_values() {
        let table = [
            // Threshold, Marking_Rate, Packet_Size, Increase, Limit, Min, Timer
            (
                IbParameters::gran2012(0.95, MAP),
                [15, 0, 0, 1, 127, 0, 150],
            ),
            (
                IbParameters::gran2010(0.95, MAP),
                [15, 1, 8, 1, 127, 0, 150],
            ),
            (
                IbParameters::mizero2017(0.95, MAP),
                [15, 128, 0, 1, 127, 0, 75],
            ),
        ];
        for (parameters, printed) in table {
            let IbParameters { switch, adapter } = parameters.unwrap();
            for entry in adapter.entries {
                let values = [
                    u16::from(switch.marking.threshold.as_u8()),
                    switch.marking.marking_rate,
                    u16::from(switch.marking.packet_size),
                    u16::from(entry.ccti_increase),
                    adapter.table.limit(),
                    u16::from(entry.ccti_min),
                    entry.ccti_timer,
                ];
                assert_eq!(values, printed);
            }
            assert_eq!(switch.victim_ports, PortSelection::ToHosts);
            assert_eq!(adapter.level, ControlLevel::QueuePair);
        }
    }

    #[test]
    fn errors_name_the_parameter() {
        let mut parameters = IbParameters::gran2012(0.95, MAP).unwrap();
        parameters.adapter.entries[3].ccti_min = 128;
        assert_eq!(
            parameters.validate().unwrap_err().to_string(),
            "CCTI_Min is 128, it must not be above CCTI_Limit, which is 127"
        );
        assert!(parameters.build_adapter(4, 0).is_err());

        parameters.adapter.entries[3].ccti_min = 127;
        parameters.validate().unwrap();
        parameters.switch.threshold_map = ThresholdMap::Table([0; 15]);
        assert_eq!(
            parameters.validate().unwrap_err().to_string(),
            "threshold weight 1 is 0 bytes, write at least 1"
        );
        assert!(parameters.build_switch(&[], 1, 0).is_err());
    }
}

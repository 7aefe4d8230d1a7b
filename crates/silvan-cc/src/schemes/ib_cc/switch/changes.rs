//! Changes of single settings while packets move.

use silvan_core::{PortId, Time};

use super::IbSwitch;
use crate::hooks::{SettingChange, Settings, UnknownSetting};
use crate::schemes::ib_cc::cct::CctEntry;
use crate::schemes::ib_cc::error::ParameterError;
use crate::schemes::ib_cc::settings::{
    MarkingSetting, PortMask, StarvationSetting, SwitchCongestionSetting,
};
use crate::schemes::ib_cc::threshold::ThresholdWeight;

impl IbSwitch {
    fn change_marking(
        &mut self,
        port: PortId,
        change: impl FnOnce(&mut MarkingSetting),
    ) -> Result<(), ParameterError> {
        let effective = self
            .effective(port)
            .ok_or(ParameterError::NotASwitchPort { port })?;
        let mut marking = effective.marking;
        change(&mut marking);
        self.set_port_marking(port, Some(marking))
    }

    fn change_starvation(
        &mut self,
        port: PortId,
        change: impl FnOnce(&mut StarvationSetting),
    ) -> Result<(), ParameterError> {
        let effective = self
            .effective(port)
            .ok_or(ParameterError::NotASwitchPort { port })?;
        let mut starvation = effective.starvation;
        change(&mut starvation);
        self.set_port_starvation(port, Some(starvation))
    }

    fn change_mask(
        &mut self,
        port: PortId,
        set: bool,
        mask: impl FnOnce(&mut SwitchCongestionSetting) -> &mut PortMask,
    ) -> Result<(), ParameterError> {
        let at = self.port_mut(port)?.at;
        mask(&mut self.switches[at.switch.index()]).set(at.number, set);
        self.refresh(port.index());
        Ok(())
    }
}

/// Numbers become settings of the port's own; Victim_Mask and Credit_Mask are bits of its switch's.
impl Settings for IbSwitch {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        match *change {
            SettingChange::PortMarkingRate { port, marking_rate } => {
                self.change_marking(port, |marking| marking.marking_rate = marking_rate)
            }
            SettingChange::PortThreshold { port, threshold } => ThresholdWeight::try_new(threshold)
                .and_then(|threshold| {
                    self.change_marking(port, |marking| marking.threshold = threshold)
                }),
            SettingChange::PortPacketSize { port, packet_size } => {
                self.change_marking(port, |marking| marking.packet_size = packet_size)
            }
            SettingChange::PortVictimMask { port, set } => {
                self.change_mask(port, set, |switch| &mut switch.victim_mask)
            }
            SettingChange::PortCreditMask { port, set } => {
                self.change_mask(port, set, |switch| &mut switch.credit_mask)
            }
            SettingChange::PortCreditThreshold { port, threshold } => {
                ThresholdWeight::try_new(threshold).and_then(|threshold| {
                    self.change_starvation(port, |starvation| starvation.threshold = threshold)
                })
            }
            SettingChange::PortCreditReturnDelay { port, return_delay } => {
                let return_delay = CctEntry::from_raw(return_delay);
                self.change_starvation(port, |starvation| starvation.return_delay = return_delay)
            }
            SettingChange::CctiTimer { .. } | SettingChange::CctiIncrease { .. } => {
                return Err(UnknownSetting(change.clone()));
            }
        }
        .map_err(|_| UnknownSetting(change.clone()))
    }
}

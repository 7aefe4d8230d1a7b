use silvan_core::{PortId, Time};

use super::IbSwitch;
use crate::hooks::{SettingChange, Settings, UnknownSetting};
use crate::schemes::ib_cc::error::ParameterError;
use crate::schemes::ib_cc::list::{PortGroup, PortSetting};

impl IbSwitch {
    fn set_port(&mut self, port: PortId, setting: PortSetting) -> Result<(), ParameterError> {
        let effective = self.effective(port);
        let mut wanted = effective.ok_or(ParameterError::NotASwitchPort { port })?;
        wanted.set(setting);
        match setting.group() {
            PortGroup::Marking => self.set_port_marking(port, Some(wanted.marking)),
            PortGroup::Starvation => self.set_port_starvation(port, Some(wanted.starvation)),
            PortGroup::Masks => {
                let at = self.port_mut(port)?.at;
                let switch = &mut self.switches[at.switch.index()];
                switch.victim_mask.set(at.number, wanted.victim);
                switch.credit_mask.set(at.number, wanted.credit);
                self.refresh(port.index());
                Ok(())
            }
        }
    }
}

impl Settings for IbSwitch {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        let outcome = match *change {
            SettingChange::Port { port, setting } => self.set_port(port, setting).ok(),
            SettingChange::Adapter { .. } => None,
        };
        outcome.ok_or_else(|| UnknownSetting(change.clone()))
    }
}

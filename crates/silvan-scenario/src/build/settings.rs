//! Settings of single ports, and settings that change during the run.

use silvan_cc::hooks::SettingChange;
use silvan_cc::schemes::ib_cc::CctEntry;
use silvan_core::{PortId, PortNumber, Sl, SwitchId, Time};
use silvan_fabric::Fabric;

use super::control::{return_delay, weight};
use super::{at, switch_named};
use crate::parsed::{ControlSection, PortSet, SettingChangeEntry};
use crate::{KeyPath, ScenarioError};

/// The settings of single ports that hold from the start.
pub(super) fn initial_changes(
    section: &ControlSection,
    fabric: &Fabric,
) -> Result<Vec<SettingChange>, ScenarioError> {
    let mut changes = Vec::new();
    for port in listed_ports(fabric, &section.switch.victim_mask, "victim-mask")? {
        changes.push(SettingChange::PortVictimMask { port, set: true });
    }
    for port in listed_ports(fabric, &section.switch.credit_mask, "credit-mask")? {
        changes.push(SettingChange::PortCreditMask { port, set: true });
    }
    for (index, entry) in section.port.iter().enumerate() {
        let key = at("control.port").index(index);
        let ports = ports_of(fabric, &entry.switch, entry.port, &key)?;
        let settings = PortSettings {
            threshold: entry.threshold,
            packet_size: entry.packet_size,
            marking_rate: entry.marking_rate,
            victim_mask: entry.victim_mask,
            credit_mask: entry.credit_mask,
            credit_threshold: entry.credit_threshold,
            credit_return_delay: entry.credit_return_delay,
        };
        if settings == PortSettings::default() {
            return Err(nothing_set(key, PORT_KEYS));
        }
        settings.changes(&ports, &key, &mut changes)?;
    }
    Ok(changes)
}

/// The changes during the run, by time.
pub(super) fn timed_changes(
    section: &ControlSection,
    fabric: &Fabric,
) -> Result<Vec<(Time, SettingChange)>, ScenarioError> {
    let mut timed = Vec::new();
    for (index, entry) in section.change.iter().enumerate() {
        let key = at("control.change").index(index);
        let mut changes = Vec::new();
        let settings = PortSettings {
            threshold: entry.threshold,
            packet_size: entry.packet_size,
            marking_rate: entry.marking_rate,
            victim_mask: entry.victim_mask,
            credit_mask: entry.credit_mask,
            credit_threshold: entry.credit_threshold,
            credit_return_delay: entry.credit_return_delay,
        };
        let of_ports = settings != PortSettings::default();
        let of_adapters = entry.ccti_timer.is_some() || entry.ccti_increase.is_some();
        if !of_ports && !of_adapters {
            let keys = format!("{PORT_KEYS}; or ccti-timer or ccti-increase");
            return Err(nothing_set(key, &keys));
        }
        let strays = [
            ("switch", entry.switch.is_some() && !of_ports),
            ("port", entry.port.is_some() && !of_ports),
            ("sl", entry.sl.is_some() && !of_adapters),
        ];
        if let Some((name, _)) = strays.into_iter().find(|(_, stray)| *stray) {
            let message = "there is no setting here that it could apply to";
            let hint = match name {
                "sl" => "add ccti-timer or ccti-increase, or leave it out",
                _ => "add a setting of ports, e.g. threshold, or leave it out",
            };
            return Err(ScenarioError::new(key.key(name), message).with_hint(hint));
        }
        if of_ports {
            let ports = match &entry.switch {
                Some(switch) => ports_of(fabric, switch, entry.port, &key)?,
                None if entry.port.is_some() => {
                    let error = ScenarioError::new(key.key("switch"), "missing key");
                    return Err(error.with_hint("add the switch that has this port"));
                }
                None => fabric
                    .switch_ids()
                    .flat_map(|switch| fabric.switch(switch).ports())
                    .collect(),
            };
            settings.changes(&ports, &key, &mut changes)?;
        }
        adapter_changes(entry, &mut changes);
        let at = Time::ZERO + entry.at;
        timed.extend(changes.into_iter().map(|change| (at, change)));
    }
    // Stable: entries of one instant apply in the order of the file.
    timed.sort_by_key(|(at, _)| *at);
    Ok(timed)
}

fn adapter_changes(entry: &SettingChangeEntry, changes: &mut Vec<SettingChange>) {
    for sl in Sl::all().filter(|sl| entry.sl.is_none_or(|only| only == *sl)) {
        changes.extend(
            entry
                .ccti_timer
                .map(|timer| SettingChange::CctiTimer { sl, timer }),
        );
        let increase = entry.ccti_increase;
        changes.extend(increase.map(|increase| SettingChange::CctiIncrease { sl, increase }));
    }
}

/// The keys of [`PortSettings`].
const PORT_KEYS: &str = "threshold, packet-size, marking-rate, victim-mask, credit-mask, \
                         credit-threshold or credit-return-delay";

fn nothing_set(key: KeyPath, keys: &str) -> ScenarioError {
    ScenarioError::new(key, "the entry sets nothing").with_hint(format!("give {keys}"))
}

/// Settings of a switch port that an entry may give.
#[derive(Clone, Copy, Default, PartialEq)]
struct PortSettings {
    threshold: Option<u8>,
    packet_size: Option<u8>,
    marking_rate: Option<u16>,
    victim_mask: Option<bool>,
    credit_mask: Option<bool>,
    credit_threshold: Option<u8>,
    credit_return_delay: Option<f64>,
}

impl PortSettings {
    fn changes(
        self,
        ports: &[PortId],
        key: &KeyPath,
        changes: &mut Vec<SettingChange>,
    ) -> Result<(), ScenarioError> {
        for (name, value) in [
            ("threshold", self.threshold),
            ("credit-threshold", self.credit_threshold),
        ] {
            if let Some(value) = value {
                weight(value, key.key(name))?;
            }
        }
        let delay = self.credit_return_delay;
        let delay = delay.map(|delay| return_delay(delay, key.key("credit-return-delay")));
        let delay = delay.transpose()?.map(CctEntry::as_raw);
        for &port in ports {
            let of_port = [
                self.threshold
                    .map(|threshold| SettingChange::PortThreshold { port, threshold }),
                self.packet_size
                    .map(|packet_size| SettingChange::PortPacketSize { port, packet_size }),
                self.marking_rate
                    .map(|marking_rate| SettingChange::PortMarkingRate { port, marking_rate }),
                self.victim_mask
                    .map(|set| SettingChange::PortVictimMask { port, set }),
                self.credit_mask
                    .map(|set| SettingChange::PortCreditMask { port, set }),
                self.credit_threshold
                    .map(|threshold| SettingChange::PortCreditThreshold { port, threshold }),
                delay.map(|return_delay| SettingChange::PortCreditReturnDelay {
                    port,
                    return_delay,
                }),
            ];
            changes.extend(of_port.into_iter().flatten());
        }
        Ok(())
    }
}

fn ports_of(
    fabric: &Fabric,
    switch: &str,
    port: Option<u8>,
    key: &KeyPath,
) -> Result<Vec<PortId>, ScenarioError> {
    let switch = switch_named(fabric, switch, key.key("switch"))?;
    match port {
        None => Ok(fabric.switch(switch).ports().collect()),
        Some(number) => Ok(vec![numbered_port(
            fabric,
            switch,
            number,
            key.key("port"),
        )?]),
    }
}

fn numbered_port(
    fabric: &Fabric,
    switch: SwitchId,
    number: u8,
    key: KeyPath,
) -> Result<PortId, ScenarioError> {
    let node = fabric.switch(switch);
    let port = node.port(PortNumber::new(number));
    port.ok_or_else(|| {
        let message = format!(
            "switch {:?} has ports 1 to {}, not {number}",
            node.name, node.port_count
        );
        ScenarioError::new(key, message).with_hint("choose one of these ports")
    })
}

/// The ports that a key of `control.switch` lists by name.
fn listed_ports(
    fabric: &Fabric,
    ports: &PortSet,
    name: &str,
) -> Result<Vec<PortId>, ScenarioError> {
    let PortSet::Names(names) = ports else {
        return Ok(Vec::new());
    };
    let key = at("control.switch").key(name);
    let ports = names.iter().enumerate();
    ports
        .map(|(index, name)| port_named(fabric, name, &key.index(index)))
        .collect()
}

/// The switch port that `switch:port` names.
fn port_named(fabric: &Fabric, text: &str, key: &KeyPath) -> Result<PortId, ScenarioError> {
    let parts = text.rsplit_once(':');
    let parts = parts.and_then(|(switch, number)| Some((switch, number.parse::<u8>().ok()?)));
    let Some((switch, number)) = parts else {
        let message = format!("{text:?} is not a port");
        let hint = "write it as switch:port, e.g. \"leaf-03:19\"";
        return Err(ScenarioError::new(key.clone(), message).with_hint(hint));
    };
    let switch = switch_named(fabric, switch, key.clone())?;
    numbered_port(fabric, switch, number, key.clone())
}

//! Settings of single ports, and settings that change during the run.

use silvan_core::document::KeyPath;
use silvan_core::{PortId, Sl, SwitchId, Time};

use super::cct::CctEntry;
use super::overrides::SettingChangeEntry;
use super::ports::PortSet;
use super::scheme::{return_delay, weight};
use super::sections::IbCc;
use crate::hooks::SettingChange;
use crate::schemes::{Changes, SchemeError, Switches};

/// All of them.
///
/// # Errors
/// The first at fault.
pub(super) fn changes(section: &IbCc, switches: &dyn Switches) -> Result<Changes, SchemeError> {
    Ok(Changes {
        initial: initial_changes(section, switches)?,
        timed: timed_changes(section, switches)?,
    })
}

/// The settings of single ports that hold from the start.
fn initial_changes(
    section: &IbCc,
    switches: &dyn Switches,
) -> Result<Vec<SettingChange>, SchemeError> {
    let mut changes = Vec::new();
    for port in listed_ports(switches, &section.switch.victim_mask, "victim-mask")? {
        changes.push(SettingChange::PortVictimMask { port, set: true });
    }
    for port in listed_ports(switches, &section.switch.credit_mask, "credit-mask")? {
        changes.push(SettingChange::PortCreditMask { port, set: true });
    }
    for (index, entry) in section.port.iter().enumerate() {
        let key = KeyPath::from("port").index(index);
        let ports = ports_of(switches, &entry.switch, entry.port, &key)?;
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
fn timed_changes(
    section: &IbCc,
    switches: &dyn Switches,
) -> Result<Vec<(Time, SettingChange)>, SchemeError> {
    let mut timed = Vec::new();
    for (index, entry) in section.change.iter().enumerate() {
        let key = KeyPath::from("change").index(index);
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
            return Err(SchemeError::new(key.key(name), message, hint));
        }
        if of_ports {
            let ports = match &entry.switch {
                Some(switch) => ports_of(switches, switch, entry.port, &key)?,
                None if entry.port.is_some() => {
                    let hint = "add the switch that has this port";
                    return Err(SchemeError::new(key.key("switch"), "missing key", hint));
                }
                None => (0..switches.count())
                    .flat_map(|switch| switches.ports(SwitchId::new(switch)))
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

fn nothing_set(key: KeyPath, keys: &str) -> SchemeError {
    SchemeError::new(key, "the entry sets nothing", format!("give {keys}"))
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
    ) -> Result<(), SchemeError> {
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
    switches: &dyn Switches,
    switch: &str,
    port: Option<u8>,
    key: &KeyPath,
) -> Result<Vec<PortId>, SchemeError> {
    let switch = switch_named(switches, switch, &key.key("switch"))?;
    match port {
        None => Ok(switches.ports(switch)),
        Some(number) => {
            let port = numbered_port(switches, switch, number, key.key("port"))?;
            Ok(vec![port])
        }
    }
}

fn switch_named(
    switches: &dyn Switches,
    name: &str,
    key: &KeyPath,
) -> Result<SwitchId, SchemeError> {
    switches.named(name).map_err(|error| error.within(key))
}

fn numbered_port(
    switches: &dyn Switches,
    switch: SwitchId,
    number: u8,
    key: KeyPath,
) -> Result<PortId, SchemeError> {
    let ports = switches.ports(switch);
    let index = usize::from(number).checked_sub(1);
    let port = index.and_then(|index| ports.get(index));
    port.copied().ok_or_else(|| {
        let message = format!(
            "switch {:?} has ports 1 to {}, not {number}",
            switches.name(switch),
            ports.len()
        );
        SchemeError::new(key, message, "choose one of these ports")
    })
}

/// The ports that a key of the switches' section lists by name.
fn listed_ports(
    switches: &dyn Switches,
    ports: &PortSet,
    name: &str,
) -> Result<Vec<PortId>, SchemeError> {
    let PortSet::Names(names) = ports else {
        return Ok(Vec::new());
    };
    let key = KeyPath::from("switch").key(name);
    let ports = names.iter().enumerate();
    ports
        .map(|(index, name)| port_named(switches, name, &key.index(index)))
        .collect()
}

/// The switch port that `switch:port` names.
fn port_named(switches: &dyn Switches, text: &str, key: &KeyPath) -> Result<PortId, SchemeError> {
    let parts = text.rsplit_once(':');
    let parts = parts.and_then(|(switch, number)| Some((switch, number.parse::<u8>().ok()?)));
    let Some((switch, number)) = parts else {
        let message = format!("{text:?} is not a port");
        let hint = "write it as switch:port, e.g. \"leaf-03:19\"";
        return Err(SchemeError::new(key.clone(), message, hint));
    };
    let switch = switch_named(switches, switch, key)?;
    numbered_port(switches, switch, number, key.clone())
}

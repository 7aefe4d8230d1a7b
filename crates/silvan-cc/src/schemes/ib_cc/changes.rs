use silvan_core::document::KeyPath;
use silvan_core::{PortId, Sl, SwitchId, Time};

use super::declare::keys_of;
use super::error::ParameterError;
use super::list::{AdapterSetting, PortSetting, SettingChangeEntry};
use super::scheme::refused;
use super::sections::IbCc;
use crate::hooks::SettingChange;
use crate::schemes::{Changes, SchemeError, Switches};

pub(super) fn changes(section: &IbCc, switches: &dyn Switches) -> Result<Changes, SchemeError> {
    Ok(Changes {
        initial: initial_changes(section, switches)?,
        timed: timed_changes(section, switches)?,
    })
}

fn initial_changes(
    section: &IbCc,
    switches: &dyn Switches,
) -> Result<Vec<SettingChange>, SchemeError> {
    let mut changes = Vec::new();
    for (index, entry) in section.port.iter().enumerate() {
        let key = KeyPath::from("port").index(index);
        let ports = ports_of(switches, &entry.switch, entry.port, &key)?;
        let settings = entry.port_settings(&key)?;
        if settings.is_empty() {
            return Err(nothing_set(key, &keys_of(PortSetting::FIELDS)));
        }
        changes.extend(port_changes(&ports, &settings));
    }
    Ok(changes)
}

fn timed_changes(
    section: &IbCc,
    switches: &dyn Switches,
) -> Result<Vec<(Time, SettingChange)>, SchemeError> {
    let mut timed = Vec::new();
    for (index, entry) in section.change.iter().enumerate() {
        let key = KeyPath::from("change").index(index);
        let at = Time::ZERO + entry.at;
        let changes = timed_entry(section, entry, switches, &key)?;
        timed.extend(changes.into_iter().map(|change| (at, change)));
    }
    // Stable: entries of one instant apply in the order of the file.
    timed.sort_by_key(|(at, _)| *at);
    Ok(timed)
}

fn timed_entry(
    section: &IbCc,
    entry: &SettingChangeEntry,
    switches: &dyn Switches,
    key: &KeyPath,
) -> Result<Vec<SettingChange>, SchemeError> {
    let of_ports = entry.port_settings(key)?;
    let of_adapters = entry.adapter_settings(key)?;
    if of_ports.is_empty() && of_adapters.is_empty() {
        let (ports, adapters) = (
            keys_of(PortSetting::FIELDS),
            keys_of(AdapterSetting::FIELDS),
        );
        return Err(nothing_set(key.clone(), &format!("{ports}; or {adapters}")));
    }
    let strays = [
        ("switch", entry.switch.is_some() && of_ports.is_empty()),
        ("port", entry.port.is_some() && of_ports.is_empty()),
        ("sl", entry.sl.is_some() && of_adapters.is_empty()),
    ];
    if let Some((name, _)) = strays.into_iter().find(|(_, stray)| *stray) {
        let message = "there is no setting here that it could apply to";
        let hint = match name {
            "sl" => "add a setting of adapters, e.g. ccti-timer, or leave it out",
            _ => "add a setting of ports, e.g. threshold, or leave it out",
        };
        return Err(SchemeError::new(key.key(name), message, hint));
    }
    let limit = section.adapter.ccti_limit;
    if let Some(min) = entry.ccti_min.filter(|&min| u16::from(min) > limit) {
        let error = ParameterError::MinAboveLimit { min, limit };
        return Err(refused(key.key("ccti-min"), &error));
    }
    let mut changes = Vec::new();
    if !of_ports.is_empty() {
        let ports = match &entry.switch {
            Some(switch) => ports_of(switches, switch, entry.port, key)?,
            None if entry.port.is_some() => {
                let hint = "add the switch that has this port";
                return Err(SchemeError::new(key.key("switch"), "missing key", hint));
            }
            None => (0..switches.count())
                .flat_map(|switch| switches.ports(SwitchId::new(switch)))
                .collect(),
        };
        changes.extend(port_changes(&ports, &of_ports));
    }
    for sl in Sl::all().filter(|sl| entry.sl.is_none_or(|only| only == *sl)) {
        let settings = of_adapters.iter();
        changes.extend(settings.map(|&setting| SettingChange::Adapter { sl, setting }));
    }
    Ok(changes)
}

fn port_changes<'a>(
    ports: &'a [PortId],
    settings: &'a [PortSetting],
) -> impl Iterator<Item = SettingChange> + 'a {
    ports.iter().flat_map(move |&port| {
        let settings = settings.iter();
        settings.map(move |&setting| SettingChange::Port { port, setting })
    })
}

fn nothing_set(key: KeyPath, keys: &str) -> SchemeError {
    SchemeError::new(key, "the entry sets nothing", format!("give {keys}"))
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

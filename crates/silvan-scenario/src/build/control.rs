//! Congestion control: parameters, settings of single ports, changes during the run.

use silvan_control::ib::{
    AdapterParameters, CctEntry, CongestionControlTable, CongestionEntry, ControlLevel,
    IbParameters, MarkingMode, MarkingSetting, ParameterError, PortSelection, StarvationSetting,
    SwitchParameters, SwitchPort, ThresholdMap, ThresholdWeight,
};
use silvan_control::seam::SettingChange;
use silvan_fabric::Fabric;
use silvan_units::{Bytes, PortId, PortNumber, Sl, SwitchId, Time};

use super::{Parameter, at, check_parameters, switch_named};
use crate::error::ScenarioError;
use crate::parsed::{
    AdapterSection, CctSection, CctShape, ControlSection, Level, Marking, PortSet, Scheme,
    SettingChangeEntry, SwitchControlSection,
};
use crate::path::KeyPath;

/// InfiniBand congestion control as a scenario sets it up.
#[derive(Debug, Clone)]
pub struct IbControl {
    /// Parameters that hold everywhere.
    pub parameters: IbParameters,
    /// Settings of single ports, in force from the start.
    pub initial: Vec<SettingChange>,
}

/// What the section `control` amounts to.
#[derive(Debug, Clone)]
pub(crate) struct ControlPlan {
    /// `None` without congestion control.
    pub ib: Option<IbControl>,
    /// Changes during the run, by time.
    pub changes: Vec<(Time, SettingChange)>,
}

/// Checks the whole section, and gives what the scheme in force makes of it.
pub(crate) fn build_control(
    section: &ControlSection,
    fabric: &Fabric,
) -> Result<ControlPlan, ScenarioError> {
    let marking = marking_setting(&section.switch)?;
    let parameters = IbParameters {
        switch: SwitchParameters {
            marking,
            starvation: StarvationSetting::default(),
            victim_ports: match section.switch.victim_mask {
                PortSet::None | PortSet::Names(_) => PortSelection::None,
                PortSet::Hosts => PortSelection::ToHosts,
                PortSet::All => PortSelection::All,
            },
            credit_ports: PortSelection::None,
            threshold_map: threshold_map(&section.switch)?,
            marking_mode: match section.switch.marking {
                Marking::Counter => MarkingMode::Counter,
                Marking::Random => MarkingMode::Random,
            },
        },
        adapter: adapter_parameters(&section.adapter)?,
    };
    let initial = initial_changes(section, fabric)?;
    let changes = timed_changes(section, fabric)?;
    Ok(match section.scheme {
        Scheme::None => ControlPlan {
            ib: None,
            changes: Vec::new(),
        },
        Scheme::IbCc => ControlPlan {
            ib: Some(IbControl {
                parameters,
                initial,
            }),
            changes,
        },
    })
}

/// Where each port of the fabric stands, as the switches' part of the scheme needs it.
pub(crate) fn switch_ports(fabric: &Fabric) -> Vec<Option<SwitchPort>> {
    let ports = fabric.ports.iter();
    ports
        .map(|port| {
            let to_host = port.peer.is_some_and(|peer| {
                let peer = fabric.ports[peer].node;
                fabric.nodes[peer].as_host().is_some()
            });
            fabric.nodes[port.node]
                .as_switch()
                .map(|switch| SwitchPort {
                    switch,
                    number: port.number,
                    to_host,
                })
        })
        .collect()
}

fn marking_setting(section: &SwitchControlSection) -> Result<MarkingSetting, ScenarioError> {
    Ok(MarkingSetting {
        threshold: weight(section.threshold, &at("control.switch"))?,
        packet_size: section.packet_size,
        marking_rate: section.marking_rate,
    })
}

fn weight(value: u8, table: &KeyPath) -> Result<ThresholdWeight, ScenarioError> {
    ThresholdWeight::try_new(value)
        .map_err(|error| ScenarioError::new(table.key("threshold"), error.to_string()))
}

fn threshold_map(section: &SwitchControlSection) -> Result<ThresholdMap, ScenarioError> {
    let key = at("control.switch");
    let bytes = |value: Bytes, key: KeyPath| {
        u32::try_from(value.as_u64())
            .map_err(|_| ScenarioError::new(key, format!("{value} is more than 4 GiB")))
    };
    let map = match &section.threshold_table {
        Some(table) => {
            let key = key.key("threshold-table");
            let table = table
                .iter()
                .enumerate()
                .map(|(index, value)| bytes(*value, key.index(index)))
                .collect::<Result<Vec<u32>, _>>()?;
            let count = table.len();
            let table = <[u32; 15]>::try_from(table).map_err(|_| {
                let message =
                    format!("{count} entries, one for each of the weights 1 to 15 is needed");
                ScenarioError::new(key, message)
            })?;
            ThresholdMap::Table(table)
        }
        None => ThresholdMap::Linear {
            lowest_bytes: bytes(
                section.threshold_lowest.unwrap_or_default(),
                key.key("threshold-lowest"),
            )?,
            highest_bytes: bytes(
                section.threshold_highest.unwrap_or_default(),
                key.key("threshold-highest"),
            )?,
        },
    };
    map.validate().map_err(|error| {
        let key = match (&map, &error) {
            (
                ThresholdMap::Table(_),
                ParameterError::ThresholdZero { weight }
                | ParameterError::ThresholdsIncrease { weight, .. },
            ) => key
                .key("threshold-table")
                .index(usize::from(*weight).saturating_sub(1)),
            _ => key.key("threshold-lowest"),
        };
        ScenarioError::new(key, error.to_string())
    })?;
    Ok(map)
}

fn adapter_parameters(section: &AdapterSection) -> Result<AdapterParameters, ScenarioError> {
    let parameters = AdapterParameters {
        entries: [CongestionEntry {
            ccti_timer: section.ccti_timer,
            ccti_increase: section.ccti_increase,
            trigger_threshold: section.trigger_threshold,
            ccti_min: section.ccti_min,
        }; Sl::COUNT],
        level: match section.level {
            Level::Qp => ControlLevel::QueuePair,
            Level::Sl => ControlLevel::ServiceLevel,
        },
        table: congestion_control_table(&section.cct, section.ccti_limit)?,
    };
    parameters
        .validate()
        .map_err(|error| ScenarioError::new(at("control.adapter.ccti-min"), error.to_string()))?;
    Ok(parameters)
}

fn congestion_control_table(
    section: &CctSection,
    limit: u16,
) -> Result<CongestionControlTable, ScenarioError> {
    let key = at("control.adapter.cct");
    let (name, wanted): (&str, &[&str]) = match section.shape {
        CctShape::Linear => ("linear", &["slope"]),
        CctShape::Geometric => ("geometric", &["first", "ratio"]),
        CctShape::Given => ("given", &["entries"]),
    };
    let parameters = [
        ("slope", section.slope.is_some()),
        ("first", section.first.is_some()),
        ("ratio", section.ratio.is_some()),
        ("entries", section.entries.is_some()),
    ];
    let parameters = parameters.map(|(key, given)| Parameter {
        key,
        given,
        wanted: wanted.contains(&key),
    });
    check_parameters(&key, name, &parameters)?;
    let table = match section.shape {
        CctShape::Linear => {
            CongestionControlTable::linear(section.slope.unwrap_or_default(), limit)
        }
        CctShape::Geometric => CongestionControlTable::geometric(
            section.first.unwrap_or_default(),
            section.ratio.unwrap_or_default(),
            limit,
        ),
        CctShape::Given => {
            let entries = section.entries.iter().flatten().enumerate();
            let entries = entries
                .map(|(index, &(shift, multiplier))| {
                    CctEntry::try_new(shift, multiplier).map_err(|error| {
                        ScenarioError::new(key.key("entries").index(index), error.to_string())
                    })
                })
                .collect::<Result<Vec<_>, _>>()?;
            CongestionControlTable::from_entries(entries, limit)
        }
    };
    table.map_err(|error| {
        let key = match error {
            ParameterError::FirstEntryDelays { .. } => key.key("entries").index(0),
            ParameterError::DelayNotRepresentable { .. } => key.key(wanted[0]),
            ParameterError::OutOfRange { .. } if section.entries.is_some() => key.key("entries"),
            _ => at("control.adapter.ccti-limit"),
        };
        ScenarioError::new(key, error.to_string())
    })
}

/// The settings of single ports that hold from the start.
fn initial_changes(
    section: &ControlSection,
    fabric: &Fabric,
) -> Result<Vec<SettingChange>, ScenarioError> {
    let mut changes = Vec::new();
    if let PortSet::Names(names) = &section.switch.victim_mask {
        let key = at("control.switch.victim-mask");
        for (index, name) in names.iter().enumerate() {
            let port = port_named(fabric, name, &key.index(index))?;
            changes.push(SettingChange::PortVictimMask { port, set: true });
        }
    }
    for (index, entry) in section.port.iter().enumerate() {
        let key = at("control.port").index(index);
        let ports = ports_of(fabric, &entry.switch, entry.port, &key)?;
        let settings = PortSettings {
            threshold: entry.threshold,
            packet_size: entry.packet_size,
            marking_rate: entry.marking_rate,
            victim_mask: entry.victim_mask,
        };
        if settings == PortSettings::default() {
            return Err(nothing_set(key));
        }
        settings.changes(&ports, &key, &mut changes)?;
    }
    Ok(changes)
}

fn timed_changes(
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
        };
        let of_ports = settings != PortSettings::default();
        let of_adapters = entry.ccti_timer.is_some() || entry.ccti_increase.is_some();
        if !of_ports && !of_adapters {
            return Err(nothing_set(key));
        }
        let strays = [
            ("switch", entry.switch.is_some() && !of_ports),
            ("port", entry.port.is_some() && !of_ports),
            ("sl", entry.sl.is_some() && !of_adapters),
        ];
        if let Some((name, _)) = strays.into_iter().find(|(_, stray)| *stray) {
            let message = "there is no setting here that it could apply to";
            return Err(ScenarioError::new(key.key(name), message));
        }
        if of_ports {
            let ports = match &entry.switch {
                Some(switch) => ports_of(fabric, switch, entry.port, &key)?,
                None if entry.port.is_some() => {
                    return Err(ScenarioError::new(key.key("switch"), "missing key"));
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

fn nothing_set(key: KeyPath) -> ScenarioError {
    ScenarioError::new(key, "the entry sets nothing")
        .with_hint("give threshold, packet-size, marking-rate or victim-mask")
}

/// Settings of a switch port that an entry may give.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct PortSettings {
    threshold: Option<u8>,
    packet_size: Option<u8>,
    marking_rate: Option<u16>,
    victim_mask: Option<bool>,
}

impl PortSettings {
    fn changes(
        self,
        ports: &[PortId],
        key: &KeyPath,
        changes: &mut Vec<SettingChange>,
    ) -> Result<(), ScenarioError> {
        if let Some(threshold) = self.threshold {
            weight(threshold, key)?;
        }
        for &port in ports {
            changes.extend(
                self.threshold
                    .map(|threshold| SettingChange::PortThreshold { port, threshold }),
            );
            changes.extend(
                self.packet_size
                    .map(|packet_size| SettingChange::PortPacketSize { port, packet_size }),
            );
            changes.extend(
                self.marking_rate
                    .map(|marking_rate| SettingChange::PortMarkingRate { port, marking_rate }),
            );
            changes.extend(
                self.victim_mask
                    .map(|set| SettingChange::PortVictimMask { port, set }),
            );
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
        ScenarioError::new(key, message)
    })
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

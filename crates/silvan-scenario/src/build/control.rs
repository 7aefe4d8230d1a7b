//! Congestion control: the parameters that hold everywhere.

use silvan_cc::hooks::SettingChange;
use silvan_cc::schemes::Choice;
use silvan_cc::schemes::ib_cc::{
    AdapterParameters, CctEntry, CongestionControlTable, CongestionEntry, ControlLevel,
    IbParameters, MarkingMode, MarkingSetting, ParameterError, PortSelection, StarvationSetting,
    SwitchParameters, SwitchPort, ThresholdMap, ThresholdWeight,
};
use silvan_cc::schemes::pft::PftParameters;
use silvan_core::{Bytes, Sl, Time};
use silvan_dcms::machine::Dcms;
use silvan_fabric::Fabric;

use super::dcms::build_dcms;
use super::ecn::{EcnControl, build_ecn};
use super::pft::build_pft;
use super::settings::{initial_changes, timed_changes};
use super::{Parameter, advice, at, check_parameters};
use crate::parsed::{
    AdapterSection, CctSection, CctShape, Level, Marking, PortSet, ScenarioFile, Scheme,
    SwitchControlSection,
};
use crate::{KeyPath, ScenarioError};

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
    /// InfiniBand congestion control, if it is in force.
    pub ib: Option<IbControl>,
    /// The manager that watches counters from outside, if any.
    pub dcms: Option<Dcms>,
    /// The scheme `ecn`, if it is in force.
    pub ecn: Option<EcnControl>,
    /// The scheme `pft`, if it is in force.
    pub pft: Option<PftParameters>,
    /// The scheme with a file of its own that is in force, if any.
    pub own: Option<Choice>,
    /// Changes during the run, by time.
    pub changes: Vec<(Time, SettingChange)>,
}

/// Checks the whole section, and gives what the scheme in force makes of it.
pub(crate) fn build_control(
    file: &ScenarioFile,
    fabric: &Fabric,
) -> Result<ControlPlan, ScenarioError> {
    let section = &file.control;
    let marking = marking_setting(&section.switch)?;
    let parameters = IbParameters {
        switch: SwitchParameters {
            marking,
            starvation: starvation_setting(&section.switch)?,
            victim_ports: selection(&section.switch.victim_mask),
            credit_ports: selection(&section.switch.credit_mask),
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
    let dcms = build_dcms(section, fabric)?;
    let ecn = build_ecn(file)?;
    let pft = build_pft(file)?;
    let own = build_own(file)?;
    Ok(match section.scheme {
        Scheme::None | Scheme::Ecn | Scheme::Pft | Scheme::Python | Scheme::Own(_) => ControlPlan {
            ib: None,
            dcms,
            ecn,
            pft,
            own,
            changes: Vec::new(),
        },
        Scheme::IbCc | Scheme::IbCcPft => ControlPlan {
            ib: Some(IbControl {
                parameters,
                initial,
            }),
            dcms,
            ecn: None,
            pft,
            own: None,
            changes,
        },
    })
}

/// Checks the parameters of all schemes of one file each, and names the one in force.
fn build_own(file: &ScenarioFile) -> Result<Option<Choice>, ScenarioError> {
    for choice in Choice::ALL {
        choice.check(&file.control.own).map_err(|error| {
            let key = at("control.own").key(choice.name()).key(error.key);
            ScenarioError::new(key, error.message).with_hint(error.hint)
        })?;
    }
    Ok(match file.control.scheme {
        Scheme::Own(choice) => Some(choice),
        _ => None,
    })
}

/// Where each port of the fabric stands, as the switches' part of the scheme needs it.
pub fn switch_ports(fabric: &Fabric) -> Vec<Option<SwitchPort>> {
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

/// Ports listed by name are set one by one.
fn selection(ports: &PortSet) -> PortSelection {
    match ports {
        PortSet::None | PortSet::Names(_) => PortSelection::None,
        PortSet::Hosts => PortSelection::ToHosts,
        PortSet::All => PortSelection::All,
    }
}

fn marking_setting(section: &SwitchControlSection) -> Result<MarkingSetting, ScenarioError> {
    Ok(MarkingSetting {
        threshold: weight(section.threshold, at("control.switch.threshold"))?,
        packet_size: section.packet_size,
        marking_rate: section.marking_rate,
    })
}

fn starvation_setting(section: &SwitchControlSection) -> Result<StarvationSetting, ScenarioError> {
    let key = at("control.switch");
    Ok(StarvationSetting {
        threshold: weight(section.credit_threshold, key.key("credit-threshold"))?,
        return_delay: return_delay(section.credit_return_delay, key.key("credit-return-delay"))?,
    })
}

/// The threshold weight of this value, for any of the keys that have one.
pub(super) fn weight(value: u8, key: KeyPath) -> Result<ThresholdWeight, ScenarioError> {
    ThresholdWeight::try_new(value).map_err(|error| refused(key, &error))
}

/// A parameter that the scheme refuses.
fn refused(key: KeyPath, error: &ParameterError) -> ScenarioError {
    ScenarioError::new(key, error.to_string()).with_hint(advice::on_control(error))
}

/// The delay of credits that is nearest to this number of packet times.
pub(super) fn return_delay(packet_times: f64, key: KeyPath) -> Result<CctEntry, ScenarioError> {
    CctEntry::nearest(packet_times).ok_or_else(|| {
        let message = format!(
            "a delay of {packet_times} packet times, it must be 0 to {}",
            CctEntry::MAX_MULTIPLIER
        );
        ScenarioError::new(key, message).with_hint("write e.g. 10, or 0 for no delay")
    })
}

fn threshold_map(section: &SwitchControlSection) -> Result<ThresholdMap, ScenarioError> {
    let key = at("control.switch");
    let bytes = |value: Bytes, key: KeyPath| {
        u32::try_from(value.as_u64()).map_err(|_| {
            let error = ScenarioError::new(key, format!("{value} is more than 4 GiB"));
            error.with_hint("write e.g. \"6 KiB\"; a queue is no longer than its buffer")
        })
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
                ScenarioError::new(key, message).with_hint("list 15 sizes that fall")
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
        refused(key, &error)
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
        .map_err(|error| refused(at("control.adapter.ccti-min"), &error))?;
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
                    CctEntry::try_new(shift, multiplier)
                        .map_err(|error| refused(key.key("entries").index(index), &error))
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
        refused(key, &error)
    })
}

use silvan_core::document::{KeyPath, Parameter, check_choice};
use silvan_core::{Bytes, Sl};

use super::adapter::{AdapterParameters, IbAdapter};
use super::cct::{CctEntry, CongestionControlTable};
use super::changes;
use super::error::ParameterError;
use super::list::{AdapterSection, SwitchSection};
use super::parameters::IbParameters;
use super::sections::{CctSection, CctShape, IbCc};
use super::switch::{IbSwitch, SwitchParameters};
use super::threshold::{ThresholdMap, ThresholdWeight};
use super::variants;
use crate::schemes::variant::{FabricFacts, Family, Variant};
use crate::schemes::{Changes, DataPlane, Scheme, SchemeError, Setup, Switches};

/// Queue length at threshold weight 15, in packets of MTU size.
const DEFAULT_THRESHOLD_PACKETS: u64 = 3;

impl Scheme for IbCc {
    type Switch = IbSwitch;
    type Source = IbAdapter;

    const FAMILY: Family = Family::Threshold;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        variants::variants(facts)
    }

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let section = &mut self.switch;
        if section.threshold_table.is_some() {
            return;
        }
        let packet = data_plane.mtu.as_u64();
        let packet = packet.saturating_add(data_plane.header.as_u64());
        let lowest = Bytes::from_bytes(packet.saturating_mul(DEFAULT_THRESHOLD_PACKETS));
        let lowest = *section.threshold_lowest.get_or_insert(lowest);
        let highest = data_plane.switch_buffer.max(lowest);
        section.threshold_highest.get_or_insert(highest);
    }

    fn check(&self) -> Result<(), SchemeError> {
        self.parameters().map(|_| ())
    }

    fn settings(&self, switches: &dyn Switches) -> Result<Changes, SchemeError> {
        changes::changes(self, switches)
    }

    fn idle_reason(&self) -> Option<String> {
        let weight = ThresholdWeight::try_new(self.switch.threshold).ok()?;
        let Some(queue) = threshold_map(&self.switch).ok()?.bytes(weight) else {
            return Some("switch.threshold is 0, which marks nothing".to_owned());
        };
        let queue = Bytes::from_bytes(queue.into());
        let weight = self.switch.threshold;
        Some(format!(
            "no root of congestion queued {queue}, switch.threshold {weight}"
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(IbSwitch, IbAdapter), SchemeError> {
        let refused = |error: ParameterError| refused(KeyPath::ROOT, &error);
        let parameters = self.parameters()?;
        let switch = parameters.build_switch(setup.ports, setup.data_vls, setup.switch_seed());
        let adapter = parameters.build_adapter(setup.hosts, setup.host_seed());
        Ok((switch.map_err(refused)?, adapter.map_err(refused)?))
    }
}

impl IbCc {
    fn parameters(&self) -> Result<IbParameters, SchemeError> {
        let section = &self.switch;
        let key = KeyPath::from("switch").key("threshold-hysteresis");
        let switch = SwitchParameters {
            marking: section.marking()?,
            starvation: section.starvation()?,
            victim_ports: section.victim_mask,
            credit_ports: section.credit_mask,
            threshold_map: threshold_map(section)?,
            hysteresis_bytes: queue_bytes(section.threshold_hysteresis, key.clone())?,
            marking_mode: section.marking,
        };
        switch.validate().map_err(|error| refused(key, &error))?;
        Ok(IbParameters {
            switch,
            adapter: adapter_parameters(&self.adapter)?,
        })
    }
}

pub(super) fn weight(value: u8, key: KeyPath) -> Result<ThresholdWeight, SchemeError> {
    ThresholdWeight::try_new(value).map_err(|error| refused(key, &error))
}

pub(super) fn refused(key: KeyPath, error: &ParameterError) -> SchemeError {
    SchemeError::new(key, error.to_string(), error.hint())
}

pub(super) fn return_delay(packet_times: f64, key: KeyPath) -> Result<CctEntry, SchemeError> {
    CctEntry::nearest(packet_times).ok_or_else(|| {
        let message = format!(
            "a delay of {packet_times} packet times, it must be 0 to {}",
            CctEntry::MAX_MULTIPLIER
        );
        SchemeError::new(key, message, "write e.g. 10, or 0 for no delay")
    })
}

fn queue_bytes(value: Bytes, key: KeyPath) -> Result<u32, SchemeError> {
    u32::try_from(value.as_u64()).map_err(|_| {
        let message = format!("{value} is more than 4 GiB");
        let hint = "write e.g. \"6 KiB\"; a queue is no longer than its buffer";
        SchemeError::new(key, message, hint)
    })
}

fn threshold_map(section: &SwitchSection) -> Result<ThresholdMap, SchemeError> {
    let key = KeyPath::from("switch");
    let map = match &section.threshold_table {
        Some(table) => {
            let ends = [
                ("threshold-lowest", section.threshold_lowest),
                ("threshold-highest", section.threshold_highest),
            ];
            if let Some((name, _)) = ends.iter().find(|(_, bytes)| bytes.is_some()) {
                let message = "threshold-table has the bytes of all weights already";
                let hint = "leave out one of the two";
                return Err(SchemeError::new(key.key(name), message, hint));
            }
            let key = key.key("threshold-table");
            let table = table
                .iter()
                .enumerate()
                .map(|(index, value)| queue_bytes(*value, key.index(index)))
                .collect::<Result<Vec<u32>, _>>()?;
            let count = table.len();
            let table = <[u32; 15]>::try_from(table).map_err(|_| {
                let message =
                    format!("{count} entries, one for each of the weights 1 to 15 is needed");
                SchemeError::new(key, message, "list 15 sizes that fall")
            })?;
            ThresholdMap::Table(table)
        }
        None => ThresholdMap::Linear {
            lowest_bytes: queue_bytes(
                section.threshold_lowest.unwrap_or_default(),
                key.key("threshold-lowest"),
            )?,
            highest_bytes: queue_bytes(
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

fn adapter_parameters(section: &AdapterSection) -> Result<AdapterParameters, SchemeError> {
    let parameters = AdapterParameters {
        entries: [section.entry()?; Sl::COUNT],
        level: section.level,
        table: congestion_control_table(&section.cct, section.ccti_limit)?,
    };
    parameters
        .validate()
        .map_err(|error| refused("adapter.ccti-min".into(), &error))?;
    Ok(parameters)
}

fn congestion_control_table(
    section: &CctSection,
    limit: u16,
) -> Result<CongestionControlTable, SchemeError> {
    let key = KeyPath::from("adapter.cct");
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
    check_choice(&key, name, &parameters)?;
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
            _ => "adapter.ccti-limit".into(),
        };
        refused(key, &error)
    })
}

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::counters::EXPORTED;
use super::{Device, Exporter, Labels, Latest, PortRow, Snapshot, Totals, TreeRow};
use crate::health::Severity;
use crate::verdict::Cause;

type TreeCount = (&'static str, &'static str, fn(&TreeRow) -> usize);

struct Derived {
    name: &'static str,
    help: &'static str,
    unit: fn() -> Unit,
    read: fn(&Totals) -> f64,
}

const DERIVED: [Derived; 3] = [
    Derived {
        name: "port_transmit_wait",
        help: "Time that PortXmitWait has counted since the exporter started",
        unit: || Unit::Seconds,
        read: |totals| totals.wait_s,
    },
    Derived {
        name: "port_transmit_lost",
        help: "Bytes that the link could have carried in the time of PortXmitWait since the exporter started",
        unit: || Unit::Bytes,
        read: |totals| totals.lost_bytes,
    },
    Derived {
        name: "port_transmit_time_congested",
        help: "Time that PortXmitTimeCong has counted since the exporter started",
        unit: || Unit::Seconds,
        read: |totals| totals.congested_s,
    },
];

#[derive(Debug)]
struct LastSweep(Arc<RwLock<Latest>>);

impl Collector for LastSweep {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let latest = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ended)) = latest.ended {
            let metric = encoder.encode_descriptor(
                "silvan_exporter_last_sweep_timestamp",
                "When the last sweep of the counters that has succeeded ended, in Unix time",
                Some(&Unit::Seconds),
                MetricType::Gauge,
            )?;
            let since = ended
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            ConstGauge::new(since.as_secs_f64()).encode(metric)?;
        }
        let snapshot = latest.fresh();
        let is_known = ConstGauge::new(i64::from(snapshot.is_some()));
        let metric = encoder.encode_descriptor(
            "silvan_exporter_up",
            "1 if the last sweep of the counters has succeeded and is recent, so that the metrics of ports are served",
            None,
            MetricType::Gauge,
        )?;
        is_known.encode(metric)?;
        let Some(snapshot) = snapshot else {
            return Ok(());
        };
        for device in Device::ALL {
            ports(&mut encoder, snapshot, device)?;
        }
        trees(&mut encoder, snapshot)?;
        for (name, help, value) in [
            (
                "silvan_exporter_ports",
                "Ports with a cable",
                snapshot.ports.len(),
            ),
            (
                "silvan_exporter_ports_unknown",
                "Ports whose load or waiting time is not known",
                snapshot.unknown_ports,
            ),
            (
                "silvan_diagnosis_ports_unexplained",
                "Ports that wait, and that no congestion tree explains",
                snapshot.unexplained,
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value as i64).encode(metric)?;
        }
        let metric = encoder.encode_descriptor(
            "silvan_exporter_sweep_duration",
            "Duration of the last sweep",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        ConstGauge::new(snapshot.sweep_s).encode(metric)
    }
}

fn family<'r, R: 'r>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit): (&str, &str, Option<&Unit>),
    kind: MetricType,
    rows: impl Iterator<Item = &'r R>,
    labels: fn(&R) -> &Labels,
    value: impl Fn(&R) -> Option<f64>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, unit, kind)?;
    for row in rows {
        let Some(value) = value(row) else { continue };
        let sample = metric.encode_family(labels(row))?;
        match kind {
            MetricType::Counter => ConstCounter::new(value).encode(sample)?,
            _ => ConstGauge::new(value).encode(sample)?,
        }
    }
    Ok(())
}

fn ports(encoder: &mut DescriptorEncoder<'_>, snapshot: &Snapshot, device: Device) -> fmt::Result {
    let rows = || {
        snapshot
            .ports
            .iter()
            .filter(move |row| row.device == device)
    };
    let prefix = format!("infiniband_{}", device.name());
    for (index, counter) in EXPORTED.iter().enumerate() {
        // Notifications are read at hosts only, and time in the congestion state at switches only.
        if rows().all(|row| row.counters[index].is_none()) {
            continue;
        }
        let name = format!("{prefix}_{}", counter.name);
        let unit = counter.is_data.then_some(&Unit::Bytes);
        let mut metric =
            encoder.encode_descriptor(&name, counter.field, unit, MetricType::Counter)?;
        for row in rows() {
            if let Some(value) = row.counters[index] {
                let sample = metric.encode_family(&row.labels)?;
                ConstCounter::new(value).encode(sample)?;
            }
        }
    }
    let labels: fn(&PortRow) -> &Labels = |row| &row.labels;
    for derived in &DERIVED {
        let (name, unit) = (format!("{prefix}_{}", derived.name), (derived.unit)());
        let about = (name.as_str(), derived.help, Some(&unit));
        let value = |row: &PortRow| Some((derived.read)(&row.totals));
        family(encoder, about, MetricType::Counter, rows(), labels, value)?;
    }
    let name = format!("{prefix}_port_congestion_tree");
    let help = "Time as the root or a branch of a congestion tree since the exporter started";
    let mut metric =
        encoder.encode_descriptor(&name, help, Some(&Unit::Seconds), MetricType::Counter)?;
    for row in rows() {
        for (role, seconds) in [("root", row.totals.root_s), ("branch", row.totals.branch_s)] {
            // Ports that were never in a tree would be most of what is read.
            if seconds > 0.0 {
                let labels = (row.labels.clone(), [("role", role)]);
                let sample = metric.encode_family(&labels)?;
                ConstCounter::new(seconds).encode(sample)?;
            }
        }
    }
    let name = format!("{prefix}_port_rate_bytes_per_second");
    let about = (name.as_str(), "Capacity of the link", None);
    let value = |row: &PortRow| Some(row.rate as f64);
    family(encoder, about, MetricType::Gauge, rows(), labels, value)?;
    let name = format!("{prefix}_info");
    let devices = snapshot.devices.iter().filter(|row| row.device == device);
    let about = (name.as_str(), "Always 1", None);
    family(
        encoder,
        about,
        MetricType::Gauge,
        devices,
        |row| &row.labels,
        |_| Some(1.0),
    )?;
    let name = format!("{prefix}_uplink_info");
    let help = "Always 1; what is at the other end of the cable of a port";
    let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
    for row in rows() {
        let labels = (row.labels.clone(), row.uplink.clone());
        let sample = metric.encode_family(&labels)?;
        ConstGauge::new(1_i64).encode(sample)?;
    }
    Ok(())
}

fn trees(encoder: &mut DescriptorEncoder<'_>, snapshot: &Snapshot) -> fmt::Result {
    let name = "silvan_diagnosis_trees";
    let mut metric =
        encoder.encode_descriptor(name, "Congestion trees by cause", None, MetricType::Gauge)?;
    for (cause, &count) in Cause::ALL.iter().zip(&snapshot.causes) {
        let labels = [("cause", cause.name())];
        let sample = metric.encode_family(&labels)?;
        ConstGauge::new(count as i64).encode(sample)?;
    }
    let counts: [TreeCount; 3] = [
        (
            "silvan_diagnosis_tree_branches",
            "Ports that wait because of this root",
            |tree| tree.branches,
        ),
        (
            "silvan_diagnosis_tree_contributors",
            "Hosts that send through this root",
            |tree| tree.contributors,
        ),
        (
            "silvan_diagnosis_tree_victims",
            "Hosts that this root slows down, and that do not send through it",
            |tree| tree.victims,
        ),
    ];
    for (name, help, count) in counts {
        let value = |row: &TreeRow| Some(count(row) as f64);
        let rows = snapshot.trees.iter();
        let about = (name, help, None);
        family(
            encoder,
            about,
            MetricType::Gauge,
            rows,
            |row| &row.labels,
            value,
        )?;
    }
    let about = (
        "silvan_diagnosis_bad_cable_symbol_errors_per_second",
        "Growth of SymbolErrorCounter at the receiving port of a cable with more bit errors than a good one",
        None,
    );
    family(
        encoder,
        about,
        MetricType::Gauge,
        snapshot.bad_cables.iter(),
        |row| &row.labels,
        |row| Some(row.symbol_errors_per_s),
    )?;
    let name = "silvan_diagnosis_findings";
    let help = "Findings about the health of the subnet";
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (severity, &count) in Severity::ALL.iter().zip(&snapshot.findings) {
        let labels = [("severity", severity.name())];
        let sample = metric.encode_family(&labels)?;
        ConstGauge::new(count as i64).encode(sample)?;
    }
    Ok(())
}

impl Exporter {
    pub(super) fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(LastSweep(Arc::clone(&self.latest))));
        let own = registry.sub_registry_with_prefix("silvan_exporter");
        own.register(
            "sweeps",
            "Sweeps of the counters that could be compared with the one before",
            self.sweeps.clone(),
        );
        own.register(
            "sweep_failures",
            "Sweeps of the counters that have failed",
            self.failures.clone(),
        );
        self.datagrams.register(own);
        self.connections.register(own);
        registry
    }
}

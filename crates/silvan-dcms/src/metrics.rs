//! Metrics for Prometheus: the common exporter's names, and `silvan_dcms*`.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use silvan_core::PortCounters;
use silvan_core::counters::{CounterUnit, DATA_WORD};
use silvan_subnet::client::Statistics;
use silvan_subnet::metrics::{ConnectionMetrics, DatagramMetrics, Page, open_metrics};

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PortLabels {
    /// NodeGUID.
    pub guid: String,
    /// The port.
    pub port: u32,
    /// NodeDescription as a [`label`](silvan_subnet::metrics::label).
    pub switch: String,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SwitchLabels {
    /// NodeGUID.
    pub guid: String,
    /// NodeDescription as a [`label`](silvan_subnet::metrics::label).
    pub switch: String,
    /// LID.
    pub lid: u32,
}

/// Why something was decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabels {
    /// The reason's name.
    pub reason: &'static str,
}

/// Result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ActionLabels {
    /// `lower` or `restore`.
    pub action: &'static str,
    /// `done`, `needless` or `failed`.
    pub result: &'static str,
}

/// The metric of a port counter.
#[derive(Debug)]
pub struct CounterMetric {
    /// The counter's place in [`PortCounters::ALL`].
    pub index: usize,
    /// Factor from a datagram's unit to the metric's unit.
    pub scale: u64,
    /// The values by port.
    pub family: Family<PortLabels, Counter>,
    name: &'static str,
}

impl CounterMetric {
    fn all() -> Vec<Self> {
        let metrics = PortCounters::ALL
            .iter()
            .enumerate()
            .map(|(index, counter)| {
                let scale = match counter.unit {
                    CounterUnit::Bytes { .. } => DATA_WORD,
                    CounterUnit::Packets | CounterUnit::Events | CounterUnit::Time => 1,
                };
                Some(Self {
                    index,
                    scale,
                    family: Family::default(),
                    name: counter.metric?,
                })
            });
        metrics.flatten().collect()
    }

    fn register(&self, registry: &mut Registry) {
        let counter = &PortCounters::ALL[self.index];
        let description = counter.description();
        let help = |unit| {
            format!(
                "{}, since the manager started, in {unit}",
                description.trim_end_matches('.')
            )
        };
        let family = self.family.clone();
        match counter.unit {
            CounterUnit::Bytes { .. } => {
                registry.register_with_unit(self.name, help("bytes"), Unit::Bytes, family);
            }
            CounterUnit::Packets => registry.register(self.name, help("packets"), family),
            CounterUnit::Events => registry.register(self.name, help("events"), family),
            CounterUnit::Time => registry.register(self.name, help("ticks of dcms.tick"), family),
        }
    }
}

/// All metrics. The families are shared with the registry, so that updating them updates what is read.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Growth of the counters of ports.
    pub counters: Vec<CounterMetric>,
    /// Always 1.
    pub info: Family<SwitchLabels, Gauge>,
    /// 1 if the Marking_Rate is low, for ports that have been congested.
    pub low: Family<PortLabels, Gauge>,
    /// Victims of ports that have been congested.
    pub victims: Family<PortLabels, Gauge>,
    /// Decisions.
    pub decisions: Family<ReasonLabels, Counter>,
    /// Changes tried.
    pub actions: Family<ActionLabels, Counter>,
    /// Changes in the journal.
    pub pending: Gauge,
    /// Age of the oldest change in the journal.
    pub pending_seconds: Gauge<f64, AtomicU64>,
    /// Number of failed writes of the journal.
    pub journal_errors: Counter,
    /// 1 if the manager may make changes.
    pub acting: Gauge,
    /// 1 if another instance is in charge.
    pub standby: Gauge,
    /// 1 if a subnet manager answers.
    pub sm_found: Gauge,
    /// 1 while the manager waits for the first answer of a subnet manager.
    pub sm_awaited: Gauge,
    /// Switches known.
    pub switches: Gauge,
    /// Ports watched.
    pub ports: Gauge,
    /// Ports that did not answer in the last sweep.
    pub unanswered: Gauge,
    /// Sweeps done.
    pub sweeps: Counter,
    /// Duration of the last sweep.
    pub sweep_seconds: Gauge<f64, AtomicU64>,
    connections: ConnectionMetrics,
    datagrams: DatagramMetrics,
}

impl Metrics {
    /// Metrics of a manager that has seen nothing yet.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            counters: CounterMetric::all(),
            info: Family::default(),
            low: Family::default(),
            victims: Family::default(),
            decisions: Family::default(),
            actions: Family::default(),
            pending: Gauge::default(),
            pending_seconds: Gauge::default(),
            journal_errors: Counter::default(),
            acting: Gauge::default(),
            standby: Gauge::default(),
            sm_awaited: Gauge::default(),
            sm_found: Gauge::default(),
            switches: Gauge::default(),
            ports: Gauge::default(),
            unanswered: Gauge::default(),
            sweeps: Counter::default(),
            sweep_seconds: Gauge::default(),
            connections: ConnectionMetrics::default(),
            datagrams: DatagramMetrics::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let ports = self.registry.sub_registry_with_prefix("infiniband_switch");
        for metric in &self.counters {
            metric.register(ports);
        }
        ports.register("info", "Always 1", self.info.clone());
        let dcms = self.registry.sub_registry_with_prefix("silvan_dcms");
        dcms.register(
            "port_low",
            "1 if the Marking_Rate of a port is held low",
            self.low.clone(),
        );
        dcms.register(
            "port_victims",
            "Neighbouring switch ports that a congested port slows down",
            self.victims.clone(),
        );
        dcms.register(
            "decisions",
            "Decisions by their reason",
            self.decisions.clone(),
        );
        dcms.register(
            "actions",
            "Changes of Marking_Rate that were tried, by their result",
            self.actions.clone(),
        );
        dcms.register(
            "pending_restores",
            "Changes of Marking_Rate in the journal",
            self.pending.clone(),
        );
        dcms.register_with_unit(
            "pending_restores_age",
            "Time since the oldest change in the journal was made; 0 without one",
            Unit::Seconds,
            self.pending_seconds.clone(),
        );
        dcms.register(
            "journal_errors",
            "Failures to write the journal",
            self.journal_errors.clone(),
        );
        dcms.register(
            "acting",
            "1 if the manager may make changes",
            self.acting.clone(),
        );
        dcms.register(
            "standby",
            "1 while another instance is in charge",
            self.standby.clone(),
        );
        dcms.register(
            "sm_found",
            "1 if a subnet manager answers",
            self.sm_found.clone(),
        );
        dcms.register(
            "sm_awaited",
            "1 while the manager waits for the first answer of a subnet manager",
            self.sm_awaited.clone(),
        );
        dcms.register("switches", "Switches that answer", self.switches.clone());
        dcms.register("ports", "Ports that are swept", self.ports.clone());
        dcms.register(
            "ports_unanswered",
            "Ports that did not answer in the last sweep",
            self.unanswered.clone(),
        );
        dcms.register("sweeps", "Sweeps of the counters", self.sweeps.clone());
        dcms.register_with_unit(
            "sweep_duration",
            "Duration of the last sweep",
            Unit::Seconds,
            self.sweep_seconds.clone(),
        );
        self.connections.register(dcms);
        self.datagrams.register(dcms);
    }

    /// Takes the counts of datagrams.
    pub fn set_datagrams(&self, statistics: Statistics) {
        self.datagrams.set(statistics);
    }
}

impl Page for Metrics {
    fn text(&self) -> String {
        open_metrics(&self.registry)
    }

    fn connections(&self) -> &ConnectionMetrics {
        &self.connections
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

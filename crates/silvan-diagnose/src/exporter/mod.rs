//! Metrics of a watched subnet for Prometheus: all port counters as the common exporter names them, and the diagnosis.
//!
//! Waiting [s], lost bandwidth [bytes] and time in congestion trees [s] grow from the exporter's start, by known
//! intervals.

mod counters;
mod page;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use prometheus_client::metrics::counter::Counter;
use silvan_core::{Guid, IdVec, PortId, Span};
use silvan_fabric::{Fabric, NodeKind};
use silvan_subnet::client::Statistics;
use silvan_subnet::metrics::{ConnectionMetrics, DatagramMetrics, Page, label, open_metrics};
use silvan_subnet::sweep::PortAnswers;

use self::counters::EXPORTED;
use crate::health::Severity;
use crate::observation::{Observation, data_rate};
use crate::report::Report;
use crate::verdict::Cause;

/// Values without characters to escape.
type Labels = Vec<(&'static str, String)>;

/// Growth since the exporter started, in seconds and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    wait_s: f64,
    /// Bytes that the link could have carried in this time.
    lost_bytes: f64,
    congested_s: f64,
    root_s: f64,
    branch_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Device {
    Switch,
    Hca,
}

impl Device {
    const ALL: [Self; 2] = [Self::Switch, Self::Hca];

    fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Hca => "hca",
        }
    }
}

#[derive(Debug)]
struct DeviceRow {
    device: Device,
    labels: Labels,
}

#[derive(Debug)]
struct PortRow {
    device: Device,
    labels: Labels,
    uplink: Labels,
    counters: [Option<u64>; EXPORTED.len()],
    rate: u64,
    totals: Totals,
}

/// A cable with bit errors.
#[derive(Debug)]
struct CableRow {
    labels: Labels,
    symbol_errors_per_s: f64,
}

#[derive(Debug)]
struct TreeRow {
    labels: Labels,
    branches: usize,
    contributors: usize,
    victims: usize,
}

#[derive(Debug, Default)]
struct Snapshot {
    devices: Vec<DeviceRow>,
    ports: Vec<PortRow>,
    trees: Vec<TreeRow>,
    bad_cables: Vec<CableRow>,
    /// Trees by [`Cause::ALL`].
    causes: [usize; Cause::ALL.len()],
    /// Findings by [`Severity::ALL`].
    findings: [usize; Severity::ALL.len()],
    unknown_ports: usize,
    unexplained: usize,
    sweep_s: f64,
}

/// Intervals without a sweep after which the last one is old.
const OLD_AFTER: u32 = 3;
/// No sweep is old before; a busy machine may take so long for one.
const NEVER_OLD_BEFORE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct Latest {
    /// `None` before the second sweep, and after one that has failed.
    snapshot: Option<Snapshot>,
    /// End of the last successful sweep, by both clocks.
    ended: Option<(Instant, SystemTime)>,
    /// Time between sweeps: the wanted one, or the last if longer.
    interval: Duration,
}

impl Latest {
    /// An old sweep must not pass for the state of the subnet.
    fn fresh(&self) -> Option<&Snapshot> {
        let (ended, _) = self.ended?;
        let old_after = NEVER_OLD_BEFORE.max(self.interval.saturating_mul(OLD_AFTER));
        let is_fresh = ended.elapsed() < old_after;
        self.snapshot.as_ref().filter(|_| is_fresh)
    }
}

/// The metrics of a watched subnet.
#[derive(Debug)]
pub struct Exporter {
    latest: Arc<RwLock<Latest>>,
    interval: Duration,
    totals: RwLock<HashMap<(Guid, u8), Totals>>,
    sweeps: Counter,
    failures: Counter,
    datagrams: DatagramMetrics,
    connections: ConnectionMetrics,
}

/// A diagnosed sweep with all counters.
#[derive(Clone, Copy, Debug)]
pub struct Swept<'a> {
    /// Nodes and cables.
    pub fabric: &'a Fabric,
    /// The answers of the ports.
    pub answers: &'a IdVec<PortId, PortAnswers>,
    /// Growth of the counters.
    pub observation: &'a Observation,
    /// Diagnosis of the growth.
    pub report: &'a Report,
    /// Datagrams since the start.
    pub statistics: Statistics,
}

impl Exporter {
    /// Metrics of a subnet that is swept at this interval.
    pub fn new(interval: Duration) -> Self {
        Self {
            latest: Arc::default(),
            interval,
            totals: RwLock::default(),
            sweeps: Counter::default(),
            failures: Counter::default(),
            datagrams: DatagramMetrics::default(),
            connections: ConnectionMetrics::default(),
        }
    }

    /// Takes a sweep.
    pub fn update(&self, swept: Swept<'_>) {
        let snapshot = self.snapshot_of(&swept);
        self.sweeps.inc();
        self.datagrams.set(swept.statistics);
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        let took = latest
            .ended
            .map_or(Duration::ZERO, |(ended, _)| ended.elapsed());
        latest.interval = self.interval.max(took);
        latest.ended = Some((Instant::now(), SystemTime::now()));
        latest.snapshot = Some(snapshot);
    }

    /// Records a failed sweep. The results of the sweep before are not served any more.
    pub fn fail(&self) {
        self.failures.inc();
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        latest.snapshot = None;
    }

    fn snapshot_of(&self, swept: &Swept<'_>) -> Snapshot {
        let Swept { fabric, report, .. } = *swept;
        let mut all = self.totals.write().unwrap_or_else(PoisonError::into_inner);
        let mut roles: IdVec<PortId, (bool, bool)> =
            IdVec::filled((false, false), fabric.ports.len());
        for tree in &report.trees {
            roles[tree.root_port].0 = true;
            for branch in &tree.branches {
                roles[branch.id].1 = true;
            }
        }
        let mut ports = Vec::new();
        for (port, place) in fabric.ports.iter_enumerated() {
            let Some((rate, peer)) = data_rate(fabric, port).zip(place.peer) else {
                continue;
            };
            let (device, labels) = port_labels(fabric, port);
            let bytes_per_s = rate.bits_per_sec() / 8;
            let totals = all.entry(key(fabric, port)).or_default();
            totals.add(swept, port, bytes_per_s, roles[port]);
            let answers = &swept.answers[port];
            ports.push(PortRow {
                device,
                labels,
                uplink: uplink_labels(fabric, peer),
                counters: std::array::from_fn(|index| EXPORTED[index].read(answers)),
                rate: bytes_per_s,
                totals: *totals,
            });
        }
        let devices = fabric.nodes.iter().map(|node| {
            let device = device(node.kind);
            let labels = vec![
                ("guid", node.guid.to_string()),
                (device.name(), label(&node.name)),
                ("lid", node.lid.as_u16().to_string()),
            ];
            DeviceRow { device, labels }
        });
        let trees = report.trees.iter().map(|tree| {
            let mut labels = node_labels(fabric, tree.root_port);
            labels.push(("cause", tree.cause.to_owned()));
            labels.push(("confidence", tree.confidence.to_owned()));
            TreeRow {
                labels,
                branches: tree.branches.len(),
                contributors: tree.contributors.len(),
                victims: tree.victims.len(),
            }
        });
        let bad_cables = report.bad_cables.iter().map(|cable| {
            let mut labels = node_labels(fabric, cable.id);
            labels.push(("congestion", cable.congestion.name().to_owned()));
            CableRow {
                labels,
                symbol_errors_per_s: cable.symbol_errors_per_s,
            }
        });
        let count = |cause: &Cause| {
            let has = |tree: &&crate::report::TreeReport| tree.cause == cause.name();
            report.trees.iter().filter(has).count()
        };
        let findings = |severity: &Severity| {
            let has = |item: &&crate::health::HealthItem| item.severity == *severity;
            report.health.iter().filter(has).count()
        };
        Snapshot {
            devices: devices.collect(),
            ports,
            trees: trees.collect(),
            bad_cables: bad_cables.collect(),
            causes: Cause::ALL.each_ref().map(count),
            findings: Severity::ALL.each_ref().map(findings),
            unknown_ports: report.unknown_ports,
            unexplained: report.unexplained.len(),
            sweep_s: report.datagrams.as_ref().map_or(0.0, |sent| sent.sweep_s),
        }
    }
}

impl Totals {
    fn add(
        &mut self,
        swept: &Swept<'_>,
        port: PortId,
        bytes_per_s: u64,
        (is_root, is_branch): (bool, bool),
    ) {
        let grown = &swept.observation.growth[port];
        let seconds = |span: Span| span.as_ps() as f64 / 1e12;
        let tick_s = swept.observation.ticks[port].map_or(0.0, seconds);
        let span_s = seconds(grown.span);
        // A counter of time whose tick is too long counts more than has passed.
        let waited = grown.xmit_wait.unwrap_or(0) as f64 * tick_s;
        let waited = waited.min(span_s);
        self.wait_s += waited;
        self.lost_bytes += waited * bytes_per_s as f64;
        self.congested_s += grown.xmit_cong.unwrap_or(0) as f64 * tick_s;
        let span_s = seconds(swept.observation.span);
        self.root_s += if is_root { span_s } else { 0.0 };
        self.branch_s += if is_branch { span_s } else { 0.0 };
    }
}

fn device(kind: NodeKind) -> Device {
    match kind {
        NodeKind::Switch(_) => Device::Switch,
        NodeKind::Host(_) => Device::Hca,
    }
}

/// Adapters number their own ports.
fn key(fabric: &Fabric, port: PortId) -> (Guid, u8) {
    let place = &fabric.ports[port];
    let node = &fabric.nodes[place.node];
    (node.guid, node.adapter_port.unwrap_or(place.number).as_u8())
}

fn port_labels(fabric: &Fabric, port: PortId) -> (Device, Labels) {
    let node = &fabric.nodes[fabric.ports[port].node];
    let (guid, number) = key(fabric, port);
    let device = device(node.kind);
    let labels = vec![
        ("guid", guid.to_string()),
        ("port", number.to_string()),
        (device.name(), label(&node.name)),
    ];
    (device, labels)
}

/// The labels of a port of any device.
fn node_labels(fabric: &Fabric, port: PortId) -> Labels {
    let (device, mut labels) = port_labels(fabric, port);
    let name = labels.iter_mut().find(|(key, _)| *key == device.name());
    if let Some((key, _)) = name {
        *key = "node";
    }
    labels
}

fn uplink_labels(fabric: &Fabric, peer: PortId) -> Labels {
    let node = &fabric.nodes[fabric.ports[peer].node];
    let (guid, number) = key(fabric, peer);
    let kind = match device(node.kind) {
        Device::Switch => "SW",
        Device::Hca => "CA",
    };
    vec![
        ("uplink", label(&node.name)),
        ("uplink_guid", guid.to_string()),
        ("uplink_type", kind.to_owned()),
        ("uplink_port", number.to_string()),
        ("uplink_lid", node.lid.as_u16().to_string()),
    ]
}

impl Page for Exporter {
    fn text(&self) -> String {
        open_metrics(&self.registry())
    }

    fn connections(&self) -> &ConnectionMetrics {
        &self.connections
    }
}

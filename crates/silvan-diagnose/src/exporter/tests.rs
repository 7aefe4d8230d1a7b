//! Sweeps of a small fabric, made by hand, and the text that comes of them.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use silvan_core::growth::CounterValue;
use silvan_core::{Length, MonotonicTime, PortNumber, Rate};
use silvan_fabric::generators::{Generator, SingleSwitch};
use silvan_fabric::routing::min_hop_balanced;
use silvan_fabric::{LinkKind, Speed, Width};
use silvan_mad::performance::{
    PerformanceAttribute, PortCounters, PortCountersExtended, PortXmitConCtrl,
};
use silvan_mad::{Body, CounterCapabilities, Mad, Method};
use silvan_subnet::client::Answer;
use silvan_subnet::sweep::SweptAttribute;

use super::*;
use crate::counters::TrafficReading;
use crate::report::Input;

const TICK: Span = Span::from_ns(4);
/// Words that a link of 8 Gbit/s carries per second.
const FULL: u64 = 250_000_000;

/// Three hosts at a switch; hosts 0 and 1 fill the link of host 2, and wait for half of the time.
struct Bench {
    fabric: Fabric,
    exporter: Exporter,
    seconds: u64,
}

/// Adds an answer with an attribute to a port.
fn insert(
    answers: &mut PortAnswers,
    attribute: SweptAttribute,
    value: impl Into<PerformanceAttribute>,
) {
    let mad = Mad::request(Method::GET_RESPONSE, Body::Performance(value.into()));
    let at = MonotonicTime::ZERO;
    let answer = Answer::new(at, at, mad.emit());
    answers.insert(attribute, PortNumber::new(0), &answer);
}

impl Bench {
    fn new() -> Self {
        Self::with_interval(Duration::from_secs(3600))
    }

    fn with_interval(interval: Duration) -> Self {
        let link = LinkKind::new(Width::X4, Speed::Sdr, Length::ZERO);
        let fabric = SingleSwitch { hosts: 3 }.build(link).unwrap();
        Self {
            fabric,
            exporter: Exporter::new(interval),
            seconds: 0,
        }
    }

    /// Words sent and received per second, and part of the time waiting.
    fn load(&self, port: PortId) -> (u64, u64, f64) {
        let number = self.fabric.ports[port].number;
        match self.fabric.nodes[self.fabric.ports[port].node].as_host() {
            Some(host) if host.index() == 2 => (0, FULL, 0.0),
            Some(_) => (FULL / 2, 0, 0.5),
            None if number == PortNumber::new(3) => (FULL, 0, 0.0),
            None => (0, FULL / 2, 0.0),
        }
    }

    fn readings(&self) -> IdVec<PortId, TrafficReading> {
        let reading = |port| {
            let (sent, received, wait) = self.load(port);
            let ticks = (wait * self.seconds as f64 * 250e6) as u64;
            TrafficReading {
                at: Some(MonotonicTime::from_ns(self.seconds * 1_000_000_000)),
                xmit_data: Some(CounterValue::new(sent * self.seconds, 64)),
                rcv_data: Some(CounterValue::new(received * self.seconds, 64)),
                xmit_wait: Some(CounterValue::new(ticks, 32)),
                ..TrafficReading::default()
            }
        };
        self.fabric.ports.ids().map(reading).collect()
    }

    fn answers(&self) -> IdVec<PortId, PortAnswers> {
        let answers = |(port, reading): (PortId, &TrafficReading)| {
            let counters = PortCounters {
                symbol_errors: 7,
                xmit_wait: reading.xmit_wait.unwrap().value as u32,
                xmit_data: 1,
                ..PortCounters::default()
            };
            let extended = PortCountersExtended {
                xmit_data: reading.xmit_data.unwrap().value,
                ..PortCountersExtended::default()
            };
            let congestion = PortXmitConCtrl {
                time_cong: 11,
                ..PortXmitConCtrl::default()
            };
            let mut answers = PortAnswers::new(CounterCapabilities::UNKNOWN);
            insert(&mut answers, SweptAttribute::Counters, counters);
            insert(&mut answers, SweptAttribute::Extended, extended);
            if port.index() == 0 {
                insert(&mut answers, SweptAttribute::Congestion, congestion);
            }
            answers
        };
        self.readings().iter_enumerated().map(answers).collect()
    }

    /// Lets so many seconds pass, and sweeps.
    fn pass(&mut self, seconds: u64) {
        let before = self.readings();
        self.seconds += seconds;
        let now = self.readings();
        let ticks = IdVec::filled(Some(TICK), self.fabric.ports.len());
        let observation = Observation::new(&self.fabric, &before, &now, ticks);
        let tables = min_hop_balanced(&self.fabric).unwrap();
        let capable: IdVec<PortId, Option<Rate>> = IdVec::filled(None, self.fabric.ports.len());
        let report = Report::new(Input {
            fabric: &self.fabric,
            tables: Some(&tables),
            assumed: &tables,
            capable: &capable,
            observation: &observation,
            facts: None,
        });
        assert_eq!(report.trees.len(), 1, "{report:?}");
        self.exporter.update(Swept {
            fabric: &self.fabric,
            answers: &self.answers(),
            observation: &observation,
            report: &report,
            statistics: Statistics::default(),
        });
    }

    /// The value of a sample whose line begins with this name, and has all these labels.
    fn value(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let text = self.exporter.text();
        let is_sample = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        };
        let line = text.lines().find(is_sample)?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

#[test]
fn counters_are_those_of_the_devices() {
    let mut bench = Bench::new();
    bench.pass(4);
    let host = ["hca=\"host-0000\"", "port=\"1\""];
    let value = |name| bench.value(name, &host);
    // The wide counter, in bytes.
    let sent = value("infiniband_hca_port_transmit_data_bytes_total");
    assert_eq!(sent, Some((4 * 4 * FULL / 2) as f64));
    assert_eq!(value("infiniband_hca_port_symbol_error_total"), Some(7.0));
    let ticks = value("infiniband_hca_port_transmit_wait_total");
    assert_eq!(ticks, Some(0.5 * 4.0 * 250e6));
    assert_eq!(
        value("infiniband_hca_port_rate_bytes_per_second"),
        Some(1e9)
    );
    let text = bench.exporter.text();
    assert!(!text.contains("port_receive_becn"), "nothing was read");
    let congested = text
        .lines()
        .filter(|line| line.contains("transmit_time_congested_total{"));
    assert_eq!(congested.count(), 1);
    let uplink = text
        .lines()
        .find(|line| line.starts_with("infiniband_hca_uplink_info{") && line.contains(host[0]));
    assert!(uplink.unwrap().contains("uplink_type=\"SW\""), "{uplink:?}");
}

#[test]
fn lost_bandwidth_and_time_in_trees_grow_with_each_sweep() {
    let mut bench = Bench::new();
    for (seconds, all) in [(4, 4.0), (2, 6.0)] {
        bench.pass(seconds);
        // Half of the time, on a link of 1 GB/s.
        let host = ["hca=\"host-0001\""];
        let value = |name: &str| bench.value(name, &host).unwrap();
        let near = |value: f64, wanted: f64| (value - wanted).abs() < 1e-6 * wanted;
        assert!(near(
            value("infiniband_hca_port_transmit_wait_seconds_total"),
            all / 2.0
        ));
        assert!(near(
            value("infiniband_hca_port_transmit_lost_bytes_total"),
            1e9 * all / 2.0
        ));
        let branch = "infiniband_hca_port_congestion_tree_seconds_total";
        assert!(near(
            bench.value(branch, &[host[0], "role=\"branch\""]).unwrap(),
            all
        ));
        let root = "infiniband_switch_port_congestion_tree_seconds_total";
        let labels = ["port=\"3\"", "role=\"root\""];
        assert!(near(bench.value(root, &labels).unwrap(), all));
    }
    let trees = "silvan_diagnosis_trees";
    assert_eq!(bench.value(trees, &["cause=\"incast\""]), Some(1.0));
    assert_eq!(bench.value(trees, &["cause=\"overload\""]), Some(0.0));
    let contributors = "silvan_diagnosis_tree_contributors";
    assert_eq!(
        bench.value(contributors, &["port=\"3\"", "cause=\"incast\""]),
        Some(2.0)
    );
    assert_eq!(bench.value("silvan_exporter_sweeps_total", &[]), Some(2.0));
}

#[test]
fn ports_are_not_served_after_a_sweep_that_failed() {
    let mut bench = Bench::new();
    assert_eq!(bench.value("silvan_exporter_up", &[]), Some(0.0));
    bench.pass(1);
    assert_eq!(bench.value("silvan_exporter_up", &[]), Some(1.0));
    bench.exporter.fail();
    assert_eq!(bench.value("silvan_exporter_up", &[]), Some(0.0));
    assert!(!bench.exporter.text().contains("infiniband_"));
    assert_eq!(
        bench.value("silvan_exporter_sweep_failures_total", &[]),
        Some(1.0)
    );
    // Totals from before continue to grow.
    bench.pass(1);
    let lost = bench.value(
        "infiniband_hca_port_transmit_lost_bytes_total",
        &["hca=\"host-0000\""],
    );
    assert_eq!(lost, Some(1e9));
}

#[test]
fn names_of_nodes_cannot_pass_for_metrics() {
    let mut bench = Bench::new();
    let node = bench
        .fabric
        .node_by_lid(bench.fabric.nodes.iter().next().unwrap().lid);
    bench.fabric.nodes[node.unwrap()].name = "evil\"} 1\nsilvan_exporter_up 7 \\".to_owned();
    bench.pass(1);
    let text = bench.exporter.text();
    assert_eq!(bench.value("silvan_exporter_up", &[]), Some(1.0));
    assert!(text.contains("evil\\\"} 1\\nsilvan_exporter_up 7 \\\\\""));
}

/// A device with the additional counters: those of 32 and 16 bits are full, or not.
#[test]
fn the_widest_counter_is_exported() {
    let counters = PortCounters {
        symbol_errors: u16::MAX,
        xmit_wait: u32::MAX,
        ..PortCounters::default()
    };
    let extended = PortCountersExtended {
        symbol_errors: 70_000,
        xmit_wait: 1 << 40,
        ..PortCountersExtended::default()
    };
    let read = |answers: &PortAnswers, field| {
        let counter = EXPORTED.iter().find(|counter| counter.field == field);
        counter.unwrap().read(answers)
    };
    let answers = |additional| {
        let mut answers = PortAnswers::new(CounterCapabilities {
            additional,
            ..CounterCapabilities::UNKNOWN
        });
        insert(&mut answers, SweptAttribute::Counters, counters);
        answers
    };
    // The answer with the wide ones is lost: the narrow ones would pass for a reset.
    let mut new = answers(true);
    assert_eq!(read(&new, "PortXmitWait"), None);
    insert(&mut new, SweptAttribute::Extended, extended);
    assert_eq!(read(&new, "PortXmitWait"), Some(1 << 40));
    assert_eq!(read(&new, "SymbolErrorCounter"), Some(70_000));
    let mut old = answers(false);
    insert(&mut old, SweptAttribute::Extended, extended);
    assert_eq!(read(&old, "PortXmitWait"), Some(u32::MAX.into()));
    assert_eq!(read(&old, "SymbolErrorCounter"), Some(u16::MAX.into()));
}

/// A sweep that ended longer ago than 10 s and three intervals is not served; when it ended is.
#[test]
fn an_old_sweep_is_not_served() {
    for (interval_s, is_old) in [(0, true), (3600, false)] {
        let mut bench = Bench::with_interval(Duration::from_secs(interval_s));
        let value = |bench: &Bench, name| bench.value(name, &[]);
        assert_eq!(
            value(&bench, "silvan_exporter_last_sweep_timestamp_seconds"),
            None
        );
        bench.pass(4);
        assert_eq!(value(&bench, "silvan_exporter_up"), Some(1.0));
        {
            let mut latest = bench.exporter.latest.write().unwrap();
            let (ended, time) = latest.ended.unwrap();
            let earlier = ended.checked_sub(Duration::from_secs(11)).unwrap();
            latest.ended = Some((earlier, time));
        }
        assert_eq!(
            value(&bench, "silvan_exporter_up"),
            Some(f64::from(!is_old))
        );
        assert_eq!(value(&bench, "silvan_exporter_ports").is_none(), is_old);
        let ended = value(&bench, "silvan_exporter_last_sweep_timestamp_seconds");
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        assert!((now.as_secs_f64() - ended.unwrap()).abs() < 3600.0);
    }
}

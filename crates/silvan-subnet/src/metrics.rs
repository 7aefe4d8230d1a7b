//! Metrics of all processes that read a subnet: text formats, labels, connections and datagrams.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::client::Statistics;

/// Escapes a label's value: a quote or line break in a node's name could pass for metrics.
pub fn label(value: &str) -> String {
    let mut label = String::with_capacity(value.len());
    for char in value.chars() {
        match char {
            '\\' => label.push_str("\\\\"),
            '"' => label.push_str("\\\""),
            '\n' => label.push_str("\\n"),
            char => label.push(char),
        }
    }
    label
}

/// Why the endpoint has closed a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ClosedLabels {
    /// `no-request` or `not-read` in time, or `too-many` connections.
    pub reason: &'static str,
}

impl ClosedLabels {
    /// No request in time.
    pub const NO_REQUEST: Self = Self {
        reason: "no-request",
    };
    /// A response that was not read in time.
    pub const NOT_READ: Self = Self { reason: "not-read" };
    /// Too many connections.
    pub const TOO_MANY: Self = Self { reason: "too-many" };
}

/// Page of an endpoint.
pub trait Page: Send + Sync {
    /// The text that Prometheus reads (OpenMetrics 1.0).
    fn text(&self) -> String;

    /// Returns the counters of the endpoint's connections.
    fn connections(&self) -> &ConnectionMetrics;
}

/// All metrics of a registry as text.
pub fn open_metrics(registry: &Registry) -> String {
    let mut text = String::new();
    let _ = encode(&mut text, registry);
    text
}

/// Converts metrics to Prometheus's text format 0.0.4: a counter's description has the name of its samples.
pub fn plain_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        let described = |kind| {
            line.strip_prefix(kind)
                .and_then(|rest: &str| rest.split_once(' '))
        };
        if let Some((_, about)) = described("# HELP ") {
            help = Some(about);
        } else if let Some((name, kind)) = described("# TYPE ") {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some(about) = help.take() {
                text.extend(["# HELP ", name, suffix, " ", about, "\n"]);
            }
            text.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
        } else if !line.starts_with('#') {
            text.extend([line, "\n"]);
        }
    }
    text
}

/// Connections to an endpoint.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    /// Connections that could not be accepted.
    pub accept_errors: Counter,
    /// Connections that the endpoint has closed.
    pub closed: Family<ClosedLabels, Counter>,
}

impl ConnectionMetrics {
    /// Registers the counters, for each reason from the start: a rate needs a first value.
    pub fn register(&self, registry: &mut Registry) {
        for labels in [
            ClosedLabels::NO_REQUEST,
            ClosedLabels::NOT_READ,
            ClosedLabels::TOO_MANY,
        ] {
            drop(self.closed.get_or_create(&labels));
        }
        registry.register(
            "metrics_accept_errors",
            "Connections to this endpoint that could not be accepted",
            self.accept_errors.clone(),
        );
        registry.register(
            "metrics_connections_closed",
            "Connections to this endpoint that it has closed, by the reason",
            self.closed.clone(),
        );
    }
}

/// Management datagrams of a process.
#[derive(Debug, Default)]
pub struct DatagramMetrics([Counter; 5]);

impl DatagramMetrics {
    /// Registers the counters.
    pub fn register(&self, registry: &mut Registry) {
        let names = [
            ("mads_sent", "Requests sent, retries included"),
            ("mads_answered", "Requests answered"),
            ("mad_timeouts", "Requests not answered in time"),
            ("mads_refused", "Requests answered with an error"),
            ("mads_unexpected", "Datagrams that answer nothing"),
        ];
        for ((name, help), counter) in names.into_iter().zip(&self.0) {
            registry.register(name, help, counter.clone());
        }
    }

    /// Takes the counts.
    pub fn set(&self, statistics: Statistics) {
        let values = [
            statistics.sent,
            statistics.answered,
            statistics.timeouts,
            statistics.refused,
            statistics.unexpected,
        ];
        for (counter, value) in self.0.iter().zip(values) {
            counter.inc_by(value.saturating_sub(counter.get()));
        }
    }
}

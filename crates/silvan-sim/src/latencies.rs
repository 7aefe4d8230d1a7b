use std::collections::BTreeMap;

use serde::Serialize;
use silvan_core::Time;
use silvan_model::{Latencies, Simulation, latency_bucket};

use crate::table::{Table, TableSchema};

/// Latencies of the packets of all traffic classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Packets.
    pub packets: u64,
    /// Mean in nanoseconds, exact.
    pub mean_ns: f64,
    /// Median in nanoseconds, with the resolution of [`Latencies::PERCENTILE_RESOLUTION`].
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest in nanoseconds, exact.
    pub max_ns: f64,
}

impl LatencySummary {
    pub(super) fn of(engine: &dyn Simulation) -> Option<Self> {
        let classes: Vec<Latencies> = (0..engine.classes().len())
            .filter_map(|class| engine.latency_of_class(class as u16))
            .collect();
        let all = Latencies::of_groups(&classes)?;
        Some(Self {
            packets: all.packets(),
            mean_ns: all.mean_ns(),
            p50_ns: all.quantile_ns(0.5),
            p99_ns: all.quantile_ns(0.99),
            p999_ns: all.quantile_ns(0.999),
            max_ns: all.max_ns(),
        })
    }
}

#[derive(Default)]
pub(super) struct LatencySeries {
    time_ps: Vec<u64>,
    from_ns: Vec<u64>,
    to_ns: Vec<u64>,
    packets: Vec<u64>,
    before: Vec<u64>,
    counts: Vec<u64>,
}

impl LatencySeries {
    pub fn sample(&mut self, engine: &dyn Simulation) {
        self.counts.fill(0);
        for class in 0..engine.classes().len() {
            engine.add_latency_counts(class as u16, &mut self.counts);
        }
        self.before.resize(self.counts.len(), 0);
        let now = engine.now().as_ps();
        for (bucket, (count, before)) in self.counts.iter().zip(&self.before).enumerate() {
            if count > before {
                let (from, to) = latency_bucket(bucket);
                self.time_ps.push(now);
                self.from_ns.push(from);
                self.to_ns.push(to);
                self.packets.push(count - before);
            }
        }
        std::mem::swap(&mut self.counts, &mut self.before);
    }

    pub fn merge_pairs(&mut self, start: Time, ends: &[Time]) {
        let first = self.time_ps.partition_point(|time| *time <= start.as_ps());
        let mut merged: BTreeMap<(u64, u64, u64), u64> = BTreeMap::new();
        for row in first..self.time_ps.len() {
            let time = self.time_ps[row];
            let end = ends[ends.partition_point(|end| end.as_ps() < time)].as_ps();
            let bucket = (end, self.from_ns[row], self.to_ns[row]);
            *merged.entry(bucket).or_default() += self.packets[row];
        }
        for column in [
            &mut self.time_ps,
            &mut self.from_ns,
            &mut self.to_ns,
            &mut self.packets,
        ] {
            column.truncate(first);
        }
        for ((end, from, to), packets) in merged {
            self.time_ps.push(end);
            self.from_ns.push(from);
            self.to_ns.push(to);
            self.packets.push(packets);
        }
    }

    pub fn reset(&mut self) {
        self.before.fill(0);
    }

    pub fn table(self) -> Table {
        let mut table = Table::new(&LATENCY_SERIES);
        table.push("time_ps", self.time_ps);
        table.push("from_ns", self.from_ns);
        table.push("to_ns", self.to_ns);
        table.push("packets", self.packets);
        table
    }
}

pub(crate) const LATENCY_SERIES: TableSchema = TableSchema {
    name: "latency_series",
    rows: "One row per probe interval and interval of latencies that occurred in it, with `probe.latency = \"host\"` or `\"host-coarse\"`.",
    columns: &[
        (&["time_ps"], "End of the probe interval."),
        (
            &["from_ns", "to_ns"],
            "Smallest and largest latency of the interval.",
        ),
        (
            &["packets"],
            "Packets that all hosts received in the probe interval with such a latency.",
        ),
    ],
    has_counters: false,
};

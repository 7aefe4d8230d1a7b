//! Latencies over time: those of the packets that arrived in each probe interval.

use silvan_model::{Simulation, latency_bucket};

use crate::table::{Table, TableSchema};

/// The table so far, in columns.
#[derive(Default)]
pub(super) struct LatencySeries {
    time_ps: Vec<u64>,
    from_ns: Vec<u64>,
    to_ns: Vec<u64>,
    packets: Vec<u64>,
    /// Packets up to the last sample, and up to this one, by bucket of latencies.
    before: Vec<u64>,
    counts: Vec<u64>,
}

impl LatencySeries {
    /// Adds what has arrived since the last sample, in all classes.
    pub fn sample(&mut self, engine: &dyn Simulation) {
        self.counts.fill(0);
        for class in 0..engine.classes().len() {
            // A class number has 16 bits: the traffic refuses more classes.
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

    /// The engine has discarded its latencies.
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

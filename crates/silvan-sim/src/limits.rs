//! Limits that the congestion control sets to flows, at each sample.

use silvan_core::HostId;
use silvan_model::Simulation;

use crate::table::{Table, TableSchema};

/// Most rows of the table; later samples are left out.
const MOST_ROWS: usize = 10_000_000;

/// The table so far, in columns.
#[derive(Default)]
pub(super) struct FlowLimits {
    time_ps: Vec<u64>,
    source: Vec<u32>,
    destination: Vec<Option<u64>>,
    sl: Vec<u32>,
    ccti: Vec<u32>,
    rate: Vec<f64>,
}

impl FlowLimits {
    /// Adds the flows that are held below the rate of their link now.
    pub fn sample(&mut self, engine: &dyn Simulation, hosts: impl Iterator<Item = HostId>) {
        if self.time_ps.len() >= MOST_ROWS {
            return;
        }
        let now = engine.now().as_ps();
        for host in hosts {
            for limit in engine.flow_limits(host) {
                self.time_ps.push(now);
                self.source.push(host.index() as u32);
                let destination = limit.destination.map(|host| host.index() as u64);
                self.destination.push(destination);
                self.sl.push(u32::from(limit.sl.as_u8()));
                self.ccti.push(u32::from(limit.ccti));
                self.rate.push(limit.rate);
            }
        }
    }

    pub fn table(self) -> Table {
        let mut table = Table::new(&FLOW_LIMITS);
        table.push("time_ps", self.time_ps);
        table.push("source", self.source);
        table.push("destination", self.destination);
        table.push("sl", self.sl);
        table.push("ccti", self.ccti);
        table.push("rate", self.rate);
        table
    }
}

pub(crate) const FLOW_LIMITS: TableSchema = TableSchema {
    name: "flow_limits",
    rows: "One row per probe interval and flow that the congestion control holds below the rate of its link, with `probe.flow-limits = true`. Up to 10 million rows; the samples after them are left out. Schemes `ib-cc`, `ecn` and `dcqcn` (also in a chain) have such limits.",
    columns: &[
        (&["time_ps"], "Time of the sample."),
        (
            &["source", "destination"],
            "Rows of `hosts`. No destination: the limit is of all flows of the service level (`control.ib-cc.adapter.level = \"sl\"`).",
        ),
        (&["sl"], "Service level."),
        (
            &["ccti"],
            "Index into the Congestion Control Table, above 0; 0 for schemes without such a table.",
        ),
        (
            &["rate"],
            "Rate that the limit leaves to the flow, as a part of the rate of its link.",
        ),
    ],
    has_counters: false,
};

use silvan_core::{HostId, Time};
use silvan_model::Simulation;

use crate::table::{Table, TableSchema};

const MOST_ROWS: usize = 10_000_000;

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

    pub fn keep(&mut self, start: Time, instants: &[Time]) {
        let first = self.time_ps.partition_point(|time| *time <= start.as_ps());
        let is_kept = |time: &u64| instants.binary_search(&Time::from_ps(*time)).is_ok();
        let rows: Vec<usize> = (first..self.time_ps.len())
            .filter(|&row| is_kept(&self.time_ps[row]))
            .collect();
        pick(&mut self.time_ps, first, &rows);
        pick(&mut self.source, first, &rows);
        pick(&mut self.destination, first, &rows);
        pick(&mut self.sl, first, &rows);
        pick(&mut self.ccti, first, &rows);
        pick(&mut self.rate, first, &rows);
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

fn pick<T: Copy>(column: &mut Vec<T>, first: usize, rows: &[usize]) {
    for (to, &row) in rows.iter().enumerate() {
        column[first + to] = column[row];
    }
    column.truncate(first + rows.len());
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

//! The tables of a result, as the Python package and the files on disk have them.

use silvan_core::counters::CounterTable;
use silvan_core::{HostId, PortCounters, PortId, Time};
use silvan_model::{Latencies, PortReading};
use silvan_workload::traffic::Role;

use super::latencies::LatencySeries;
use super::limits::FlowLimits;
use super::measure::Measurement;
use crate::table::Table;
use silvan_model::LatencyStats;
use silvan_model::Simulation;

/// Deliveries per host, or per traffic class, and probe interval, in columns.
pub(super) struct Series {
    /// Name of the table, and of the column that tells whose deliveries they are.
    names: (&'static str, &'static str),
    time_ps: Vec<u64>,
    whose: Vec<u32>,
    delivered_bytes: Vec<u64>,
    /// Delivered up to the last sample, by host or class.
    before: Vec<u64>,
}

impl Series {
    pub fn of_hosts(hosts: usize, samples: usize) -> Self {
        Self::new(("host_series", "host"), hosts, samples)
    }

    pub fn of_classes(classes: usize, samples: usize) -> Self {
        Self::new(("class_series", "class"), classes, samples)
    }

    fn new(names: (&'static str, &'static str), count: usize, samples: usize) -> Self {
        let rows = count * samples;
        Self {
            names,
            time_ps: Vec::with_capacity(rows),
            whose: Vec::with_capacity(rows),
            delivered_bytes: Vec::with_capacity(rows),
            before: vec![0; count],
        }
    }

    pub fn push(&mut self, now: Time, whose: usize, delivered: u64) {
        let before = &mut self.before[whose];
        self.time_ps.push(now.as_ps());
        self.whose.push(whose as u32);
        self.delivered_bytes.push(delivered - *before);
        *before = delivered;
    }

    fn table(self) -> Table {
        let (name, column) = self.names;
        let mut table = Table::new(name);
        table.push("time_ps", self.time_ps);
        table.push(column, self.whose);
        table.push("delivered_bytes", self.delivered_bytes);
        table
    }
}

/// Counters per port and probe interval, in columns.
pub(super) struct PortSeries {
    /// Of the samples.
    times: Vec<Time>,
    /// By counter of the table; the ports of one sample after the other.
    counted: [Vec<u64>; PortCounters::SAMPLED],
    queued_bytes: Vec<u64>,
    /// All ports at this sample, and at the last one.
    now: Vec<PortReading>,
    before: Vec<PortReading>,
}

impl PortSeries {
    pub fn new(ports: usize, samples: usize) -> Self {
        let column = || Vec::with_capacity(ports * samples);
        Self {
            times: Vec::with_capacity(samples),
            counted: std::array::from_fn(|_| column()),
            queued_bytes: column(),
            now: Vec::with_capacity(ports),
            before: vec![PortReading::default(); ports],
        }
    }

    pub fn sample(&mut self, engine: &dyn Simulation, ports: &[PortId], vls: u8) {
        engine.read_ports(ports, vls, &mut self.now);
        let ports = self.now.len();
        let mut counted = self.counted.each_mut().map(|column| tail(column, ports));
        let queued = tail(&mut self.queued_bytes, ports);
        let readings = self.now.iter().zip(&self.before);
        for (port, (now, before)) in readings.enumerate() {
            for (counter, column) in counted.iter_mut().enumerate() {
                // Waiting that has not ended when a port is closed is no longer counted.
                column[port] = now.counters[counter].saturating_sub(before.counters[counter]);
            }
            queued[port] = now.queued_bytes;
        }
        std::mem::swap(&mut self.now, &mut self.before);
        self.times.push(engine.now());
    }

    fn table(self) -> Table {
        let ports = self.before.len();
        let rows = ports * self.times.len();
        let (mut times, mut ports_rows) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for time in &self.times {
            times.resize(times.len() + ports, time.as_ps());
            ports_rows.extend(0..ports as u32);
        }
        let mut table = Table::new("port_series");
        table.push("time_ps", times);
        table.push("ports_row", ports_rows);
        let counters = PortCounters::in_table(CounterTable::PortSeries);
        for (column, counter) in self.counted.into_iter().zip(counters) {
            table.push(counter.column, column);
        }
        table.push("queued_bytes", self.queued_bytes);
        table
    }
}

/// Further values of a column, to be set.
fn tail(column: &mut Vec<u64>, count: usize) -> &mut [u64] {
    let start = column.len();
    column.resize(start + count, 0);
    &mut column[start..start + count]
}

impl Measurement<'_> {
    /// All tables, at the end of the run.
    pub fn tables(self, engine: &dyn Simulation) -> Vec<Table> {
        let by_host = self.scenario.file().probe.latency.by_host();
        let ids = self.scenario.fabric().host_ids();
        let latencies = by_host.then(|| ids.map(|id| engine.latency_of_host(id)).collect());
        let latencies: Option<Vec<Option<Latencies>>> = latencies;
        let mut tables = vec![
            self.hosts_table(engine, latencies.as_deref()),
            self.classes_table(engine),
            self.ports_table(engine),
        ];
        tables.extend(latencies.as_deref().map(host_latencies_table));
        tables.insert(1, self.series.table());
        tables.extend(self.port_series.map(PortSeries::table));
        tables.extend(self.class_series.map(Series::table));
        tables.extend(self.latency_series.map(LatencySeries::table));
        tables.extend(self.flow_limits.map(FlowLimits::table));
        tables
    }

    fn hosts_table(
        &self,
        engine: &dyn Simulation,
        latencies: Option<&[Option<Latencies>]>,
    ) -> Table {
        let fabric = self.scenario.fabric();
        let ids = || fabric.host_ids();
        let counters = self.hosts(engine);
        let counted = |read: fn(&silvan_model::HostCounters) -> u64| -> Vec<u64> {
            let pairs = counters.iter().zip(&self.hosts_before);
            pairs.map(|(now, then)| read(now) - read(then)).collect()
        };
        let traffic = engine.traffic();
        let mut hotspots = traffic.hotspots(Time::ZERO);
        hotspots.extend(traffic.targets());
        let mut receives: Vec<bool> = ids().map(|host| traffic.receives(host)).collect();
        if let Some(programs) = engine.programs() {
            let sizes: Vec<u32> = programs.jobs().map(|job| job.ranks).collect();
            for rank in programs.ranks() {
                receives[rank.host.index()] |= sizes[rank.job as usize] > 1;
            }
        }
        let role = |host: HostId| {
            let role = match traffic.role(host) {
                Role::Idle => "other",
                Role::V => "v",
                Role::C => "c",
                Role::B => "b",
            };
            match hotspots.contains(&host) {
                true => format!("hotspot+{role}"),
                false => role.to_owned(),
            }
        };
        let mut table = Table::new("hosts");
        table.push(
            "host",
            ids().map(|id| id.index() as u32).collect::<Vec<_>>(),
        );
        let names = ids().map(|id| fabric.host(id).name.clone());
        table.push("name", names.collect::<Vec<_>>());
        let lids = ids().map(|id| u32::from(fabric.host(id).lid.as_u16()));
        table.push("lid", lids.collect::<Vec<_>>());
        table.push("role", ids().map(role).collect::<Vec<_>>());
        table.push("receives", receives);
        table.push("delivered_bytes", counted(|host| host.delivered_bytes));
        table.push("injected_bytes", counted(|host| host.injected_bytes));
        table.push("delivered_packets", counted(|host| host.delivered_packets));
        table.push("fecn_received", counted(|host| host.fecn_received));
        table.push("becn_received", counted(|host| host.becn_received));
        if counters.iter().all(|host| host.grants_received.is_some()) {
            let grants = |host: &silvan_model::HostCounters| host.grants_received.unwrap_or(0);
            table.push("grants_received", counted(grants));
        }
        if self.scenario.forwarding().choice.reorders() {
            table.push("reordered_packets", counted(|host| host.reordered_packets));
            if self.scenario.file().host.in_order {
                let most = counters.iter().map(|host| host.most_held_bytes);
                table.push("most_held_bytes", most.collect::<Vec<_>>());
            }
        }
        if let Some(latencies) = latencies {
            let coarse = self.scenario.file().probe.latency == LatencyStats::HostCoarse;
            push_latencies(&mut table, latencies, !coarse);
        }
        table
    }

    fn classes_table(&self, engine: &dyn Simulation) -> Table {
        let totals = self.classes(engine);
        let pairs = || totals.iter().zip(&self.classes_before);
        let names = engine.classes();
        let mut table = Table::new("classes");
        table.push("class", (0..names.len() as u32).collect::<Vec<_>>());
        table.push("name", names.to_vec());
        let bytes = pairs().map(|(now, then)| now.delivered_bytes - then.delivered_bytes);
        table.push("delivered_bytes", bytes.collect::<Vec<_>>());
        let packets = pairs().map(|(now, then)| now.delivered_packets - then.delivered_packets);
        table.push("delivered_packets", packets.collect::<Vec<_>>());
        let marked = pairs().map(|(now, then)| now.marked_packets - then.marked_packets);
        table.push("marked_packets", marked.collect::<Vec<_>>());
        let latencies: Vec<_> = (0..names.len())
            .map(|class| engine.latency_of_class(class as u16))
            .collect();
        push_latencies(&mut table, &latencies, true);
        table
    }

    fn ports_table(&self, engine: &dyn Simulation) -> Table {
        let fabric = self.scenario.fabric();
        let ports = || self.ports.iter().map(|id| &fabric.ports[*id]);
        let totals = self.port_counters(engine);
        let pairs = totals.iter().zip(&self.ports_before);
        let counted: Vec<PortCounters> = pairs.map(|(now, then)| now.since(then)).collect();
        let peer = |port: &silvan_fabric::Port| {
            port.peer
                .map_or_else(String::new, |peer| fabric.port_name(peer).to_string())
        };
        let mut table = Table::new("ports");
        let nodes = ports().map(|port| fabric.nodes[port.node].name.clone());
        table.push("node", nodes.collect::<Vec<_>>());
        let numbers = ports().map(|port| u32::from(port.number.as_u8()));
        table.push("port", numbers.collect::<Vec<_>>());
        table.push("peer", ports().map(peer).collect::<Vec<_>>());
        let rate = |port: &silvan_fabric::Port| {
            let rate = port.link.map(|link| fabric.links[link].kind.data_rate());
            rate.map(|rate| rate.bits_per_sec() as f64 / 1e9)
        };
        table.push("link_gbps", ports().map(rate).collect::<Vec<_>>());
        let mut add = |which| {
            for counter in PortCounters::in_table(which) {
                let values: Vec<u64> = counted.iter().map(|port| counter.read(port)).collect();
                table.push(counter.column, values);
            }
        };
        add(CounterTable::Ports);
        if self.scenario.discards_unroutable() {
            add(CounterTable::PortsIfUnroutable);
        }
        if self.scenario.engine_config().pfc.is_some() {
            add(CounterTable::PortsIfPfc);
        }
        table
    }
}

/// The latencies of the packets that each host received, as they are kept.
fn host_latencies_table(latencies: &[Option<Latencies>]) -> Table {
    let (mut hosts, mut from, mut to, mut packets) = (vec![], vec![], vec![], vec![]);
    for (host, latencies) in (0u32..).zip(latencies) {
        for (lowest, highest, count) in latencies.iter().flat_map(Latencies::bins) {
            hosts.push(host);
            from.push(lowest);
            to.push(highest);
            packets.push(count);
        }
    }
    let mut table = Table::new("host_latencies");
    table.push("host", hosts);
    table.push("from_ns", from);
    table.push("to_ns", to);
    table.push("packets", packets);
    table
}

/// Latencies in nanoseconds, missing where nothing was delivered or kept. Mean and extremes are exact,
/// percentiles have the resolution of [`Latencies::PERCENTILE_RESOLUTION`].
fn push_latencies(table: &mut Table, latencies: &[Option<Latencies>], percentiles: bool) {
    let exact = |read: fn(&Latencies) -> f64| -> Vec<Option<f64>> {
        latencies.iter().map(|one| one.as_ref().map(read)).collect()
    };
    let quantile = |quantile: f64| -> Vec<Option<u64>> {
        let quantile = |one: &Latencies| one.quantile_ns(quantile);
        let of = |one: &Option<Latencies>| one.as_ref().map(quantile);
        latencies.iter().map(of).collect()
    };
    table.push("latency_mean_ns", exact(Latencies::mean_ns));
    table.push("latency_min_ns", exact(Latencies::min_ns));
    if percentiles {
        table.push("latency_p50_ns", quantile(0.5));
        table.push("latency_p99_ns", quantile(0.99));
        table.push("latency_p999_ns", quantile(0.999));
    }
    table.push("latency_max_ns", exact(Latencies::max_ns));
}

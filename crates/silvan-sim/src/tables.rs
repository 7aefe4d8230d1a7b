use std::ops::Add;

use silvan_core::counters::CounterTable;
use silvan_core::{HostId, PortCounters, PortId, Time};
use silvan_fabric::HostRole;
use silvan_model::{Latencies, PortReading};
use silvan_workload::traffic::Role;

use super::latencies::{self, LatencySeries};
use super::limits::{self, FlowLimits};
use super::measure::Measurement;
use super::{decisions, flows, hops, programs, sequences, trees};
use crate::table::{Table, TableSchema};
use silvan_model::LatencyStats;
use silvan_model::Simulation;

pub(super) struct Series {
    schema: &'static TableSchema,
    column: &'static str,
    time_ps: Vec<u64>,
    whose: Vec<u32>,
    delivered_bytes: Vec<u64>,
    before: Vec<u64>,
}

impl Series {
    pub fn of_hosts(hosts: usize, samples: usize) -> Self {
        Self::new(&HOST_SERIES, "host", hosts, samples)
    }

    pub fn of_classes(classes: usize, samples: usize) -> Self {
        Self::new(&CLASS_SERIES, "class", classes, samples)
    }

    fn new(
        schema: &'static TableSchema,
        column: &'static str,
        count: usize,
        samples: usize,
    ) -> Self {
        let rows = count * samples;
        Self {
            schema,
            column,
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

    pub fn merge_pairs(&mut self, first: usize) {
        let width = self.before.len();
        let rows = first * width;
        let time = |_: u64, later: u64| later;
        merge_rows(&mut self.time_ps[rows..], width, time);
        let kept = merge_rows(&mut self.delivered_bytes[rows..], width, Add::add);
        let rows = rows + kept;
        self.time_ps.truncate(rows);
        self.whose.truncate(rows);
        self.delivered_bytes.truncate(rows);
    }

    fn table(self) -> Table {
        let mut table = Table::new(self.schema);
        table.push("time_ps", self.time_ps);
        table.push(self.column, self.whose);
        table.push("delivered_bytes", self.delivered_bytes);
        table
    }
}

pub(super) struct PortSeries {
    times: Vec<Time>,
    counted: [Vec<u64>; PortCounters::SAMPLED],
    queued_bytes: Vec<u64>,
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

    pub fn merge_pairs(&mut self, first: usize) {
        let ports = self.before.len();
        let rows = first * ports;
        for column in &mut self.counted {
            let kept = merge_rows(&mut column[rows..], ports, Add::add);
            column.truncate(rows + kept);
        }
        let kept = merge_rows(&mut self.queued_bytes[rows..], ports, |_, later| later);
        self.queued_bytes.truncate(rows + kept);
        let samples = self.times.drain(first..).skip(1).step_by(2);
        let later: Vec<Time> = samples.collect();
        self.times.extend(later);
    }

    fn table(self) -> Table {
        let ports = self.before.len();
        let rows = ports * self.times.len();
        let (mut times, mut ports_rows) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for time in &self.times {
            times.resize(times.len() + ports, time.as_ps());
            ports_rows.extend(0..ports as u32);
        }
        let mut table = Table::new(&PORT_SERIES);
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

fn merge_rows(column: &mut [u64], width: usize, merge: impl Fn(u64, u64) -> u64) -> usize {
    let kept = column.len() / 2;
    for row in 0..kept {
        let earlier = row / width * 2 * width + row % width;
        column[row] = merge(column[earlier], column[earlier + width]);
    }
    kept
}

fn tail(column: &mut Vec<u64>, count: usize) -> &mut [u64] {
    let start = column.len();
    column.resize(start + count, 0);
    &mut column[start..start + count]
}

impl Measurement<'_> {
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
            for rank in programs.ranks(engine.now()).filter(|rank| !rank.is_helper) {
                receives[rank.host.index()] |= sizes[rank.job as usize] > 1;
            }
        }
        let role = |host: HostId| {
            let role = match traffic.role(host) {
                _ if fabric.host(host).role == Some(HostRole::Aggregation) => "aggregation",
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
        let mut table = Table::new(&HOSTS);
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
        if self.scenario.file().host.retry.is_some() {
            table.push("retries", counted(|host| host.retries));
            table.push("resent_bytes", counted(|host| host.resent_bytes));
            table.push(
                "failed_connections",
                counted(|host| host.failed_connections),
            );
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
        let mut table = Table::new(&CLASSES);
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
        let mut table = Table::new(&PORTS);
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
        if self.scenario.may_lose_packets() {
            add(CounterTable::PortsIfFaults);
        }
        let faults = self.scenario.faults();
        if faults.iter().any(|planned| planned.fault.is_bit_errors()) {
            add(CounterTable::PortsIfBitErrors);
        }
        if self.scenario.engine_config().pfc.is_some() {
            add(CounterTable::PortsIfPfc);
        }
        table
    }
}

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
    let mut table = Table::new(&HOST_LATENCIES);
    table.push("host", hosts);
    table.push("from_ns", from);
    table.push("to_ns", to);
    table.push("packets", packets);
    table
}

/// In ns, missing where nothing was delivered; percentiles within [`Latencies::PERCENTILE_RESOLUTION`].
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

const ALL: &[TableSchema] = &[
    HOSTS,
    HOST_SERIES,
    HOST_LATENCIES,
    latencies::LATENCY_SERIES,
    CLASSES,
    CLASS_SERIES,
    limits::FLOW_LIMITS,
    PORTS,
    PORT_SERIES,
    flows::FLOWS,
    flows::FLOW_SIZES,
    sequences::SEQUENCES,
    programs::PROGRAMS,
    programs::RANKS,
    programs::PROGRAM_MARKS,
    programs::PROGRAM_OPS,
    programs::PROGRAM_MESSAGES,
    programs::PROGRAM_STEPS,
    hops::PACKET_HOPS,
    trees::FOREST,
    trees::TREES,
    trees::TREE_PORTS,
    trees::TREE_HOSTS,
    trees::TREE_LIFETIMES,
    decisions::DCMS,
];

const REFERENCE: &str = "\
# Tables of a result

Generated from the code by `make reference`; do not edit.

Every table of a [result](../guide/results.md) with its columns. Names end with the unit: `_bytes`, `_ps` (picoseconds), `_ns`
(nanoseconds). Totals count from the end of the warm-up; samples and times count from the start of the run. What does not
exist, such as the end of a flow that is not finished, is null.

[How to add a column](../extending/result-column.md)
";

/// All tables that runs can have, with their columns, as Markdown.
pub fn table_reference() -> String {
    let mut out = REFERENCE.to_owned();
    for schema in ALL {
        schema.write(&mut out);
    }
    out
}

pub(crate) const HOSTS: TableSchema = TableSchema {
    name: "hosts",
    rows: "One row per host.",
    columns: &[
        (&["host"], "Number of the host: its row in this table."),
        (&["name"], "Name of the host."),
        (&["lid"], "Local identifier (LID) of its port."),
        (&["role"], "Role of the host: [roles](../guide/results.md)."),
        (&["receives"], "True if any traffic is sent to it."),
        (&["delivered_bytes"], "Payload that it received."),
        (
            &["injected_bytes"],
            "Payload of the packets that it started to send, again for one that is sent again (`srp`).",
        ),
        (&["delivered_packets"], "Packets that it received."),
        (
            &["fecn_received"],
            "Packets that it received with a mark (FECN, forward explicit congestion notification).",
        ),
        (
            &["becn_received"],
            "Notifications that it received as a sender (BECN, backward explicit congestion notification).",
        ),
        (
            &["grants_received"],
            "Grants that it received as a sender. Only with a scheme whose receivers send them.",
        ),
        (
            &["reordered_packets"],
            "Packets that it received after a later one of their flow. Only where packets of a flow can take different paths (`fabric.path-choice`).",
        ),
        (
            &["most_held_bytes"],
            "Most payload that waited for earlier packets of its flow at once, since the start. Only there, with `host.in-order = true`.",
        ),
        (
            &["retries", "resent_bytes"],
            "Times that its connections went back to a lost packet, and payload that they sent again. Only with `host.retry`.",
        ),
        (
            &["failed_connections"],
            "Connections from it that failed after the last retry. Only with `host.retry`.",
        ),
        (
            &["latency_mean_ns", "latency_min_ns", "latency_max_ns"],
            "Mean, smallest and largest latency of the packets that it received; exact. Only with `probe.latency = \"host\"` or `\"host-coarse\"`.",
        ),
        (
            &["latency_p50_ns", "latency_p99_ns", "latency_p999_ns"],
            "Median, 99th and 99.9th percentile of these latencies, from a histogram. Only with `probe.latency = \"host\"`.",
        ),
    ],
    has_counters: false,
};

pub(crate) const HOST_SERIES: TableSchema = TableSchema {
    name: "host_series",
    rows: "One row per host and probe interval.",
    columns: &[
        (&["time_ps"], "End of the interval."),
        (&["host"], "Row of `hosts`."),
        (
            &["delivered_bytes"],
            "Payload that the host received in the interval.",
        ),
    ],
    has_counters: false,
};

pub(crate) const HOST_LATENCIES: TableSchema = TableSchema {
    name: "host_latencies",
    rows: "One row per host and interval of latencies that occurred, with `probe.latency = \"host\"` (128 intervals per power of two) or `\"host-coarse\"` (4).",
    columns: &[
        (&["host"], "Row of `hosts`."),
        (
            &["from_ns", "to_ns"],
            "Smallest and largest latency of the interval.",
        ),
        (
            &["packets"],
            "Packets that the host received with such a latency.",
        ),
    ],
    has_counters: false,
};

pub(crate) const CLASSES: TableSchema = TableSchema {
    name: "classes",
    rows: "One row per traffic entry.",
    columns: &[
        (
            &["class"],
            "Number of the traffic class: its row in this table.",
        ),
        (&["name"], "Name of the traffic entry."),
        (&["delivered_bytes"], "Payload that was delivered."),
        (&["delivered_packets"], "Packets that were delivered."),
        (&["marked_packets"], "Delivered packets with a mark (FECN)."),
        (
            &["latency_mean_ns", "latency_min_ns", "latency_max_ns"],
            "Mean, smallest and largest latency; exact.",
        ),
        (
            &["latency_p50_ns", "latency_p99_ns", "latency_p999_ns"],
            "Median, 99th and 99.9th percentile of the latencies, from a histogram.",
        ),
    ],
    has_counters: false,
};

pub(crate) const CLASS_SERIES: TableSchema = TableSchema {
    name: "class_series",
    rows: "One row per traffic entry and probe interval, with `probe.classes = true`.",
    columns: &[
        (&["time_ps"], "End of the interval."),
        (&["class"], "Row of `classes`."),
        (
            &["delivered_bytes"],
            "Payload that was delivered in the interval.",
        ),
    ],
    has_counters: false,
};

pub(crate) const PORTS: TableSchema = TableSchema {
    name: "ports",
    rows: "One row per cabled port of a switch or host. Counters of bytes and packets count what is on the wire, headers included.",
    columns: &[
        (&["node"], "Name of the switch or host."),
        (&["port"], "Number of the port."),
        (
            &["peer"],
            "The port at the other end of the cable, as `node:port`.",
        ),
        (
            &["link_gbps"],
            "Data rate of the cable in Gbit/s, after line coding.",
        ),
    ],
    has_counters: true,
};

pub(crate) const PORT_SERIES: TableSchema = TableSchema {
    name: "port_series",
    rows: "One row per port and probe interval, with `probe.ports = true`. The counters state what was added in the interval.",
    columns: &[
        (&["time_ps"], "End of the interval."),
        (&["ports_row"], "Row of `ports`."),
        (
            &["queued_bytes"],
            "Bytes that wait for the port at the end of the interval.",
        ),
    ],
    has_counters: true,
};

mod summary;

use silvan_core::{Bytes, HostId, Span, Time};
use silvan_model::Simulation;
use silvan_workload::traffic::{FiniteFlow, FlowRecord};

pub(crate) use summary::FLOW_SIZES;

use crate::ideal;
use crate::table::{Table, TableSchema};
use silvan_scenario::Scenario;

struct FlowRow {
    class: u16,
    source: HostId,
    destination: HostId,
    bytes: u64,
    delivered_bytes: u64,
    start: Time,
    end: Option<Time>,
    ideal: Option<Span>,
    marks: u32,
    hops: u8,
    /// Of an entry of one flow.
    retries: Option<u64>,
    has_failed: bool,
    is_listed: bool,
}

impl FlowRow {
    fn of_entry(scenario: &Scenario, engine: &dyn Simulation, flow: &FiniteFlow) -> Self {
        let progress = engine.flow(flow.class(), flow.source());
        let end = (progress.delivered_bytes == flow.bytes()).then_some(progress.last_delivery);
        let ideal = || {
            let tables = scenario.forwarding().tables;
            ideal::completion(scenario.fabric(), tables, scenario.engine_config(), flow)
        };
        Self {
            class: flow.class(),
            source: flow.source(),
            destination: flow.destination(),
            bytes: flow.bytes(),
            delivered_bytes: progress.delivered_bytes,
            start: flow.start(),
            end,
            ideal: end.and_then(|_| ideal()),
            marks: progress.marked_packets,
            hops: progress.hops,
            retries: Some(progress.retries),
            has_failed: end.is_none() && progress.has_failed,
            is_listed: false,
        }
    }

    fn of_record(
        scenario: &Scenario,
        engine: &dyn Simulation,
        source: HostId,
        (class, record): &(u16, FlowRecord),
    ) -> Self {
        let ideal = || {
            let tables = scenario.forwarding().tables;
            let ends = (source, record.destination);
            let bytes = Bytes::from_bytes(record.bytes);
            ideal::message(
                scenario.fabric(),
                tables,
                scenario.engine_config(),
                ends,
                bytes,
            )
        };
        Self {
            class: *class,
            source,
            destination: record.destination,
            bytes: record.bytes,
            delivered_bytes: record.delivered,
            start: record.start,
            end: record.end,
            ideal: record.end.and_then(|_| ideal()),
            marks: record.marks,
            hops: record.hops,
            retries: None,
            has_failed: record.end.is_none() && engine.flow(*class, source).has_failed,
            is_listed: true,
        }
    }

    fn completion(&self) -> Option<u64> {
        Some(self.end?.since(self.start).as_ps())
    }

    fn slowdown(&self) -> Option<f64> {
        Some(self.completion()? as f64 / self.ideal?.as_ps() as f64)
    }
}

pub(crate) fn tables(scenario: &Scenario, engine: &dyn Simulation) -> Vec<Table> {
    let traffic = engine.traffic();
    let entries = traffic.finite_flows().iter();
    let mut rows: Vec<FlowRow> = entries
        .map(|flow| FlowRow::of_entry(scenario, engine, flow))
        .collect();
    for source in scenario.fabric().host_ids() {
        let records = engine.traffic_of(source).flows_of(source, engine.now());
        rows.extend(
            records
                .iter()
                .map(|record| FlowRow::of_record(scenario, engine, source, record)),
        );
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let warm = Time::ZERO + scenario.file().run.warm_up;
    let mut tables = vec![flows(scenario, engine, &rows, warm)];
    tables.extend(summary::table(engine, &rows, warm));
    tables
}

fn flows(scenario: &Scenario, engine: &dyn Simulation, rows: &[FlowRow], warm: Time) -> Table {
    let names = engine.classes();
    let fabric = scenario.fabric();
    let host = |host: HostId| fabric.host(host).name.clone();
    let mut table = Table::new(&FLOWS);
    macro_rules! push {
        ($name:literal, $row:ident => $value:expr) => {
            table.push($name, rows.iter().map(|$row| $value).collect::<Vec<_>>());
        };
    }
    push!("class", row => u32::from(row.class));
    push!("name", row => names[usize::from(row.class)].clone());
    push!("from", row => host(row.source));
    push!("to", row => host(row.destination));
    push!("bytes", row => row.bytes);
    push!("delivered_bytes", row => row.delivered_bytes);
    push!("finished", row => row.end.is_some());
    push!("start_ps", row => row.start.as_ps());
    push!("end_ps", row => row.end.map(Time::as_ps));
    push!("completion_ps", row => row.completion());
    push!("ideal_ps", row => row.ideal.map(Span::as_ps));
    push!("slowdown", row => row.slowdown());
    push!("hops", row => u32::from(row.hops));
    push!("marked_packets", row => row.marks);
    push!("measured", row => row.start >= warm);
    if scenario.file().host.retry.is_some() {
        push!("retries", row => row.retries);
        push!("failed", row => row.has_failed);
    }
    table
}

pub(crate) const FLOWS: TableSchema = TableSchema {
    name: "flows",
    rows: "One row per flow with a number of bytes, and per flow of an entry of [many](../guide/traffic.md#flows).",
    columns: &[
        (&["class"], "Row of `classes`."),
        (&["name"], "Name of the flow."),
        (&["from", "to"], "Names of the sender and the receiver."),
        (&["bytes"], "Payload of the flow."),
        (&["delivered_bytes"], "Payload that was delivered."),
        (&["finished"], "True if all of it was delivered."),
        (
            &["start_ps", "end_ps"],
            "Start of the flow, and delivery of its last byte.",
        ),
        (&["completion_ps"], "`end_ps` - `start_ps`."),
        (
            &["ideal_ps"],
            "Completion time [on an empty fabric](../model.md#flows-on-an-empty-fabric).",
        ),
        (&["slowdown"], "`completion_ps` / `ideal_ps`."),
        (
            &["hops"],
            "Links on the longest path of its packets; 0 if none was delivered.",
        ),
        (
            &["marked_packets"],
            "Packets that were delivered with FECN.",
        ),
        (&["measured"], "True if it started after the warm-up."),
        (
            &["retries", "failed"],
            "Times that its connection went back to a lost packet, and true if it has not finished and the connection failed after the last retry. Only with `host.retry`. Of an entry of many, `retries` is null, and `failed` is that of any connection of its sender.",
        ),
    ],
    has_counters: false,
};

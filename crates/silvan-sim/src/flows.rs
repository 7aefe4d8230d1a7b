//! What has become of the flows that have an end, as a table.

use silvan_core::{HostId, Span, Time};
use silvan_model::Simulation;
use silvan_workload::traffic::FiniteFlow;

use crate::ideal;
use crate::table::Table;
use silvan_scenario::Scenario;

/// One flow at the end of the run.
struct FlowOutcome {
    delivered_bytes: u64,
    /// When its last byte was delivered, if all have been.
    end: Option<Time>,
    /// How long it takes on an empty fabric; known of finished flows.
    ideal: Option<Span>,
}

impl FlowOutcome {
    fn of(scenario: &Scenario, engine: &dyn Simulation, flow: &FiniteFlow) -> Self {
        let progress = engine.flow(flow.class(), flow.source());
        let end = (progress.delivered_bytes == flow.bytes()).then_some(progress.last_delivery);
        let ideal = || {
            let tables = scenario.forwarding().tables;
            ideal::completion(scenario.fabric(), tables, scenario.engine_config(), flow)
        };
        Self {
            delivered_bytes: progress.delivered_bytes,
            end,
            ideal: end.and_then(|_| ideal()),
        }
    }
}

/// The flows with a number of bytes; `None` if there are none.
pub(crate) fn table(scenario: &Scenario, engine: &dyn Simulation) -> Option<Table> {
    let flows = engine.traffic().finite_flows();
    if flows.is_empty() {
        return None;
    }
    let outcomes = flows
        .iter()
        .map(|flow| FlowOutcome::of(scenario, engine, flow));
    let outcomes: Vec<FlowOutcome> = outcomes.collect();
    let names = engine.classes();
    let fabric = scenario.fabric();
    let host = |host: HostId| fabric.host(host).name.clone();
    let pairs = || flows.iter().zip(&outcomes);
    let completions: Vec<Option<u64>> = pairs()
        .map(|(flow, outcome)| Some(outcome.end?.since(flow.start()).as_ps()))
        .collect();
    let ideals = || outcomes.iter().map(|one| one.ideal.map(Span::as_ps));
    let slowdown = |(completion, ideal): (&Option<u64>, Option<u64>)| -> Option<f64> {
        Some((*completion)? as f64 / ideal? as f64)
    };
    let slowdowns: Vec<Option<f64>> = completions.iter().zip(ideals()).map(slowdown).collect();
    let whole = |read: fn(&FiniteFlow) -> u64| -> Vec<u64> { flows.iter().map(read).collect() };
    let mut table = Table::new("flows");
    let classes = flows.iter().map(|flow| u32::from(flow.class()));
    table.push("class", classes.collect::<Vec<_>>());
    let name = |flow: &FiniteFlow| names[usize::from(flow.class())].clone();
    table.push("name", flows.iter().map(name).collect::<Vec<_>>());
    let from = flows.iter().map(|flow| host(flow.source()));
    table.push("from", from.collect::<Vec<_>>());
    let to = flows.iter().map(|flow| host(flow.destination()));
    table.push("to", to.collect::<Vec<_>>());
    table.push("bytes", whole(FiniteFlow::bytes));
    let delivered = outcomes.iter().map(|outcome| outcome.delivered_bytes);
    table.push("delivered_bytes", delivered.collect::<Vec<_>>());
    let finished = outcomes.iter().map(|outcome| outcome.end.is_some());
    table.push("finished", finished.collect::<Vec<_>>());
    table.push("start_ps", whole(|flow| flow.start().as_ps()));
    let ends = outcomes.iter().map(|outcome| outcome.end.map(Time::as_ps));
    table.push("end_ps", ends.collect::<Vec<_>>());
    table.push("completion_ps", completions);
    table.push("ideal_ps", ideals().collect::<Vec<_>>());
    table.push("slowdown", slowdowns);
    Some(table)
}

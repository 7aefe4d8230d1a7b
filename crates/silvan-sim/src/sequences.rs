use silvan_core::Time;
use silvan_model::Simulation;
use silvan_workload::traffic::SequenceState;

use crate::table::{Table, TableSchema};
use silvan_scenario::Scenario;

pub(crate) fn table(scenario: &Scenario, engine: &dyn Simulation) -> Option<Table> {
    let hosts = scenario.fabric().host_ids();
    let states = hosts.flat_map(|host| engine.traffic_of(host).sequences_of(host));
    let mut states: Vec<_> = states.collect();
    states.sort_by_key(|state| state.class);
    if states.is_empty() {
        return None;
    }
    let names = engine.classes();
    let whole = |read: fn(&SequenceState) -> u64| -> Vec<u64> { states.iter().map(read).collect() };
    let instant = |read: fn(&SequenceState) -> Option<Time>| -> Vec<Option<u64>> {
        let instants = states.iter().map(read);
        instants.map(|at| at.map(Time::as_ps)).collect()
    };
    let mut table = Table::new(&SEQUENCES);
    let classes = states.iter().map(|state| u32::from(state.class));
    table.push("class", classes.collect::<Vec<_>>());
    let name = |state: &SequenceState| names[usize::from(state.class)].clone();
    table.push("name", states.iter().map(name).collect::<Vec<_>>());
    let from = |state: &SequenceState| scenario.fabric().host(state.source).name.clone();
    table.push("from", states.iter().map(from).collect::<Vec<_>>());
    table.push("receivers", whole(|state| state.receivers as u64));
    table.push("messages", whole(|state| state.progress.messages));
    table.push("iterations", whole(|state| state.progress.iterations));
    let finished = states.iter().map(|state| state.progress.end.is_some());
    table.push("finished", finished.collect::<Vec<_>>());
    table.push("start_ps", whole(|state| state.start.as_ps()));
    table.push(
        "last_delivery_ps",
        instant(|state| state.progress.last_delivery),
    );
    table.push("end_ps", instant(|state| state.progress.end));
    Some(table)
}

pub(crate) const SEQUENCES: TableSchema = TableSchema {
    name: "sequences",
    rows: "One row per sequence of messages.",
    columns: &[
        (&["class"], "Row of `classes`."),
        (&["name"], "Name of the sequence."),
        (&["from"], "Name of the sender."),
        (
            &["receivers"],
            "Number of entries in the list of receivers.",
        ),
        (&["messages"], "Messages that were delivered."),
        (
            &["iterations"],
            "Passes through the list that were completed.",
        ),
        (&["finished"], "True if all iterations were completed."),
        (&["start_ps"], "Start of the sequence."),
        (
            &["last_delivery_ps"],
            "Delivery of the last message that was delivered.",
        ),
        (&["end_ps"], "End of the sequence."),
    ],
    has_counters: false,
};

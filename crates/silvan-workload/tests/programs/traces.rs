//! Traces: results, against other spellings and closed forms, and errors.

mod aicb;
mod chakra;
mod connections;
mod goal_binary;
mod lists;
mod simai;
mod training;

use std::sync::Arc;

use proptest::prelude::*;
use silvan_workload::programs::trace::chakra::Chakra;
use silvan_workload::programs::trace::connections::Connections;
use silvan_workload::programs::trace::{
    Goal, NcclSettings, TraceError, TraceFormat, TraceSettings,
};
use silvan_workload::programs::{Action, JobSpec, Schedule, Script};

use crate::common::job;
use crate::trace_law;

fn settings(places: u32) -> TraceSettings {
    TraceSettings {
        places,
        local: 1,
        methods: Vec::new(),
        operations_per_second: None,
        nccl: NcclSettings::default(),
    }
}

/// Reads the files of a trace as a scenario does.
fn read(
    format: &dyn TraceFormat,
    files: &[Vec<u8>],
    groups: Option<&str>,
    settings: &TraceSettings,
) -> Result<Vec<Arc<Schedule>>, TraceError> {
    let text = format.import(files.to_vec(), groups)?;
    format.schedules(&text, settings)
}

/// A job with the ranks of a trace on hosts 0, 1, 2 and so on.
fn traced(schedules: &[Arc<Schedule>]) -> JobSpec {
    let ranks = schedules.iter().enumerate();
    job(ranks
        .map(|(host, schedule)| (host, Script::Schedule(Arc::clone(schedule))))
        .collect())
}

/// Bytes that a rank sends to each of `ranks`.
fn sent(schedule: &Schedule, ranks: usize) -> Vec<u64> {
    let mut row = vec![0; ranks];
    for op in schedule.ops() {
        if let Action::Send { to, bytes, .. } | Action::Put { to, bytes } = op.action {
            row[to as usize] += bytes;
        }
    }
    row
}

#[test]
fn the_examples_are_traces() {
    for (format, bytes) in trace_law::examples() {
        let text = format.import(vec![bytes], None).unwrap();
        format.schedules(&text, &settings(4)).unwrap();
    }
}

/// A ring of this many operations that wait for each other, in all formats.
#[test]
fn long_cycles_are_told_by_their_first_few() {
    const LENGTH: u64 = 3000;
    let after = |op: u64| (op + 1) % LENGTH;
    let lines = |line: &dyn Fn(u64) -> String| (0..LENGTH).map(line).collect::<String>();
    let schedule = format!(
        "num_ranks 1\nrank 0 {{\n{}{}}}\n",
        lines(&|op| format!("l{op}: calc 1\n")),
        lines(&|op| format!("l{op} requires l{}\n", after(op)))
    );
    let nodes = lines(&|op| {
        let next = after(op);
        let comma = if next > 0 { "," } else { "" };
        format!("{{\"Id\": {op}, \"NodeType\": 4, \"data_deps\": [{next}]}}{comma}\n")
    });
    let matrix = format!(
        "Nodes 2\n{}{}",
        lines(&|op| format!("0->1 trigger {op} size 1 send_done_trigger {}\n", after(op))),
        lines(&|op| format!("trigger id {op} oneshot\n"))
    );
    let files: [(&dyn TraceFormat, Vec<u8>); 4] = [
        (&Goal {}, goal_binary::ring(LENGTH as u32)),
        (&Goal {}, schedule.into_bytes()),
        (
            &Chakra::DEFAULT,
            format!("{{\"workload_graph\": [{nodes}]}}").into_bytes(),
        ),
        (&Connections::DEFAULT, matrix.into_bytes()),
    ];
    for (format, file) in files {
        let error = read(format, &[file], None, &settings(4)).unwrap_err();
        assert!(error.message.contains("… (3000 in all)"), "{error}");
        assert!(error.message.len() < 300, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Some bytes changed, added or left out.
    #[test]
    fn any_bytes_are_read(which in 0..trace_law::examples().len(), changes in prop::collection::vec((any::<u16>(), any::<u8>(), 0..4_u8), 1..6)) {
        let (format, mut bytes) = trace_law::examples().swap_remove(which);
        for (place, byte, how) in changes {
            let at = usize::from(place) % bytes.len().max(1);
            match how {
                0 if !bytes.is_empty() => bytes[at] = byte,
                1 => bytes.insert(at.min(bytes.len()), byte),
                2 if !bytes.is_empty() => { bytes.remove(at); }
                _ => bytes.truncate(at),
            }
        }
        trace_law::check(format, &bytes);
    }
}

//! Programs in a run: what ends it, and what comes out.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::ops::ControlFlow;

use silvan_compiled::Fastest;
use silvan_runner::{ColumnData, RunError, RunOutput, Table, run};
use silvan_scenario::{Override, Scenario};

const QUIET: &str = r#"
[fabric]
generator = "single-switch"
hosts = 4
[[traffic.program]]
kind = "allreduce-ring"
bytes = "64 KiB"
iterations = 3
"#;

fn output(text: &str, overrides: &[(&str, &str)]) -> Result<RunOutput, RunError> {
    let overrides = overrides
        .iter()
        .map(|(key, value)| Override::new(*key, *value));
    let overrides: Vec<Override> = overrides.collect();
    let scenario = Scenario::from_toml(text, "test.toml", &overrides).unwrap();
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(()))
}

fn numbers(table: &Table, column: &str) -> Vec<u64> {
    match table.column(column).unwrap() {
        ColumnData::U32(values) => values.iter().map(|value| u64::from(*value)).collect(),
        ColumnData::U64(values) => values.clone(),
        ColumnData::OptionalU64(values) => values.iter().map(|value| value.unwrap()).collect(),
        _ => panic!("{column} is not of numbers"),
    }
}

/// The run ends with the program; every rank has sent 2 (n - 1) / n of the bytes three times.
#[test]
fn a_program_ends_the_run() {
    let output = output(QUIET, &[("run.duration", "1 s")]).unwrap();
    let end = numbers(output.table("programs").unwrap(), "end_ps")[0];
    // The next look is at most 100 us later.
    let simulated = output.summary.simulated_ps;
    assert!((end..=end + 100_000_000).contains(&simulated));
    let ranks = output.table("ranks").unwrap();
    assert_eq!(
        numbers(ranks, "sent_bytes"),
        [3 * 2 * 3 * (64 << 10) / 4; 4]
    );
    assert_eq!(numbers(ranks, "end_ps").iter().max(), Some(&end));
    assert_eq!(output.table("program_marks").unwrap().rows(), 4 * 3);
    let classes = output.table("classes").unwrap();
    assert_eq!(classes.text_column("name").unwrap(), ["program-1"]);
    assert!(output.table("program_ops").is_none());
}

#[test]
fn a_program_that_does_not_end_in_time_is_an_error() {
    let error = output(QUIET, &[("run.duration", "20 us")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "job \"program-1\" has not ended after 20 us: 4 of its 4 ranks are at work"
    );
    let background = [
        ("run.duration", "20 us"),
        ("traffic.program.0.background", "true"),
    ];
    assert!(output(QUIET, &background).is_ok());
}

#[test]
fn a_program_that_is_stuck_is_an_error() {
    let goal = "num_ranks 2\nrank 0 {\n}\nrank 1 {\nrecv 8b from 0\n}\n";
    let text = format!(
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n[[traffic.program]]\nname = \"trace\"\nkind = \"goal\"\ngoal = '''\n{goal}'''\n"
    );
    let error = output(&text, &[]).unwrap_err().to_string();
    assert!(
        error.contains("job \"trace\" is stuck at 0 s: rank 1, line 5: nobody sends"),
        "{error}"
    );
}

/// Flows beside programs, with each scheme: both deliver, and every packet is counted in its own class.
#[test]
fn programs_run_beside_traffic() {
    let text = format!("{QUIET}\n[[traffic.flow]]\nfrom = \"host-0000\"\nto = \"host-0001\"\n");
    for scheme in ["none", "ib-cc", "ecn"] {
        let output = output(
            &text,
            &[("control.scheme", scheme), ("run.duration", "20 ms")],
        )
        .unwrap();
        let classes = output.table("classes").unwrap();
        assert_eq!(
            classes.text_column("name").unwrap(),
            ["flow-1", "program-1"]
        );
        let delivered = numbers(classes, "delivered_bytes");
        assert!(delivered[0] > 0, "{scheme}");
        let data = 4 * 3 * 2 * 3 * (64 << 10) / 4;
        // Messages of 16 KiB ask first.
        assert_eq!(delivered[1], data + 4 * 3 * 6 * 2 * 64, "{scheme}");
    }
}

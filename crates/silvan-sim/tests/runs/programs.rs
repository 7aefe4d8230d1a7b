//! Programs in a run: what ends it, and what comes out.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::{ColumnData, RunError, RunOutput, Table, run};

use crate::on_ddr;

const QUIET: &str = r#"
[fabric]
generator = "single-switch"
hosts = 4
[[traffic.program]]
kind = "allreduce"
bytes = "64 KiB"
iterations = 3
"#;

fn output(text: &str, overrides: &[(&str, &str)]) -> Result<RunOutput, RunError> {
    let overrides = on_ddr(overrides);
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
        "program \"program-1\" has not ended after 20 us: 4 of its 4 ranks are at work"
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
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n[[traffic.program]]\nname = \"trace\"\nkind = \"goal\"\ntrace = '''\n{goal}'''\n"
    );
    let error = output(&text, &[]).unwrap_err().to_string();
    assert!(
        error.contains("program \"trace\" is stuck at 0 s: rank 1, line 5: no rank sends"),
        "{error}"
    );
}

/// Flows together with programs, with each scheme: both deliver, and every packet is counted in its own class.
#[test]
fn programs_run_together_with_traffic() {
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

fn slowdowns(output: &RunOutput) -> Vec<Option<f64>> {
    match output
        .table("programs")
        .unwrap()
        .column("slowdown")
        .unwrap()
    {
        ColumnData::OptionalF64(values) => values.clone(),
        _ => panic!("slowdowns are numbers or null"),
    }
}

/// A program without other load takes what it takes alone, whenever it starts; so do two programs whose
/// hosts share a switch that does not block.
#[test]
fn a_program_alone_has_slowdown_1() {
    let at_once = output(QUIET, &[]).unwrap();
    let later = output(QUIET, &[("traffic.program.0.start", "\"7 us\"")]).unwrap();
    let [first, second] = [&at_once, &later].map(|output| output.table("programs").unwrap());
    assert_eq!(numbers(first, "start_ps"), [0]);
    assert_eq!(numbers(second, "start_ps"), [7_000_000]);
    let completion = numbers(first, "completion_ps");
    assert_eq!(completion, numbers(first, "end_ps"));
    assert_eq!(completion, numbers(second, "completion_ps"));
    assert_eq!(numbers(second, "end_ps")[0], completion[0] + 7_000_000);
    for table in [first, second] {
        assert_eq!(completion, numbers(table, "ideal_ps"));
    }
    let apart = QUIET.replace("hosts = 4", "hosts = 8").replace(
        "kind =",
        "hosts = [\"host-0000\", \"host-0001\", \"host-0002\", \"host-0003\"]\nkind =",
    );
    let second = "[[traffic.program]]\nkind = \"alltoall\"\nbytes = \"9 KiB\"\nstart = \"3 us\"\n\
        hosts = [\"host-0004\", \"host-0005\", \"host-0006\", \"host-0007\"]\n";
    let both = output(&format!("{apart}\n{second}"), &[]).unwrap();
    for output in [&at_once, &later, &both] {
        assert!(
            slowdowns(output)
                .iter()
                .all(|slowdown| *slowdown == Some(1.0))
        );
    }
}

/// The time alone depends neither on other load nor on the scheme, so the slowdown is the ratio of two runs.
#[test]
fn slowdown_is_the_ratio_to_a_run_alone() {
    let alone = output(QUIET, &[]).unwrap();
    let alone = numbers(alone.table("programs").unwrap(), "completion_ps");
    let incast = "[[traffic.incast]]\nto = \"host-0001\"\nfrom = [\"host-0002\", \"host-0003\"]\n\
        [[traffic.program]]\nname = \"endless\"\nkind = \"alltoall\"\nbytes = \"1 KiB\"\n\
        iterations = \"unlimited\"\nbackground = true\n";
    for scheme in ["none", "ib-cc"] {
        let overrides = [("control.scheme", scheme), ("run.duration", "100 ms")];
        let output = output(&format!("{QUIET}\n{incast}"), &overrides).unwrap();
        let programs = output.table("programs").unwrap();
        let ColumnData::OptionalU64(ideals) = programs.column("ideal_ps").unwrap() else {
            panic!("times are numbers or null");
        };
        // The endless program has neither.
        assert_eq!(*ideals, [Some(alone[0]), None]);
        let ColumnData::OptionalU64(completions) = programs.column("completion_ps").unwrap() else {
            panic!("times are numbers or null");
        };
        let ratio = completions[0].unwrap() as f64 / alone[0] as f64;
        assert!(ratio > 1.1, "{scheme}: {ratio}");
        assert_eq!(slowdowns(&output), [Some(ratio), None]);
    }
    let off = output(QUIET, &[("probe.slowdown", "false")]).unwrap();
    assert_eq!(slowdowns(&off), [None]);
}

/// Oracle: with overheads of zero, a rank whose only processor is never idle by choice computes, or it
/// waits; so its end is the sum of both.
#[test]
fn ranks_with_schedules_wait_when_they_do_not_compute() {
    let goal = "num_ranks 2\nrank 0 {\nc: calc 5000\ns: send 65536b to 1\ns requires c\n}\n\
        rank 1 {\nr: recv 65536b from 0\nd: calc 700\nd requires r\n}\n";
    let text = format!(
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n\
         [traffic.messaging]\noverhead = \"0 ns\"\noverhead-per-byte = \"0 ps\"\n\
         [[traffic.program]]\nkind = \"goal\"\ntrace = \'\'\'\n{goal}\'\'\'\n"
    );
    let output = output(&text, &[]).unwrap();
    let ranks = output.table("ranks").unwrap();
    let ends = numbers(ranks, "end_ps");
    let compute = numbers(ranks, "compute_ps");
    let waiting = numbers(ranks, "waiting_ps");
    assert_eq!(compute, [5_000_000, 700_000]);
    for rank in 0..2 {
        assert!(waiting[rank] > 0);
        assert_eq!(compute[rank] + waiting[rank], ends[rank], "rank {rank}");
    }
}

/// Oracle: the union of intervals by hand. Rank 0 ends with its last calculation, rank 1 with the message.
#[test]
fn processors_that_compute_at_once_count_once() {
    for (calculations, waits, end, union) in [
        (&[("a", 0, 100), ("b", 0, 100)][..], "", 100, 100),
        (
            &[("a", 0, 100), ("b", 100, 100), ("c", 0, 150)],
            "b requires a\n",
            200,
            200,
        ),
        (
            &[("a", 0, 10), ("b", 10, 10), ("c", 0, 0)],
            "b requires a\n",
            20,
            20,
        ),
        (
            &[("a", 0, 300), ("b", 0, 100), ("c", 100, 50)],
            "c requires b\n",
            300,
            300,
        ),
    ] {
        let mut block = String::new();
        for (cpu, (name, _, us)) in calculations.iter().enumerate() {
            block += &format!("{name}: calc {} cpu {cpu}\n", us * 1_000);
        }
        block += waits;
        let send: String = calculations
            .iter()
            .map(|(name, ..)| format!("z requires {name}\n"))
            .collect();
        let goal = format!(
            "num_ranks 2\nrank 0 {{\n{block}z: send 8b to 1\n{send}}}\nrank 1 {{\n{block}z: recv 8b from 0\n}}\n"
        );
        let text = format!(
            "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n\
             [traffic.messaging]\noverhead = \"0 ns\"\noverhead-per-byte = \"0 ps\"\n\
             [[traffic.program]]\nkind = \"goal\"\ntrace = \'\'\'\n{goal}\'\'\'\n"
        );
        let output = output(&text, &[]).unwrap();
        let ranks = output.table("ranks").unwrap();
        let ends = numbers(ranks, "end_ps");
        assert_eq!(ends[0], end * 1_000_000);
        assert_eq!(numbers(ranks, "compute_ps"), [union * 1_000_000; 2]);
        let share = 1.0 - 2.0 * (union * 1_000_000) as f64 / (ends[0] + ends[1]) as f64;
        let ColumnData::OptionalF64(shares) = output
            .table("programs")
            .unwrap()
            .column("exposed_share")
            .unwrap()
        else {
            panic!("shares are numbers or null");
        };
        assert_eq!(*shares, [Some(share)]);
    }
}

/// A collective operation that starts late does not compute before. Oracle: its ranks compute nothing at all.
#[test]
fn time_before_the_start_is_no_computing() {
    let overrides = [
        ("traffic.program.0.start", "50 us"),
        ("traffic.program.0.compute", "0 ns"),
    ];
    let output = output(QUIET, &overrides).unwrap();
    let compute = numbers(output.table("ranks").unwrap(), "compute_ps");
    assert!(compute.iter().all(|time| *time == 0), "{compute:?}");
    let programs = output.table("programs").unwrap();
    assert_eq!(numbers(programs, "start_ps"), [50_000_000]);
    let ColumnData::OptionalF64(shares) = programs.column("exposed_share").unwrap() else {
        panic!("shares are numbers or null");
    };
    assert_eq!(*shares, [Some(1.0)]);
}

/// Oracle: with overheads of zero a rank computes or waits, up to the end of the run.
#[test]
fn totals_of_unfinished_ranks_reach_to_the_end_of_the_run() {
    let goal = "num_ranks 2\nrank 0 {\na: calc 5000\nb: calc 1000000\nb requires a\n\
        s: send 8b to 1\ns requires b\n}\nrank 1 {\nr: recv 8b from 0\n}\n";
    let text = format!(
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n\
         [traffic.messaging]\noverhead = \"0 ns\"\noverhead-per-byte = \"0 ps\"\n\
         [[traffic.program]]\nkind = \"goal\"\nbackground = true\ntrace = \'\'\'\n{goal}\'\'\'\n\
         [run]\nduration = \"100 us\"\n"
    );
    let output = output(&text, &[]).unwrap();
    let ranks = output.table("ranks").unwrap();
    assert_eq!(numbers(ranks, "compute_ps"), [100_000_000, 0]);
    assert_eq!(numbers(ranks, "waiting_ps"), [0, 100_000_000]);
}

/// Operations that have not started or not ended by the end of the run have no times.
#[test]
fn times_of_operations_that_have_not_been_are_null() {
    let goal = "num_ranks 2\nrank 0 {\na: calc 1000\nb: calc 1000000\nb requires a\n\
        s: send 8b to 1\ns requires b\n}\nrank 1 {\nr: recv 8b from 0\n}\n";
    let text = format!(
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n\
         [[traffic.program]]\nkind = \"goal\"\nbackground = true\ntrace = \'\'\'\n{goal}\'\'\'\n\
         [run]\nduration = \"100 us\"\n"
    );
    let output = output(&text, &[]).unwrap();
    let table = output.table("program_ops").unwrap();
    let column = |name: &str| match table.column(name).unwrap() {
        ColumnData::OptionalU64(values) => values.clone(),
        _ => panic!("times are numbers or null"),
    };
    let (a, b) = (1_000_000, 1_000_000_000);
    assert!(b > 100_000_000, "b does not end");
    assert_eq!(column("start_ps"), [Some(0), Some(a), None, Some(0)]);
    assert_eq!(column("end_ps"), [Some(a), None, None, None]);
}

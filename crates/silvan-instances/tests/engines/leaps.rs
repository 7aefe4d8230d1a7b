//! Leaps over what repeats change no result. Oracle: the same run without them, and the engine that processes event after event.

use std::ops::ControlFlow;

use silvan_instances::{Fastest, Shared};
use silvan_model::Engines;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{Column, RunOutput, run};

use crate::same_results::numbers;

fn run_with(engines: &dyn Engines, scenario: &Scenario) -> RunOutput {
    run(engines, scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Programs with long messages, drawn by a number.
fn drawn(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |count: usize| {
        // Marsaglia, "Xorshift RNGs", 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % count
    };
    let fabric = [
        "generator = \"k-ary-n-tree\"\nk = 3\nn = 2\n",
        "generator = \"xgft\"\nchildren = [4, 3]\nparents = [1, 2]\n",
        "generator = \"chain\"\nswitches = 3\nhosts-per-switch = 3\nrouting = \"min-hop\"\n",
        "generator = \"rail-optimised\"\nservers = 4\ngpus-per-server = 4\nspines = 2\n",
        "generator = \"dragonfly\"\nswitches-per-group = 2\nhosts-per-switch = 2\nglobal-per-switch = 1\n",
    ][draw(5)];
    let speed = ["DDR", "EDR", "NDR"][draw(3)];
    let mtu = ["1 KiB", "2 KiB", "4 KiB"][draw(3)];
    let buffer = ["", "", "buffer = \"17 KiB\"\n", "buffer = \"256 KiB\"\n"][draw(4)];
    let arbitration = ["", "", "arbitration = \"oldest-first\"\n"][draw(3)];
    let host = [
        "",
        "",
        "receive-buffer = \"20 KiB\"\n",
        "sink-rate = \"9.7 Gbit/s\"\n",
        "injection-rate = \"13.5 Gbit/s\"\n",
        "sink = \"cut-through\"\n",
    ][draw(6)];
    let lanes = [
        "",
        "",
        "data-vls = 2\nsl-to-vl = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]\n",
    ];
    let lanes = match fabric.contains("dragonfly") {
        true => "",
        false => lanes[draw(3)],
    };
    let mut programs = String::new();
    for job in 0..1 + draw(3) {
        let kinds = [
            "allreduce",
            "alltoall",
            "allgather",
            "broadcast",
            "incast",
            "scatter",
        ];
        let kind = kinds[draw(6)];
        let bytes = ["40 KiB", "300 KiB", "1 MiB", "1000001 B"][draw(4)];
        let iterations = 1 + draw(2);
        let (sl, start) = (draw(2), draw(40));
        programs += &format!(
            "[[traffic.program]]\nname = \"job-{job}\"\nkind = \"{kind}\"\nbytes = \"{bytes}\"\niterations = {iterations}\nsl = {sl}\n\
             start = \"{start} us\"\n"
        );
    }
    let control = [
        "none",
        "none",
        "ib-cc",
        "ib-cc\"\n[control.feedback]\npath = \"in-band",
    ][draw(4)];
    let latency = ["host", "host-coarse", "class", "off"][draw(4)];
    let (interval, warm_up, duration) = [
        ("77777777 ps", "155555554 ps", "199888886890 ps"),
        ("800 us", "0 us", "200 ms"),
        ("20 us", "40 us", "200 ms"),
    ][draw(3)];
    format!(
        "[fabric]\n{fabric}[link]\nspeed = \"{speed}\"\n[packet]\nmtu = \"{mtu}\"\n[switch]\n{buffer}{arbitration}[host]\n{host}[vl]\n{lanes}\
         [control]\nscheme = \"{control}\"\n{programs}[probe]\ninterval = \"{interval}\"\nports = true\nclasses = true\nlatency = \"{latency}\"\n\
         messages = true\n[run]\nwarm-up = \"{warm_up}\"\nduration = \"{duration}\"\n"
    )
}

/// Compares all tables; a difference is named by table and column, with the first values that differ.
fn compare(one: &RunOutput, other: &RunOutput, text: &str) {
    assert_eq!(one.tables.len(), other.tables.len());
    for (one, other) in one.tables.iter().zip(&other.tables) {
        for (column, other_column) in one.columns.iter().zip(&other.columns) {
            let values = |column: &Column| format!("{:?}", column.data);
            let (values, others) = (values(column), values(other_column));
            let both = values.split(", ").zip(others.split(", ")).enumerate();
            let differ = both.filter(|(_, (one, other))| one != other);
            let first: Vec<_> = differ.take(5).collect();
            assert!(
                first.is_empty(),
                "{} {}: {first:?}\n{text}",
                one.name,
                column.name
            );
        }
        assert_eq!(one, other, "{text}");
    }
}

fn read(text: &str, fast_forward: &str) -> Scenario {
    let setting = format!("\"{fast_forward}\"");
    let overrides = [Override::new("run.fast-forward", &setting)];
    let scenario = Scenario::from_toml(text, "test.toml", &overrides);
    scenario.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the run with leaps.
fn compare_with_all_packets(text: &str) -> RunOutput {
    let with = run_with(&Fastest, &read(text, "on"));
    let without = run_with(&Fastest, &read(text, "off"));
    compare(&with, &without, text);
    assert_eq!(with.summary.packet_hops, without.summary.packet_hops);
    assert_eq!(without.summary.leapt_packet_hops, 0);
    with
}

/// Larger runs, in which hosts are throttled for long, and messages have paths of their own.
#[test]
fn throttled_programs_and_solos_have_the_same_results_with_leaps() {
    let exchange = "[fabric]\ngenerator = \"xgft\"\nchildren = [8, 8]\nparents = [1, 4]\n\
         [[traffic.program]]\nname = \"a\"\nkind = \"alltoall\"\nalgorithm = \"pairwise\"\nbytes = \"1 MiB\"\n";
    let training = "[fabric]\ngenerator = \"rail-optimised\"\nservers = 4\ngpus-per-server = 4\nspines = 0\n\
         server-link = { rate = \"3.6 Tbit/s\", latency = \"100 ns\" }\nrail-link = { speed = \"NDR\" }\n\
         [[traffic.program]]\nname = \"t\"\nkind = \"training\"\n[traffic.program.model]\nlayers = 2\n\
         hidden = 1024\nsequence = 1024\nvocabulary = 1000\ntensor = 4\n";
    for (program, least) in [(exchange, 0.3), (training, 0.5)] {
        for control in ["none", "ib-cc"] {
            let text = format!(
                "{program}[control]\nscheme = \"{control}\"\n[probe]\nports = true\nlatency = \"host\"\ninterval = \"1 ms\"\n\
                 [run]\nduration = \"1 s\"\n"
            );
            let summary = compare_with_all_packets(&text).summary;
            let leapt = summary.leapt_packet_hops as f64 / summary.packet_hops as f64;
            assert!(leapt > least, "{leapt} of all packet-hops\n{text}");
        }
    }
}

#[test]
fn drawn_programs_have_the_same_results_with_leaps() {
    let (mut leapt, mut all, mut leapt_under_control) = (0, 0, 0);
    for number in numbers(160) {
        let text = drawn(number);
        let with = compare_with_all_packets(&text);
        if number % 4 == 0 {
            compare(&with, &run_with(&Shared, &read(&text, "on")), &text);
        }
        if text.contains("ib-cc") {
            leapt_under_control += with.summary.leapt_packet_hops;
        }
        leapt += with.summary.leapt_packet_hops;
        all += with.summary.packet_hops;
    }
    // A sixth to a third of all packet-hops is leapt over, also by runs with congestion control.
    assert!(8 * leapt > all, "{leapt} of {all}");
    assert!(
        40 * leapt_under_control > all,
        "{leapt_under_control} of {all}"
    );
}

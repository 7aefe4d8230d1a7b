//! A host that sends to a list of hosts in turn, each message when the one before has arrived.

use std::ops::ControlFlow;

use silvan_instances::{Fastest, Shared};
use silvan_model::Engines;
use silvan_scenario::Scenario;
use silvan_sim::{ColumnData, RunOutput, run};

use crate::on_ddr;

fn output(engines: &dyn Engines, text: &str, overrides: &[(&str, &str)]) -> RunOutput {
    let overrides = on_ddr(overrides);
    let scenario = Scenario::from_toml(text, "sequences.toml", &overrides).unwrap();
    run(engines, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn instants(output: &RunOutput, table: &str, column: &str) -> Vec<Option<u64>> {
    match output.table(table).unwrap().column(column) {
        Some(ColumnData::OptionalU64(values)) => values.clone(),
        other => panic!("{table}.{column}: {other:?}"),
    }
}

fn counts(output: &RunOutput, column: &str) -> Vec<u64> {
    let table = output.table("sequences").unwrap();
    table.u64_column(column).unwrap().to_vec()
}

/// Three receivers on one switch, messages of two packets and a short one.
const STAR: &str = r#"
    [fabric]
    generator = "single-switch"
    hosts = 4
    [link]
    width = "4x"
    speed = "DDR"
    length = "20 m"
    [switch]
    latency = "150 ns"
    [[traffic.sequence]]
    from = "host-0000"
    to = ["host-0001", "host-0002", "host-0003"]
    message = "5000 B"
    start = "3 us"
    [run]
    duration = "1 ms"
"#;

/// Time of one message: two cables, the switch, its wire bytes at 16 Gbit/s (half a nanosecond each) on the first
/// cable. Then follows its last packet on the second cable.
const MESSAGE_NS: u64 = 100 + 150 + 100 + 1_037 + 1_037 + (5_000 - 2 * 2_048 + 26) / 2;

#[test]
fn completion_is_the_sum_of_message_latencies() {
    for engines in [&Fastest as &dyn Engines, &Shared] {
        for (iterations, pause, expected) in [
            ("1", "0 ns", 3_000 + 3 * MESSAGE_NS),
            ("1", "700 ns", 3_000 + 3 * MESSAGE_NS + 2 * 700),
            ("5", "700 ns", 3_000 + 15 * MESSAGE_NS + 14 * 700),
        ] {
            let keys = [
                ("traffic.sequence.0.iterations", iterations),
                ("traffic.sequence.0.pause", pause),
            ];
            let done = output(engines, STAR, &keys);
            assert_eq!(
                instants(&done, "sequences", "end_ps"),
                [Some(expected * 1_000)],
                "{keys:?}"
            );
            let rounds: u64 = iterations.parse().unwrap();
            assert_eq!(counts(&done, "iterations"), [rounds]);
            assert_eq!(counts(&done, "messages"), [3 * rounds]);
            let hosts = done.table("hosts").unwrap();
            let received = hosts.u64_column("delivered_bytes").unwrap();
            assert_eq!(received[1..], [5_000 * rounds; 3]);
        }
    }
}

/// On a fabric of three levels, the paths to the receivers have two, four and six cables. Flows of equal size give the
/// time of a single message to each receiver.
#[test]
fn completion_is_the_sum_of_flows_alone() {
    let receivers = ["host-0001", "host-0020", "host-0600"];
    let head = "[fabric]\ngenerator = \"fat-tree-648\"\n[traffic]\nmessage = \"20001 B\"\n";
    let tail = "[run]\nduration = \"1 ms\"\n";
    for overrides in [
        &[][..],
        &[("host.sink-rate", "8 Gbit/s")],
        &[("host.sink-rate", "8 Gbit/s"), ("host.sink", "cut-through")],
        &[("fabric.path-choice", "adaptive")],
        &[("host.send-queue", "fifo")],
    ] {
        let alone = |to: &&str| {
            let flow = format!("from = \"host-0000\"\nto = \"{to}\"\nbytes = \"20001 B\"");
            let text = format!("{head}[[traffic.flow]]\n{flow}\n{tail}");
            let done = output(&Fastest, &text, overrides);
            instants(&done, "flows", "completion_ps")[0].unwrap()
        };
        let sum: u64 = receivers.iter().map(alone).sum();
        let sequence = format!("from = \"host-0000\"\nto = {receivers:?}\niterations = 2");
        let text = format!("{head}[[traffic.sequence]]\n{sequence}\n{tail}");
        for engines in [&Fastest as &dyn Engines, &Shared] {
            let done = output(engines, &text, overrides);
            let end = instants(&done, "sequences", "end_ps");
            assert_eq!(end, [Some(2 * sum)], "{overrides:?}");
        }
    }
}

/// Two sequences through an incast that congestion control throttles. The engine for plain fabrics and the engine for
/// every fabric agree, and so do runs with one seed.
#[test]
fn engine_forms_agree() {
    let text = r#"
        [fabric]
        generator = "fat-tree-648"
        [[traffic.incast]]
        to = "host-0600"
        from = ["host-0001", "host-0100", "host-0200", "host-0300"]
        [[traffic.sequence]]
        name = "rounds"
        from = "host-0002"
        to = ["host-0600", "host-0020", "host-0600", "host-0601"]
        iterations = 20
        message = "16 KiB"
        [[traffic.sequence]]
        name = "endless"
        from = "host-0600"
        to = ["host-0001", "host-0002"]
        iterations = "unlimited"
        pause = "1 us"
        [run]
        duration = "2 ms"
    "#;
    for scheme in ["ib-cc", "none"] {
        let keys = [("control.scheme", scheme)];
        let [fast, again, shared] = [&Fastest as &dyn Engines, &Fastest, &Shared]
            .map(|engines| output(engines, text, &keys));
        let messages = counts(&fast, "messages");
        assert!(messages.iter().all(|&count| count > 4), "{messages:?}");
        for table in ["sequences", "hosts", "classes", "ports"] {
            assert_eq!(fast.table(table), again.table(table), "{scheme} {table}");
            assert_eq!(fast.table(table), shared.table(table), "{scheme} {table}");
        }
    }
}

/// A message is not begun at or after the end, and one that was begun is delivered.
#[test]
fn sequences_end_with_their_window() {
    let begins = 3_000 + MESSAGE_NS;
    let unfinished = ColumnData::Bool(vec![false]);
    for (end, messages) in [(begins, 1), (begins + 1, 2)] {
        let end = format!("{end} ns");
        let keys = [
            ("traffic.sequence.0.iterations", "unlimited"),
            ("traffic.sequence.0.end", &end),
        ];
        let done = output(&Fastest, STAR, &keys);
        assert_eq!(counts(&done, "messages"), [messages], "{end}");
        let last = 3_000 + messages * MESSAGE_NS;
        assert_eq!(
            instants(&done, "sequences", "last_delivery_ps"),
            [Some(last * 1_000)]
        );
        assert_eq!(instants(&done, "sequences", "end_ps"), [None]);
        let table = done.table("sequences").unwrap();
        assert_eq!(table.column("finished"), Some(&unfinished));
    }
}

/// A message to the sender itself takes the injection rate and nothing else.
#[test]
fn a_sequence_may_come_back_to_its_sender() {
    let keys = [
        ("traffic.loopback", "true"),
        ("traffic.sequence.0.to.1", "host-0000"),
        ("host.injection-rate", "8 Gbit/s"),
    ];
    let done = output(&Fastest, STAR, &keys);
    // The last packet of a message starts when two of 2048 bytes are injected, at a nanosecond per byte.
    let across = 2 * 2_048 + 465 + 350;
    // Delivered that early, the first message still keeps the host injecting for its 5000 bytes.
    let end = 3_000 + 5_000 + 5_000 + across;
    assert_eq!(instants(&done, "sequences", "end_ps"), [Some(end * 1_000)]);
}

/// Programs together with sequences receive only their own deliveries, and so do sequences.
#[test]
fn programs_run_together_with_sequences() {
    let program = r#"
        [[traffic.program]]
        kind = "allreduce"
        hosts = ["host-0001", "host-0002"]
        bytes = "4 KiB"
        background = true
        [run]"#;
    let text = STAR.replace("[run]", program);
    for engines in [&Fastest as &dyn Engines, &Shared] {
        let done = output(engines, &text, &[("traffic.sequence.0.start", "500 us")]);
        let end = 500_000 + 3 * MESSAGE_NS;
        assert_eq!(instants(&done, "sequences", "end_ps"), [Some(end * 1_000)]);
        assert!(instants(&done, "programs", "end_ps")[0].unwrap() < 500_000_000);
    }
}

#[test]
fn a_run_without_sequences_has_no_such_table() {
    let text = STAR.replace("traffic.sequence", "traffic.flow").replace(
        "[\"host-0001\", \"host-0002\", \"host-0003\"]",
        "\"host-0001\"",
    );
    assert!(output(&Fastest, &text, &[]).table("sequences").is_none());
}

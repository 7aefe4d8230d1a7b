//! Ends of flows with a number of bytes, and their delay relative to an empty fabric.

use std::ops::ControlFlow;

use silvan_instances::{Fastest, Shared};
use silvan_model::Engines;
use silvan_scenario::Scenario;
use silvan_sim::{ColumnData, Table, run};

use crate::on_ddr;

/// A flow alone on a fabric of three levels, and what a run may change.
const ALONE: &str = r#"
    [fabric]
    generator = "fat-tree-648"
    [[traffic.flow]]
    from = "host-0000"
    to = "host-0600"
    bytes = "100001 B"
    start = "3 us"
    [run]
    duration = "2 ms"
"#;

fn flows(engines: &dyn Engines, text: &str, overrides: &[(&str, &str)]) -> Option<Table> {
    let overrides = on_ddr(overrides);
    let scenario = Scenario::from_toml(text, "flows.toml", &overrides).unwrap();
    let output = run(engines, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
    output.table("flows").cloned()
}

fn optional(table: &Table, name: &str) -> Vec<Option<u64>> {
    match table.column(name) {
        Some(ColumnData::OptionalU64(values)) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn slowdowns(table: &Table) -> Vec<Option<f64>> {
    match table.column("slowdown") {
        Some(ColumnData::OptionalF64(values)) => values.clone(),
        other => panic!("{other:?}"),
    }
}

/// The recursion ends in the picosecond of the engine, for any fabric and flow.
#[test]
fn a_flow_alone_is_not_slowed_down() {
    let cases: [(&str, &[(&str, &str)]); 18] = [
        ("", &[]),
        ("bytes = \"1 B\"", &[]),
        ("message = \"3001 B\"", &[("host.send-queue", "\"fifo\"")]),
        ("", &[("switch.queueing", "\"fifo\"")]),
        ("to = \"host-0000\"", &[("traffic.loopback", "true")]),
        (
            "to = \"host-0000\"",
            &[
                ("traffic.loopback", "true"),
                ("host.injection-rate", "\"13.5 Gbit/s\""),
            ],
        ),
        ("bytes = \"2048 B\"", &[]),
        ("message = \"3001 B\"", &[]),
        ("load = \"5 Gbit/s\"", &[]),
        ("load = 0.3", &[("packet.mtu", "\"256 B\"")]),
        ("", &[("host.injection-rate", "\"13.5 Gbit/s\"")]),
        ("", &[("host.sink-rate", "\"13.6 Gbit/s\"")]),
        (
            "message = \"5000 B\"",
            &[
                ("host.injection-rate", "\"13.5 Gbit/s\""),
                ("host.sink-rate", "\"7 Gbit/s\""),
            ],
        ),
        (
            "message = \"3001 B\"",
            &[
                ("host.sink-rate", "\"9 Gbit/s\""),
                ("host.sink", "\"cut-through\""),
            ],
        ),
        (
            "",
            &[(
                "switch.output-buffer",
                "{ size = \"32 KiB\", speedup = 1.5 }",
            )],
        ),
        (
            "message = \"3001 B\"",
            &[(
                "switch.output-buffer",
                "{ size = \"32 KiB\", speedup = 2.0, crossbar = \"cut-through\" }",
            )],
        ),
        ("on-off = { on = \"10 us\", off = \"10 us\" }", &[]),
        (
            "",
            &[
                ("link.length", "\"37 m\""),
                ("switch.latency", "\"123 ns\""),
            ],
        ),
    ];
    for (flow, overrides) in cases {
        let text = match flow.starts_with("bytes") {
            _ if flow.starts_with("to") => ALONE.replace("to = \"host-0600\"", flow),
            true => ALONE.replace("bytes = \"100001 B\"", flow),
            false => ALONE.replace("[run]", &format!("{flow}\n[run]")),
        };
        for engines in [&Fastest as &dyn Engines, &Shared] {
            let table = flows(engines, &text, overrides).unwrap();
            let (took, ideal) = (
                optional(&table, "completion_ps"),
                optional(&table, "ideal_ps"),
            );
            assert_eq!(took, ideal, "{flow} {overrides:?}");
            assert_eq!(slowdowns(&table), [Some(1.0)], "{flow} {overrides:?}");
        }
    }
}

/// The first packet's latency, and the time of the slowest stage for each other packet. 16 packets of 2048 bytes go
/// over two cables of 20 m, at 16 Gbit/s with 26 bytes of header, into a sink of 8 Gbit/s.
#[test]
fn completion_is_that_of_the_closed_form() {
    let text = r#"
        [fabric]
        generator = "single-switch"
        hosts = 2
        [link]
        width = "4x"
        speed = "DDR"
        length = "20 m"
        [switch]
        latency = "150 ns"
        [host]
        sink-rate = "8 Gbit/s"
        [[traffic.flow]]
        from = "host-0000"
        to = "host-0001"
        bytes = "32 KiB"
        [run]
        duration = "1 ms"
    "#;
    let table = flows(&Fastest, text, &[]).unwrap();
    let first = 100 + 150 + 1_037 + 100 + 2_048;
    let expected = Some((first + 15 * 2_048) * 1_000);
    assert_eq!(optional(&table, "completion_ps"), [expected]);
    assert_eq!(optional(&table, "ideal_ps"), [expected]);
}

/// Two that share a host's link take as long as one of twice the bytes; one that has too much to send is
/// not finished.
#[test]
fn flows_that_share_a_link_slow_down_and_unfinished_ones_have_no_end() {
    let text = r#"
        [fabric]
        generator = "single-switch"
        hosts = 5
        [[traffic.incast]]
        name = "shared"
        to = "host-0000"
        from = ["host-0001", "host-0002"]
        bytes = "256 KiB"
        [[traffic.flow]]
        name = "endless"
        from = "host-0003"
        to = "host-0004"
        [[traffic.flow]]
        name = "large"
        from = "host-0004"
        to = "host-0003"
        bytes = "1 GiB"
        [run]
        duration = "1 ms"
        warm-up = "100 us"
    "#;
    let table = flows(&Fastest, text, &[]).unwrap();
    assert_eq!(
        table.text_column("name").unwrap(),
        ["shared", "shared", "large"]
    );
    assert_eq!(
        table.text_column("from").unwrap(),
        ["host-0001", "host-0002", "host-0004"]
    );
    let finished = ColumnData::Bool(vec![true, true, false]);
    assert_eq!(table.column("finished"), Some(&finished));
    let delivered = table.u64_column("delivered_bytes").unwrap();
    assert_eq!(delivered[..2], [256 << 10; 2]);
    assert!(delivered[2] > 0 && delivered[2] < 1 << 30);
    for name in ["end_ps", "completion_ps", "ideal_ps"] {
        assert_eq!(optional(&table, name)[2], None, "{name}");
    }
    let slowdowns = slowdowns(&table);
    assert_eq!(slowdowns[2], None);
    // The last packet of 512 KiB ends 256 times 1.037 us after the first one arrives.
    let last = optional(&table, "end_ps")[..2]
        .iter()
        .flatten()
        .max()
        .copied();
    let alone = optional(&table, "ideal_ps")[0].unwrap();
    assert_eq!(last, Some(alone + 128 * 1_037_000));
    for slowdown in &slowdowns[..2] {
        assert!((1.9..2.0).contains(&slowdown.unwrap()), "{slowdown:?}");
    }
}

/// Without flows that end there is no table.
#[test]
fn flows_without_an_end_have_no_table() {
    let endless = ALONE.replace("bytes = \"100001 B\"", "");
    assert!(flows(&Fastest, &endless, &[]).is_none());
}

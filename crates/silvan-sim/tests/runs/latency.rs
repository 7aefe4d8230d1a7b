//! Latency columns for known latencies.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{ColumnData, RunOutput, run};

use crate::on_ddr;

/// Host 0 sends to host 1 and never waits. Hosts 2 and 3 both send all they can to host 4 until the
/// warm-up is over, and host 2 then goes on at its ease.
const TEXT: &str = r#"
    [fabric]
    generator = "single-switch"
    hosts = 5
    [link]
    width = "4x"
    speed = "DDR"
    length = "20 m"
    [switch]
    latency = "150 ns"
    [packet]
    mtu = "2 KiB"
    header = "26 B"
    [[traffic.flow]]
    name = "free"
    from = "host-0000"
    to = "host-0001"
    load = "4 Gbit/s"
    [[traffic.flow]]
    name = "early"
    from = "host-0003"
    to = "host-0004"
    end = "400 us"
    [[traffic.flow]]
    name = "crowded"
    from = "host-0002"
    to = "host-0004"
    end = "400 us"
    [[traffic.flow]]
    name = "late"
    from = "host-0002"
    to = "host-0004"
    start = "500 us"
    load = "4 Gbit/s"
    [run]
    warm-up = "500 us"
    duration = "1 ms"
"#;

/// Two cables of 20 m at 5 ns/m, the switch, and 2074 bytes at 16 Gbit/s.
const ALONE_NS: u64 = 100 + 150 + 100 + 1_037;

fn output(latency: &str) -> RunOutput {
    let overrides = on_ddr(&[("probe.latency", latency)]);
    let scenario = Scenario::from_toml(TEXT, "latency.toml", &overrides).unwrap();
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

const EXACT: [&str; 3] = ["latency_mean_ns", "latency_min_ns", "latency_max_ns"];
const PERCENTILES: [&str; 3] = ["latency_p50_ns", "latency_p99_ns", "latency_p999_ns"];

fn check(output: &RunOutput, table: &str, names: &str, expected: &[(&str, Option<u64>)]) {
    let table = output.table(table).unwrap();
    let found = table.text_column(names).unwrap();
    for (name, expected) in expected {
        let row = found.iter().position(|found| found == name).unwrap();
        for column in EXACT {
            let Some(ColumnData::OptionalF64(values)) = table.column(column) else {
                panic!("no column {column}");
            };
            let expected = expected.map(|ns| ns as f64);
            assert_eq!(values[row], expected, "{name}, {column}");
        }
        for column in PERCENTILES {
            let Some(ColumnData::OptionalU64(values)) = table.column(column) else {
                panic!("no column {column}");
            };
            // Percentiles stay between the exact extremes, which are equal here.
            assert_eq!(values[row], *expected, "{name}, {column}");
        }
    }
}

/// By class and by host; what ended before the warm-up does not count.
#[test]
fn known_latencies() {
    let classes = [
        ("free", Some(ALONE_NS)),
        ("late", Some(ALONE_NS)),
        ("early", None),
        ("crowded", None),
    ];
    for latency in ["\"class\"", "\"host\""] {
        check(&output(latency), "classes", "name", &classes);
    }
    let hosts = [
        ("host-0001", Some(ALONE_NS)),
        ("host-0004", Some(ALONE_NS)),
        ("host-0000", None),
    ];
    check(&output("\"host\""), "hosts", "name", &hosts);
    let off = output("\"off\"");
    let none = classes.map(|(name, _)| (name, None));
    check(&off, "classes", "name", &none);
    assert!(off.table("hosts").unwrap().column(EXACT[0]).is_none());
}

/// Latencies below the resolution of the histogram are distinguished. Packets of 2042 to 2046 bytes
/// on the wire take 1 ns more for every 2 bytes.
#[test]
fn latencies_one_nanosecond_apart_differ() {
    for (payload, expected) in [(2016, 1_371.0), (2018, 1_372.0), (2020, 1_373.0)] {
        let message = format!("{payload} B");
        let overrides = on_ddr(&[("traffic.message", &message)]);
        let scenario = Scenario::from_toml(TEXT, "latency.toml", &overrides).unwrap();
        let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
        let classes = output.table("classes").unwrap();
        let row = classes.text_column("name").unwrap();
        let row = row.iter().position(|name| name == "free").unwrap();
        for column in EXACT {
            let Some(ColumnData::OptionalF64(values)) = classes.column(column) else {
                panic!("no column {column}");
            };
            assert_eq!(values[row], Some(expected), "{column}");
        }
    }
}

/// Oracle: all packets took the same time; with a crowd, the counts of all hosts in the table `host_latencies`.
#[test]
fn the_summary_has_the_latencies_of_all_packets() {
    let alone = output("\"class\"").summary.latency.unwrap();
    assert_eq!(alone.mean_ns, ALONE_NS as f64);
    assert_eq!(alone.max_ns, ALONE_NS as f64);
    assert_eq!([alone.p50_ns, alone.p99_ns, alone.p999_ns], [ALONE_NS; 3]);
    assert_eq!(output("\"off\"").summary.latency, None);

    let overrides = [
        Override::new("probe.latency", "\"host\""),
        Override::new("run.warm-up", "\"0 ns\""),
    ];
    let scenario = Scenario::from_toml(TEXT, "latency.toml", &overrides).unwrap();
    let crowded = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
    let table = crowded.table("host_latencies").unwrap();
    let column = |name: &str| match table.column(name).unwrap() {
        ColumnData::U64(values) => values.clone(),
        _ => panic!("{name} is not of numbers"),
    };
    let mut bins: Vec<(u64, u64)> = column("to_ns").into_iter().zip(column("packets")).collect();
    bins.sort_unstable();
    let packets: u64 = bins.iter().map(|(_, count)| count).sum();
    let summary = crowded.summary.latency.unwrap();
    assert_eq!(summary.packets, packets);
    for (share, found) in [
        (0.5, summary.p50_ns),
        (0.99, summary.p99_ns),
        (0.999, summary.p999_ns),
    ] {
        let rank = (share * packets as f64).ceil() as u64;
        let mut up_to = 0;
        let reached = bins.iter().find(|(_, count)| {
            up_to += count;
            up_to >= rank
        });
        assert_eq!(found, reached.unwrap().0.min(summary.max_ns as u64));
    }
}

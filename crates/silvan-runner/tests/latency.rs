//! What the latency columns say, where the latency is known.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::ops::ControlFlow;

use silvan_compiled::Fastest;
use silvan_runner::{RunOutput, run};
use silvan_scenario::{Override, Scenario};

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
    let overrides = [Override::new("probe.latency", latency)];
    let scenario = Scenario::from_toml(TEXT, "latency.toml", &overrides).unwrap();
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

const COLUMNS: [&str; 5] = [
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "latency_max_ns",
];

fn check(output: &RunOutput, table: &str, names: &str, expected: &[(&str, Option<u64>)]) {
    let table = output.table(table).unwrap();
    let found = table.text_column(names).unwrap();
    for (name, expected) in expected {
        let row = found.iter().position(|found| found == name).unwrap();
        for column in COLUMNS {
            let value = table.u64_column(column).unwrap()[row];
            match expected {
                // Histograms keep two significant digits.
                Some(expected) => assert!(
                    value.abs_diff(*expected) * 100 <= *expected,
                    "{name}, {column}: {value}, not {expected}"
                ),
                None => assert_eq!(value, 0, "{name}, {column}"),
            }
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
    assert!(off.table("hosts").unwrap().column(COLUMNS[0]).is_none());
}

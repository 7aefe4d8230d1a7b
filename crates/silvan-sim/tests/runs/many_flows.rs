//! Entries of many flows, from the start to the tables.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{ColumnData, RunOutput, Table, run};

use crate::on_ddr;

fn output(text: &str, overrides: &[(&str, &str)], seed: u64) -> RunOutput {
    let overrides = on_ddr(overrides);
    let scenario = Scenario::from_toml(text, "flows.toml", &overrides).unwrap();
    run(
        &Fastest,
        &scenario,
        seed,
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap()
}

fn whole(table: &Table, name: &str) -> Vec<u64> {
    match &table.column(name).unwrap().clone() {
        ColumnData::OptionalU64(values) => values.iter().map(|value| value.unwrap()).collect(),
        ColumnData::U64(values) => values.clone(),
        ColumnData::U32(values) => values.iter().map(|value| u64::from(*value)).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

fn numbers(table: &Table, name: &str) -> Vec<Option<f64>> {
    match table.column(name).unwrap() {
        ColumnData::OptionalF64(values) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

/// A flow alone takes the time of the closed form, which skips packets, and that of the recursion, which does
/// not.
#[test]
fn a_flow_alone_takes_the_time_of_the_formula() {
    let fabric = r#"
        [fabric]
        generator = "k-ary-n-tree"
        k = 3
        n = 2
        [run]
        duration = "20 ms"
    "#;
    let cases: [&[(&str, &str)]; 8] = [
        &[],
        &[("host.injection-rate", "\"7 Gbit/s\"")],
        &[("host.sink-rate", "\"5 Gbit/s\"")],
        &[("switch.cut-through", "true")],
        &[
            ("host.injection-rate", "\"9 Gbit/s\""),
            ("host.sink-rate", "\"8.9 Gbit/s\""),
        ],
        &[
            ("host.sink", "\"cut-through\""),
            ("host.sink-rate", "\"13.6 Gbit/s\""),
        ],
        &[("packet.mtu", "\"256 B\"")],
        &[("link.rate", "\"3.3 Gbit/s\"")],
    ];
    let mut checked = 0;
    for overrides in cases {
        for bytes in ["1 B", "4096 B", "100001 B", "3 MB"] {
            let one = format!(
                "{fabric}\n[[traffic.flow]]\nfrom = \"host-0000\"\nto = \"host-0008\"\nbytes = \"{bytes}\""
            );
            let many = format!(
                "{fabric}\n[[traffic.flows]]\nfrom = [\"host-0000\"]\nto = [\"host-0008\"]\ncount = 1\n\
                 load = 0.9\nsizes = {{ fixed = \"{bytes}\" }}"
            );
            let known = |text: &str| {
                Scenario::from_toml(
                    text,
                    "",
                    &overrides
                        .iter()
                        .map(|(k, v)| Override::new(*k, *v))
                        .collect::<Vec<_>>(),
                )
                .is_ok()
            };
            if !known(&one) {
                continue;
            }
            checked += 1;
            let (one, many) = (output(&one, overrides, 1), output(&many, overrides, 1));
            let (one, many) = (one.table("flows").unwrap(), many.table("flows").unwrap());
            assert_eq!(
                whole(one, "ideal_ps"),
                whole(many, "ideal_ps"),
                "{overrides:?} {bytes}"
            );
            assert_eq!(
                numbers(many, "slowdown"),
                [Some(1.0)],
                "{overrides:?} {bytes}"
            );
            assert_eq!(whole(one, "hops"), whole(many, "hops"));
        }
    }
    assert!(checked > 20, "{checked}");
}

/// Flows of one pair queue up at their host: M/G/1, whose mean waiting time is that of Pollaczek and Khinchine.
#[test]
fn waiting_time_is_that_of_a_queue() {
    let text = r#"
        [fabric]
        generator = "single-switch"
        hosts = 2
        [link]
        rate = "40 Gbit/s"
        [host]
        injection-rate = "10 Gbit/s"
        [[traffic.flows]]
        from = ["host-0000"]
        to = ["host-0001"]
        load = 0.6
        count = 6000
        sizes = { uniform = { from = "1000 B", to = "9000 B" } }
        [run]
        duration = "100 ms"
    "#;
    let output = output(text, &[], 3);
    let flows = output.table("flows").unwrap();
    let (completion, ideal) = (whole(flows, "completion_ps"), whole(flows, "ideal_ps"));
    assert_eq!(completion.len(), 6000);
    let waits = completion
        .iter()
        .zip(&ideal)
        .map(|(all, own)| (all - own) as f64);
    let waits: Vec<f64> = waits.collect();
    let mean = waits.iter().sum::<f64>() / 6000.0;
    // Service takes 0.8 ns a byte: its mean is 4 us, its mean square that of a uniform distribution.
    let square = (1.0 + 9.0 + 81.0) / 3.0 * 1e6 * 0.8e3_f64.powi(2);
    let rate = 0.6 / 4e6;
    let expected = rate * square / (2.0 * (1.0 - 0.6));
    // Batch means of 300 flows: four standard errors.
    let batches: Vec<f64> = waits
        .chunks(300)
        .map(|batch| batch.iter().sum::<f64>() / 300.0)
        .collect();
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    let error = (squares / 19.0 / 20.0).sqrt();
    assert!(
        (mean - expected).abs() < 4.0 * error,
        "{mean} {expected} {error}"
    );
    assert!(error < 0.1 * expected, "the bound says something: {error}");
}

/// Below saturation nothing rises with time; above it slowdowns do, and the test says so.
#[test]
fn the_trend_tells_saturation() {
    let text = r#"
        [fabric]
        generator = "single-switch"
        hosts = 6
        [host]
        sink-rate = "10 Gbit/s"
        injection-rate = "10 Gbit/s"
        [[traffic.flows]]
        load = 0.3
        sizes = { fixed = "20 kB" }
        [run]
        warm-up = "500 us"
        duration = "8 ms"
    "#;
    let trend = |overrides: &[(&str, &str)]| {
        let output = output(text, overrides, 2);
        let table = output.table("flow_sizes").unwrap();
        let unfinished = whole(table, "flows")[0] - whole(table, "finished_flows")[0];
        (
            numbers(table, "trend_t")[0].unwrap(),
            numbers(table, "slowdown_ci")[0].unwrap(),
            unfinished,
        )
    };
    let (stationary, interval, _) = trend(&[]);
    assert!(stationary.abs() < 2.878, "{stationary}");
    assert!(interval > 0.0 && interval < 1.0, "{interval}");
    let (rising, _, unfinished) = trend(&[("host.sink-rate", "\"2 Gbit/s\"")]);
    assert!(rising > 2.878 && unfinished > 20, "{rising} {unfinished}");
}

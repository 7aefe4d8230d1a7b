//! Serving of a transformer against closed forms.

use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{ColumnData, RunOutput, Table, run};

/// 2 layers of 4 heads of keys and values, 64 wide, in 2 bytes: a token has 2 * 2 * 4 * 64 * 2 = 2,048 bytes of cache.
const TEXT: &str = r#"
[fabric]
generator = "single-switch"
hosts = 8
[link]
speed = "HDR"
[[traffic.program]]
kind = "inference"
operations-per-second = 1e13
[traffic.program.inference]
layers = 2
hidden = 512
heads = 8
kv-heads = 4
vocabulary = 1024
prompt-tokens = 512
output-tokens = 5
"#;

const TOKEN: u64 = 2 * 2 * 4 * 64 * 2;

fn output(overrides: &[(&str, &str)]) -> RunOutput {
    let mut all = vec![Override::new("run.duration", "10 s")];
    let key = |key: &str| match key.strip_prefix("i.") {
        Some(key) => format!("traffic.program.0.inference.{key}"),
        None => key.to_owned(),
    };
    all.extend(
        overrides
            .iter()
            .map(|(name, value)| Override::new(key(name), *value)),
    );
    let scenario = Scenario::from_toml(TEXT, "inference.toml", &all).unwrap();
    assert!(scenario.estimate(1).unwrap().packet_hops > 0.0);
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn column(table: &Table, name: &str) -> Vec<u64> {
    match table.column(name).unwrap() {
        ColumnData::U32(values) => values.iter().map(|value| u64::from(*value)).collect(),
        ColumnData::U64(values) => values.clone(),
        _ => panic!("{name} is not of numbers"),
    }
}

/// Spans of the measurements with a label, in order of their numbers.
fn spans(output: &RunOutput, label: &str) -> Vec<(u64, u64)> {
    let marks = output.table("program_marks").unwrap();
    let labels = marks.text_column("label").unwrap();
    let (index, begin, end) = (
        column(marks, "index"),
        column(marks, "begin_ps"),
        column(marks, "end_ps"),
    );
    let rows = (0..labels.len()).filter(|row| labels[*row] == label);
    let mut found: Vec<_> = rows
        .map(|row| (index[row], (begin[row], end[row])))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, span)| span).collect()
}

fn delivered(output: &RunOutput) -> u64 {
    column(output.table("classes").unwrap(), "delivered_bytes")[0]
}

/// The only messages between hosts are the caches: 2 x layers x heads x width x bytes x tokens, whatever the parts.
#[test]
fn caches_have_the_bytes_of_the_closed_form() {
    for (overrides, requests) in [
        (vec![], 1),
        (vec![("i.transfer", "whole")], 1),
        (
            vec![
                ("i.requests", "7"),
                ("i.prefill-instances", "2"),
                ("i.decode-instances", "3"),
            ],
            7,
        ),
    ] {
        let output = output(&overrides);
        assert_eq!(delivered(&output), requests * 512 * TOKEN, "{overrides:?}");
        assert_eq!(spans(&output, "request").len() as u64, requests);
        assert_eq!(spans(&output, "first-token").len() as u64, requests);
    }
    // With two ranks that prefill and four that decode each has its heads; other messages tell ranks what to do (64 bytes), are
    // the parts of allreduces, or are empty.
    let output = output(&[("i.prefill-tensor", "2"), ("i.decode-tensor", "4")]);
    let ring = |ranks: u64, tokens: u64| 2 * (ranks - 1) * tokens * 512 * 2;
    let prefill = 4 * ring(2, 512) + 64;
    let decode = 4 * (4 * ring(4, 1) + 3 * 64) + 3 * 64;
    let requests = 64 * 2 * 4 * 2 * 2;
    assert_eq!(
        delivered(&output),
        512 * TOKEN + prefill + decode + requests
    );
}

/// Prefill: 2 (attention + inner part) operations a token and weight, and attention among tokens; decode: one token.
#[test]
fn times_are_those_of_operations_and_links() {
    let output = output(&[]);
    let attention = 2.0 * 512.0 * 512.0 + 2.0 * 512.0 * 256.0;
    let inner = 3.0 * 512.0 * 2048.0;
    let words = 2.0 * 512.0 * 1024.0;
    let pairs = 4.0 * 512.0 * 512.0 * 512.0 / 2.0;
    let prefill = 2.0 * (2.0 * (attention + inner) * 512.0 + pairs) + words;
    let (begin, end) = spans(&output, "first-token")[0];
    let model = prefill / 1e13 * 1e12;
    assert!(
        ((end - begin) as f64 - model).abs() < 10.0,
        "{} ps, {model}",
        end - begin
    );
    // With the last layer's cache, half of it, on the way while the words are computed.
    let layer = 256.0 * TOKEN as f64 * 8.0 / 200e9;
    let (_, cached) = spans(&output, "cache")[0];
    let after = (cached as f64 - (end as f64 - words / 1e13 * 1e12)) / 1e12;
    assert!(
        (layer..layer * 1.05 + 1e-6).contains(&after),
        "{after} s, {layer}"
    );
    let steps = spans(&output, "decode");
    assert_eq!(steps.len(), 4);
    for (number, (begin, end)) in steps.into_iter().enumerate() {
        let context = 513.0 + number as f64;
        let step = 2.0 * (2.0 * (attention + inner) + 4.0 * 512.0 * context) + words;
        let model = step / 1e13 * 1e12;
        assert!(((end - begin) as f64 - model).abs() < 10.0, "step {number}");
    }
}

/// Decode reads all weights and the cache from memory in each step, for all requests of a batch together.
#[test]
fn decode_is_as_fast_as_the_memory() {
    let output = output(&[
        ("i.memory-rate", "800 Gbit/s"),
        ("i.requests", "3"),
        ("i.prefill-batch", "3"),
    ]);
    let weights = 2.0 * (2.0 * 512.0 * 512.0 + 2.0 * 512.0 * 256.0 + 3.0 * 512.0 * 2048.0);
    let words = 512.0 * 1024.0;
    let steps = spans(&output, "decode");
    let (begin, end) = *steps.last().unwrap();
    let batch = (1..4).map(|batch| {
        let cache = f64::from(batch) * 516.0 * TOKEN as f64;
        (2.0 * (weights + words) + cache) * 8.0 / 800e9 * 1e12
    });
    let found = (end - begin) as f64;
    let nearest = batch
        .map(|model| (found - model).abs())
        .fold(f64::MAX, f64::min);
    assert!(nearest < 10.0, "{found} ps");
}

/// A transfer by layers hides behind the computing of the next ones.
#[test]
fn transfer_by_layer_is_faster_than_as_a_whole() {
    let ready = |transfer: &str| {
        let output = output(&[
            ("i.transfer", transfer),
            ("i.layers", "8"),
            ("link.speed", "QDR"),
        ]);
        spans(&output, "cache")[0].1 as f64 / 1e12
    };
    let (layer, whole) = (ready("layer"), ready("whole"));
    let (bytes, each) = (8.0 * 256.0 * TOKEN as f64, 256.0 * TOKEN as f64);
    let saved = (bytes - each) * 8.0 / 32e9;
    // Headers take another hundredth.
    assert!(
        (saved..1.03 * saved).contains(&(whole - layer)),
        "{whole} {layer}"
    );
}

/// Oracle: one thread. Ranks know of each other by messages only.
#[test]
fn threads_do_not_matter() {
    let all = [
        ("i.requests", "20"),
        ("i.interval", "50 us"),
        ("i.arrivals", "poisson"),
        ("i.prefill-tensor", "2"),
        ("i.decode-tensor", "2"),
        ("i.prefill-instances", "2"),
        ("i.decode-instances", "2"),
        ("i.prefill-batch", "4"),
    ];
    let one = output(&all);
    let mut more = all.to_vec();
    more.push(("run.threads", "3"));
    let three = output(&more);
    assert_eq!(one.tables, three.tables);
}

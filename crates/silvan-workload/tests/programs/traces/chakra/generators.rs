//! Traces as the generators and converters of MLCommons write them.

use std::collections::BTreeSet;

use proptest::prelude::*;
use silvan_core::{Span, Time};
use silvan_workload::programs::Action;
use silvan_workload::programs::trace::chakra::{Chakra, ControlDependencies};
use silvan_workload::programs::trace::{TraceFormat, TracePlace};

use super::super::{read, sent, settings, traced};
use super::{BOOL, INT64, Node, attribute, bytes, framed, named, number, varint};
use crate::common::{messaging, run};

/// The first message of a file.
fn head(version: Option<&str>, schema: Option<&str>) -> Vec<u8> {
    let version = version.map(|text| bytes(1, text.as_bytes()));
    let schema = schema.map(|text| {
        let attribute = [bytes(1, b"schema"), bytes(29, text.as_bytes())].concat();
        bytes(2, &attribute)
    });
    framed(&[version.unwrap_or_default(), schema.unwrap_or_default()].concat())
}

/// A node with control and data dependencies.
fn node(id: u64, kind: u64, control: &[u64], data: &[u64], rest: &[Vec<u8>]) -> Vec<u8> {
    let packed = |ids: &[u64]| ids.iter().flat_map(|id| varint(*id)).collect::<Vec<u8>>();
    let message = [
        number(1, id),
        bytes(2, format!("n{id}").as_bytes()),
        number(3, kind),
        bytes(4, &packed(control)),
        bytes(5, &packed(data)),
    ];
    framed(&[message.concat(), rest.concat()].concat())
}

fn step() -> Vec<u8> {
    let work = Node::compute(1, &[], 10);
    let sum = Node::collective(2, &[1], 0, 1 << 20);
    [framed(&work.proto()), framed(&sum.proto())].concat()
}

/// Converters leave the version empty; the generator writes 0.0.4 or 1.0.0.
#[test]
fn every_version_of_the_generators_is_read() {
    let heads = [
        head(None, None),
        head(None, Some("1.0.2-chakra.0.0.4")),
        head(None, Some("1.0.2-chakra.1.0.0")),
        head(None, Some("1.1.1-chakra.0.0.4")),
        head(None, Some("1.0.1")),
        head(Some("0.0.4"), None),
        head(Some("1.0.0"), None),
    ];
    for head in heads {
        let files = vec![[head, step()].concat(); 4];
        let schedules = read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap();
        let total: u64 = schedules
            .iter()
            .flat_map(|schedule| sent(schedule, 4))
            .sum();
        assert_eq!(total, 6_291_456, "4 ranks send 2 x 3/4 of 1 MiB");
    }
    // A node in place of the metadata is not taken for metadata.
    let error = Chakra::DEFAULT.import(vec![step()], None).unwrap_err();
    assert_eq!(error.place, TracePlace::Byte(0));
}

/// The JSON form has the same first object: with a version, with attributes only, or empty.
#[test]
fn json_may_lack_the_version() {
    let nodes = r#"{"id": "1", "type": "COMP_NODE", "durationMicros": "10"}"#;
    let import = |head: &str| Chakra::DEFAULT.import(vec![format!("{head}{nodes}").into()], None);
    let expected = import(r#"{"version": "0.0.4"}"#).unwrap();
    let heads = [
        r#"{"attr": [{"name": "schema", "stringVal": "1.0.2-chakra.0.0.4"}]}"#,
        r#"{"version": "1.0.0", "attr": [{"name": "schema", "stringVal": "1.0.1"}]}"#,
        r#"{"version": ""}"#,
        "{\n}",
    ];
    for head in heads {
        assert_eq!(import(head).unwrap(), expected, "{head}");
    }
    let error = import(r#"{"version": "2.0"}"#).unwrap_err();
    assert_eq!(
        error.message,
        "version \"2.0\": 0.0.4 to 1.0.0 are supported"
    );
    let error = import(r#"{"version": 1}"#).unwrap_err();
    assert_eq!(error.message, "version is 1: write e.g. \"1.0.0\"");
    let error = import(r#"{"colour": 1}"#).unwrap_err();
    assert!(error.message.contains("0 is no type of node"), "{error}");
}

/// Traces of PyTorch that no converter has read are named, with the tools that convert them.
#[test]
fn a_trace_of_pytorch_is_named() {
    let cases = [
        (
            r#"{"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [{"id": 1, "name": "aten::mm"}]}"#,
            "a PyTorch execution trace of the host, not a Chakra trace",
        ),
        (
            r#"{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::mm"}]}"#,
            "a Kineto trace of PyTorch's profiler, not a Chakra trace",
        ),
    ];
    for (text, message) in cases {
        let error = Chakra::DEFAULT.import(vec![text.into()], None).unwrap_err();
        assert_eq!(error.message, message);
        assert!(error.hint.contains("chakra_trace_link"), "{}", error.hint);
        assert!(error.hint.contains("chakra_converter"), "{}", error.hint);
    }
}

/// A kernel whose control dependency exists waits for it; a control dependency on a removed node is counted.
#[test]
fn control_dependencies_on_removed_nodes_are_counted() {
    let host = [number(7, 5), attribute("is_cpu_op", BOOL, 1)];
    let kernel = [number(7, 10), attribute("is_cpu_op", BOOL, 0)];
    let file = [
        head(None, Some("1.0.2-chakra.0.0.4")),
        node(10, 4, &[3], &[], &host),
        node(11, 4, &[10], &[], &kernel),
        node(12, 4, &[3, 4], &[11], &[]),
    ]
    .concat();
    let ends = |format: &Chakra| {
        let text = format.import(vec![file.clone()], None).unwrap();
        let schedules = format.schedules(&text, &settings(1)).unwrap();
        let outcome = run(2, vec![traced(&schedules)], messaging());
        (outcome.ends[0].unwrap(), format.warnings(&text))
    };
    let warning = "3 control dependencies on nodes that the trace does not have are ignored";
    let (end, warnings) = ends(&Chakra::DEFAULT);
    assert_eq!(end, Time::ZERO + Span::from_us(15));
    assert_eq!(warnings, [warning]);
    let ignored = Chakra {
        control_dependencies: ControlDependencies::Ignored,
    };
    let (end, warnings) = ends(&ignored);
    assert_eq!(end, Time::ZERO + Span::from_us(10));
    assert!(warnings.is_empty());
    // A data dependency on a node that does not exist is an error.
    let file = [head(None, None), node(10, 4, &[], &[3], &host)].concat();
    for format in [&Chakra::DEFAULT, &ignored] {
        let error = read(format, std::slice::from_ref(&file), None, &settings(1)).unwrap_err();
        assert!(
            error
                .message
                .contains("waits for node 3, which does not exist")
        );
    }
}

/// The default group of PyTorch is all ranks where no node describes it; other groups need a description.
#[test]
fn process_group_0_is_all_ranks() {
    let sum = |group: &str| {
        let rest = [
            attribute("comm_type", INT64, 0),
            attribute("comm_size", INT64, 4000),
            named("pg_name", group),
        ];
        [head(None, None), node(1, 7, &[], &[], &rest)].concat()
    };
    let schedules = read(&Chakra::DEFAULT, &vec![sum("0"); 4], None, &settings(4)).unwrap();
    for schedule in &schedules {
        assert_eq!(sent(schedule, 4).iter().sum::<u64>(), 2 * 3 * 1000);
    }
    let error = read(&Chakra::DEFAULT, &vec![sum("1"); 4], None, &settings(4)).unwrap_err();
    assert!(error.message.contains("\"1\" of ranks is not described"));
    // Described, it has the ranks of its description.
    let files = [
        &sum("0")[..],
        &sum("0"),
        &head(None, None),
        &head(None, None),
    ];
    let files = files.map(<[u8]>::to_vec);
    let groups = Some("{\"0\": [0, 1]}");
    let schedules = read(&Chakra::DEFAULT, &files, groups, &settings(4)).unwrap();
    assert_eq!(sent(&schedules[0], 4), [0, 4000, 0, 0]);
}

/// The converter writes the inputs of a node as Python prints them.
#[test]
fn groups_as_python_prints_them_are_read() {
    let inputs = [
        r#"['[{"pg_name": "7", "pg_desc": "dp", "ranks": [0, 2]}, {"pg_name": "8", "ranks": [1, 3]}]']"#,
        r#"[["[{\"pg_name\": \"7\", \"ranks\": [0, 2]}, {\"pg_name\": \"8\", \"ranks\": [1, 3]}]"]]"#,
    ];
    for text in inputs {
        let files: Vec<Vec<u8>> = (0..4)
            .map(|rank| {
                let metadata = [
                    number(1, 9),
                    bytes(2, b"## process_group:init ##"),
                    number(3, 1),
                    bytes(8, &bytes(1, text.as_bytes())),
                ];
                let rest = [
                    attribute("comm_type", INT64, 0),
                    attribute("comm_size", INT64, 4000),
                    named("pg_name", ["7", "8"][rank % 2]),
                ];
                let sum = node(1, 7, &[], &[], &rest);
                [head(None, None), framed(&metadata.concat()), sum].concat()
            })
            .collect();
        let schedules = read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap();
        assert_eq!(sent(&schedules[0], 4), [0, 0, 4000, 0], "{text}");
    }
}

proptest! {
    /// Oracle: a count over the nodes. Computing is the sum of durations, bytes follow from the sizes, and the warning
    /// has the number of control dependencies without a node.
    #[test]
    fn totals_are_those_of_the_nodes(nodes in prop::collection::vec(
        (0..1000_u64, prop::collection::btree_set(0..40_u64, 0..4), any::<bool>()), 1..20,
    )) {
        let ranks = 4;
        let ids: BTreeSet<u64> = (0..nodes.len() as u64).map(|place| 2 * place).collect();
        let (mut micros, mut vector, mut dangling) = (0, 0, 0);
        let mut file = head(None, Some("1.0.2-chakra.1.0.0"));
        for (place, (size, control, computes)) in nodes.iter().enumerate() {
            let id = 2 * place as u64;
            let control: Vec<u64> = control
                .iter()
                .copied()
                .filter(|other| *other < id || !ids.contains(other))
                .collect();
            dangling += control.iter().filter(|other| !ids.contains(other)).count();
            let data: Vec<u64> = (id > 0).then(|| id - 2).into_iter().collect();
            let (kind, rest) = match computes {
                true => (4, vec![number(7, *size)]),
                false => (7, vec![
                    attribute("comm_type", INT64, 0),
                    attribute("comm_size", INT64, 4 * size),
                ]),
            };
            micros += if *computes { *size } else { 0 };
            vector += if *computes { 0 } else { 4 * size };
            file.extend(node(id, kind, &control, &data, &rest));
        }
        let text = Chakra::DEFAULT.import(vec![file; ranks], None).unwrap();
        let schedules = Chakra::DEFAULT.schedules(&text, &settings(4)).unwrap();
        for schedule in &schedules {
            let computed: u64 = schedule.ops().iter().map(|op| match op.action {
                Action::Calc(span) => span.as_ps() / 1_000_000,
                _ => 0,
            }).sum();
            prop_assert_eq!(computed, micros);
            prop_assert_eq!(sent(schedule, ranks).iter().sum::<u64>(), 2 * 3 * vector / 4);
        }
        let warnings = Chakra::DEFAULT.warnings(&text);
        let expected = format!("{} control dependencies on nodes", ranks * dangling);
        prop_assert_eq!(warnings.len(), usize::from(dangling > 0));
        prop_assert!(warnings.iter().all(|warning| warning.starts_with(&expected)));
    }
}

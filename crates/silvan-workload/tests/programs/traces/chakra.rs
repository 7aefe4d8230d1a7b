//! Chakra traces: the protobuf is written here field by field from the schema.

mod generators;
mod given;
mod mistakes;

use proptest::prelude::*;
use silvan_core::{Span, Time};
use silvan_workload::programs::trace::chakra::Chakra;
use silvan_workload::programs::trace::{TraceFormat, TracePlace};

use super::{read, sent, settings, traced};
use crate::common::{messaging, run, wire};

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field with bytes, a text or a message.
fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(value.len() as u64),
        value.to_vec(),
    ]
    .concat()
}

/// A message behind its length.
fn framed(message: &[u8]) -> Vec<u8> {
    [varint(message.len() as u64), message.to_vec()].concat()
}

const INT64: u64 = 9;
const UINT64: u64 = 13;
const BOOL: u64 = 27;

fn attribute(name: &str, field: u64, value: u64) -> Vec<u8> {
    bytes(
        10,
        &[bytes(1, name.as_bytes()), number(field, value)].concat(),
    )
}

fn named(name: &str, value: &str) -> Vec<u8> {
    bytes(
        10,
        &[bytes(1, name.as_bytes()), bytes(29, value.as_bytes())].concat(),
    )
}

#[derive(Clone, Debug)]
struct Node {
    id: u64,
    kind: u64,
    deps: Vec<u64>,
    micros: u64,
    attributes: Vec<(&'static str, u64)>,
    group: Option<&'static str>,
}

impl Node {
    fn new(id: u64, kind: u64, deps: &[u64], attributes: &[(&'static str, u64)]) -> Self {
        Self {
            id,
            kind,
            deps: deps.to_vec(),
            micros: 0,
            attributes: attributes.to_vec(),
            group: None,
        }
    }

    fn compute(id: u64, deps: &[u64], micros: u64) -> Self {
        Self {
            micros,
            ..Self::new(id, 4, deps, &[])
        }
    }

    fn send(id: u64, deps: &[u64], to: u64, size: u64, tag: u64) -> Self {
        Self::new(
            id,
            5,
            deps,
            &[("comm_dst", to), ("comm_size", size), ("comm_tag", tag)],
        )
    }

    fn receive(id: u64, deps: &[u64], from: u64, size: u64, tag: u64) -> Self {
        Self::new(
            id,
            6,
            deps,
            &[("comm_src", from), ("comm_size", size), ("comm_tag", tag)],
        )
    }

    fn collective(id: u64, deps: &[u64], kind: u64, size: u64) -> Self {
        Self::new(id, 7, deps, &[("comm_type", kind), ("comm_size", size)])
    }

    fn of(self, group: &'static str) -> Self {
        Self {
            group: Some(group),
            ..self
        }
    }

    fn proto(&self) -> Vec<u8> {
        let mut message = bytes(2, format!("n{}", self.id).as_bytes());
        // Protobuf leaves out what is zero.
        if self.id > 0 {
            message.extend(number(1, self.id));
        }
        message.extend(number(3, self.kind));
        // One kind of dependency packed, the other number by number: both are allowed.
        let (control, data) = self.deps.split_at(self.deps.len() / 2);
        message.extend(bytes(
            4,
            &control
                .iter()
                .flat_map(|id| varint(*id))
                .collect::<Vec<_>>(),
        ));
        message.extend(data.iter().flat_map(|id| number(5, *id)));
        message.extend(number(7, self.micros));
        message.extend(attribute("is_cpu_op", BOOL, 0));
        for (place, (name, value)) in self.attributes.iter().enumerate() {
            message.extend(attribute(name, [INT64, UINT64][place % 2], *value));
        }
        if let Some(group) = self.group {
            message.extend(named("pg_name", group));
        }
        message
    }

    /// Writes the node as an entry of a `workload_graph`.
    fn entry(&self) -> String {
        let mut text = format!(
            "{{\"Id\": {}, \"Name\": \"n{}\", \"NodeType\": {}, \"is_cpu_op\": false, \"runtime\": {}, \"data_deps\": {:?}",
            self.id, self.id, self.kind, self.micros, self.deps
        );
        for (name, value) in &self.attributes {
            text += &format!(", \"{name}\": {value}");
        }
        if let Some(group) = self.group {
            text += &format!(", \"pg_name\": \"{group}\"");
        }
        text + "}"
    }

    /// Writes the node as protobuf writes JSON.
    fn message(&self) -> String {
        let types = [
            "",
            "",
            "",
            "",
            "COMP_NODE",
            "COMM_SEND_NODE",
            "COMM_RECV_NODE",
            "COMM_COLL_NODE",
        ];
        let deps: Vec<String> = self.deps.iter().map(u64::to_string).collect();
        let mut attributes = vec!["{\"name\": \"is_cpu_op\", \"boolVal\": false}".to_owned()];
        for (name, value) in &self.attributes {
            attributes.push(format!(
                "{{\"name\": \"{name}\", \"int64Val\": \"{value}\"}}"
            ));
        }
        if let Some(group) = self.group {
            attributes.push(format!(
                "{{\"name\": \"pg_name\", \"stringVal\": \"{group}\"}}"
            ));
        }
        format!(
            "{{\n\"id\": \"{}\", \"name\": \"n{}\", \"type\": \"{}\", \"ctrlDeps\": {deps:?},\n\"durationMicros\": \"{}\", \"attr\": [{}]}}\n",
            self.id,
            self.id,
            types[self.kind as usize],
            self.micros,
            attributes.join(", ")
        )
    }
}

fn proto(nodes: &[Node]) -> Vec<u8> {
    let mut file = framed(&bytes(1, b"0.0.4"));
    for node in nodes {
        file.extend(framed(&node.proto()));
    }
    file
}

fn graph(nodes: &[Node]) -> Vec<u8> {
    let entries: Vec<String> = nodes.iter().map(Node::entry).collect();
    format!("{{\"workload_graph\": [{}]}}\n", entries.join(",\n")).into_bytes()
}

fn messages(nodes: &[Node]) -> Vec<u8> {
    let entries: Vec<String> = nodes.iter().map(Node::message).collect();
    format!("{{\n\"version\": \"0.0.4\"\n}}{}", entries.concat()).into_bytes()
}

/// All ranks do one collective operation.
fn all(ranks: usize, kind: u64, size: u64) -> Vec<Vec<u8>> {
    (0..ranks)
        .map(|_| proto(&[Node::collective(0, &[], kind, size)]))
        .collect()
}

/// Bytes that each rank sends in an operation of 1 MB of n ranks. The size is that of the vector; for an allgather that
/// of a rank's part; for an all-to-all that of all messages of a rank.
#[test]
fn sizes_of_collectives_are_those_of_the_format() {
    let size = 1 << 20;
    for n in [4_usize, 8] {
        let n64 = n as u64;
        for (kind, expected) in [
            (0, 2 * (n64 - 1) * size / n64),
            (2, (n64 - 1) * size),
            (6, (n64 - 1) * size / n64),
            (7, (n64 - 1) * size / n64),
            (9, 0),
        ] {
            let schedules = read(
                &Chakra::DEFAULT,
                &all(n, kind, size),
                None,
                &settings(n as u32),
            )
            .unwrap();
            for schedule in &schedules {
                assert_eq!(
                    sent(schedule, n).iter().sum::<u64>(),
                    expected,
                    "{kind}, {n} ranks"
                );
            }
        }
    }
}

/// Times by hand: dependencies are waited for, and the accelerator does one thing at a time beside messages.
#[test]
fn nodes_wait_for_what_they_depend_on() {
    let first = [
        Node::compute(3, &[], 10),
        Node::send(5, &[3], 1, 100, 7),
        Node::compute(9, &[3], 20),
    ];
    let second = [Node::compute(1, &[0], 5), Node::receive(0, &[], 0, 100, 7)];
    let files = [proto(&first), proto(&second)];
    let schedules = read(&Chakra::DEFAULT, &files, None, &settings(2)).unwrap();
    let outcome = run(2, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let o = messaging().overhead;
    let received = Span::from_us(10) + o + wire(100) + o;
    let at = |span: Span| Time::ZERO + span;
    assert_eq!(
        outcome.ops,
        [
            (1, at(Span::ZERO), at(Span::from_us(10))),
            (2, at(Span::from_us(10)), at(Span::from_us(10) + o)),
            (3, at(Span::from_us(10)), at(Span::from_us(30))),
            (1, at(received), at(received + Span::from_us(5))),
            (2, at(Span::ZERO), at(received)),
        ]
    );
}

/// Groups from a file, and from a node on process groups: each collective stays in its group.
#[test]
fn groups_of_ranks_keep_to_themselves() {
    let files: Vec<Vec<u8>> = (0..4)
        .map(|rank| {
            let group = ["even", "odd"][rank % 2];
            proto(&[
                Node::collective(1, &[], 0, 1000).of(group),
                Node::collective(2, &[1], 2, 100).of(group),
                Node::collective(3, &[2], 9, 0),
            ])
        })
        .collect();
    let groups = "{\"even\": [0, 2], \"odd\": [3, 1]}";
    let schedules = read(&Chakra::DEFAULT, &files, Some(groups), &settings(4)).unwrap();
    for (rank, schedule) in schedules.iter().enumerate() {
        let mut expected = vec![0; 4];
        expected[rank ^ 2] = 1000 + 100;
        assert_eq!(sent(schedule, 4), expected);
    }
    let outcome = run(4, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let inputs = r#"[["[{\"pg_name\": \"even\", \"ranks\": [0, 2]}, {\"pg_name\": \"odd\", \"ranks\": [3, 1]}]"]]"#;
    let values = bytes(8, &bytes(1, inputs.as_bytes()));
    let metadata = [
        bytes(2, b"## process_group:init ##"),
        number(1, 99),
        number(3, 1),
        values,
    ]
    .concat();
    let files: Vec<Vec<u8>> = files
        .into_iter()
        .map(|file| [file, framed(&metadata)].concat())
        .collect();
    let again = read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap();
    for (one, other) in schedules.iter().zip(&again) {
        assert_eq!(sent(one, 4), sent(other, 4));
    }
}

#[test]
fn a_number_of_operations_becomes_a_time() {
    let node = Node::new(0, 4, &[], &[("num_ops", 3_000_000)]);
    let mut settings = settings(1);
    let error = read(
        &Chakra::DEFAULT,
        &[proto(std::slice::from_ref(&node))],
        None,
        &settings,
    )
    .unwrap_err();
    assert_eq!(error.message, "node 0 (n0) has num_ops, but no duration");
    settings.operations_per_second = Some(1e12);
    let schedules = read(&Chakra::DEFAULT, &[proto(&[node])], None, &settings).unwrap();
    let outcome = run(2, vec![traced(&schedules)], messaging());
    assert_eq!(outcome.ends, [Some(Time::ZERO + Span::from_us(3))]);
}

/// Every prefix of a file ends at a message, or is refused at the message that is cut off.
#[test]
fn a_file_that_is_cut_off_is_refused_with_the_place() {
    let nodes = [
        Node::compute(0, &[], 300),
        Node::collective(1, &[0], 0, 1 << 30),
    ];
    let whole = proto(&nodes);
    let header = framed(&bytes(1, b"0.0.4")).len();
    let ends = [header, header + framed(&nodes[0].proto()).len()];
    for length in 1..whole.len() {
        let result = Chakra::DEFAULT.import(vec![whole[..length].to_vec()], None);
        if ends.contains(&length) {
            assert!(result.is_ok(), "{length}");
            continue;
        }
        let error = result.unwrap_err();
        let start = ends.iter().rfind(|end| **end < length).unwrap_or(&0);
        assert_eq!(
            error.place,
            TracePlace::Byte(*start as u64),
            "{length}: {error}"
        );
    }
}

fn any_node(id: u64) -> impl Strategy<Value = Node> {
    let deps = prop::collection::vec(0..id.max(1), 0..4);
    (deps, 0..4_u8, 0..1000_u64, 0..10_u64).prop_map(move |(mut deps, which, size, kind)| {
        if id == 0 {
            deps.clear();
        }
        match which {
            0 => Node::compute(id, &deps, size),
            1 => Node::send(id, &deps, 1, size, kind),
            2 => Node::receive(id, &deps, 1, size, kind),
            _ => Node::collective(id, &deps, kind, size),
        }
    })
}

proptest! {
    /// Oracle: the other spellings. All three become the same text, up to the order of dependencies of two kinds.
    #[test]
    fn all_spellings_are_one(nodes in prop::collection::vec(Just(()), 1..12).prop_flat_map(|slots| {
        (0..slots.len() as u64).map(any_node).collect::<Vec<_>>()
    })) {
        let [one, two, three] = [proto(&nodes), graph(&nodes), messages(&nodes)]
            .map(|file| Chakra::DEFAULT.import(vec![file], None).unwrap());
        prop_assert_eq!(&one, &two);
        prop_assert_eq!(&one, &three);
    }
}

//! Faults of Chakra traces, and their messages.

use silvan_workload::programs::trace::chakra::Chakra;
use silvan_workload::programs::trace::{TraceFormat, TracePlace};

use super::super::{read, sent, settings, traced};
use super::{Node, all, bytes, framed, graph, messages, proto};
use crate::common::{messaging, run};

#[test]
fn mistakes_are_named() {
    let barrier = |id, deps: &[u64]| Node::collective(id, deps, 9, 0);
    let cases: Vec<(Vec<Vec<Node>>, usize, &str)> = vec![
        (
            vec![vec![
                Node::compute(1, &[3], 1),
                Node::compute(2, &[1], 1),
                barrier(3, &[2]),
                Node::compute(4, &[1], 1),
            ]],
            0,
            "rank 0: a cycle of dependencies: node ",
        ),
        (
            vec![vec![Node::compute(1, &[8], 1)]],
            0,
            "rank 0, node 1 (n1) waits for node 8, which does not exist",
        ),
        (
            vec![vec![Node::compute(1, &[], 1), Node::compute(1, &[], 1)]],
            0,
            "rank 0: two nodes have the id 1",
        ),
        (
            vec![vec![], vec![Node::receive(4, &[], 0, 10, 3)]],
            1,
            "rank 1, node 4 (n4): a receive without a send: rank 0 sends 0 of 1 messages with tag 3",
        ),
        (
            vec![
                vec![Node::send(4, &[], 1, 10, 3)],
                vec![
                    Node::receive(4, &[], 0, 10, 4),
                    Node::receive(5, &[], 0, 10, 3),
                ],
            ],
            1,
            "rank 1, node 4 (n4): a receive without a send",
        ),
        (
            vec![vec![Node::send(4, &[], 1, 10, 3)], vec![]],
            0,
            "rank 0, node 4 (n4): a send without a receive: rank 1 receives 0 of 1 messages with tag 3",
        ),
        (
            vec![vec![Node::send(4, &[], 1, 10, 3)]],
            0,
            "rank 0, node 4 (n4): rank 1 is out of range: the trace has 1",
        ),
        (
            vec![vec![Node::send(4, &[], 0, 10, 3)]],
            0,
            "sends to itself",
        ),
        (
            vec![vec![barrier(1, &[])], vec![]],
            1,
            "rank 1 has no part in Barrier of 0 bytes, node 1 of rank 0",
        ),
        (
            vec![vec![barrier(1, &[])], vec![Node::collective(7, &[], 0, 8)]],
            1,
            "rank 1, node 7 (n7): Allreduce of 8 bytes, but node 1 of rank 0 in its place is Barrier",
        ),
        (
            vec![vec![barrier(1, &[]).of("7")]],
            0,
            "rank 0, node 1 (n1): group \"7\" of ranks is not described",
        ),
        (
            vec![vec![Node::new(1, 12, &[], &[])]],
            0,
            "node 1: 12 is no type of node",
        ),
        (
            vec![vec![Node::new(1, 7, &[], &[("comm_type", 0)])]],
            0,
            "node 1: it has no comm_size",
        ),
        (
            vec![vec![Node::collective(1, &[], 11, 8)]],
            0,
            "node 1: comm_type is 11",
        ),
        (
            vec![vec![Node::compute(1, &[], u64::MAX)]],
            0,
            "node 1 (n1) takes longer than 72000 s",
        ),
    ];
    for (ranks, file, message) in cases {
        let files: Vec<Vec<u8>> = ranks.iter().map(|nodes| proto(nodes)).collect();
        let error = read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap_err();
        assert!(error.message.contains(message), "{message}: {error}");
        assert_eq!(error.file, file, "{error}");
    }
    // A cycle is named from node to node, without what only waits for it.
    let nodes = [
        Node::compute(1, &[3], 1),
        Node::compute(2, &[1], 1),
        barrier(3, &[2]),
        Node::compute(4, &[1], 1),
    ];
    let error = read(&Chakra::DEFAULT, &[proto(&nodes)], None, &settings(4)).unwrap_err();
    let turns = ["n1 n3 n2", "n3 n2 n1", "n2 n1 n3"].map(|turn| {
        let names: Vec<String> = turn
            .split(' ')
            .map(|name| format!("node {} ({name})", &name[1..]))
            .collect();
        format!(
            "rank 0: a cycle of dependencies: {}",
            names.join(" waits for ")
        )
    });
    assert!(turns.contains(&error.message), "{error}");
    let groups = |text: &str| {
        let files = all(2, 9, 0);
        let error = read(&Chakra::DEFAULT, &files, Some(text), &settings(2)).unwrap_err();
        (error.file, error.message)
    };
    assert_eq!(
        groups("{\"a\": []}"),
        (2, "group \"a\" is empty".to_owned())
    );
    assert_eq!(
        groups("{\"a\": [0, 2]}").1,
        "group \"a\": rank 2 is out of range: the trace has 2"
    );
    assert_eq!(
        groups("{\"a\": [1, 1]}").1,
        "group \"a\": rank 1 is there twice"
    );
    assert_eq!(groups("[1]").0, 2);
    let error = read(
        &Chakra::DEFAULT,
        &[framed(&bytes(1, b"9.1"))],
        None,
        &settings(1),
    )
    .unwrap_err();
    assert_eq!(
        error.message,
        "version \"9.1\": 0.0.4 to 1.0.0 are supported"
    );
}

#[test]
fn mistakes_in_json_have_a_line() {
    let cases = [
        ("{\"workload_graph\": [\n{\"Id\": 1},\n", 3, "EOF"),
        ("{\"workload_graph\": 3}", 1, "no list"),
        ("{\"workload_graph\": [{}]}", 1, "entry 0: it has no Id"),
        (
            "{\"version\": \"0.0.4\"}\n\n{\"id\": \"1\", \"type\": \"X\"}",
            3,
            "node 1: \"X\" is no type of node",
        ),
        ("{\"version\": \"0.0.4\"}\n[]", 2, "no object"),
    ];
    for (text, line, message) in cases {
        let error = Chakra::DEFAULT
            .import(vec![text.as_bytes().to_vec()], None)
            .unwrap_err();
        assert!(error.message.contains(message), "{text}: {error}");
        assert_eq!(error.place, TracePlace::Line(line), "{text}: {error}");
    }
}

fn message_of(ranks: &[Vec<Node>], spelling: fn(&[Node]) -> Vec<u8>) -> String {
    let files: Vec<Vec<u8>> = ranks.iter().map(|nodes| spelling(nodes)).collect();
    let error = read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap_err();
    assert!(!error.hint.contains("workload_graph"), "{}", error.hint);
    error.message
}

/// Returns the number as `int64` stores it.
const fn negative(number: i64) -> u64 {
    number as u64
}

/// Numbers below zero are refused in each spelling, with the same words.
#[test]
fn numbers_below_zero_are_refused() {
    let refused = |node: Node, attribute: &str| {
        let message = format!("node 3: {attribute}: whole numbers from 0 are supported");
        let signed = |text: Vec<u8>| {
            let text = String::from_utf8(text).unwrap();
            text.replace(&negative(-5).to_string(), "-5").into_bytes()
        };
        let files = [
            proto(std::slice::from_ref(&node)),
            signed(graph(std::slice::from_ref(&node))),
            signed(messages(&[node])),
        ];
        for file in files {
            let error = Chakra::DEFAULT.import(vec![file], None).unwrap_err();
            assert!(error.message.contains(&message), "{error}");
            assert_eq!(error.hint, "correct the node, or leave it out");
        }
    };
    // The helper writes properties as int64 and uint64 in turn.
    refused(
        Node::new(3, 4, &[], &[("num_ops", negative(-5))]),
        "num_ops is -5",
    );
    refused(Node::send(3, &[], 1, 8, negative(-5)), "comm_tag is -5");
    refused(Node::receive(3, &[], 1, 8, negative(-5)), "comm_tag is -5");
    refused(
        Node::new(3, 7, &[], &[("comm_size", negative(-5)), ("comm_type", 0)]),
        "comm_size is -5",
    );
    // A property that the node does not use may be anything.
    let node = Node::new(3, 4, &[], &[("comm_tag", negative(-1))]);
    Chakra::DEFAULT.import(vec![proto(&[node])], None).unwrap();
}

/// Chakra's PyTorch converter writes sends and receives without their other ends (`pytorch_converter.py`).
#[test]
fn messages_without_their_other_end_are_refused() {
    for (kind, name) in [(5, "comm_dst"), (6, "comm_src")] {
        let node = Node::new(3, kind, &[], &[("comm_size", 8)]).of("0");
        for file in [proto(std::slice::from_ref(&node)), graph(&[node])] {
            let error = Chakra::DEFAULT.import(vec![file], None).unwrap_err();
            let message = format!("node 3: it has no {name}: Chakra's PyTorch converter");
            assert!(error.message.contains(&message), "{error}");
        }
    }
}

/// The root is a rank of the trace, and of the group; an operation without a root has none to be wrong.
#[test]
fn the_root_is_a_member_of_the_group() {
    let broadcast = |root: u64| {
        let attributes = [("comm_type", 5), ("comm_size", 1000), ("root_rank", root)];
        Node::new(1, 7, &[], &attributes).of("odd")
    };
    let groups = Some("{\"odd\": [3, 1]}");
    let of = |root: u64| {
        let files = [vec![], vec![broadcast(root)], vec![], vec![broadcast(root)]];
        let files: Vec<Vec<u8>> = files.iter().map(|nodes| proto(nodes)).collect();
        read(&Chakra::DEFAULT, &files, groups, &settings(4))
    };
    for root in [1, 3] {
        let schedules = of(root).unwrap();
        let sent: Vec<u64> = schedules
            .iter()
            .map(|one| sent(one, 4).iter().sum())
            .collect();
        let mut expected = [0; 4];
        expected[root as usize] = 1000;
        assert_eq!(sent, expected);
    }
    for root in [0, 77] {
        let error = of(root).unwrap_err();
        let message =
            format!("rank 1, node 1 (n1): the root, {root}, is no member of the group: 3, 1");
        assert_eq!((error.file, error.message), (1, message));
    }
    let barrier = Node::new(1, 7, &[], &[("comm_type", 9), ("root_rank", negative(-1))]);
    let files = [proto(std::slice::from_ref(&barrier)), proto(&[barrier])];
    read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap();
}

#[test]
fn members_that_differ_in_the_root_are_told_the_roots() {
    let gather = |root: u64| {
        let attributes = [("comm_type", 3), ("comm_size", 1000), ("root_rank", root)];
        vec![Node::new(0, 7, &[], &attributes)]
    };
    assert_eq!(
        message_of(&[gather(0), gather(1)], proto),
        "rank 1, node 0 (n0): Gather of 1000 bytes with root 1, but node 0 of rank 0 in its place is Gather of 1000 bytes with root 0"
    );
}

/// The source of a send and the destination of a receive, where they are given, are the rank of the file.
#[test]
fn messages_start_and_end_at_the_rank_of_the_file() {
    let ends = [("comm_src", 1), ("comm_dst", 0), ("comm_size", 8)];
    let send = Node::new(5, 5, &[], &ends);
    let receive = Node::new(6, 6, &[], &ends);
    let right = [vec![receive.clone()], vec![send.clone()]];
    let wrong = [vec![send], vec![receive]];
    for spelling in [proto, graph, messages] {
        let files: Vec<Vec<u8>> = right.iter().map(|nodes| spelling(nodes)).collect();
        read(&Chakra::DEFAULT, &files, None, &settings(2)).unwrap();
        let message = message_of(&wrong, spelling);
        let expected = "node 5: comm_src is 1, but this is a send of rank 0";
        assert!(message.contains(expected), "{message}");
        let message = message_of(&[right[0].clone(), wrong[1].clone()], spelling);
        let expected = "node 6: comm_dst is 0, but this is a receive of rank 1";
        assert!(message.contains(expected), "{message}");
    }
}

/// JSON may start with white space, and with a byte order mark.
#[test]
fn json_may_start_with_white_space() {
    let nodes = [Node::compute(1, &[], 3)];
    let plain = Chakra::DEFAULT.import(vec![graph(&nodes)], None).unwrap();
    for start in ["\t", "\r\n", " \n\t", "\u{feff}", "\u{feff}\r\n"] {
        let file = [start.as_bytes(), &graph(&nodes)].concat();
        assert_eq!(
            Chakra::DEFAULT.import(vec![file], None).unwrap(),
            plain,
            "{start:?}"
        );
    }
    for blank in ["\n", " \t\r\n", "\u{feff}\n"] {
        let error = Chakra::DEFAULT
            .import(vec![blank.into()], None)
            .unwrap_err();
        assert_eq!(error.message, "the file is empty", "{blank:?}");
    }
}

/// Each rank waits for the other's send, which waits for that.
#[test]
fn ranks_that_wait_for_each_other_are_named_with_their_sends() {
    let rank = |other: u64, first: u64, second: u64| {
        vec![
            Node::receive(0, &[], other, 8, first),
            Node::send(1, &[0], other, 8, second),
        ]
    };
    let files = [proto(&rank(1, 1, 2)), proto(&rank(0, 2, 1))];
    let schedules = read(&Chakra::DEFAULT, &files, None, &settings(2)).unwrap();
    let outcome = run(2, vec![traced(&schedules)], messaging());
    let fault = outcome.fault.unwrap().to_string();
    let expected = "rank 0, line 1 waits for the message with tag 1 of rank 1, line 2, which has not started; \
        rank 1, line 1 waits for the message with tag 2 of rank 0, line 2, which has not started";
    assert!(fault.ends_with(expected), "{fault}");
}

//! Entries that Chakra traces give twice, unreadable entries, and excess.

use silvan_workload::programs::trace::chakra::Chakra;
use silvan_workload::programs::trace::{TraceError, TraceFormat, TracePlace};

use super::super::{read, settings};
use super::{Node, bytes, framed, graph, messages, number, proto};

fn import(text: &str) -> Result<String, TraceError> {
    Chakra::DEFAULT.import(vec![text.as_bytes().to_vec()], None)
}

/// Two nodes of one id are found where the second one stands, before what comes after it.
#[test]
fn a_second_node_of_an_id_is_found_at_its_place() {
    let nodes = [
        Node::compute(1, &[], 1),
        Node::compute(1, &[], 1),
        Node::new(2, 7, &[], &[]),
    ];
    let first = framed(&bytes(1, b"0.0.4")).len() + framed(&nodes[0].proto()).len();
    let places = [
        (proto(&nodes), TracePlace::Byte(first as u64)),
        (graph(&nodes), TracePlace::Line(2)),
        (messages(&nodes), TracePlace::Line(8)),
    ];
    for (file, place) in places {
        let error = Chakra::DEFAULT.import(vec![file], None).unwrap_err();
        assert_eq!(error.message, "rank 0: two nodes have the id 1");
        assert_eq!((error.place, error.hint), (place, "give each node its own"));
    }
}

#[test]
fn too_many_nodes_are_refused_as_they_are_read() {
    let mut file = framed(&bytes(1, b"0.0.4"));
    for id in 1..=(1 << 22) + 1 {
        file.extend(framed(&[number(1, id), number(3, 1)].concat()));
    }
    let length = file.len() as u64;
    let error = Chakra::DEFAULT.import(vec![file], None).unwrap_err();
    assert_eq!(error.message, "the trace has more than 4194304 nodes");
    // The last message is 5 bytes of the id and its tag, 2 of the type, and its length.
    assert_eq!(error.place, TracePlace::Byte(length - 8));
}

/// Oracle: all spellings say the same, and all dimensions are as if none were given.
#[test]
fn dimensions_are_read_in_every_spelling() {
    let in_graph = |dimensions: &str| {
        format!(
            "{{\"workload_graph\": [{{\"Id\": 1, \"NodeType\": 7, \"comm_type\": 0, \"comm_size\": 8{dimensions}}}]}}"
        )
    };
    let in_message = |dimensions: &str| {
        format!(
            "{{\"id\": 1, \"type\": 7, \"attr\": [{{\"name\": \"comm_type\", \"int64Val\": \"0\"}}, \
             {{\"name\": \"comm_size\", \"int64Val\": \"8\"}}{dimensions}]}}"
        )
    };
    let property = |value: &str| format!(", {{\"name\": \"involved_dim\", {value}}}");
    let plain = import(&in_graph("")).unwrap();
    assert_eq!(import(&in_message("")).unwrap(), plain);
    let all = [
        in_graph(", \"involved_dim\": [true, true]"),
        in_graph(", \"involved_dim\": null"),
        in_message(&property("\"boolList\": {\"values\": [true, true]}")),
    ];
    for text in all {
        assert_eq!(import(&text).unwrap(), plain, "{text}");
    }
    let some = [
        in_graph(", \"involved_dim\": [true, false]"),
        in_graph(", \"involved_dim\": {\"values\": [1, 0]}"),
        in_message(&property("\"boolList\": {\"values\": [true, false]}")),
    ];
    for text in some {
        let error = import(&text).unwrap_err();
        let expected = "node 1: involved_dim leaves out dimensions of a network";
        assert!(error.message.contains(expected), "{text}: {error}");
        assert_eq!(error.place, TracePlace::Line(1));
    }
    let other = import(&in_graph(", \"involved_dim\": \"all\"")).unwrap_err();
    let expected = "node 1: involved_dim is \"all\", no list of true and false";
    assert!(other.message.contains(expected), "{other}");
}

#[test]
fn what_is_given_twice_is_refused_with_its_line() {
    let node = "{\"Id\": 1, \"NodeType\": 4}";
    let entry =
        |more: &str| format!("{{\"workload_graph\": [\n{{\"Id\": 3, \"NodeType\": 4, {more}}}]}}");
    let cases = [
        (
            entry("\"runtime\": 1, \"runtime\": 2"),
            2,
            "node 3: runtime is there twice",
        ),
        (entry("\"Id\": 4"), 2, "node 3: Id is there twice"),
        (
            entry("\"comm_size\": 1, \"comm_size\": 1"),
            2,
            "node 3: comm_size is there twice",
        ),
        (
            entry("\"root_rank\": 1, \"comm_root\": 2"),
            2,
            "node 3: comm_root is given twice, with two values",
        ),
        (
            "{\"id\": 3, \"type\": 4,\n\"durationMicros\": 1, \"durationMicros\": 2}".to_owned(),
            2,
            "node 3: durationMicros is there twice",
        ),
        (
            "{\"id\": 3, \"attr\": [{\"name\": \"num_ops\", \"int64Val\": 1},\n\
             {\"name\": \"num_ops\", \"int64Val\": 2}], \"type\": 4}"
                .to_owned(),
            2,
            "node 3: num_ops is given twice, with two values",
        ),
        (
            "{\"id\": 3, \"attr\": [{\"name\": \"num_ops\", \"int64Val\": 1, \"int32Val\": 2}]}"
                .to_owned(),
            1,
            "node 3: the property \"num_ops\" has two names or values",
        ),
        (
            format!("{{\"workload_graph\": [{node}],\n\"workload_graph\": [{node}]}}"),
            2,
            "workload_graph is there twice",
        ),
        (
            format!("{{\"workload_graph\": [{node}]}}\n{{\"workload_graph\": [{node}]}}"),
            2,
            "a second workload_graph",
        ),
    ];
    for (text, line, message) in cases {
        let error = import(&text).unwrap_err();
        assert_eq!(error.message, message, "{text}");
        assert_eq!(error.place, TracePlace::Line(line), "{text}: {error}");
        assert!(!error.hint.is_empty());
    }
    // A property of protobuf, with two values.
    let node = Node::new(3, 4, &[], &[("num_ops", 1), ("num_ops", 2)]);
    let error = Chakra::DEFAULT
        .import(vec![proto(&[node])], None)
        .unwrap_err();
    assert_eq!(
        error.message,
        "node 3: num_ops is given twice, with two values"
    );
}

#[test]
fn a_processor_that_is_neither_true_nor_false_is_refused() {
    let text = |value: &str| {
        format!(
            "{{\"workload_graph\": [{{\"Id\": 1, \"NodeType\": 7, \"is_cpu_op\": {value}, \"comm_type\": 9}}]}}"
        )
    };
    for (value, words) in [("\"true\"", "\"true\""), ("2", "2"), ("[]", "a list")] {
        let error = import(&text(value)).unwrap_err();
        let expected = format!("node 1: is_cpu_op is {words}, neither true nor false");
        assert!(error.message.contains(&expected), "{error}");
    }
    assert_eq!(import(&text("1")).unwrap(), import(&text("true")).unwrap());
}

/// Oracle: the same version in protobuf, and the same node without a version.
#[test]
fn the_version_of_json_is_that_of_protobuf() {
    let node = "{\"id\": 1, \"type\": 4}";
    let plain = import(node).unwrap();
    let with = |version: &str| import(&format!("{{\"version\": {version}}}\n{node}"));
    assert_eq!(with("\"0.0.4\"").unwrap(), plain);
    let error = with("\"9.9.9\"").unwrap_err();
    assert_eq!(
        error.message,
        "version \"9.9.9\": 0.0.4 to 1.0.0 are supported"
    );
    assert_eq!(error.place, TracePlace::Line(1));
    let file = framed(&bytes(1, b"9.9.9"));
    let binary = Chakra::DEFAULT.import(vec![file], None).unwrap_err();
    assert_eq!(binary.message, error.message);
    assert_eq!(
        with("4").unwrap_err().message,
        "version is 4: write e.g. \"1.0.0\""
    );
    let versioned = "{\"version\": \"1\", \"id\": 1, \"type\": 4}";
    assert_eq!(import(versioned).unwrap(), plain);
}

#[test]
fn a_trace_without_a_node_is_refused() {
    let files = [
        proto(&[]),
        b"{\"workload_graph\": []}".to_vec(),
        b"{\"version\": \"0.0.4\"}".to_vec(),
    ];
    let error = read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap_err();
    assert_eq!(error.message, "no rank has a node");
    assert_eq!(error.hint, "the files may have been cut off");
}

/// More ranks than places are refused before operations are made of them.
#[test]
fn ranks_are_compared_with_places() {
    let files = vec![proto(&[Node::compute(1, &[], 1)]); 5];
    read(&Chakra::DEFAULT, &files, None, &settings(5)).unwrap();
    let error = read(&Chakra::DEFAULT, &files, None, &settings(4)).unwrap_err();
    assert_eq!(error.place, TracePlace::Ranks);
    assert_eq!(error.message, "5 ranks do not fit on 4 places");
}

/// Long lists in unused values are skipped; in used values, the error names their kind.
#[test]
fn values_of_other_types_are_named() {
    let zeros = format!("[{}0]", "0, ".repeat(10_000));
    let of = |key: &str| {
        import(&format!(
            "{{\"workload_graph\": [{{\"Id\": 1, \"NodeType\": 4, \"{key}\": {zeros}}}]}}"
        ))
    };
    let plain = import("{\"workload_graph\": [{\"Id\": 1, \"NodeType\": 4}]}").unwrap();
    assert_eq!(of("unknown").unwrap(), plain);
    let error = of("num_ops").unwrap_err();
    let expected = "node 1: num_ops is a list: whole numbers from 0 are supported";
    assert!(error.message.contains(expected), "{error}");
    let error = import(&zeros).unwrap_err();
    assert_eq!(error.message, "a value that is no object");
    let error = import("{\"workload_graph\": [{\"Id\": 1, \"data_deps\": 3}]}").unwrap_err();
    assert_eq!(error.message, "node 1: data_deps is 3, no list");
    let error = import("{\"workload_graph\": [{\"Id\": 1, \"data_deps\": [\"x\"]}]}").unwrap_err();
    assert_eq!(
        error.message,
        "node 1: data_deps has \"x\", no id of a node"
    );
    let error = import("{\"workload_graph\": [\n{\"Id\": 1, \"NodeType\": 4},\n3]}").unwrap_err();
    assert_eq!(error.message, "entry 1: it is no object");
    assert_eq!(error.place, TracePlace::Line(3));
}

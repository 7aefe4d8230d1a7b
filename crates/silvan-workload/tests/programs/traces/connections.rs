//! Connection matrices.

use std::sync::Arc;

use silvan_core::{Span, Time};
use silvan_workload::programs::trace::connections::{Connections, StartUnit};
use silvan_workload::programs::trace::{TraceError, TracePlace};
use silvan_workload::programs::{Action, Schedule};

use super::{read, sent, settings, traced};
use crate::common::{messaging, run, wire};

fn text(connections: &[&str], triggers: &[&str]) -> String {
    format!(
        "# a comment\nNodes 4\nConnections {}\nTriggers {}\n{}\n{}\n",
        connections.len(),
        triggers.len(),
        connections.join("\n"),
        triggers.join("\n")
    )
}

/// Reads a matrix of four nodes with the default keys.
fn read_matrix(text: String) -> Result<Vec<Arc<Schedule>>, TraceError> {
    read(
        &Connections::DEFAULT,
        &[text.into_bytes()],
        None,
        &settings(4),
    )
}

/// Times by hand: each connection is one packet, and a trigger acts at once, on any node.
#[test]
fn connections_start_at_their_time_or_trigger() {
    let text = text(
        &[
            "0->1 id 1 start 5000000 size 1000 send_done_trigger 1",
            "1->2 id 2 trigger 1 size 500 recv_done_trigger 2",
            "2->3 id 3 start 2000000 size 100 recv_done_trigger 2",
            "3->0 id 4 trigger 2 size 64",
            "0->2 id 5 start 7000000 size 10 prio 3",
        ],
        &["trigger id 1 oneshot", "trigger id 2 barrier count 2"],
    );
    let schedules = read_matrix(text).unwrap();
    assert_eq!(sent(&schedules[0], 4), [0, 1000, 10, 0]);
    let outcome = run(4, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let o = messaging().overhead;
    let at = |span: Span| Time::ZERO + span;
    let times = |line: u32| {
        let op = outcome.ops.iter().rfind(|op| op.0 == line).unwrap();
        (op.1, op.2)
    };
    let first = Span::from_us(5) + o + wire(1000);
    assert_eq!(times(5), (at(Span::from_us(5)), at(first)));
    let second = first + o + wire(500);
    assert_eq!(times(6), (at(first), at(second)));
    let third = Span::from_us(2) + o + wire(100);
    assert_eq!(times(7), (at(Span::from_us(2)), at(third)));
    assert!(third < second);
    assert_eq!(times(8), (at(second), at(second + o + wire(64))));
    let last = Span::from_us(7) + o + wire(10);
    assert_eq!(times(9), (at(Span::from_us(7)), at(last)));
}

#[test]
fn mistakes_are_located() {
    let cases: [(&[&str], &[&str], u32, &str); 24] = [
        (
            &["0->4 start 0 size 1"],
            &[],
            5,
            "nodes are numbered from 0, and there are 4",
        ),
        (&["0->0 start 0 size 1"], &[], 5, "node 0 sends to itself"),
        (
            &["0->1 start x size 1"],
            &[],
            5,
            "is no start in picoseconds",
        ),
        (&["0->1 size 1"], &[], 5, "it has no start"),
        (&["0->1 start 0"], &[], 5, "it has no size"),
        (
            &["0->1 start 0 trigger 1 size 9"],
            &["trigger id 1 oneshot"],
            5,
            "two starts",
        ),
        (
            &["0->1 trigger 1 size 9"],
            &[],
            5,
            "trigger 1 is not described",
        ),
        (
            &["0->1 trigger 1 size 9"],
            &["trigger id 1 oneshot"],
            6,
            "no connection activates trigger 1",
        ),
        (
            &[
                "0->1 trigger 1 size 9",
                "0->1 start 0 size 1 send_done_trigger 1",
            ],
            &["trigger id 1 barrier count 2"],
            7,
            "trigger 1 fires at activation 2, but 1 connections activate it",
        ),
        (
            &[
                "0->1 trigger 1 size 9 send_done_trigger 2",
                "1->0 trigger 2 size 9 recv_done_trigger 1",
            ],
            &["trigger id 1 oneshot", "trigger id 2 oneshot"],
            5,
            "the connections of lines 5, 6 wait for each other in a cycle",
        ),
        (
            &["0->1 start 0 size 1 speed 3"],
            &[],
            5,
            "\"speed\" is no property",
        ),
        (&["connect 0 1"], &[], 5, "starts no line"),
        (
            &["0->1 start 0 size 5 size 7"],
            &[],
            5,
            "size comes second: the line has such a property already",
        ),
        (
            &["0->1 id 1 id 1 start 0 size 5"],
            &[],
            5,
            "id comes second",
        ),
        (
            &["0->1 start 0 size 5 send_done_trigger 1 send_done_trigger 2"],
            &["trigger id 1 oneshot", "trigger id 2 oneshot"],
            5,
            "send_done_trigger comes second",
        ),
        (
            &["0->1 start 0 size 5"],
            &["trigger id 1 oneshot id 2"],
            6,
            "id comes second",
        ),
        (
            &["0->1 start 0 size 5 msg 1 msg 2"],
            &[],
            5,
            "msg comes second",
        ),
        (
            &[
                "0->1 start 0 size 5 send_done_trigger 1",
                "0->2 addon trigger 1 size 5",
            ],
            &["trigger id 1 oneshot"],
            6,
            "addon: bytes that a trigger adds to a connection are not read",
        ),
        (
            &[
                "0->1 start 0 size 5 send_done_trigger 1",
                "0->2 start 0 size 5 send_done_trigger 1",
                "2->1 trigger 1 size 5",
            ],
            &["trigger id 1 multishot"],
            8,
            "trigger 1 is a multishot that 2 connections activate",
        ),
        (
            &["0->1 start 0 size 5"],
            &["trigger id 1 oneshot barrier"],
            6,
            "barrier comes second",
        ),
        (
            &["0->1 start 0 size 5", "Connections 2"],
            &[],
            6,
            "Connections is there a second time",
        ),
        (
            &["0->1 start 0 size 1", "Nodes 2"],
            &[],
            6,
            "the number of nodes is given a second time",
        ),
        (
            &["0->1 start 0 size 1 send_done_trigger 99999999999"],
            &["trigger id 4294967295 oneshot"],
            5,
            "trigger id 99999999999: 0 to 4294967295 are supported",
        ),
        (
            &["0->1 start 0 size 1"],
            &["trigger id 4294967296 oneshot"],
            6,
            "trigger id 4294967296: 0 to 4294967295 are supported",
        ),
    ];
    for (connections, triggers, line, message) in cases {
        let text = text(connections, triggers);
        let error = read_matrix(text).unwrap_err();
        assert!(error.message.contains(message), "{connections:?}: {error}");
        assert_eq!(
            error.place,
            TracePlace::Line(line),
            "{connections:?}: {error}"
        );
    }
    // Both wait for a barrier that both activate.
    let both = text(
        &["0->1 trigger 1 size 9 send_done_trigger 1"; 2],
        &["trigger id 1 barrier count 2"],
    );
    let error = read_matrix(both).unwrap_err();
    assert_eq!(
        error.message,
        "the connection waits for a trigger that it activates itself"
    );
    let cut = b"Nodes 4\nConnections 3\n0->1 start 0 size 1\n".to_vec();
    let error = read(&Connections::DEFAULT, &[cut], None, &settings(4)).unwrap_err();
    assert_eq!(
        error.message,
        "3 connections are announced, but the file has 1"
    );
    assert_eq!(error.place, TracePlace::Line(2));
}

/// A barrier with as many activators as waiters takes a wait for each of them instead of for each pair. All waiters
/// start at the end of the last activator.
#[test]
fn a_barrier_of_many_connections_costs_as_much_as_it_has_lines() {
    let activators: u64 = 20_000;
    let waiters = 10_000;
    let mut text = "Nodes 4\n".to_owned();
    for _ in 0..activators {
        text += "0->1 start 0 size 10 send_done_trigger 1\n";
    }
    for _ in 0..waiters {
        text += "2->3 trigger 1 size 10\n";
    }
    text += &format!("trigger id 1 barrier count {activators}\n");
    let schedules = read_matrix(text).unwrap();
    let waits = schedules.iter().flat_map(|schedule| schedule.waits());
    let waits: u64 = waits.map(|count| u64::from(*count)).sum();
    assert_eq!(waits, activators + waiters);
    assert_eq!(sent(&schedules[2], 4), [0, 0, 0, 10 * waiters]);

    let text = text_of_barrier();
    let schedules = read_matrix(text).unwrap();
    let outcome = run(4, vec![traced(&schedules)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let last = Span::from_us(3) + messaging().overhead + wire(100);
    for line in [6, 7] {
        let op = outcome.ops.iter().rfind(|op| op.0 == line).unwrap();
        assert_eq!(op.1, Time::ZERO + last, "line {line}");
    }
}

fn text_of_barrier() -> String {
    text(
        &[
            "0->1 start 3000000 size 100 send_done_trigger 1",
            "2->3 trigger 1 size 500",
            "1->0 trigger 1 size 500",
            "3->2 start 0 size 100 recv_done_trigger 1",
        ],
        &["trigger id 1 barrier count 2"],
    )
}

/// Time until a start is not computing: all of the time of the nodes is exposed.
#[test]
fn waiting_for_a_start_is_no_computing() {
    let text = text(&["0->1 start 5000000 size 1000"], &[]);
    let schedules = read_matrix(text).unwrap();
    let computed = schedules
        .iter()
        .flat_map(|schedule| schedule.ops())
        .filter(|op| matches!(op.action, Action::Calc(_)));
    assert_eq!(computed.count(), 0);
    let outcome = run(4, vec![traced(&schedules)], messaging());
    let end = Span::from_us(5) + messaging().overhead + wire(1000);
    assert_eq!(outcome.ends[0], Some(Time::ZERO + end));
}

/// The unit of starts is a key. Starts that are all below 1 ns need it, because uet-htsim writes microseconds.
#[test]
fn starts_have_a_unit() {
    let of = |start: &str, start_unit: Option<StartUnit>| {
        let text = text(
            &[
                "1->2 start 0 size 10",
                &format!("0->1 start {start} size 1000"),
            ],
            &[],
        );
        let format = Connections { start_unit };
        let schedules = read(&format, &[text.into_bytes()], None, &settings(4))?;
        let outcome = run(4, vec![traced(&schedules)], messaging());
        let op = outcome.ops.iter().rfind(|op| op.0 == 6).unwrap();
        Ok::<_, TraceError>(op.1.since(Time::ZERO))
    };
    let units = [StartUnit::Ps, StartUnit::Ns, StartUnit::Us];
    for (unit, ps) in units.into_iter().zip([1, 1_000, 1_000_000]) {
        assert_eq!(of("10", Some(unit)), Ok(Span::from_ps(10 * ps)));
        assert_eq!(of("2.5e1", Some(unit)), Ok(Span::from_ps(25 * ps)));
    }
    assert_eq!(of("1000", None), Ok(Span::from_ns(1)));
    assert_eq!(of("0", None), Ok(Span::ZERO));
    for start in ["10", "999", "0.2"] {
        let first = text(
            &[&format!("0->1 start {start} size 9"), "1->2 start 0 size 9"],
            &[],
        );
        let files = [first.into_bytes()];
        let error = read(&Connections::DEFAULT, &files, None, &settings(4)).unwrap_err();
        assert_eq!(error.place, TracePlace::Line(5));
        let error = of(start, None).unwrap_err();
        assert!(
            error.message.starts_with("all starts are below 1 ns"),
            "{error}"
        );
        assert!(error.hint.contains("start-unit"), "{}", error.hint);
        assert_eq!(error.place, TracePlace::Line(6));
    }
    let error = of("1e11", Some(StartUnit::Us)).unwrap_err();
    assert!(
        error.message.contains("is no start in microseconds"),
        "{error}"
    );
}

/// The number of a message is a label, which may lack its number; a multishot with one activation is a oneshot.
#[test]
fn labels_of_messages_are_passed_over() {
    let plain = text(
        &[
            "0->1 id 1 start 0 size 9 send_done_trigger 1",
            "1->2 id 2 trigger 1 size 8",
        ],
        &["trigger id 1 oneshot"],
    );
    let labelled = text(
        &[
            "0->1 id 1 msg start 0 size 9 send_done_trigger 1",
            "1->2 id 2 msg 7 trigger 1 size 8",
        ],
        &["trigger id 1 multishot"],
    );
    let schedules = |text: String| {
        let files = [text.into_bytes()];
        read(&Connections::DEFAULT, &files, None, &settings(4)).unwrap()
    };
    for (one, other) in schedules(plain).iter().zip(&schedules(labelled)) {
        assert_eq!(one.ops(), other.ops());
    }
}

//! GOAL schedules: accepted texts, and errors of others.

use proptest::prelude::*;
use silvan_core::{Span, Time};
use silvan_workload::programs::goal;
use silvan_workload::programs::trace::TracePlace;

use crate::common::{messaging, run, scheduled, wire};
use crate::goal_law;

fn at(span: Span) -> Time {
    Time::ZERO + span
}

/// Computing, sending and receiving one after the other; times by hand.
#[test]
fn a_chain_takes_the_sum_of_its_parts() {
    let text = "
num_ranks 2
rank 0 { // comments are left out
l1: calc 1000
l2: send 8b to 1 tag 3
/* over
   lines */
l2 requires l1
}
rank 1 {
l1: recv 8b from -1 tag -1
l2: calc 500 cpu 0
l2 requires l1
}
";
    let outcome = run(2, vec![scheduled(text)], messaging());
    assert_eq!((outcome.fault, outcome.finished), (None, true));
    let o = messaging().overhead;
    let calc = Span::from_ns(1000);
    let received = calc + o + wire(8) + o;
    assert_eq!(
        outcome.ops,
        [
            (4, at(Span::ZERO), at(calc)),
            (5, at(calc), at(calc + o)),
            (11, at(Span::ZERO), at(received)),
            (12, at(received), at(received + Span::from_ns(500))),
        ]
    );
}

/// Operations of one processor follow each other, those of two run side by side; `irequires` waits for
/// a start only.
#[test]
fn processors_and_starts() {
    let text = "num_ranks 1\nrank 0 {\na: calc 100\nb: calc 100\nc: calc 100 cpu 1\nd: calc 100 cpu 2\ne: calc 10 cpu 3\nd irequires b\ne requires d\n}\n";
    let outcome = run(2, vec![scheduled(text)], messaging());
    let times: Vec<(u64, u64)> = outcome
        .ops
        .iter()
        .map(|(_, start, end)| (start.as_ps() / 1000, end.as_ps() / 1000))
        .collect();
    assert_eq!(
        times,
        [(0, 100), (100, 200), (0, 100), (100, 200), (200, 210)]
    );
}

/// A chain as long as a trace does not nest.
#[test]
fn long_chains() {
    for word in ["requires", "irequires"] {
        let mut text = "num_ranks 1\nrank 0 {\n".to_owned();
        for op in 0..50_000 {
            text += &format!("l{op}: calc 0 cpu {}\n", op % 2);
            if op > 0 {
                text += &format!("l{op} {word} l{}\n", op - 1);
            }
        }
        text += "}\n";
        let outcome = run(2, vec![scheduled(&text)], messaging());
        assert!(outcome.finished, "{word}");
    }
}

#[test]
fn mistakes_are_told_with_their_line() {
    let cases = [
        ("", None, "there is no rank"),
        ("rank 0 {\n}\n", Some(1), "not known yet"),
        ("num_ranks 0\n", Some(1), "0 ranks: 1 to "),
        (
            "num_ranks 2\nrank 0 {\n}\n",
            None,
            "of 2 ranks, rank 1 has no block",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 3\n",
            Some(2),
            "is never closed",
        ),
        (
            "num_ranks 1\nrank 1 {\n}\n",
            Some(2),
            "rank 1 is out of range",
        ),
        (
            "num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n",
            Some(4),
            "second block",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 7\n}\n",
            Some(3),
            "rank 7 is out of range",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 0\n}\n",
            Some(3),
            "talks to itself",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1 nic 0\nsend 8b to 1 cpu 1 nic 1\n}\n",
            Some(4),
            "network interface 1 is out of range: a host has one",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}\n",
            Some(4),
            "names two operations",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}\n",
            Some(4),
            "no operation labelled b",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n",
            Some(3),
            "wait for each other in a cycle: lines 3, 4",
        ),
        ("num_ranks 1\nrank 0 {\nrank 1 {\n", Some(3), "still open"),
        (
            "num_ranks 1\ncalc 3\n",
            Some(2),
            "outside the block of a rank",
        ),
        ("num_ranks 1\nnum_ranks 1\n", Some(2), "second time"),
        (
            "num_ranks 1\nrank 0 {\ncalc 1 cpu 1000\n}\n",
            Some(3),
            "processor 1000",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 8 to 1\n}\n",
            Some(3),
            "expected a size such as 10b",
        ),
    ];
    for (text, line, message) in cases {
        let error = goal::parse(text).unwrap_err();
        assert_eq!(
            error.place,
            line.map_or(TracePlace::Whole, TracePlace::Line),
            "{text:?}: {error}"
        );
        assert!(error.message.contains(message), "{text:?}: {error}");
    }
}

proptest! {
    /// Any text is a schedule or a mistake, never a crash or a hang.
    #[test]
    fn any_text_is_read(text in "(num_ranks 2\n|rank [01] \\{\n|\\}\n|[ab]: calc [0-9]\n|[ab] i?requires [ab]\n|send 8b to [01]\n|/[*/ ]|[*]/|.|\n){0,20}") {
        goal_law::check(text.as_bytes());
    }

    /// Well-formed blocks with any receives and waits.
    #[test]
    fn any_small_program_comes_to_an_end(blocks in prop::collection::vec(
        "([ab]: (calc [0-9]{1,4}( cpu [01])?|send [0-9]{1,5}b to [012]( tag [01])?( cpu [01])?|recv [0-9]{1,5}b from ([012]|-1)( tag ([01]|-1))?)\n|[ab] i?requires [ab]\n|calc 5\n|send 9b to [012]\n|recv 9b from [012]\n){0,6}",
        3,
    )) {
        let mut text = "num_ranks 3\n".to_owned();
        for (rank, block) in blocks.iter().enumerate() {
            text += &format!("rank {rank} {{\n{block}}}\n");
        }
        goal_law::check(text.as_bytes());
    }
}

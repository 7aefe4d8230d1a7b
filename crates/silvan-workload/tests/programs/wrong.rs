//! Programs that cannot end say so, and name ranks and operations.

use silvan_workload::programs::{Fault, Op};

use crate::common::{Outcome, job, messaging, run, scheduled, sequence};

fn text(outcome: &Outcome) -> String {
    outcome.fault.as_ref().map(Fault::to_string).unwrap()
}

fn send(to: u32, bytes: u64, tag: u32) -> Op {
    Op::Send { to, bytes, tag }
}

fn receive(from: u32, bytes: u64, tag: u32) -> Op {
    Op::Receive {
        from: Some(from),
        bytes,
        tag: Some(tag),
    }
}

#[test]
fn a_receive_that_nobody_sends_to() {
    let ranks = vec![
        (0, sequence(&[])),
        (1, sequence(&[receive(0, 8, 3), Op::Wait])),
    ];
    let outcome = run(2, vec![job(ranks)], messaging());
    assert!(!outcome.finished);
    assert_eq!(
        text(&outcome),
        "program \"job\" is stuck at 0 s: rank 1, operation 1: no rank sends what is to be received from rank 0 \
         with tag 3"
    );
}

#[test]
fn tags_that_do_not_match() {
    let ranks = vec![
        (0, sequence(&[send(1, 8, 4), Op::Wait])),
        (1, sequence(&[receive(0, 8, 3), Op::Wait])),
    ];
    let text = text(&run(2, vec![job(ranks)], messaging()));
    assert!(
        text.contains("rank 1, operation 1: no rank sends"),
        "{text}"
    );
    assert!(
        text.contains("rank 0, operation 1: rank 1 does not receive the 8 bytes with tag 4"),
        "{text}"
    );
}

/// Both send first, and their messages are too large to go unasked.
#[test]
fn two_ranks_that_both_send_first() {
    let rank = |other| {
        sequence(&[
            send(other, 1 << 20, 0),
            Op::Wait,
            receive(other, 1 << 20, 0),
            Op::Wait,
        ])
    };
    let text = text(&run(
        2,
        vec![job(vec![(0, rank(1)), (1, rank(0))])],
        messaging(),
    ));
    assert!(text.contains("is stuck"), "{text}");
    assert!(
        text.contains("rank 0, operation 1: rank 1 does not receive"),
        "{text}"
    );
    assert!(
        text.contains("rank 1, operation 1: rank 0 does not receive"),
        "{text}"
    );
}

#[test]
fn a_message_that_nobody_receives() {
    let ranks = vec![(0, sequence(&[send(1, 8, 4)])), (1, sequence(&[]))];
    let outcome = run(2, vec![job(ranks)], messaging());
    assert_eq!(
        text(&outcome),
        "program \"job\" has ended, but rank 0, operation 1: rank 1 does not receive the 8 bytes with tag 4"
    );
}

#[test]
fn a_message_that_is_longer_than_its_receive() {
    let ranks = vec![
        (0, sequence(&[send(1, 9, 0)])),
        (1, sequence(&[receive(0, 8, 0), Op::Wait])),
    ];
    let text = text(&run(2, vec![job(ranks)], messaging()));
    assert!(
        text.contains(
            "rank 0, operation 1 sends 9 bytes, but rank 1, operation 1 has room for 8 only"
        ),
        "{text}"
    );
}

/// A thousand receives are not all listed, and do not hide the message that has the wrong tag.
#[test]
fn many_that_wait() {
    let mut receives = vec![receive(0, 8, 1); 1000];
    receives.push(Op::Wait);
    let ranks = vec![(0, sequence(&[send(1, 8, 2)])), (1, sequence(&receives))];
    let text = text(&run(2, vec![job(ranks)], messaging()));
    assert!(text.contains("with tag 2"), "{text}");
    assert!(text.len() < 800, "{text}");
    assert!(text.contains("more"), "{text}");
}

#[test]
fn schedules_name_their_lines() {
    let text = text(&run(
        2,
        vec![scheduled(
            "num_ranks 2\nrank 0 {\n}\nrank 1 {\nr: recv 8b from 0 tag 5\n}\n",
        )],
        messaging(),
    ));
    assert!(text.contains("rank 1, line 5: no rank sends"), "{text}");
}

//! Times of single messages in closed form: LogP's o + L + o, with L from the fabric.

use silvan_core::{Bytes, Span, Time};
use silvan_workload::programs::{Messaging, Op, Straggler};

use crate::common::{job, messaging, run, scheduled, sequence, wire};

fn send(to: u32, bytes: u64) -> Op {
    Op::Send { to, bytes, tag: 0 }
}

fn receive(from: u32, bytes: u64) -> Op {
    Op::Receive {
        from: Some(from),
        bytes,
        tag: Some(0),
    }
}

fn one_message(bytes: u64, messaging: Messaging) -> (Span, Span) {
    let ranks = vec![
        (0, sequence(&[send(1, bytes), Op::Wait])),
        (1, sequence(&[receive(0, bytes), Op::Wait])),
    ];
    let outcome = run(2, vec![job(ranks)], messaging);
    assert_eq!(outcome.fault, None);
    assert!(outcome.finished);
    let end = |rank: usize| outcome.ends[rank].unwrap().since(Time::ZERO);
    (end(0), end(1))
}

/// The sender is done after o, the receiver after o + L + o.
#[test]
fn an_eager_message() {
    let o = messaging().overhead;
    // A message without bytes is a packet without payload.
    for bytes in [0, 1, 8, 2048] {
        assert_eq!(
            one_message(bytes, messaging()),
            (o, o + wire(bytes) + o),
            "{bytes} bytes"
        );
    }
}

/// A message without bytes adds none to what its host has sent and the other has received, between others of its queue pair, too.
#[test]
fn messages_without_bytes_count_none() {
    for sizes in [vec![0], vec![0, 0, 3000, 0, 8, 0, 0]] {
        let sends: Vec<Op> = sizes.iter().map(|bytes| send(1, *bytes)).collect();
        let receives: Vec<Op> = sizes.iter().map(|bytes| receive(0, *bytes)).collect();
        let wait = [Op::Wait];
        let ranks = vec![
            (0, sequence(&[&sends[..], &wait].concat())),
            (1, sequence(&[&receives[..], &wait].concat())),
        ];
        let outcome = run(2, vec![job(ranks)], messaging());
        assert_eq!(outcome.fault, None);
        assert!(outcome.finished);
        let bytes = sizes.iter().sum();
        assert_eq!(outcome.delivered_bytes, bytes);
        assert_eq!(outcome.links, [(bytes, 0), (0, bytes)]);
    }
}

/// Request, clearance and data cross the fabric one after the other; both sides are done with the data,
/// the receiver after its o.
#[test]
fn a_message_that_asks_first() {
    let mut messaging = messaging();
    messaging.eager_limit = Bytes::from_bytes(100);
    let o = messaging.overhead;
    let (sender, receiver) = one_message(2000, messaging);
    let arrived = o + wire(64) * 2 + wire(2000);
    assert_eq!(sender, arrived);
    assert_eq!(receiver, arrived + o);
}

/// Without overhead only the fabric counts.
#[test]
fn messages_without_overhead() {
    let mut messaging = messaging();
    messaging.overhead = Span::ZERO;
    assert_eq!(one_message(2048, messaging), (Span::ZERO, wire(2048)));
}

/// LogGOPS: every byte but the first costs either processor O; the sender's while the message leaves, the
/// receiver's when it has come. Writing memory needs no processor.
#[test]
fn bytes_cost_their_overhead() {
    let mut m = messaging();
    let (o, per_byte) = (m.overhead, Span::from_ps(700));
    m.overhead_per_byte = per_byte;
    for bytes in [0, 1, 8, 2000] {
        let of_bytes = per_byte * (bytes.max(1) - 1);
        let arrived = o + wire(bytes);
        let expected = (o + of_bytes, arrived + o + of_bytes);
        assert_eq!(one_message(bytes, m), expected, "{bytes} bytes");
        // A schedule is charged alike.
        let text = format!(
            "num_ranks 2\nrank 0 {{\na: send {bytes}b to 1\nb: calc 1\nb requires a\n}}\nrank 1 {{\nrecv {bytes}b from 0\n}}\n"
        );
        let outcome = run(2, vec![scheduled(&text)], m);
        let end = |op: usize| outcome.ops[op].2.since(Time::ZERO);
        assert_eq!(outcome.fault, None);
        assert_eq!((end(0), end(2)), expected, "{bytes} bytes, scheduled");
        assert_eq!(end(1), end(0) + Span::from_ns(1));
    }
    // A message that asks first is charged while it asks, and when its data is there.
    m.eager_limit = Bytes::from_bytes(100);
    let arrived = o + wire(64) * 2 + wire(2000);
    assert_eq!(
        one_message(2000, m),
        (arrived, arrived + o + per_byte * 1999)
    );
    // With O alone, without o.
    m.eager_limit = messaging().eager_limit;
    m.overhead = Span::ZERO;
    let of_bytes = per_byte * 99;
    assert_eq!(one_message(100, m), (of_bytes, wire(100) + of_bytes));
    let ranks = vec![
        (0, sequence(&[Op::Put { to: 1, bytes: 1000 }, Op::Wait])),
        (1, sequence(&[])),
    ];
    let outcome = run(2, vec![job(ranks)], m);
    assert_eq!(outcome.ends[0], Some(Time::ZERO + wire(1000)));
}

/// Two receives that came while the rank computed are paid for one after the other.
#[test]
fn what_has_come_meanwhile_is_paid_for_at_the_wait() {
    let mut m = messaging();
    m.overhead_per_byte = Span::from_ps(500);
    let late = Span::from_us(50);
    let ranks = vec![
        (0, sequence(&[send(1, 8), send(1, 101), Op::Wait])),
        (
            1,
            sequence(&[receive(0, 8), receive(0, 101), Op::Compute(late), Op::Wait]),
        ),
    ];
    let outcome = run(2, vec![job(ranks)], m);
    let bytes = Span::from_ps(500) * (7 + 100);
    assert_eq!(
        outcome.ends[1],
        Some(Time::ZERO + late + m.overhead * 2 + bytes)
    );
}

/// A receive that is posted late starts to cost when it is waited for.
#[test]
fn a_late_receive() {
    let o = messaging().overhead;
    let late = Span::from_us(50);
    let ranks = vec![
        (0, sequence(&[send(1, 8), Op::Wait])),
        (1, sequence(&[Op::Compute(late), receive(0, 8), Op::Wait])),
    ];
    let outcome = run(2, vec![job(ranks)], messaging());
    assert_eq!(outcome.ends[1], Some(Time::ZERO + late + o));
}

/// A put is complete when its bytes are there, a get when they have come: one crossing, or two.
#[test]
fn reading_and_writing_memory() {
    let o = messaging().overhead;
    for (op, crossings) in [
        (Op::Put { to: 1, bytes: 1000 }, wire(1000)),
        (
            Op::Get {
                from: 1,
                bytes: 1000,
            },
            wire(64) + wire(1000),
        ),
    ] {
        let ranks = vec![(0, sequence(&[op, Op::Wait])), (1, sequence(&[]))];
        let outcome = run(2, vec![job(ranks)], messaging());
        assert_eq!(
            outcome.ends,
            [Some(Time::ZERO + o + crossings), Some(Time::ZERO)]
        );
    }
}

/// Half of a ping-pong is o + L + o, every time.
#[test]
fn ping_pong() {
    let (o, rounds) = (messaging().overhead, 10);
    let mut ping = vec![Op::Begin];
    let mut pong = Vec::new();
    for index in 0..rounds {
        let end = Op::End { label: 0, index };
        ping.extend([send(1, 8), Op::Wait, receive(1, 8), Op::Wait, end]);
        pong.extend([receive(0, 8), Op::Wait, send(0, 8), Op::Wait]);
    }
    let ranks = vec![(0, sequence(&ping)), (1, sequence(&pong))];
    let outcome = run(2, vec![job(ranks)], messaging());
    let half = o + wire(8) + o;
    let expected: Vec<_> = (0..rounds).map(|index| (0, index, half * 2)).collect();
    assert_eq!(outcome.marks, expected);
}

/// Copies within a host follow each other at the rate of memory; the fabric sees nothing of them.
#[test]
fn ranks_of_one_host() {
    let m = messaging();
    let ranks = vec![
        (0, sequence(&[send(1, 4000), send(1, 4000), Op::Wait])),
        (0, sequence(&[receive(0, 4000), receive(0, 4000), Op::Wait])),
    ];
    let outcome = run(2, vec![job(ranks)], m);
    let copy = m.local_rate.span_for(Bytes::from_bytes(4000));
    assert!(copy > m.overhead);
    let arrived = m.overhead + copy * 2 + m.local_latency;
    assert_eq!(outcome.ends[1], Some(Time::ZERO + arrived + m.overhead));
    assert_eq!(outcome.delivered_bytes, 0);
}

/// Bytes on the fabric are those of the messages, and of what asks for them.
#[test]
fn every_byte_arrives_once() {
    let m = messaging();
    let ranks = vec![
        (
            0,
            sequence(&[
                send(1, 100_000),
                send(1, 3000),
                Op::Get {
                    from: 1,
                    bytes: 777,
                },
                Op::Wait,
            ]),
        ),
        (
            1,
            sequence(&[
                receive(0, 100_000),
                receive(0, 3000),
                Op::Put { to: 0, bytes: 55 },
                Op::Wait,
            ]),
        ),
    ];
    let outcome = run(2, vec![job(ranks)], m);
    assert!(outcome.finished);
    assert_eq!(
        outcome.delivered_bytes,
        100_000 + 2 * 64 + 3000 + 64 + 777 + 55
    );
}

/// A sender without credits waits for its receiver, however small its messages are.
#[test]
fn eager_messages_are_bounded() {
    let mut m = messaging();
    m.overhead = Span::ZERO;
    m.eager_credits = 4;
    let late = Span::from_us(500);
    let sends = |count: usize| {
        vec![send(1, 8); count]
            .into_iter()
            .chain([Op::Wait])
            .collect::<Vec<_>>()
    };
    for (count, blocks) in [(4, false), (5, true)] {
        let mut receives = vec![Op::Compute(late)];
        receives.extend(vec![receive(0, 8); count]);
        receives.push(Op::Wait);
        let ranks = vec![(0, sequence(&sends(count))), (1, sequence(&receives))];
        let outcome = run(2, vec![job(ranks)], m);
        let sender = outcome.ends[0].unwrap().since(Time::ZERO);
        assert_eq!(sender > late, blocks, "{count} messages: {sender}");
    }
}

/// The receiver's message waits for a slow sender: its later start, and its longer computation to the picosecond. The
/// computation without a factor, and the rank that no entry lists, keep their times.
#[test]
fn slow_ranks_start_later_and_compute_longer() {
    let o = messaging().overhead;
    let (calc, delay) = (Span::from_ns(1000), Span::from_ns(123));
    let as_sequence = || {
        job(vec![
            (0, sequence(&[Op::Compute(calc), send(1, 8), Op::Wait])),
            (1, sequence(&[receive(0, 8), Op::Wait])),
        ])
    };
    let as_schedule = || {
        scheduled(
            "num_ranks 2
            rank 0 {
            l1: calc 1000
            l2: send 8b to 1 tag 0
            l2 requires l1
            }
            rank 1 {
            recv 8b from 0 tag 0
            }",
        )
    };
    for (compute_factor, takes) in [(1.0, 1000), (1.5, 1500), (0.25, 250)] {
        for mut spec in [as_sequence(), as_schedule()] {
            spec.stragglers = vec![Straggler {
                rank: 0,
                delay,
                compute_factor,
            }];
            let outcome = run(2, vec![spec], messaging());
            assert_eq!((outcome.fault, outcome.finished), (None, true));
            let takes = Span::from_ns(takes);
            let ends: Vec<Span> = (outcome.ends.iter())
                .map(|end| end.unwrap().since(Time::ZERO))
                .collect();
            let sent = delay + takes + o;
            assert_eq!(ends, [sent, sent + wire(8) + o], "{compute_factor}");
        }
    }
}

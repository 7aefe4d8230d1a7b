//! Shared resources of the ranks of a host, in closed form: the gap between messages, and the memory.

use silvan_core::{Bytes, Rate, Span, Time};
use silvan_workload::programs::{Messaging, Op};

use crate::common::{Outcome, job, messaging, run, sequence, wire};

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

fn end(outcome: &Outcome, rank: usize) -> Span {
    assert_eq!(outcome.fault, None);
    outcome.ends[rank].unwrap().since(Time::ZERO)
}

/// Two ranks on host 0 send a message each to two ranks on hosts of their own: the second starts a gap later. A rank that
/// sends once more waits for a third start.
#[test]
fn ranks_of_a_host_share_the_gap() {
    let gap = Span::from_us(5);
    let m = Messaging { gap, ..messaging() };
    let ranks = vec![
        (0, sequence(&[send(2, 8), Op::Wait])),
        (0, sequence(&[send(3, 8), Op::Wait, send(3, 8), Op::Wait])),
        (1, sequence(&[receive(0, 8), Op::Wait])),
        (
            2,
            sequence(&[receive(1, 8), Op::Wait, receive(1, 8), Op::Wait]),
        ),
    ];
    let outcome = run(3, vec![job(ranks)], m);
    let o = m.overhead;
    // The gap keeps no processor busy: senders are done after o.
    assert_eq!((end(&outcome, 0), end(&outcome, 1)), (o, o * 2));
    assert_eq!(end(&outcome, 2), o + wire(8) + o);
    assert_eq!(end(&outcome, 3), o + gap * 2 + wire(8) + o);
}

/// Messages between the ranks of a host count, and a gap that is shorter than the time between messages changes nothing.
#[test]
fn the_gap_counts_local_messages() {
    let exchange = |m: Messaging| {
        let ranks = vec![
            (0, sequence(&[send(1, 8), Op::Wait, send(2, 8), Op::Wait])),
            (0, sequence(&[receive(0, 8), Op::Wait])),
            (1, sequence(&[receive(0, 8), Op::Wait])),
        ];
        end(&run(2, vec![job(ranks)], m), 2)
    };
    let o = messaging().overhead;
    let gap = Span::from_us(5);
    let with = |gap: Span| exchange(Messaging { gap, ..messaging() });
    assert_eq!(with(gap), o + gap + wire(8) + o);
    assert_eq!(with(o), exchange(messaging()));
    assert_eq!(exchange(messaging()), o * 2 + wire(8) + o);
}

/// Puts of two ranks of a host share the gap as messages do.
#[test]
fn the_gap_counts_puts() {
    let gap = Span::from_us(5);
    let m = Messaging { gap, ..messaging() };
    let put = |to: u32| sequence(&[Op::Put { to, bytes: 8 }, Op::Wait]);
    let idle = || sequence(&[]);
    let outcome = run(
        3,
        vec![job(vec![
            (0, put(2)),
            (0, put(3)),
            (1, idle()),
            (2, idle()),
        ])],
        m,
    );
    let first = m.overhead + wire(8);
    assert_eq!((end(&outcome, 0), end(&outcome, 1)), (first, first + gap));
}

const MEMORY: Rate = Rate::from_bits_per_sec(8_000_000_000).expect("not zero");

/// A memory that is slower than the link delays the end of a message to its own time for the bytes; a faster one does not.
#[test]
fn memory_delays_the_end() {
    let one = |memory_rate: Option<Rate>, bytes: u64| {
        let ranks = vec![
            (0, sequence(&[send(1, bytes), Op::Wait])),
            (1, sequence(&[receive(0, bytes), Op::Wait])),
        ];
        let m = Messaging {
            memory_rate,
            ..messaging()
        };
        end(&run(2, vec![job(ranks)], m), 1)
    };
    let (o, bytes) = (messaging().overhead, 2048);
    assert_eq!(
        one(Some(MEMORY), bytes),
        o + MEMORY.span_for(Bytes::from_bytes(bytes)) + o
    );
    let fast = Rate::from_bits_per_sec(80_000_000_000).unwrap();
    assert_eq!(one(Some(fast), bytes), one(None, bytes));
    assert_eq!(one(None, bytes), o + wire(bytes) + o);
}

/// A copy between ranks goes through the memory twice, and messages take their turns there.
#[test]
fn copies_and_messages_share_the_memory() {
    let bytes = 4000;
    let m = Messaging {
        memory_rate: Some(MEMORY),
        ..messaging()
    };
    let ranks = vec![
        (0, sequence(&[send(1, bytes), send(2, bytes), Op::Wait])),
        (0, sequence(&[receive(0, bytes), Op::Wait])),
        (1, sequence(&[receive(0, bytes), Op::Wait])),
    ];
    let outcome = run(2, vec![job(ranks)], m);
    let (o, once) = (m.overhead, MEMORY.span_for(Bytes::from_bytes(bytes)));
    let twice = MEMORY.span_for(Bytes::from_bytes(2 * bytes));
    assert_eq!(end(&outcome, 1), o + twice + m.local_latency + o);
    assert_eq!(end(&outcome, 2), o + twice + once + o);
}

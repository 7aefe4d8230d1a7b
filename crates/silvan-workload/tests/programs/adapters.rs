//! Reads, several adapters of a host, and bursts, in closed form.

use silvan_core::{Bytes, HostId, Span, Time};
use silvan_workload::programs::collective::{Collective, Operation};
use silvan_workload::programs::{
    Burst, Bursts, Group, JobPlan, JobSpec, Looped, Messaging, Op, Placement, Rendezvous, Script,
    Striping, Work,
};

use crate::common::{MTU, Outcome, job, messaging, run, sequence, wire};

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

/// Messages above 100 bytes are read.
fn reading() -> Messaging {
    Messaging {
        eager_limit: Bytes::from_bytes(100),
        rendezvous: Rendezvous::Read,
        ..messaging()
    }
}

fn one_message(bytes: u64, messaging: Messaging) -> (Span, Span) {
    let ranks = vec![
        (0, sequence(&[send(1, bytes), Op::Wait])),
        (1, sequence(&[receive(0, bytes), Op::Wait])),
    ];
    let outcome = run(2, vec![job(ranks)], messaging);
    (end(&outcome, 0), end(&outcome, 1))
}

/// Request to send, read, data, and word to the sender that they are there.
#[test]
fn a_message_that_is_read() {
    let m = reading();
    let o = m.overhead;
    let arrived = o + wire(64) * 2 + wire(2000);
    assert_eq!(one_message(2000, m), (arrived + wire(64), arrived + o));
    // The receiver takes its time between the match and the read.
    let delay = Span::from_us(3);
    let slow = Messaging {
        rendezvous_delay: delay,
        ..m
    };
    let (sender, receiver) = one_message(2000, slow);
    assert_eq!(
        (sender, receiver),
        (arrived + delay + wire(64), arrived + delay + o)
    );
    // Written messages wait before they are cleared to send.
    let written = Messaging {
        rendezvous: Rendezvous::Write,
        ..slow
    };
    assert_eq!(one_message(2000, written).0, arrived + delay);
}

/// The adapters' latency counts once for each message, request and answer.
#[test]
fn latency_of_adapters() {
    let latency = Span::from_ns(700);
    let m = Messaging {
        latency,
        ..reading()
    };
    let o = m.overhead;
    assert_eq!(one_message(64, m), (o, o + wire(64) + latency + o));
    let arrived = o + (wire(64) + latency) * 2 + wire(2000) + latency;
    assert_eq!(
        one_message(2000, m),
        (arrived + wire(64) + latency, arrived + o)
    );
}

/// Adapters that store a packet pass on a message of several packets after the first.
#[test]
fn latency_by_bytes_of_the_first_packet() {
    let per_byte = Span::from_ps(450);
    let m = Messaging {
        latency_per_byte: per_byte,
        ..reading()
    };
    let o = m.overhead;
    let eager = wire(100) + per_byte * 99;
    assert_eq!(one_message(100, m), (o, o + eager + o));
    // Request to send, read, three packets of data, and the word to the sender.
    let bytes = 3 * MTU.as_u64();
    let (sender, receiver) = one_message(bytes, reading());
    let (control, data) = (per_byte * 63, per_byte * (MTU.as_u64() - 1));
    let more = control * 2 + data;
    assert_eq!(
        one_message(bytes, m),
        (sender + more + control, receiver + more)
    );
}

/// Bytes of messages that go at once are copied at either end; others are not.
#[test]
fn eager_messages_are_copied() {
    let per_byte = Span::from_ps(200);
    let m = Messaging {
        eager_per_byte: per_byte,
        ..reading()
    };
    let (o, copy) = (m.overhead, per_byte * 99);
    assert_eq!(one_message(100, m), (o + copy, o + wire(100) + o + copy));
    assert_eq!(one_message(2000, m), one_message(2000, reading()));
}

/// Messages that three ranks send to one, which may read so many at once.
fn incast(reads: u32) -> Vec<Span> {
    let bytes = 64 * MTU.as_u64();
    let receives = (1..4).map(|from| receive(from, bytes));
    let mut ranks = vec![(0, sequence(&receives.chain([Op::Wait]).collect::<Vec<_>>()))];
    ranks.extend((1..4).map(|rank| (rank, sequence(&[send(0, bytes), Op::Wait]))));
    let m = Messaging {
        reads_in_flight: reads,
        ..reading()
    };
    let outcome = run(4, vec![job(ranks)], m);
    (1..4).map(|rank| end(&outcome, rank)).collect()
}

/// With one read at once the messages come one after the other; with all reads at once they share the link and end
/// together.
#[test]
fn reads_in_flight_are_limited() {
    let all = incast(3);
    let one = incast(1);
    let gap = |ends: &[Span], place: usize| ends[place + 1].saturating_sub(ends[place]);
    let message = one[0];
    for place in 0..2 {
        // A message takes most of its time on the link; together they end within two packets.
        assert!(gap(&one, place) * 10 > message * 9, "{one:?}");
        assert!(gap(&all, place) < wire(MTU.as_u64()) * 2, "{all:?}");
    }
    assert!(all[2] < one[2], "{all:?} {one:?}");
}

/// A reader is not held up by what its own queue pair sends the other way: an exchange takes the time of one message.
#[test]
fn an_exchange_goes_both_ways_at_once() {
    let bytes = 200 * MTU.as_u64();
    let ranks = (0..2).map(|me: usize| {
        let other = 1 - me as u32;
        let ops = [receive(other, bytes), send(other, bytes), Op::Wait];
        (me, sequence(&ops))
    });
    let outcome = run(2, vec![job(ranks.collect())], reading());
    let (alone, _) = one_message(bytes, reading());
    assert!(end(&outcome, 0) < alone + wire(64) * 4, "{alone:?}");
}

/// Two ranks on hosts of two adapters each.
fn on_two_rails(ops: [Vec<Op>; 2], m: Messaging) -> Outcome {
    let [first, second] = ops;
    let spec = JobSpec {
        rails: [[0, 1], [2, 3]]
            .map(|pair| pair.map(HostId::new).into())
            .to_vec(),
        ..job(vec![(0, sequence(&first)), (2, sequence(&second))])
    };
    run(4, vec![spec], m)
}

/// Data above the limit go in equal parts over both adapters, at twice the rate.
#[test]
fn long_messages_are_split() {
    let bytes = 400 * MTU.as_u64();
    let outcome = on_two_rails(
        [
            vec![send(1, bytes), Op::Wait],
            vec![receive(0, bytes), Op::Wait],
        ],
        reading(),
    );
    let (_, of_half) = one_message(bytes / 2, reading());
    assert_eq!(end(&outcome, 1), of_half);
    let sent = |host: usize| outcome.links[host].0;
    // The first adapter has the request to send as well.
    assert_eq!((sent(0), sent(1)), (bytes / 2 + 64, bytes / 2));
    // Below `stripe-above` one adapter has all of it.
    let whole = Messaging {
        stripe_above: Some(Bytes::from_bytes(bytes)),
        ..reading()
    };
    let outcome = on_two_rails(
        [
            vec![send(1, bytes), Op::Wait],
            vec![receive(0, bytes), Op::Wait],
        ],
        whole,
    );
    assert_eq!(end(&outcome, 1), one_message(bytes, reading()).1);
    assert_eq!(outcome.links[1].0, 0);
}

/// Messages in turn over the adapters, or all of two ranks over one.
#[test]
fn messages_choose_an_adapter() {
    let ops = || {
        let sends: Vec<Op> = (0..4).map(|_| send(1, 50)).chain([Op::Wait]).collect();
        let receives = (0..4).map(|_| receive(0, 50)).chain([Op::Wait]).collect();
        [sends, receives]
    };
    let with = |striping: Striping| {
        let m = Messaging {
            striping,
            ..messaging()
        };
        let outcome = on_two_rails(ops(), m);
        assert_eq!(outcome.fault, None);
        (outcome.links[0].0, outcome.links[1].0)
    };
    assert_eq!(with(Striping::Split), (200, 0));
    assert_eq!(with(Striping::ByMessage), (100, 100));
    // Ranks 0 and 1: their sum is odd.
    assert_eq!(with(Striping::ByRank), (0, 200));
}

/// A plan gives each rank the adapters of its host, several ranks of a host the same ones.
#[test]
fn a_plan_deals_ranks_to_hosts_of_adapters() {
    let plan = |placement: Placement| JobPlan {
        name: "job".to_owned(),
        hosts: (0..6).map(HostId::new).collect(),
        rails: 2,
        ranks_per_host: 2,
        placement,
        work: Work::Collective {
            collective: Collective::new(Operation::Barrier, 0),
            iterations: Some(1),
            compute: Span::ZERO,
            start: Span::ZERO,
            burst: None,
        },
        background: false,
        sl: silvan_core::Sl::ZERO,
        stragglers: Vec::new(),
    };
    let hosts = |placement| {
        let ranks = plan(placement).rank_hosts();
        ranks.iter().map(|host| host.index()).collect::<Vec<_>>()
    };
    assert_eq!(hosts(Placement::Block), [0, 0, 2, 2, 4, 4]);
    assert_eq!(hosts(Placement::Cyclic), [0, 2, 4, 0, 2, 4]);
    let spec = plan(Placement::Cyclic).job(0);
    let second: Vec<usize> = spec.rails.iter().map(|rails| rails[1].index()).collect();
    assert_eq!(second, [1, 3, 5, 1, 3, 5]);
}

/// Bursts end with the operation that passes their length, at all ranks; then all rest.
#[test]
fn bursts_and_pauses_take_turns() {
    let burst = Burst {
        length: Span::from_us(100),
        pause: Span::from_us(300),
    };
    let bursts = Bursts::new(burst);
    // An operation computes for 40 us and takes little else, so that each third one passes the length.
    let compute = Span::from_us(40);
    let rank = |me: u32| {
        let looped = Looped {
            collective: Collective::new(Operation::Barrier, 0),
            group: Group::all(4),
            me,
            compute,
            iterations: Some(40),
            bursts: Some(bursts.clone()),
        };
        (me as usize, Script::Sequence(Box::new(looped)))
    };
    let outcome = run(4, vec![job((0..4).map(rank).collect())], messaging());
    assert!(outcome.finished);
    let least = compute * 40 + burst.pause * 13;
    for me in 0..4 {
        let total = end(&outcome, me);
        assert!(
            total > least && total < least + Span::from_us(8) * 40,
            "{total} {least}"
        );
    }
}

//! Collective operations carry the data that they must, whatever the timing.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use silvan_core::Span;
use silvan_workload::programs::{Group, Looped, Op, Pattern, Steps, collective};

use crate::common::{job, messaging, run, sequence};

/// What every rank knows at the end: whose data has reached it. Interprets the operations with
/// contents and without time: a message carries what its sender knows when it starts to send.
fn knowledge(programs: &[Vec<Op>]) -> Vec<BTreeSet<u32>> {
    let n = programs.len();
    let mut known: Vec<BTreeSet<u32>> = (0..n as u32).map(|rank| [rank].into()).collect();
    let mut place = vec![0; n];
    let mut waiting: Vec<Vec<(u32, u32)>> = vec![Vec::new(); n];
    let mut sent: Vec<VecDeque<(u32, u32, BTreeSet<u32>)>> = vec![VecDeque::new(); n];
    loop {
        let mut moved = false;
        for me in 0..n {
            while let Some(op) = programs[me].get(place[me]) {
                match *op {
                    Op::Send { to, tag, .. } => {
                        let contents = known[me].clone();
                        sent[to as usize].push_back((me as u32, tag, contents));
                    }
                    Op::Receive { from, tag, .. } => {
                        waiting[me].push((from.unwrap(), tag.unwrap()))
                    }
                    Op::Wait => {
                        let mut left = Vec::new();
                        for (from, tag) in std::mem::take(&mut waiting[me]) {
                            let fits = |m: &(u32, u32, BTreeSet<u32>)| (m.0, m.1) == (from, tag);
                            match sent[me].iter().position(fits) {
                                Some(at) => known[me].extend(sent[me].remove(at).unwrap().2),
                                None => left.push((from, tag)),
                            }
                        }
                        waiting[me] = left;
                        if !waiting[me].is_empty() {
                            break;
                        }
                    }
                    _ => {}
                }
                place[me] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for me in 0..n {
        assert_eq!(place[me], programs[me].len(), "rank {me} is stuck");
        assert!(
            sent[me].is_empty(),
            "rank {me} was sent what it does not receive"
        );
    }
    known
}

fn programs(n: u32, make: impl Fn(&mut Vec<Op>, Group, u32)) -> Vec<Vec<Op>> {
    let rank = |me| {
        let mut ops = Vec::new();
        make(&mut ops, Group::all(n), me);
        ops
    };
    (0..n).map(rank).collect()
}

/// Bytes sent by every rank.
fn sent(programs: &[Vec<Op>]) -> Vec<u64> {
    let bytes = |op: &Op| match op {
        Op::Send { bytes, .. } => *bytes,
        _ => 0,
    };
    programs
        .iter()
        .map(|ops| ops.iter().map(bytes).sum())
        .collect()
}

fn everyone(n: u32) -> BTreeSet<u32> {
    (0..n).collect()
}

#[test]
fn after_a_barrier_or_an_allreduce_all_know_all() {
    for n in 1..40 {
        for known in [
            knowledge(&programs(n, collective::barrier)),
            knowledge(&programs(n, |ops, group, me| {
                collective::allreduce_ring(ops, group, me, 1000);
            })),
            knowledge(&programs(n, |ops, group, me| {
                collective::allreduce_doubling(ops, group, me, 1000);
            })),
            knowledge(&programs(n, |ops, group, me| {
                collective::alltoall(ops, group, me, 10)
            })),
        ] {
            assert_eq!(known, vec![everyone(n); n as usize], "{n} ranks");
        }
    }
}

/// All know the root after a broadcast, the root knows all after an incast.
#[test]
fn roots() {
    for n in 1..20_u32 {
        for root in 0..n {
            let broadcast = programs(n, |ops, group, me| {
                collective::broadcast(ops, group, me, root, 10);
            });
            for known in knowledge(&broadcast) {
                assert!(known.contains(&root), "{n} ranks, root {root}");
            }
            // A tree with n - 1 edges.
            assert_eq!(sent(&broadcast).iter().sum::<u64>(), 10 * u64::from(n - 1));
            let incast = programs(n, |ops, group, me| {
                collective::incast(ops, group, me, root, 10)
            });
            assert_eq!(knowledge(&incast)[root as usize], everyone(n));
        }
    }
}

/// In a ring every rank sends 2 (n - 1) / n of the bytes, up to rounding; in an all-to-all, one
/// message to each other rank.
#[test]
fn bytes_are_those_of_the_algorithm() {
    for n in 2..20_u64 {
        let ring = programs(n as u32, |ops, group, me| {
            collective::allreduce_ring(ops, group, me, 1000 * n);
        });
        assert_eq!(sent(&ring), vec![2 * (n - 1) * 1000; n as usize]);
        let all = programs(n as u32, |ops, group, me| {
            collective::alltoall(ops, group, me, 10)
        });
        assert_eq!(sent(&all), vec![10 * (n - 1); n as usize]);
    }
}

/// The parts of a ring that does not divide evenly add up: over all ranks each part is sent 2 (n - 1) times.
#[test]
fn uneven_rings_lose_no_byte() {
    for (n, bytes) in [(3, 10), (7, 1000), (8, 5)] {
        let ring = programs(n, |ops, group, me| {
            collective::allreduce_ring(ops, group, me, bytes);
        });
        assert_eq!(
            sent(&ring).iter().sum::<u64>(),
            2 * u64::from(n - 1) * bytes
        );
        assert_eq!(knowledge(&ring), vec![everyone(n); n as usize]);
    }
}

/// Made bit by bit while it runs, an operation is the same as in one piece, and is held in little room.
#[test]
fn long_operations_are_made_in_parts() {
    for pattern in [Pattern::AllreduceRing, Pattern::Alltoall, Pattern::Barrier] {
        for n in [2, 3, 16, 33, 100] {
            let group = Group::all(n);
            let mut looped = Looped {
                pattern,
                group,
                me: 1,
                bytes: 1000,
                start: Span::ZERO,
                compute: Span::ZERO,
                iterations: Some(2),
            };
            let mut whole = Vec::new();
            pattern.append(&mut whole, group, 1, 1000);
            let (mut made, mut step, mut most) = (Vec::new(), 0, 0);
            let mut part = Vec::new();
            while looped.step(step, &mut part) {
                most = most.max(part.len());
                made.append(&mut part);
                step += 1;
            }
            made.retain(|op| !matches!(op, Op::Compute(_) | Op::Begin | Op::End { .. }));
            assert_eq!(
                made,
                [whole.clone(), whole].concat(),
                "{pattern:?}, {n} ranks"
            );
            assert!(most <= 3 * 32 + 4, "{most} operations at a time");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// They end on a fabric too, several ranks to a host, and deliver what they send.
    #[test]
    fn collectives_end_on_a_fabric(n in 2..12_u32, per_host in 1..4_usize, bytes in 0..9000_u64, which in 0..5_u8) {
        let ops = programs(n, |ops, group, me| match which {
            0 => collective::barrier(ops, group, me),
            1 => collective::allreduce_ring(ops, group, me, bytes),
            2 => collective::allreduce_doubling(ops, group, me, bytes),
            3 => collective::alltoall(ops, group, me, bytes),
            _ => collective::broadcast(ops, group, me, n - 1, bytes),
        });
        let ranks = ops.iter().enumerate();
        let ranks = ranks.map(|(rank, ops)| (rank / per_host, sequence(ops))).collect();
        let outcome = run(12, vec![job(ranks)], messaging());
        prop_assert_eq!(outcome.fault, None);
        prop_assert!(outcome.finished);
    }
}

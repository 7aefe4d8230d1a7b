//! Collective operations carry all required data, for any timing.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use silvan_core::{Span, Time};
use silvan_workload::programs::collective::{Algorithm, Collective, Operation};
use silvan_workload::programs::{Group, Looped, Op, Steps};

use crate::common::{job, messaging, run, sequence};

/// Returns the ranks whose data has reached each rank at the end. Interprets the operations with contents and without
/// time: a message carries the knowledge of its sender at the start of the send.
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

fn programs(n: u32, collective: Collective) -> Vec<Vec<Op>> {
    let rank = |me| {
        let mut ops = Vec::new();
        collective.append(&mut ops, Group::all(n), me);
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

/// Bytes that go from each rank to each other one.
fn between(programs: &[Vec<Op>]) -> Vec<Vec<u64>> {
    let row = |ops: &Vec<Op>| {
        let mut row = vec![0; programs.len()];
        for op in ops {
            if let Op::Send { to, bytes, .. } = op {
                row[*to as usize] += bytes;
            }
        }
        row
    };
    programs.iter().map(row).collect()
}

fn everyone(n: u32) -> BTreeSet<u32> {
    (0..n).collect()
}

fn offered() -> impl Iterator<Item = (Operation, Algorithm)> {
    let of = |operation: Operation| {
        let algorithms = operation.algorithms().into_iter();
        algorithms.map(move |one| (operation, one))
    };
    Operation::ALL.iter().copied().flat_map(of)
}

/// Required data: all from all, all from the root, or the root from all.
#[test]
fn all_learn_what_they_must() {
    for n in (1..18).chain([24, 33]) {
        for (operation, algorithm) in offered() {
            for (root, local) in [(0, 1), (n / 2, 4), (n - 1, 3)] {
                let root = if operation == Operation::Broadcast || operation == Operation::Reduce {
                    root
                } else {
                    0
                };
                let collective = Collective {
                    algorithm,
                    root,
                    local,
                    ..Collective::new(operation, 1000)
                };
                let known = knowledge(&programs(n, collective));
                let what =
                    format!("{operation:?} {algorithm:?}, {n} ranks, root {root}, local {local}");
                for (rank, known) in known.iter().enumerate() {
                    let is_root = rank as u32 == root;
                    match operation {
                        Operation::Broadcast | Operation::Scatter => {
                            assert!(known.contains(&root), "{what}");
                        }
                        Operation::Reduce | Operation::Incast if !is_root => {}
                        _ => assert_eq!(*known, everyone(n), "{what}"),
                    }
                }
            }
        }
    }
}

/// Bytes that each rank sends, for sizes that divide. With n ranks, S bytes, p = log2 n, and L ranks on each of M servers.
#[test]
fn bytes_are_the_closed_form() {
    use Algorithm::{Direct, Doubling, Halving, Hierarchical, Pairwise, Ring, Tree};
    for (n, local) in [(4_u32, 2), (8, 4), (16, 4), (32, 8)] {
        let p = n.ilog2();
        let servers = n / local;
        let size = 1024 * u64::from(n);
        let [n64, l64, m64] = [n, local, servers].map(u64::from);
        let all_but_one = size * (n64 - 1) / n64;
        for (operation, algorithm) in offered() {
            let per_rank = match (operation, algorithm) {
                (Operation::Allreduce, Ring | Halving | Direct | Pairwise | Hierarchical) => {
                    2 * all_but_one
                }
                (Operation::Allreduce, Doubling) => size * u64::from(p),
                // Between servers everyone sends M - 1 of the parts, in a server (L - 1) M parts.
                (Operation::ReduceScatter | Operation::Allgather, _) => all_but_one,
                (Operation::Alltoall, Pairwise | Direct) => (n64 - 1) * size,
                (Operation::Alltoall, Ring) => n64 * (n64 - 1) / 2 * size,
                (Operation::Alltoall, Doubling) => u64::from(p) * n64 / 2 * size,
                (Operation::Alltoall, Hierarchical) => ((l64 - 1) * m64 + (m64 - 1) * l64) * size,
                _ => continue,
            };
            let collective = Collective {
                algorithm,
                local,
                ..Collective::new(operation, size)
            };
            let programs = programs(n, collective);
            let what = format!("{operation:?} {algorithm:?}, {n} ranks");
            assert_eq!(sent(&programs), vec![per_rank; n as usize], "{what}");
        }
        // A tree has n - 1 edges; a reduction and a broadcast use each twice.
        for (operation, algorithm, times) in [
            (Operation::Allreduce, Tree, 2),
            (Operation::Broadcast, Tree, 1),
            (Operation::Broadcast, Ring, 1),
            (Operation::Broadcast, Direct, 1),
            (Operation::Broadcast, Hierarchical, 1),
            (Operation::Reduce, Tree, 1),
            (Operation::Reduce, Ring, 1),
            (Operation::Incast, Direct, 1),
            (Operation::Scatter, Direct, 1),
        ] {
            let collective = Collective {
                algorithm,
                local,
                ..Collective::new(operation, size)
            };
            let sum: u64 = sent(&programs(n, collective)).iter().sum();
            assert_eq!(sum, times * (n64 - 1) * size, "{operation:?} {algorithm:?}");
        }
    }
}

/// In an allreduce along a binomial tree, a rank sends the vector to its parent, and to each child. The root has
/// ceil(log2 n) children; a rank at place p has one at each distance below the lowest bit of p.
#[test]
fn bytes_of_a_tree_follow_from_children() {
    for n in 2..=33_u32 {
        let collective = Collective {
            algorithm: Algorithm::Tree,
            ..Collective::new(Operation::Allreduce, 1000)
        };
        let sent = sent(&programs(n, collective));
        let depth = (f64::from(n)).log2().ceil() as u64;
        assert_eq!(sent[0], 1000 * depth, "{n} ranks");
        for place in 1..n {
            let distances = (0..place.trailing_zeros()).map(|bit| 1 << bit);
            let children = distances.filter(|distance| place + distance < n).count();
            let expected = 1000 * (1 + children as u64);
            assert_eq!(sent[place as usize], expected, "place {place} of {n}");
        }
        assert_eq!(sent.iter().sum::<u64>(), 2 * 1000 * u64::from(n - 1));
    }
}

/// Bytes between each two ranks: a ring uses neighbours only, a direct operation all pairs equally. In a hierarchical
/// operation only ranks of one index send to other servers, (M - 1) / M of a part of the L-th.
#[test]
fn bytes_between_ranks_are_the_closed_form() {
    let (n, local) = (12_u64, 4_u64);
    let size = 1200 * n;
    let of = |operation, algorithm| {
        let collective = Collective {
            algorithm,
            local: local as u32,
            ..Collective::new(operation, size)
        };
        between(&programs(n as u32, collective))
    };
    let ring = of(Operation::Allgather, Algorithm::Ring);
    let direct = of(Operation::Allreduce, Algorithm::Direct);
    let two_levels = of(Operation::Allreduce, Algorithm::Hierarchical);
    let servers = n / local;
    for from in 0..n {
        for to in (0..n).filter(|to| *to != from) {
            let (row, column) = (from as usize, to as usize);
            let is_next = to == (from + 1) % n;
            let expected = if is_next { size * (n - 1) / n } else { 0 };
            assert_eq!(ring[row][column], expected);
            assert_eq!(direct[row][column], 2 * size / n);
            let is_across = to == (from + local) % n;
            let is_local = from / local == to / local && to % local == (from + 1) % local;
            let expected = match (is_across, is_local) {
                (true, _) => 2 * size / local * (servers - 1) / servers,
                (_, true) => 2 * size * (local - 1) / local,
                _ => 0,
            };
            assert_eq!(two_levels[row][column], expected, "{from} to {to}");
        }
    }
}

/// The parts of an operation that does not divide evenly add up: over all ranks each part is sent as often as the closed form says.
#[test]
fn uneven_parts_lose_no_byte() {
    for (n, bytes) in [(3_u32, 10), (7, 1000), (8, 5), (12, 1001)] {
        for (operation, algorithm) in offered() {
            let times = match operation {
                Operation::Allreduce if algorithm == Algorithm::Doubling => continue,
                Operation::Allreduce => 2,
                Operation::ReduceScatter | Operation::Allgather => 1,
                _ => continue,
            };
            let collective = Collective {
                algorithm,
                local: 4,
                ..Collective::new(operation, bytes)
            };
            let sum: u64 = sent(&programs(n, collective)).iter().sum();
            let expected = times * u64::from(n - 1) * bytes;
            assert_eq!(sum, expected, "{operation:?} {algorithm:?}, {n} ranks");
        }
    }
}

/// Made bit by bit while it runs, an operation is the same as in one piece, and is held in little room.
#[test]
fn long_operations_are_made_in_parts() {
    for operation in [
        Operation::Allreduce,
        Operation::Alltoall,
        Operation::Barrier,
    ] {
        for n in [2, 3, 16, 33, 100] {
            let group = Group::all(n);
            let collective = Collective::new(operation, 1000);
            let mut looped = Looped {
                collective,
                group,
                me: 1,
                compute: Span::ZERO,
                iterations: Some(2),
                bursts: None,
            };
            let mut whole = Vec::new();
            collective.append(&mut whole, group, 1);
            let (mut made, mut step, mut most) = (Vec::new(), 0, 0);
            let mut part = Vec::new();
            while looped.step(step, Time::ZERO, &mut part) {
                most = most.max(part.len());
                made.append(&mut part);
                step += 1;
            }
            made.retain(|op| !matches!(op, Op::Compute(_) | Op::Begin | Op::End { .. }));
            assert_eq!(
                made,
                [whole.clone(), whole].concat(),
                "{operation:?}, {n} ranks"
            );
            assert!(most <= 3 * 32 + 4, "{most} operations at a time");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Operations end on a fabric, too, with several ranks per host, and deliver all data.
    #[test]
    fn collectives_end_on_a_fabric(n in 2..12_u32, per_host in 1..4_usize, bytes in 0..9000_u64, which in 0..40_usize) {
        let all: Vec<_> = offered().collect();
        let (operation, algorithm) = all[which % all.len()];
        let collective = Collective { algorithm, local: per_host as u32, ..Collective::new(operation, bytes) };
        let ops = programs(n, collective);
        let ranks = ops.iter().enumerate();
        let ranks = ranks.map(|(rank, ops)| (rank / per_host, sequence(ops))).collect();
        let outcome = run(12, vec![job(ranks)], messaging());
        prop_assert_eq!(outcome.fault, None);
        prop_assert!(outcome.finished);
    }
}

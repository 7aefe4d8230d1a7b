//! Binomial trees.

use super::{Collective, CollectiveAlgorithm, Operation, receive, reversed, rounds, send};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Tree;

impl CollectiveAlgorithm for Tree {
    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Barrier,
            Operation::Allreduce,
            Operation::Broadcast,
            Operation::Reduce,
        ]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        match collective.operation {
            Operation::Barrier => allreduce(out, group, me, 0),
            Operation::Allreduce => allreduce(out, group, me, collective.bytes),
            _ => broadcast(out, group, me, collective.root, collective.bytes),
        }
    }

    fn most_ops(&self, ranks: u32) -> u64 {
        6 * (rounds(ranks) + 1)
    }
}

/// Broadcast from place `root`.
pub fn broadcast(out: &mut Vec<Op>, group: Group, me: u32, root: u32, bytes: u64) {
    let n = group.size;
    let place = (me + n - root % n) % n;
    let mut distance = if place == 0 {
        n.next_power_of_two()
    } else {
        1 << place.trailing_zeros()
    };
    if place > 0 {
        receive(out, group.rank(place - distance + root), bytes);
        out.push(Op::Wait);
    }
    while distance > 1 {
        distance /= 2;
        if place + distance < n {
            send(out, group.rank(place + distance + root), bytes);
            out.push(Op::Wait);
        }
    }
}

/// A reduction to place 0, and a broadcast from there.
pub fn allreduce(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
    reversed(out, |out| broadcast(out, group, me, 0, bytes));
    broadcast(out, group, me, 0, bytes);
}

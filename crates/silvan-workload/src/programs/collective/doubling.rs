//! Partners at powers of two for any number of ranks: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal and D. Weathersby,
//! "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems", IEEE TPDS 8:11, 1997;
//! barrier: D. Hensgen, R. Finkel and U. Manber, "Two Algorithms for Barrier Synchronization", IJPP 17:1, 1988.

use super::{
    Collective, CollectiveAlgorithm, Operation, exchange, receive, reversed, rounds, send,
};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Doubling;

impl CollectiveAlgorithm for Doubling {
    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Barrier,
            Operation::Allreduce,
            Operation::ReduceScatter,
            Operation::Allgather,
            Operation::Alltoall,
        ]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        let (bytes, part) = (collective.bytes, collective.part(group));
        match collective.operation {
            Operation::Allreduce => allreduce(out, group, me, bytes),
            Operation::ReduceScatter => reduce_scatter(out, group, me, &part),
            Operation::Allgather => allgather(out, group, me, &part),
            Operation::Alltoall => alltoall(out, group, me, bytes),
            _ => barrier(out, group, me),
        }
    }

    fn most_ops(&self, ranks: u32) -> u64 {
        6 * (rounds(ranks) + 1)
    }
}

/// Dissemination: in round k every rank notifies the rank 2^k places on.
pub fn barrier(out: &mut Vec<Op>, group: Group, me: u32) {
    let n = group.size;
    let mut distance = 1;
    while distance < n {
        exchange(
            out,
            group.rank(me + distance),
            group.rank(me + n - distance),
            0,
            0,
        );
        distance *= 2;
    }
}

/// Ranks beyond a power of two: every other one passes its part to its neighbour first.
pub fn allreduce(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
    let n = group.size;
    if n < 2 {
        return;
    }
    let power = 1 << n.ilog2();
    let beyond = n - power;
    if me < 2 * beyond && me % 2 == 0 {
        send(out, group.rank(me + 1), bytes);
        out.push(Op::Wait);
        receive(out, group.rank(me + 1), bytes);
        out.push(Op::Wait);
        return;
    }
    if me < 2 * beyond {
        receive(out, group.rank(me - 1), bytes);
        out.push(Op::Wait);
    }
    let place = if me < 2 * beyond { me / 2 } else { me - beyond };
    let mut distance = 1;
    while distance < power {
        let partner = place ^ distance;
        let partner = if partner < beyond {
            2 * partner + 1
        } else {
            partner + beyond
        };
        let partner = group.rank(partner);
        exchange(out, partner, partner, bytes, bytes);
        distance *= 2;
    }
    if me < 2 * beyond {
        send(out, group.rank(me - 1), bytes);
        out.push(Op::Wait);
    }
}

/// Every rank starts with the part of its own place; what it has doubles with each step.
pub fn allgather(out: &mut Vec<Op>, group: Group, me: u32, part: &dyn Fn(u32) -> u64) {
    let n = group.size;
    let sum = |first: u32, count: u32| (first..first + count).map(|place| part(place % n)).sum();
    let mut have = 1;
    while have < n {
        let moved = have.min(n - have);
        exchange(
            out,
            group.rank(me + n - have),
            group.rank(me + have),
            sum(me, moved),
            sum(me + have, moved),
        );
        have += moved;
    }
}

/// Every rank ends with the sum of the part of its own place; what it cares for halves with each step.
pub fn reduce_scatter(out: &mut Vec<Op>, group: Group, me: u32, part: &dyn Fn(u32) -> u64) {
    reversed(out, |out| allgather(out, group, me, part));
}

/// Messages travel by the powers of two in their distance.
pub fn alltoall(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
    let n = group.size;
    let mut distance = 1;
    while distance < n {
        let messages = (1..n).filter(|apart| apart & distance != 0).count() as u64;
        exchange(
            out,
            group.rank(me + distance),
            group.rank(me + n - distance),
            messages * bytes,
            messages * bytes,
        );
        distance *= 2;
    }
}

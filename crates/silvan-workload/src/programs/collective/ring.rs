//! Rings: every rank sends to its right neighbour and receives from its left one.

use std::ops::Range;

use super::{Collective, CollectiveAlgorithm, Operation, exchange, receive, send, split};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Ring;

impl CollectiveAlgorithm for Ring {
    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Barrier,
            Operation::Allreduce,
            Operation::ReduceScatter,
            Operation::Allgather,
            Operation::Alltoall,
            Operation::Broadcast,
            Operation::Reduce,
        ]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        let (bytes, part) = (collective.bytes, collective.part(group));
        match collective.operation {
            Operation::Barrier => barrier(out, group, me),
            Operation::Allreduce => {
                allreduce_steps(out, group, me, bytes, 0..allreduce_length(group));
            }
            Operation::ReduceScatter => reduce_scatter(out, group, me, &part),
            Operation::Allgather => allgather(out, group, me, &part),
            Operation::Alltoall => alltoall(out, group, me, bytes),
            _ => broadcast(out, group, me, collective.root, bytes),
        }
    }

    fn length(&self, operation: Operation, group: Group) -> u32 {
        match operation {
            Operation::Allreduce => allreduce_length(group),
            _ => 1,
        }
    }

    fn append_steps(
        &self,
        out: &mut Vec<Op>,
        group: Group,
        me: u32,
        collective: &Collective,
        steps: Range<u32>,
    ) {
        allreduce_steps(out, group, me, collective.bytes, steps);
    }
}

type Parts<'a> = &'a dyn Fn(u32) -> u64;

/// Two rounds of a token: after the second all know that all have entered.
pub fn barrier(out: &mut Vec<Op>, group: Group, me: u32) {
    let n = group.size;
    for round in 0..2 {
        if me > 0 {
            receive(out, group.rank(me - 1), 0);
            out.push(Op::Wait);
        }
        if round == 0 || me + 1 < n {
            send(out, group.rank(me + 1), 0);
            out.push(Op::Wait);
        }
        if round == 0 && me == 0 {
            receive(out, group.rank(n - 1), 0);
            out.push(Op::Wait);
        }
    }
}

/// Steps of an allreduce.
pub fn allreduce_length(group: Group) -> u32 {
    2 * (group.size - 1)
}

/// A reduce-scatter, then an allgather. Each of the 2 (n - 1) steps, from 0, moves a part of `bytes` / n.
pub fn allreduce_steps(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64, steps: Range<u32>) {
    let n = group.size;
    let part = |place: u32| split(bytes, n, place);
    for step in steps {
        let shift = if step < n - 1 {
            step
        } else {
            step.wrapping_sub(n)
        };
        let sent = (me + 2 * n).wrapping_sub(shift) % n;
        pass_on(out, group, me, sent, &part);
    }
}

fn pass_on(out: &mut Vec<Op>, group: Group, me: u32, sent: u32, part: Parts<'_>) {
    let n = group.size;
    let received = (sent + n - 1) % n;
    let (right, left) = (group.rank(me + 1), group.rank(me + n - 1));
    exchange(out, right, left, part(sent), part(received));
}

/// Every rank ends with the sum of the part of its own place.
pub fn reduce_scatter(out: &mut Vec<Op>, group: Group, me: u32, part: Parts<'_>) {
    let n = group.size;
    for step in 1..n {
        pass_on(out, group, me, (me + n - step) % n, part);
    }
}

/// Every rank starts with the part of its own place.
pub fn allgather(out: &mut Vec<Op>, group: Group, me: u32, part: Parts<'_>) {
    let n = group.size;
    for step in 0..n - 1 {
        pass_on(out, group, me, (me + n - step) % n, part);
    }
}

/// Neighbours forward messages: each step has one message less.
pub fn alltoall(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
    let n = group.size;
    let (right, left) = (group.rank(me + 1), group.rank(me + n - 1));
    for step in 1..n {
        let left_over = u64::from(n - step) * bytes;
        exchange(out, right, left, left_over, left_over);
    }
}

/// A chain from place `root` on.
pub fn broadcast(out: &mut Vec<Op>, group: Group, me: u32, root: u32, bytes: u64) {
    let n = group.size;
    let place = (me + n - root % n) % n;
    if place > 0 {
        receive(out, group.rank(me + n - 1), bytes);
        out.push(Op::Wait);
    }
    if place + 1 < n {
        send(out, group.rank(me + 1), bytes);
        out.push(Op::Wait);
    }
}

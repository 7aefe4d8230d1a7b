//! Pairwise exchange: in step k a rank sends to the rank k places on, or with a power of two of ranks, to place XOR k.

use std::ops::Range;

use super::{Collective, CollectiveAlgorithm, Operation, exchange};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Pairwise;

impl CollectiveAlgorithm for Pairwise {
    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Allreduce,
            Operation::ReduceScatter,
            Operation::Allgather,
            Operation::Alltoall,
        ]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        let part = collective.part(group);
        match collective.operation {
            Operation::Allreduce => {
                reduce_scatter(out, group, me, &part);
                allgather(out, group, me, &part);
            }
            Operation::ReduceScatter => reduce_scatter(out, group, me, &part),
            Operation::Allgather => allgather(out, group, me, &part),
            _ => alltoall(out, group, me, collective.bytes),
        }
    }

    fn length(&self, operation: Operation, group: Group) -> u32 {
        match operation {
            Operation::Alltoall => alltoall_length(group),
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
        alltoall_steps(out, group, me, collective.bytes, steps);
    }
}

/// Steps count from 0; `sent` and `received` are bytes to and from a place.
fn steps(
    out: &mut Vec<Op>,
    group: Group,
    me: u32,
    steps: Range<u32>,
    sent: impl Fn(u32) -> u64,
    received: impl Fn(u32) -> u64,
) {
    let n = group.size;
    for step in steps.start + 1..steps.end + 1 {
        let (to, from) = if n.is_power_of_two() {
            (me ^ step, me ^ step)
        } else {
            ((me + step) % n, (me + n - step) % n)
        };
        exchange(
            out,
            group.rank(to),
            group.rank(from),
            sent(to),
            received(from),
        );
    }
}

/// All-to-all with messages of `bytes`.
pub fn alltoall(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
    alltoall_steps(out, group, me, bytes, 0..alltoall_length(group));
}

/// Steps of [`alltoall`].
pub fn alltoall_length(group: Group) -> u32 {
    group.size - 1
}

/// Some steps of [`alltoall`], counted from 0.
pub fn alltoall_steps(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64, range: Range<u32>) {
    steps(out, group, me, range, |_| bytes, |_| bytes);
}

/// All-to-all; `bytes` gives the size of the message from one place to another.
pub fn alltoallv(out: &mut Vec<Op>, group: Group, me: u32, bytes: &dyn Fn(u32, u32) -> u64) {
    let all = 0..alltoall_length(group);
    let (sent, received) = (|to| bytes(me, to), |from| bytes(from, me));
    steps(out, group, me, all, sent, received);
}

/// Every rank ends with the sum of the part of its own place.
pub fn reduce_scatter(out: &mut Vec<Op>, group: Group, me: u32, part: &dyn Fn(u32) -> u64) {
    let all = 0..alltoall_length(group);
    steps(out, group, me, all, part, |_| part(me));
}

/// Every rank starts with the part of its own place.
pub fn allgather(out: &mut Vec<Op>, group: Group, me: u32, part: &dyn Fn(u32) -> u64) {
    let all = 0..alltoall_length(group);
    steps(out, group, me, all, |_| part(me), part);
}

//! All messages at once, each straight to the rank that needs it.

use super::{Collective, CollectiveAlgorithm, Operation, receive, send};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Direct;

impl CollectiveAlgorithm for Direct {
    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Barrier,
            Operation::Allreduce,
            Operation::ReduceScatter,
            Operation::Allgather,
            Operation::Alltoall,
            Operation::Broadcast,
            Operation::Incast,
            Operation::Scatter,
        ]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        let Collective { bytes, root, .. } = *collective;
        let part = collective.part(group);
        match collective.operation {
            Operation::Barrier => barrier(out, group, me),
            Operation::Allreduce => {
                reduce_scatter(out, group, me, &part);
                allgather(out, group, me, &part);
            }
            Operation::ReduceScatter => reduce_scatter(out, group, me, &part),
            Operation::Allgather => allgather(out, group, me, &part),
            Operation::Alltoall => alltoall(out, group, me, &|_, _| bytes),
            Operation::Incast => incast(out, group, me, root, bytes),
            _ => scatter(out, group, me, root, bytes),
        }
    }
}

fn with_all(
    out: &mut Vec<Op>,
    group: Group,
    me: u32,
    sent: impl Fn(u32) -> u64,
    received: impl Fn(u32) -> u64,
) {
    let n = group.size;
    for step in 1..n {
        let from = (me + n - step) % n;
        receive(out, group.rank(from), received(from));
    }
    for step in 1..n {
        let to = (me + step) % n;
        send(out, group.rank(to), sent(to));
    }
    if n > 1 {
        out.push(Op::Wait);
    }
}

/// Every rank sends each other one its part of the vector.
pub fn reduce_scatter(out: &mut Vec<Op>, group: Group, me: u32, part: &dyn Fn(u32) -> u64) {
    with_all(out, group, me, part, |_| part(me));
}

/// Every rank sends its part to all others.
pub fn allgather(out: &mut Vec<Op>, group: Group, me: u32, part: &dyn Fn(u32) -> u64) {
    with_all(out, group, me, |_| part(me), part);
}

/// All-to-all; `bytes` gives the size of the message from one place to another.
pub fn alltoall(out: &mut Vec<Op>, group: Group, me: u32, bytes: &dyn Fn(u32, u32) -> u64) {
    with_all(out, group, me, |to| bytes(me, to), |from| bytes(from, me));
}

/// All notify place 0, which then notifies all.
pub fn barrier(out: &mut Vec<Op>, group: Group, me: u32) {
    incast(out, group, me, 0, 0);
    scatter(out, group, me, 0, 0);
}

/// Every rank sends `bytes` to place `root` at once.
pub fn incast(out: &mut Vec<Op>, group: Group, me: u32, root: u32, bytes: u64) {
    let root = root % group.size;
    if me == root {
        for place in (0..group.size).filter(|place| *place != root) {
            receive(out, group.rank(place), bytes);
        }
    } else {
        send(out, group.rank(root), bytes);
    }
    out.push(Op::Wait);
}

/// Place `root` sends `bytes` to every other rank at once.
pub fn scatter(out: &mut Vec<Op>, group: Group, me: u32, root: u32, bytes: u64) {
    let root = root % group.size;
    if me == root {
        for place in (0..group.size).filter(|place| *place != root) {
            send(out, group.rank(place), bytes);
        }
    } else {
        receive(out, group.rank(root), bytes);
    }
    out.push(Op::Wait);
}

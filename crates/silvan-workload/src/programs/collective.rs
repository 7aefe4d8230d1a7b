//! Collective operations by the usual algorithms, as the operations of one rank.
//!
//! Every function appends what the rank at place `me` of its group does. Ranks of a group must call them
//! in the same order. Algorithms and their names: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of
//! Collective Communication Operations in MPICH", IJHPCA 19:1, 2005; dissemination barrier:
//! D. Hensgen, R. Finkel and U. Manber, IJPP 17:1, 1988.

use std::ops::Range;

use crate::programs::op::{Group, Op};

/// Tag of the messages of collective operations: beyond those that programs use.
pub const TAG: u32 = 0xffff_0000;

fn send(out: &mut Vec<Op>, to: u32, bytes: u64) {
    out.push(Op::Send {
        to,
        bytes,
        tag: TAG,
    });
}

fn receive(out: &mut Vec<Op>, from: u32, bytes: u64) {
    out.push(Op::Receive {
        from: Some(from),
        bytes,
        tag: Some(TAG),
    });
}

/// Receives and sends at once.
fn exchange(out: &mut Vec<Op>, to: u32, from: u32, sent: u64, received: u64) {
    receive(out, from, received);
    send(out, to, sent);
    out.push(Op::Wait);
}

/// Barrier by dissemination: in round k every rank tells the one 2^k places on.
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

/// Allreduce in a ring: reduce-scatter, then allgather. Each of the 2 (n - 1) steps moves a part of
/// `bytes` / n, parts of one byte more first.
pub fn allreduce_ring(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
    allreduce_ring_steps(out, group, me, bytes, 0..allreduce_ring_length(group));
}

/// Steps of [`allreduce_ring`].
pub fn allreduce_ring_length(group: Group) -> u32 {
    2 * (group.size - 1)
}

/// Some steps of [`allreduce_ring`], counted from 0.
pub fn allreduce_ring_steps(
    out: &mut Vec<Op>,
    group: Group,
    me: u32,
    bytes: u64,
    steps: Range<u32>,
) {
    let n = group.size;
    let part = |place: u32| {
        let (size, larger) = (bytes / u64::from(n), bytes % u64::from(n));
        size + u64::from(u64::from(place) < larger)
    };
    let (right, left) = (group.rank(me + 1), group.rank(me + n - 1));
    for step in steps {
        // In both halves the part that is passed on moves back by one from step to step.
        let shift = if step < n - 1 {
            step
        } else {
            step.wrapping_sub(n)
        };
        let sent = (me + 2 * n).wrapping_sub(shift) % n;
        let received = (me + 2 * n - 1).wrapping_sub(shift) % n;
        exchange(out, right, left, part(sent), part(received));
    }
}

/// Allreduce by recursive doubling: partners at distance 1, 2, 4 and so on exchange everything. Of ranks
/// beyond a power of two, every other one hands its part to its neighbour first and gets the result
/// at the end.
pub fn allreduce_doubling(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
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

/// All-to-all by pairwise exchange: in step k a rank sends `bytes` to the one k places on; with a power
/// of two of ranks, partners are those whose place differs by k in its bits.
pub fn alltoall(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
    alltoall_steps(out, group, me, bytes, 0..alltoall_length(group));
}

/// Steps of [`alltoall`].
pub fn alltoall_length(group: Group) -> u32 {
    group.size - 1
}

/// Some steps of [`alltoall`], counted from 0.
pub fn alltoall_steps(out: &mut Vec<Op>, group: Group, me: u32, bytes: u64, steps: Range<u32>) {
    let n = group.size;
    for step in steps.start + 1..steps.end + 1 {
        let (to, from) = if n.is_power_of_two() {
            (me ^ step, me ^ step)
        } else {
            (me + step, me + n - step)
        };
        exchange(out, group.rank(to), group.rank(from), bytes, bytes);
    }
}

/// Broadcast from place `root` along a binomial tree.
pub fn broadcast(out: &mut Vec<Op>, group: Group, me: u32, root: u32, bytes: u64) {
    let n = group.size;
    let place = (me + n - root % n) % n;
    // The lowest bit that is set says at which distance the rank receives; it then sends to nearer ones.
    let mut distance = if place == 0 {
        n.next_power_of_two()
    } else {
        1 << place.trailing_zeros()
    };
    if place > 0 {
        receive(out, group.rank(place - distance + root), bytes);
        out.push(Op::Wait);
    }
    let mut sends = false;
    while distance > 1 {
        distance /= 2;
        if place + distance < n {
            send(out, group.rank(place + distance + root), bytes);
            sends = true;
        }
    }
    if sends {
        out.push(Op::Wait);
    }
}

/// Everyone sends `bytes` to place `root` at once: a gather without a tree, an incast.
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

/// Exchange with both neighbours in an order of the ranks, given by the neighbours' ranks.
pub fn neighbours(out: &mut Vec<Op>, left: u32, right: u32, bytes: u64, messages: u32) {
    let (to_left, to_right) = (TAG + 1, TAG + 2);
    for _ in 0..messages {
        out.push(Op::Receive {
            from: Some(left),
            bytes,
            tag: Some(to_right),
        });
        out.push(Op::Receive {
            from: Some(right),
            bytes,
            tag: Some(to_left),
        });
    }
    for _ in 0..messages {
        out.push(Op::Send {
            to: left,
            bytes,
            tag: to_left,
        });
        out.push(Op::Send {
            to: right,
            bytes,
            tag: to_right,
        });
    }
    out.push(Op::Wait);
}

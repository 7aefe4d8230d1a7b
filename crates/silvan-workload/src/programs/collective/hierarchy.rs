//! Two-level algorithms: within a server, and between servers. Without two levels, the flat algorithm runs.

use super::{
    Collective, CollectiveAlgorithm, Operation, doubling, pairwise, reversed, ring, split, tree,
};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Hierarchical;

impl CollectiveAlgorithm for Hierarchical {
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
        let Collective {
            bytes, root, local, ..
        } = *collective;
        let part = collective.part(group);
        match collective.operation {
            Operation::Barrier => barrier(out, group, me, local),
            Operation::Allreduce => allreduce(out, group, me, local, bytes),
            Operation::ReduceScatter => reduce_scatter(out, group, me, local, &part),
            Operation::Allgather => allgather(out, group, me, local, &part),
            Operation::Alltoall => alltoall(out, group, me, local, bytes),
            _ => broadcast(out, group, me, local, root, bytes),
        }
    }
}

struct Levels {
    local: Group,
    index: u32,
    across: Group,
    server: u32,
}

fn levels(group: Group, me: u32, local: u32) -> Levels {
    let n = group.size;
    let size = if local > 0 && n % local == 0 {
        local
    } else {
        n
    };
    let (server, index) = (me / size, me % size);
    Levels {
        local: group.part(server * size, 1, size),
        index,
        across: group.part(index, size, n / size),
        server,
    }
}

/// Ranks notify the server's first rank, first ranks notify each other, then their servers.
pub fn barrier(out: &mut Vec<Op>, group: Group, me: u32, local: u32) {
    let level = levels(group, me, local);
    reversed(out, |out| {
        tree::broadcast(out, level.local, level.index, 0, 0)
    });
    if level.index == 0 {
        doubling::barrier(out, level.across, level.server);
    }
    tree::broadcast(out, level.local, level.index, 0, 0);
}

/// Reduce-scatter in the server, allreduce between servers, allgather in the server; all in rings.
pub fn allreduce(out: &mut Vec<Op>, group: Group, me: u32, local: u32, bytes: u64) {
    let level = levels(group, me, local);
    let part = |place: u32| split(bytes, level.local.size, place);
    ring::reduce_scatter(out, level.local, level.index, &part);
    let steps = 0..ring::allreduce_length(level.across);
    ring::allreduce_steps(out, level.across, level.server, part(level.index), steps);
    ring::allgather(out, level.local, level.index, &part);
}

/// An allgather between servers, then one in the server of all that its ranks have.
pub fn allgather(out: &mut Vec<Op>, group: Group, me: u32, local: u32, part: &dyn Fn(u32) -> u64) {
    let level = levels(group, me, local);
    let (size, servers) = (level.local.size, level.across.size);
    ring::allgather(out, level.across, level.server, &|server| {
        part(server * size + level.index)
    });
    ring::allgather(out, level.local, level.index, &|index| {
        (0..servers).map(|server| part(server * size + index)).sum()
    });
}

/// The reverse of [`allgather`].
pub fn reduce_scatter(
    out: &mut Vec<Op>,
    group: Group,
    me: u32,
    local: u32,
    part: &dyn Fn(u32) -> u64,
) {
    reversed(out, |out| allgather(out, group, me, local, part));
}

/// Ranks of a server exchange what each other's index needs, then ranks of an index between servers.
pub fn alltoall(out: &mut Vec<Op>, group: Group, me: u32, local: u32, bytes: u64) {
    let level = levels(group, me, local);
    let (size, servers) = (level.local.size, level.across.size);
    pairwise::alltoall(out, level.local, level.index, u64::from(servers) * bytes);
    pairwise::alltoall(out, level.across, level.server, u64::from(size) * bytes);
}

/// Between servers among ranks of the root's index, then in every server.
pub fn broadcast(out: &mut Vec<Op>, group: Group, me: u32, local: u32, root: u32, bytes: u64) {
    let level = levels(group, me, local);
    let size = level.local.size;
    let (root_server, root_index) = (root / size, root % size);
    if level.index == root_index {
        tree::broadcast(out, level.across, level.server, root_server, bytes);
    }
    tree::broadcast(out, level.local, level.index, root_index, bytes);
}

//! An allreduce of a reduce-scatter and an allgather with partners at distances that are powers of two.

use super::{Collective, CollectiveAlgorithm, Operation, doubling, rounds};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Halving;

impl CollectiveAlgorithm for Halving {
    fn operations(&self) -> &'static [Operation] {
        &[Operation::Allreduce]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        let part = collective.part(group);
        doubling::reduce_scatter(out, group, me, &part);
        doubling::allgather(out, group, me, &part);
    }

    fn most_ops(&self, ranks: u32) -> u64 {
        6 * (rounds(ranks) + 1)
    }
}

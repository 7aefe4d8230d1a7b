//! NCCL's choice among other algorithms, which [replaces](crate::programs::nccl) this one before a run.

use super::{Collective, CollectiveAlgorithm, Operation, ring};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Nccl;

impl CollectiveAlgorithm for Nccl {
    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::Allreduce,
            Operation::ReduceScatter,
            Operation::Allgather,
            Operation::Broadcast,
            Operation::Reduce,
        ]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        ring::Ring.append(out, group, me, collective);
    }
}

//! Reduction in switches. Programs with a [plan](crate::programs::SharpPlan) have aggregation trees; without, ranks form a
//! ring.

use super::{Collective, CollectiveAlgorithm, Operation, ring};
use crate::programs::op::{Group, Op};

/// The algorithm.
#[derive(Debug)]
pub struct Sharp;

impl CollectiveAlgorithm for Sharp {
    fn operations(&self) -> &'static [Operation] {
        &[Operation::Barrier, Operation::Allreduce]
    }

    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective) {
        ring::Ring.append(out, group, me, collective);
    }
}

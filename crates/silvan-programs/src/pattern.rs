//! Programs that do one collective operation over and over.

use silvan_units::Span;

use crate::collective;
use crate::op::{Group, Op, Steps};

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// [`collective::barrier`].
    Barrier,
    /// [`collective::allreduce_ring`].
    AllreduceRing,
    /// [`collective::allreduce_doubling`].
    AllreduceDoubling,
    /// [`collective::alltoall`].
    Alltoall,
    /// [`collective::broadcast`] from rank 0.
    Broadcast,
    /// [`collective::incast`] to rank 0.
    Incast,
}

impl Pattern {
    /// Appends the operations of the rank at place `me` of a group. `bytes` are those of one message for
    /// all-to-all and incast, of everything for the others.
    pub fn append(self, out: &mut Vec<Op>, group: Group, me: u32, bytes: u64) {
        match self {
            Self::Barrier => collective::barrier(out, group, me),
            Self::AllreduceRing => collective::allreduce_ring(out, group, me, bytes),
            Self::AllreduceDoubling => collective::allreduce_doubling(out, group, me, bytes),
            Self::Alltoall => collective::alltoall(out, group, me, bytes),
            Self::Broadcast => collective::broadcast(out, group, me, 0, bytes),
            Self::Incast => collective::incast(out, group, me, 0, bytes),
        }
    }

    /// The pattern of this name, as scenarios spell it.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "barrier" => Self::Barrier,
            "allreduce-ring" => Self::AllreduceRing,
            "allreduce-doubling" => Self::AllreduceDoubling,
            "alltoall" => Self::Alltoall,
            "broadcast" => Self::Broadcast,
            "incast" => Self::Incast,
            _ => return None,
        })
    }
}

/// One rank of a group that does a collective operation again and again, computes in between, and
/// measures each.
#[derive(Clone, Copy, Debug)]
pub struct Looped {
    /// The operation.
    pub pattern: Pattern,
    /// All ranks.
    pub group: Group,
    /// This one.
    pub me: u32,
    /// Bytes, as [`Pattern::append`] takes them.
    pub bytes: u64,
    /// Time before the first operation.
    pub start: Span,
    /// Computing before each operation.
    pub compute: Span,
    /// How often; `None` is without end.
    pub iterations: Option<u64>,
}

impl Steps for Looped {
    fn step(&mut self, step: u64, out: &mut Vec<Op>) -> bool {
        if self.iterations.is_some_and(|iterations| step >= iterations) {
            return false;
        }
        if step == 0 {
            out.push(Op::Compute(self.start));
        }
        out.extend([Op::Compute(self.compute), Op::Begin]);
        self.pattern.append(out, self.group, self.me, self.bytes);
        // A million years of iterations would fit into the number.
        let index = step as u32;
        out.push(Op::End { label: 0, index });
        true
    }
}

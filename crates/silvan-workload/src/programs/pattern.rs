//! The kinds of programs, and programs that do one collective operation over and over.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::Span;

use crate::programs::collective::{Collective, Operation};
use crate::programs::op::{Group, Op, Steps};
use crate::programs::trace::{self, TraceFormat};

/// What the ranks of a program do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramKind {
    /// A GOAL schedule (LogGOPSim, ATLAHS), as text or as `txt2bin` writes it.
    Goal,
    /// What Chakra execution traces say (MLCommons, ASTRA-sim), one file for each rank, in protobuf or JSON.
    Chakra,
    /// What a list of AICB says, comma-separated or in SimAI's form.
    Aicb,
    /// The connections of a connection matrix of htsim.
    Connections,
    /// Steps of training a transformer, from the numbers of `model`.
    Training,
    /// Barriers.
    Barrier,
    /// Allreduces.
    Allreduce,
    /// Reduce-scatters.
    ReduceScatter,
    /// Allgathers.
    Allgather,
    /// All-to-alls.
    Alltoall,
    /// All-to-alls with a size for each message, in `sizes`; by the algorithms `pairwise` or `direct`.
    Alltoallv,
    /// Broadcasts from rank 0.
    Broadcast,
    /// Reductions to rank 0.
    Reduce,
    /// All ranks send to rank 0 at once.
    Incast,
    /// Rank 0 sends to all ranks at once.
    Scatter,
}

impl ProgramKind {
    /// The format of the trace that it runs, or the collective operation that it repeats.
    pub fn work(self) -> KindWork {
        match self {
            Self::Goal => KindWork::Trace(&trace::Goal),
            Self::Chakra => KindWork::Trace(&trace::chakra::Chakra),
            Self::Aicb => KindWork::Trace(&trace::aicb::Aicb),
            Self::Connections => KindWork::Trace(&trace::connections::Connections),
            Self::Training => KindWork::Training,
            Self::Barrier => KindWork::Repeat(Operation::Barrier),
            Self::Allreduce => KindWork::Repeat(Operation::Allreduce),
            Self::ReduceScatter => KindWork::Repeat(Operation::ReduceScatter),
            Self::Allgather => KindWork::Repeat(Operation::Allgather),
            Self::Alltoall => KindWork::Repeat(Operation::Alltoall),
            Self::Alltoallv => KindWork::Sizes,
            Self::Broadcast => KindWork::Repeat(Operation::Broadcast),
            Self::Reduce => KindWork::Repeat(Operation::Reduce),
            Self::Incast => KindWork::Repeat(Operation::Incast),
            Self::Scatter => KindWork::Repeat(Operation::Scatter),
        }
    }
}

/// What a kind of program consists of.
#[derive(Clone, Copy)]
pub enum KindWork {
    /// A trace of this format.
    Trace(&'static dyn TraceFormat),
    /// This collective operation, over and over.
    Repeat(Operation),
    /// An all-to-all with a size for each message, over and over.
    Sizes,
    /// Steps of training a model, over and over.
    Training,
}

/// One rank of a group that does a collective operation again and again, computes in between, and
/// measures each.
#[derive(Clone, Copy, Debug)]
pub struct Looped {
    /// The operation.
    pub collective: Collective,
    /// All ranks.
    pub group: Group,
    /// This one.
    pub me: u32,
    /// Time before the first operation.
    pub start: Span,
    /// Computing before each operation.
    pub compute: Span,
    /// How often; `None` is without end.
    pub iterations: Option<u64>,
}

/// Steps of a collective operation that a rank makes at a time.
const AT_A_TIME: u32 = 32;

/// How many of a rank's steps an operation of this length takes.
pub(crate) fn parts(length: u32) -> u64 {
    u64::from(length.div_ceil(AT_A_TIME).max(1))
}

/// Which steps of an operation are made in a rank's step `step`: number of the operation, the range, and
/// whether they are its last.
pub(crate) fn part(length: u32, step: u64) -> (u64, Range<u32>, bool) {
    let (operation, part) = (step / parts(length), (step % parts(length)) as u32);
    let first = part * AT_A_TIME;
    (
        operation,
        first..length.min(first + AT_A_TIME),
        u64::from(part) + 1 == parts(length),
    )
}

impl Steps for Looped {
    fn step(&mut self, step: u64, out: &mut Vec<Op>) -> bool {
        let (operation, steps, is_last) = part(self.collective.length(self.group), step);
        if self
            .iterations
            .is_some_and(|iterations| operation >= iterations)
        {
            return false;
        }
        if step == 0 {
            out.push(Op::Compute(self.start));
        }
        if steps.start == 0 {
            out.extend([Op::Compute(self.compute), Op::Begin]);
        }
        self.collective
            .append_steps(out, self.group, self.me, steps);
        if is_last {
            // No run does more operations than the number holds.
            let index = operation as u32;
            out.push(Op::End { label: 0, index });
        }
        true
    }
}

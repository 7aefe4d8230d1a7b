//! Programs that do one collective operation over and over.

use std::ops::Range;

use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};
use silvan_core::Span;

use crate::programs::collective;
use crate::programs::op::{Group, Op, Steps};

/// Declares the collective operations, each with its documentation in scenarios.
macro_rules! patterns {
    ($($(#[$about:meta])* $pattern:ident,)*) => {
        /// A collective operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Pattern {
            $($(#[$about])* $pattern,)*
        }

        /// What the ranks of a program do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum ProgramKind {
            /// A GOAL schedule (LogGOPSim, ATLAHS), in `file` or in `goal`.
            Goal,
            $($(#[$about])* $pattern,)*
        }

        impl ProgramKind {
            /// The collective operation, if it is one.
            pub fn pattern(self) -> Option<Pattern> {
                match self {
                    Self::Goal => None,
                    $(Self::$pattern => Some(Pattern::$pattern),)*
                }
            }
        }
    };
}

patterns! {
    /// Barriers by dissemination.
    Barrier,
    /// Allreduces in a ring.
    AllreduceRing,
    /// Allreduces by recursive doubling.
    AllreduceDoubling,
    /// All-to-all by pairwise exchange.
    Alltoall,
    /// Broadcasts from rank 0 along a binomial tree.
    Broadcast,
    /// All ranks send to rank 0 at once.
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

    /// Number of steps that [`append_steps`](Self::append_steps) tells apart: those of a ring or of an
    /// all-to-all, as many as ranks; 1 for the others, which have few.
    pub fn length(self, group: Group) -> u32 {
        match self {
            Self::AllreduceRing => collective::allreduce_ring_length(group),
            Self::Alltoall => collective::alltoall_length(group),
            _ => 1,
        }
    }

    /// Appends some steps only, so that a rank need not hold all of a long operation.
    pub fn append_steps(
        self,
        out: &mut Vec<Op>,
        group: Group,
        me: u32,
        bytes: u64,
        steps: Range<u32>,
    ) {
        match self {
            Self::AllreduceRing => {
                collective::allreduce_ring_steps(out, group, me, bytes, steps);
            }
            Self::Alltoall => collective::alltoall_steps(out, group, me, bytes, steps),
            _ => self.append(out, group, me, bytes),
        }
    }

    /// The pattern of this name, as scenarios spell it.
    pub fn named(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, ValueError> = name.into_deserializer();
        Self::deserialize(name).ok()
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
        let (operation, steps, is_last) = part(self.pattern.length(self.group), step);
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
        self.pattern
            .append_steps(out, self.group, self.me, self.bytes, steps);
        if is_last {
            // No run does more operations than the number holds.
            let index = operation as u32;
            out.push(Op::End { label: 0, index });
        }
        true
    }
}

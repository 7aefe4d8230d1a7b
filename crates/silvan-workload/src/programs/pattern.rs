use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Span, Time};

use crate::programs::collective::{Collective, Operation, with_operations};
use crate::programs::op::{Group, Op, Steps};
use crate::programs::trace::{FormatKeys, TraceFormat, with_formats};

macro_rules! declare_kinds {
    (
        { $($module:ident::$format:ident = $name:literal, $trace:literal;)* }
        { $($operation:ident = $op_name:literal, $default:ident, $program:literal, $summary:literal;)* }
    ) => {
        /// Work of a program's ranks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum ProgramKind {
            $(
                #[doc = $trace]
                #[serde(rename = $name)]
                $format,
            )*
            /// Steps of training a transformer, from the numbers of `model`.
            #[serde(rename = "training")]
            Training,
            /// Serving of a transformer: prefill, transfer of the key-value cache, and decode, from the numbers of
            /// `inference`.
            #[serde(rename = "inference")]
            Inference,
            $(
                #[doc = $program]
                #[serde(rename = $op_name)]
                $operation,
            )*
            /// All-to-alls with a size for each message, in `sizes`; by the algorithms `pairwise` or `direct`.
            #[serde(rename = "alltoallv")]
            Alltoallv,
        }

        impl ProgramKind {
            /// The format of the trace that it runs, with its keys, or the collective operation that it repeats.
            pub fn work(self, formats: &FormatKeys) -> KindWork<'_> {
                match self {
                    $(Self::$format => KindWork::Trace($name, &formats.$module),)*
                    Self::Training => KindWork::Training,
                    Self::Inference => KindWork::Inference,
                    $(Self::$operation => KindWork::Repeat(Operation::$operation),)*
                    Self::Alltoallv => KindWork::Sizes,
                }
            }
        }
    };
}

with_formats! { with_operations declare_kinds }

/// Content of a kind of program.
#[derive(Clone, Copy)]
pub enum KindWork<'a> {
    /// A trace of the format of this name.
    Trace(&'static str, &'a dyn TraceFormat),
    /// A repeated collective operation.
    Repeat(Operation),
    /// An all-to-all with a size for each message, over and over.
    Sizes,
    /// Steps of training a model, over and over.
    Training,
    /// Serving of a model.
    Inference,
}

/// A rank of a group that repeats a collective operation, computes in between, and measures each operation.
#[derive(Clone, Debug)]
pub struct Looped {
    /// The operation.
    pub collective: Collective,
    /// All ranks.
    pub group: Group,
    /// Place of this rank.
    pub me: u32,
    /// Computing before each operation.
    pub compute: Span,
    /// Number of operations; `None` is without end.
    pub iterations: Option<u64>,
    /// Bursts with pauses between them, if there are any.
    pub bursts: Option<Bursts>,
}

/// Bursts of operations, and pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Time after which the operation at hand is the last one of its burst.
    pub length: Span,
    /// Time between bursts.
    pub pause: Span,
}

/// The bursts of a rank. After each operation rank 0 may end the burst; the others know from its broadcast.
#[derive(Clone, Debug)]
pub struct Bursts {
    burst: Burst,
    /// Last operation of each burst, for all ranks.
    ends: Arc<Mutex<Vec<u64>>>,
    met: usize,
    begun: Option<Time>,
}

impl Bursts {
    /// The bursts of one rank; a clone is for another rank of the program.
    pub fn new(burst: Burst) -> Self {
        Self {
            burst,
            ends: Arc::default(),
            met: 0,
            begun: None,
        }
    }

    fn ends(&self) -> MutexGuard<'_, Vec<u64>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&mut self, operation: u64, now: Time) {
        if self
            .begun
            .is_some_and(|begun| now.since(begun) >= self.burst.length)
        {
            self.ends().push(operation);
        }
    }

    fn pause_before(&mut self, operation: u64, now: Time) -> Span {
        let begun = *self.begun.get_or_insert(now);
        let ended = self.ends().get(self.met).copied();
        if ended.is_none_or(|ended| ended + 1 != operation) {
            return Span::ZERO;
        }
        self.met += 1;
        self.begun = Some(begun.max(now) + self.burst.pause);
        self.burst.pause
    }
}

const AT_A_TIME: u32 = 32;

pub(crate) fn parts(length: u32) -> u64 {
    u64::from(length.div_ceil(AT_A_TIME).max(1))
}

pub(crate) fn part(length: u32, step: u64) -> (u64, Range<u32>, bool) {
    let (operation, part) = (step / parts(length), (step % parts(length)) as u32);
    let first = part * AT_A_TIME;
    (
        operation,
        first..length.min(first + AT_A_TIME),
        u64::from(part) + 1 == parts(length),
    )
}

impl Looped {
    fn share_end(&mut self, operation: u64, now: Time, out: &mut Vec<Op>) {
        if let Some(bursts) = self.bursts.as_mut().filter(|_| self.me == 0) {
            bursts.decide(operation, now);
        }
        Collective::new(Operation::Broadcast, 1).append(out, self.group, self.me);
    }
}

impl Steps for Looped {
    fn step(&mut self, mut step: u64, now: Time, out: &mut Vec<Op>) -> bool {
        let length = self.collective.length(self.group);
        if self.bursts.is_some() {
            let parts = parts(length) + 1;
            let (operation, place) = (step / parts, step % parts);
            if place + 1 == parts {
                self.share_end(operation, now, out);
                return true;
            }
            step = operation * (parts - 1) + place;
        }
        let (operation, steps, is_last) = part(length, step);
        if self
            .iterations
            .is_some_and(|iterations| operation >= iterations)
        {
            return false;
        }
        if steps.start == 0 {
            if let Some(bursts) = &mut self.bursts {
                out.push(Op::Pause(bursts.pause_before(operation, now)));
            }
            out.extend([Op::Compute(self.compute), Op::Begin]);
        }
        self.collective
            .append_steps(out, self.group, self.me, steps);
        if is_last {
            let index = operation as u32;
            out.push(Op::End { label: 0, index });
        }
        true
    }
}

use std::sync::Arc;

use silvan_core::{Span, Time};

use crate::programs::collective::Collective;
use crate::programs::op::{Group, Op, Steps};
use crate::programs::pattern::{part, parts};

/// Action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// Computes.
    Compute(Span),
    /// A collective operation in groups of ranks at equal distances.
    Collective {
        /// The operation.
        collective: Collective,
        /// Members of a group.
        size: u32,
        /// Distance from one member to the next.
        stride: u32,
    },
}

/// A step of all ranks, which starts when the step before it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStep {
    /// Line in the list, from 1: the number of its measurement.
    pub line: u32,
    /// Action of the step.
    pub action: StreamAction,
}

/// A list of steps that all ranks do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Number of ranks.
    pub ranks: u32,
    /// The steps.
    pub steps: Vec<StreamStep>,
}

/// A rank on its way through a list.
#[derive(Debug)]
pub struct StreamRank {
    stream: Arc<Stream>,
    rank: u32,
    at: usize,
    part: u64,
}

impl StreamRank {
    /// A rank at the first step.
    pub fn new(stream: Arc<Stream>, rank: u32) -> Self {
        Self {
            stream,
            rank,
            at: 0,
            part: 0,
        }
    }
}

impl Steps for StreamRank {
    fn step(&mut self, _step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        let Some(step) = self.stream.steps.get(self.at) else {
            return false;
        };
        if self.part == 0 {
            out.push(Op::Begin);
        }
        self.part += 1;
        let is_last = match step.action {
            StreamAction::Compute(span) => {
                out.push(Op::Compute(span));
                true
            }
            StreamAction::Collective {
                collective,
                size,
                stride,
            } => {
                let place = self.rank / stride % size;
                let first = self.rank - place * stride;
                let group = Group {
                    first,
                    size,
                    stride,
                };
                let length = collective.length(group);
                let (_, steps, _) = part(length, self.part - 1);
                collective.append_steps(out, group, place, steps);
                self.part == parts(length)
            }
        };
        if is_last {
            let index = step.line;
            out.push(Op::End { label: 0, index });
            (self.at, self.part) = (self.at + 1, 0);
        }
        true
    }
}

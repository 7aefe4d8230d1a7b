//! The schedule of a rank, operation by operation.

use silvan_core::Span;

use crate::programs::collective::{Algorithm, Collective, double_tree, split};
use crate::programs::nccl::Protocol;
use crate::programs::op::{Group, Op};
use crate::programs::schedule::{Action, Dependency, Schedule, ScheduleOp};

/// The processor of a rank that computes.
pub const COMPUTE: u32 = 0;
/// The processor of a rank that starts and ends messages.
pub const MESSAGES: u32 = 1;
const JOINS: u32 = 2;
/// The processor of a rank that does what is no kernel: its host.
pub const HOST: u32 = 3;
const LAGS: u32 = 4;
const MOST_LAGS: u32 = 64;

/// Division of a collective operation into parallel pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Parts of the data that are independent of each other.
    pub channels: u32,
    /// Largest piece of a channel's data in bytes; `None` is one piece.
    pub chunk: Option<u64>,
    /// Protocol, which adds bytes on the wire.
    pub protocol: Protocol,
    /// Time before the first step.
    pub launch: Span,
    /// Time before each step.
    pub lag: Span,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            channels: 1,
            chunk: None,
            protocol: Protocol::Simple,
            launch: Span::ZERO,
            lag: Span::ZERO,
        }
    }
}

impl Pipeline {
    /// Sizes of the pieces, channel by channel. There is always one in the first channel.
    pub fn pieces(self, bytes: u64) -> Vec<Vec<u64>> {
        let channel = |number: u32| {
            let share = split(bytes, self.channels, number);
            let pieces = match self.chunk {
                Some(chunk) => share.div_ceil(chunk.max(1)).max(1),
                None => 1,
            };
            let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
            (0..pieces)
                .map(|piece| split(share, pieces, piece))
                .collect()
        };
        let channels = (0..self.channels).map(channel);
        channels
            .enumerate()
            .filter(|(number, pieces): &(usize, Vec<u64>)| *number == 0 || pieces[0] > 0)
            .map(|(_, pieces)| pieces)
            .collect()
    }

    /// Returns the number of pieces.
    pub fn count(self, bytes: u64) -> u64 {
        match self.chunk {
            None => u64::from(self.channels),
            Some(chunk) => {
                let share = bytes.div_ceil(u64::from(self.channels));
                u64::from(self.channels) * share.div_ceil(chunk.max(1)).max(1)
            }
        }
    }
}

/// A rank that takes part in a collective operation.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The ranks of the group.
    pub ranks: &'a [u32],
    /// Place of the rank among the members.
    pub place: u32,
    /// Tag of the messages of the first piece; each further piece has the next one. No other operation has these.
    pub tag: u32,
    /// Line of the operation in the trace.
    pub line: u32,
}

/// A schedule that is being written. Operations are numbered from 0.
#[derive(Debug, Default)]
pub struct Draft {
    ops: Vec<ScheduleOp>,
    dependencies: Vec<Dependency>,
    /// Time before each step of a strand.
    lag: Span,
}

/// The other of two trees: every second channel has it.
struct Mirrored {
    ranks: Vec<u32>,
    place: u32,
}

impl Mirrored {
    fn of(collective: Collective, member: &Member<'_>) -> Option<Self> {
        if collective.algorithm != Algorithm::DoubleTree {
            return None;
        }
        let places = double_tree::mirrored(member.ranks.len() as u32, collective.local);
        let ranks = places.iter().map(|place| member.ranks[*place as usize]);
        let place = places.iter().position(|place| *place == member.place)?;
        Some(Self {
            ranks: ranks.collect(),
            place: place as u32,
        })
    }

    fn member<'a>(&'a self, member: &Member<'a>) -> Member<'a> {
        Member {
            ranks: &self.ranks,
            place: self.place,
            ..*member
        }
    }
}

impl Draft {
    /// Operations so far.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Returns true if there is no operation yet.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Adds an operation that waits for the ends of others.
    pub fn add(&mut self, action: Action, cpu: u32, line: u32, after: &[u32]) -> u32 {
        let later = self.ops.len() as u32;
        self.ops.push(ScheduleOp { action, cpu, line });
        for earlier in after {
            self.wait(later, *earlier, false);
        }
        later
    }

    /// Lets an operation wait for the end, or for the start, of another.
    pub fn wait(&mut self, later: u32, earlier: u32, start_only: bool) {
        self.dependencies.push(Dependency {
            later,
            earlier,
            start_only,
        });
    }

    /// Adds an operation that ends when all of `after` have ended.
    pub fn join(&mut self, line: u32, after: &[u32]) -> u32 {
        match after {
            [only] => *only,
            _ => self.add(Action::Calc(Span::ZERO), JOINS, line, after),
        }
    }

    /// Adds what a member of a group does in a collective operation; returns the operations that start and end it.
    pub fn collective(
        &mut self,
        collective: Collective,
        pipeline: Pipeline,
        member: &Member<'_>,
        after: &[u32],
    ) -> (u32, u32) {
        let start = match pipeline.launch {
            Span::ZERO => self.add(Action::Calc(Span::ZERO), JOINS, member.line, after),
            launch => self.add(Action::Delay(launch), JOINS, member.line, after),
        };
        let group = Group::all(member.ranks.len() as u32);
        let (mut ends, mut ops) = (Vec::new(), Vec::new());
        let mut tag = member.tag;
        let other = Mirrored::of(collective, member);
        for (channel, pieces) in pipeline.pieces(collective.bytes).into_iter().enumerate() {
            let mut ready = start;
            let member = match &other {
                Some(other) if channel % 2 == 1 => &other.member(member),
                _ => member,
            };
            for bytes in pieces {
                ops.clear();
                let piece = Collective {
                    bytes: pipeline.protocol.wire_bytes(bytes),
                    ..collective
                };
                piece.append(&mut ops, group, member.place);
                self.lag = pipeline.lag;
                let (first, last) = self.strand(&ops, &Member { tag, ..*member }, ready);
                self.lag = Span::ZERO;
                ready = first;
                ends.push(last);
                tag += 1;
            }
        }
        (start, self.join(member.line, &ends))
    }

    /// Adds operations one after the other; returns the ends of the first step and of the last one.
    pub fn strand(&mut self, ops: &[Op], member: &Member<'_>, start: u32) -> (u32, u32) {
        let &Member {
            ranks, tag, line, ..
        } = member;
        let (mut first, mut current) = (None, start);
        let mut started = Vec::new();
        for op in ops {
            let action = match *op {
                Op::Send { to, bytes, .. } => Action::Send {
                    to: ranks[to as usize],
                    bytes,
                    tag,
                },
                Op::Receive {
                    from: Some(from),
                    bytes,
                    ..
                } => Action::Receive {
                    from: Some(ranks[from as usize]),
                    bytes,
                    tag: Some(tag),
                },
                _ => {
                    if !started.is_empty() {
                        current = self.join(line, &started);
                        started.clear();
                        first.get_or_insert(current);
                    }
                    continue;
                }
            };
            if started.is_empty() && !self.lag.is_zero() {
                // Steps of other pieces wait at the same time.
                let cpu = LAGS + tag % MOST_LAGS;
                current = self.add(Action::Delay(self.lag), cpu, line, &[current]);
            }
            started.push(self.add(action, MESSAGES, line, &[current]));
        }
        (first.unwrap_or(current), current)
    }

    /// The schedule. Errors: the places of operations each of which waits for the next, and the last for the first.
    pub fn finish(self) -> Result<Schedule, Vec<u32>> {
        Schedule::new(self.ops, &self.dependencies)
    }
}

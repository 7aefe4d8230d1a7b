//! State of a rank during a run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use silvan_core::{HostId, Span, Time};

use crate::programs::detail::Step;
use crate::programs::matching::Matcher;
use crate::programs::op::{Op, Steps};
use crate::programs::schedule::Schedule;
use crate::programs::spec::Script;

/// A rank: where it is, what it does, and what has come of it.
#[derive(Debug)]
pub(crate) struct Rank {
    /// Host of the rank; the first of several adapters.
    pub host: HostId,
    /// Adapters of the rank, if it has several.
    pub rails: Box<[HostId]>,
    /// The adapter of its next message, where they take turns.
    pub next_rail: u32,
    /// Reads of other ranks' messages on their way, and messages to read after them.
    pub reads: Reads,
    pub job: u32,
    pub work: Work,
    pub matcher: Matcher,
    /// Messages sent at once that have not met their receives, by target.
    pub unmet: BTreeMap<u32, u32>,
    /// End of the last copy to a rank of the same host.
    pub copies_end: Time,
    /// End of all started computations.
    pub computes_until: Time,
    pub done_at: Option<Time>,
    pub totals: RankTotals,
    /// Time from the job's start to the rank's.
    pub delay: Span,
    /// Factor of the length of each computation; `None` is 1.
    pub compute_factor: Option<f64>,
}

/// The messages that a rank reads from others.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Reads on their way.
    pub under_way: u32,
    /// Messages that wait, in order.
    pub waiting: VecDeque<u32>,
}

/// Totals of a rank so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankTotals {
    /// Messages sent, with puts and gets.
    pub sends: u64,
    /// Bytes of the sent messages.
    pub sent_bytes: u64,
    /// Messages received.
    pub receives: u64,
    /// Time in which at least one processor computes.
    pub compute: Span,
    /// Time spent waiting for others, while no processor of the rank had a task.
    pub waiting: Span,
}

impl Rank {
    /// Returns the adapter of this number.
    pub fn adapter(&self, rail: usize) -> HostId {
        self.rails.get(rail).copied().unwrap_or(self.host)
    }

    /// Returns the time that the rank takes for a computation of this length, to the nearest picosecond.
    pub fn computing(&self, span: Span) -> Span {
        match self.compute_factor {
            None => span,
            Some(factor) => Span::from_ps((span.as_ps() as f64 * factor).round() as u64),
        }
    }

    /// Counts computing that starts at `now`. Time in which another processor computes is counted once.
    pub fn start_computing(&mut self, now: Time, span: Span) {
        let already = self.computes_until.max(now);
        self.computes_until = already.max(now + span);
        self.totals.compute += self.computes_until.since(already);
    }

    /// The totals up to `now`: computing beyond it is left out, waiting that has not ended counts.
    pub fn totals_at(&self, now: Time) -> RankTotals {
        let waiting_since = match &self.work {
            Work::Sequence(sequence) if sequence.state == State::Waiting => {
                Some(sequence.waiting_since)
            }
            Work::Schedule(run) => run.waiting_since,
            Work::Sequence(_) | Work::External => None,
        };
        let waits = waiting_since.and_then(|since| now.checked_since(since));
        let ahead = self.computes_until.checked_since(now);
        RankTotals {
            compute: (self.totals.compute).saturating_sub(ahead.unwrap_or_default()),
            waiting: self.totals.waiting + waits.unwrap_or_default(),
            ..self.totals
        }
    }
}

/// Remaining work of a rank.
#[derive(Debug)]
pub(crate) enum Work {
    Sequence(Sequence),
    Schedule(ScheduleRun),
    /// A driver decides from outside.
    External,
}

impl Work {
    pub fn new(script: Script) -> Self {
        match script {
            Script::Sequence(steps) => Self::Sequence(Sequence::new(steps)),
            Script::Schedule(schedule) => Self::Schedule(ScheduleRun::new(schedule, None)),
            Script::Loop { schedule, times } => {
                let rounds = Rounds {
                    left: times,
                    number: 0,
                    begun: Time::ZERO,
                };
                Self::Schedule(ScheduleRun::new(schedule, Some(rounds)))
            }
            Script::External => Self::External,
        }
    }
}

/// State of a sequential rank's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Taking the next operation.
    Ready,
    /// Computing, or at the overhead of a message.
    Busy,
    /// Waiting for its operations to be complete.
    Waiting,
    Done,
}

/// A rank that does one operation after the other.
#[derive(Debug)]
pub(crate) struct Sequence {
    steps: Box<dyn Steps>,
    step: u64,
    more: bool,
    buffer: Vec<Op>,
    place: usize,
    /// Operations taken so far: the number of the one at hand, from 1.
    pub taken: u32,
    pub state: State,
    /// Operations started and not complete.
    pub outstanding: u32,
    /// Overhead of received messages that has not been paid.
    pub unpaid: Span,
    /// Time at which the overhead of received messages is paid.
    pub paid_at: Time,
    pub waiting_since: Time,
    pub begun: Time,
    pub at: Step,
}

impl Sequence {
    fn new(steps: Box<dyn Steps>) -> Self {
        Self {
            steps,
            step: 0,
            more: true,
            buffer: Vec::new(),
            place: 0,
            taken: 0,
            state: State::Ready,
            outstanding: 0,
            unpaid: Span::ZERO,
            paid_at: Time::ZERO,
            waiting_since: Time::ZERO,
            begun: Time::ZERO,
            at: Step::default(),
        }
    }

    /// The operation at hand; `None` at the end.
    pub fn peek(&mut self, now: Time) -> Option<Op> {
        while self.place == self.buffer.len() {
            if !self.more {
                return None;
            }
            self.buffer.clear();
            self.place = 0;
            self.more = self.steps.step(self.step, now, &mut self.buffer);
            self.step += 1;
        }
        Some(self.buffer[self.place])
    }

    /// Goes on to the next operation.
    pub fn advance(&mut self) {
        self.place += 1;
        self.taken = self.taken.wrapping_add(1);
    }
}

/// Task of a processor of a rank with a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// An operation that computes or sends.
    Do(u32),
    /// Goes through the bytes of what an operation sends; whether the operation then ends.
    Leave(u32, bool),
    /// Takes in the message of an operation that receives, for so long.
    Receive(u32, Span),
}

/// A processor and its tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    pub queue: VecDeque<Task>,
    pub task: Option<Task>,
}

/// A rank whose operations wait for each other.
#[derive(Debug)]
pub(crate) struct ScheduleRun {
    pub schedule: Arc<Schedule>,
    /// Number of other operations that each operation still waits for.
    pub waits: Vec<u32>,
    pub cpus: Vec<Cpu>,
    /// Operations not complete.
    pub left: u32,
    /// Start and end of every operation, as far as they are known.
    pub times: Vec<(Option<Time>, Option<Time>)>,
    /// Time since when all processors are idle while operations are left.
    pub waiting_since: Option<Time>,
    /// The rounds, if it is done over and over.
    pub rounds: Option<Rounds>,
}

/// The rounds of a schedule that is done over and over.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// Rounds left, including the current round; `None` is without end.
    pub left: Option<u64>,
    /// Number of the one at hand, and when it was begun.
    pub number: u32,
    pub begun: Time,
}

impl ScheduleRun {
    fn new(schedule: Arc<Schedule>, rounds: Option<Rounds>) -> Self {
        let ops = schedule.ops().len();
        Self {
            waits: schedule.waits().to_vec(),
            cpus: vec![Cpu::default(); schedule.cpus() as usize],
            left: ops as u32,
            times: vec![(None, None); ops],
            waiting_since: None,
            rounds,
            schedule,
        }
    }

    /// Returns true if there is no work.
    pub fn is_empty(&self) -> bool {
        let no_round = self
            .rounds
            .as_ref()
            .is_some_and(|rounds| rounds.left == Some(0));
        self.left == 0 || no_round
    }

    /// Ends a round; returns when it was begun, its number, and whether another one follows.
    pub fn end_round(&mut self) -> Option<(Time, u32, bool)> {
        let rounds = self.rounds.as_mut()?;
        let (begun, number) = (rounds.begun, rounds.number);
        rounds.number = number.wrapping_add(1);
        let goes_on = match &mut rounds.left {
            None => true,
            Some(left) => {
                *left -= 1;
                *left > 0
            }
        };
        if goes_on {
            self.waits.copy_from_slice(self.schedule.waits());
            self.left = self.waits.len() as u32;
        }
        Some((begun, number, goes_on))
    }
}

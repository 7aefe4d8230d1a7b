use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use silvan_core::{HostId, Span, Time};

use crate::programs::detail::Step;
use crate::programs::matching::Matcher;
use crate::programs::op::{Op, Steps};
use crate::programs::schedule::Schedule;
use crate::programs::spec::Script;

#[derive(Debug)]
pub(crate) struct Rank {
    /// The first of several adapters.
    pub host: HostId,
    pub rails: Box<[HostId]>,
    /// Adapter of its next message, in turn.
    pub next_rail: u32,
    /// Reads in flight, and messages to read later.
    pub reads: Reads,
    pub job: u32,
    pub work: Work,
    pub matcher: Matcher,
    /// By target: messages sent at once without a matching receive.
    pub unmet: BTreeMap<u32, u32>,
    /// End of the last copy within the host.
    pub copies_end: Time,
    pub computes_until: Time,
    pub done_at: Option<Time>,
    pub totals: RankTotals,
    /// Time from the job's start to the rank's.
    pub delay: Span,
    /// Factor of the length of each computation; `None` is 1.
    pub compute_factor: Option<f64>,
    /// Works in an adapter or a switch.
    pub is_helper: bool,
    /// Time of a message in the aggregation node, for a rank in a switch.
    pub in_switch: Option<Span>,
}

#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub under_way: u32,
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
    pub fn adapter(&self, rail: usize) -> HostId {
        self.rails.get(rail).copied().unwrap_or(self.host)
    }

    /// To the nearest picosecond.
    pub fn computing(&self, span: Span) -> Span {
        match self.compute_factor {
            None => span,
            Some(factor) => Span::from_ps((span.as_ps() as f64 * factor).round() as u64),
        }
    }

    /// Overlapping computations count once.
    pub fn start_computing(&mut self, now: Time, span: Span) {
        let already = self.computes_until.max(now);
        self.computes_until = already.max(now + span);
        self.totals.compute += self.computes_until.since(already);
    }

    /// Excludes later computing, includes unfinished waiting.
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

#[derive(Debug)]
pub(crate) enum Work {
    Sequence(Sequence),
    Schedule(ScheduleRun),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Busy,
    Waiting,
    Done,
}

#[derive(Debug)]
pub(crate) struct Sequence {
    steps: Box<dyn Steps>,
    step: u64,
    more: bool,
    buffer: Vec<Op>,
    place: usize,
    /// Number of the current operation, from 1.
    pub taken: u32,
    pub state: State,
    pub outstanding: u32,
    /// Incomplete operations that end the wait.
    pub wait_for: u32,
    pub unpaid: Span,
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
            wait_for: 0,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Do(u32),
    /// Gap of a sent message's bytes; true if the operation then ends.
    Leave(u32, bool),
    /// Receives a message for this long.
    Receive(u32, Span),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    pub queue: VecDeque<Task>,
    pub task: Option<Task>,
}

#[derive(Debug)]
pub(crate) struct ScheduleRun {
    pub schedule: Arc<Schedule>,
    /// By operation: number of operations that it waits for.
    pub waits: Vec<u32>,
    pub cpus: Vec<Cpu>,
    pub left: u32,
    pub times: Vec<(Option<Time>, Option<Time>)>,
    /// Idle since, while operations are left.
    pub waiting_since: Option<Time>,
    /// For repeated schedules.
    pub rounds: Option<Rounds>,
}

#[derive(Debug)]
pub(crate) struct Rounds {
    /// Including the current round; `None` means endless.
    pub left: Option<u64>,
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

    pub fn is_empty(&self) -> bool {
        let no_round = self
            .rounds
            .as_ref()
            .is_some_and(|rounds| rounds.left == Some(0));
        self.left == 0 || no_round
    }

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

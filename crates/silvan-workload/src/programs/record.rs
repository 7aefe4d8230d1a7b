//! What programs have measured.

use silvan_core::{HostId, Span, Time};

use crate::programs::rank::{RankTotals, Work};
use crate::programs::ranks::Programs;

/// A measurement that a rank has made between [`Begin`](crate::programs::Op::Begin) and
/// [`End`](crate::programs::Op::End).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the rank over all jobs.
    pub rank: u32,
    /// Which of its job's labels.
    pub label: u16,
    /// Number of the measurement.
    pub index: u32,
    /// When it began.
    pub begin: Time,
    /// When it ended.
    pub end: Time,
}

/// Start and end of an operation of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTimes {
    /// Number of the rank over all jobs.
    pub rank: u32,
    /// Where the operation is in the schedule's text.
    pub line: u32,
    /// When it started, if it has: when it was posted, for a receive.
    pub start: Option<Time>,
    /// When it ended, if it has.
    pub end: Option<Time>,
}

/// What is known of a rank from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRecord {
    /// Number of its job.
    pub job: u32,
    /// Its number within the job.
    pub rank: u32,
    /// Where it is.
    pub host: HostId,
    /// When it came to its end, if it has.
    pub done_at: Option<Time>,
    /// What it has done.
    pub totals: RankTotals,
}

/// What is known of a job from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord<'a> {
    /// Its name.
    pub name: &'a str,
    /// Traffic class of its packets.
    pub class: u16,
    /// How many ranks it has.
    pub ranks: u32,
    /// When its ranks begin.
    pub start: Time,
    /// Whether the run may end before it does.
    pub background: bool,
    /// When it came to its end, if it has.
    pub done_at: Option<Time>,
    /// Names of what it measures.
    pub labels: &'a [String],
}

impl JobRecord<'_> {
    /// Time from the start to the end, if it has come to its end.
    pub fn completion(&self) -> Option<Span> {
        Some(self.done_at?.since(self.start))
    }
}

impl Programs {
    /// All jobs.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = JobRecord<'_>> {
        self.jobs.iter().map(|job| JobRecord {
            name: &job.name,
            class: job.class,
            ranks: job.size,
            start: job.start,
            background: job.background,
            done_at: job.done_at,
            labels: &job.labels,
        })
    }

    /// All ranks of all jobs, with their totals up to `now`.
    pub fn ranks(&self, now: Time) -> impl ExactSizeIterator<Item = RankRecord> {
        self.ranks
            .iter()
            .enumerate()
            .map(move |(number, rank)| RankRecord {
                job: rank.job,
                rank: number as u32 - self.jobs[rank.job as usize].first,
                host: rank.host,
                done_at: rank.done_at,
                totals: rank.totals_at(now),
            })
    }

    /// What the ranks have measured, in the order of time.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }
}

pub(crate) fn op_times(programs: &Programs) -> Vec<OpTimes> {
    let mut times = Vec::new();
    for (rank, state) in programs.ranks.iter().enumerate() {
        if let Work::Schedule(run) = &state.work {
            if run.rounds.is_some() {
                continue;
            }
            let ops = run.schedule.ops().iter().zip(&run.times);
            times.extend(ops.map(|(op, &(start, end))| OpTimes {
                rank: rank as u32,
                line: op.line,
                start,
                end,
            }));
        }
    }
    times
}

use silvan_core::{HostId, Span, Time};

use crate::programs::rank::{RankTotals, Work};
use crate::programs::ranks::Programs;

/// A measurement of a rank between [`Begin`](crate::programs::Op::Begin) and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the rank over all jobs.
    pub rank: u32,
    /// Index of the label within its job.
    pub label: u16,
    /// Number of the measurement.
    pub index: u32,
    /// Start time.
    pub begin: Time,
    /// End time.
    pub end: Time,
}

/// Start and end of an operation of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTimes {
    /// Number of the rank over all jobs.
    pub rank: u32,
    /// Line of the operation in the schedule's text.
    pub line: u32,
    /// Start time, if it has started; for a receive, the time of posting.
    pub start: Option<Time>,
    /// End time, if it has ended.
    pub end: Option<Time>,
}

/// Public state of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRecord {
    /// Number of its job.
    pub job: u32,
    /// Number of the rank within the job.
    pub rank: u32,
    /// Host of the rank.
    pub host: HostId,
    /// True for a rank in an adapter or a switch, which come last in a job.
    pub is_helper: bool,
    /// End time of the rank, if it has ended.
    pub done_at: Option<Time>,
    /// Totals of the rank.
    pub totals: RankTotals,
}

/// Public state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord<'a> {
    /// Name of the job.
    pub name: &'a str,
    /// Traffic class of its packets.
    pub class: u16,
    /// Number of ranks.
    pub ranks: u32,
    /// Start of the ranks.
    pub start: Time,
    /// True if the run may end before the job.
    pub background: bool,
    /// End time of the job, if it has ended.
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
            ranks: job.size - job.helpers,
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
                is_helper: rank.is_helper,
                done_at: rank.done_at,
                totals: rank.totals_at(now),
            })
    }

    /// Returns the measurements of the ranks, in the order of time.
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

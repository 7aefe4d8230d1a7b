use std::collections::BTreeMap;

use silvan_core::{Span, Time};
use silvan_model::Simulation;
use silvan_workload::programs::{
    Fault, JobPlan, JobRecord, MessageRecord, OpTimes, Programs, RankRecord, StepRecord, Work,
};

use crate::table::{Table, TableSchema};

pub(crate) enum ProgramState {
    Running,
    Finished,
    Failed(Fault),
}

pub(crate) fn program_state(programs: Option<&Programs>) -> ProgramState {
    let Some(programs) = programs else {
        return ProgramState::Running;
    };
    if let Some(fault) = programs.fault() {
        return ProgramState::Failed(fault.clone());
    }
    let waits_for_any = programs.jobs().any(|job| !job.background);
    match waits_for_any && programs.is_finished() {
        true => ProgramState::Finished,
        false => ProgramState::Running,
    }
}

/// Messages named in an error.
const NAMED: usize = 4;

/// Job and words of each message of which packets were lost, and the number of those packets.
fn lost(engine: &dyn Simulation, programs: &Programs) -> Vec<(usize, String, u64)> {
    let all = engine.lost().into_iter();
    let named = all.filter_map(|lost| {
        let ends = (lost.source, lost.destination);
        let (job, words) = programs.lost_message(ends, (lost.sl, lost.class, lost.number))?;
        Some((job, words, lost.packets))
    });
    named.collect()
}

/// Messages of each job that never arrived, because packets of them were lost.
pub(crate) fn lost_messages(engine: &dyn Simulation, programs: &Programs) -> Vec<u64> {
    let mut counts = vec![0; programs.jobs().len()];
    for (job, ..) in lost(engine, programs) {
        counts[job] += 1;
    }
    counts
}

/// The lost messages of a job, as the end of an error; empty if there are none.
pub(crate) fn name_lost(engine: &dyn Simulation, programs: &Programs, job: usize) -> String {
    let own: Vec<_> = lost(engine, programs)
        .into_iter()
        .filter(|lost| lost.0 == job)
        .collect();
    if own.is_empty() {
        return String::new();
    }
    let named = own.iter().take(NAMED);
    let named = named.map(|(_, words, packets)| format!("{packets} of {words}"));
    let named = named.collect::<Vec<_>>().join("; ");
    let more = match own.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more messages"),
    };
    format!(". Lost packets: {named}{more}")
}

fn push_ends(table: &mut Table, ends: impl Iterator<Item = Option<Time>>) {
    let ends: Vec<Option<u64>> = ends.map(|end| end.map(Time::as_ps)).collect();
    table.push(
        "finished",
        ends.iter().map(Option::is_some).collect::<Vec<_>>(),
    );
    table.push("end_ps", ends);
}

pub(crate) fn tables(
    programs: &Programs,
    plans: &[JobPlan],
    alone: &[Option<Span>],
    now: Time,
) -> Vec<Table> {
    let records: Vec<RankRecord> = programs.ranks(now).collect();
    let mut tables = vec![
        jobs(programs, &records, plans, alone),
        ranks(&records),
        marks(programs, &records),
    ];
    let times = programs.op_times();
    if !times.is_empty() {
        let (jobs, numbers) = places(&records);
        let rank = |index: usize| times[index].rank as usize;
        let all = || 0..times.len();
        let mut table = Table::new(&PROGRAM_OPS);
        table.push(
            "program",
            all().map(|op| jobs[rank(op)]).collect::<Vec<_>>(),
        );
        table.push(
            "rank",
            all().map(|op| numbers[rank(op)]).collect::<Vec<_>>(),
        );
        table.push("line", times.iter().map(|op| op.line).collect::<Vec<_>>());
        let in_ps = |read: fn(&OpTimes) -> Option<Time>| -> Vec<Option<u64>> {
            times.iter().map(|op| read(op).map(Time::as_ps)).collect()
        };
        table.push("start_ps", in_ps(|op| op.start));
        table.push("end_ps", in_ps(|op| op.end));
        tables.push(table);
    }
    tables.extend(programs.messages().map(|all| messages(&records, all)));
    tables.extend(programs.steps().map(|all| steps(&records, all)));
    tables
}

fn column<R, V>(records: &[R], read: impl Fn(&R) -> V) -> Vec<V> {
    records.iter().map(read).collect()
}

fn messages(ranks: &[RankRecord], all: &[MessageRecord]) -> Table {
    let (jobs, numbers) = places(ranks);
    let mut table = Table::new(&PROGRAM_MESSAGES);
    table.push("program", column(all, |one| jobs[one.source as usize]));
    table.push("from_rank", column(all, |one| numbers[one.source as usize]));
    table.push("to_rank", column(all, |one| numbers[one.target as usize]));
    table.push("tag", column(all, |one| one.tag));
    table.push("bytes", column(all, |one| one.bytes));
    table.push("begin_ps", column(all, |one| one.begin.as_ps()));
    table.push("end_ps", column(all, |one| one.end.as_ps()));
    table
}

fn steps(ranks: &[RankRecord], all: &[StepRecord]) -> Table {
    let (jobs, numbers) = places(ranks);
    let mut table = Table::new(&PROGRAM_STEPS);
    table.push("program", column(all, |one| jobs[one.rank as usize]));
    table.push("rank", column(all, |one| numbers[one.rank as usize]));
    table.push("step", column(all, |one| one.step));
    table.push("begin_ps", column(all, |one| one.begin.as_ps()));
    table.push("end_ps", column(all, |one| one.end.as_ps()));
    table
}

fn places(ranks: &[RankRecord]) -> (Vec<u32>, Vec<u32>) {
    ranks.iter().map(|rank| (rank.job, rank.rank)).unzip()
}

fn jobs(
    programs: &Programs,
    ranks: &[RankRecord],
    plans: &[JobPlan],
    alone: &[Option<Span>],
) -> Table {
    let mut table = Table::new(&PROGRAMS);
    table.push(
        "program",
        (0..programs.jobs().len() as u32).collect::<Vec<_>>(),
    );
    table.push(
        "name",
        programs
            .jobs()
            .map(|job| job.name.to_owned())
            .collect::<Vec<_>>(),
    );
    table.push(
        "ranks",
        programs.jobs().map(|job| job.ranks).collect::<Vec<_>>(),
    );
    let background = programs.jobs().map(|job| u32::from(job.background));
    table.push("background", background.collect::<Vec<_>>());
    let starts = programs.jobs().map(|job| job.start.as_ps());
    table.push("start_ps", starts.collect::<Vec<_>>());
    push_ends(&mut table, programs.jobs().map(|job| job.done_at));
    let completion = |job: JobRecord<'_>| Some(job.completion()?.as_ps());
    let completions: Vec<Option<u64>> = programs.jobs().map(completion).collect();
    // The benchmarks among the jobs, which come last, are not simulated alone.
    let alone = alone.iter().map(|span| span.map(Span::as_ps));
    let ideals: Vec<Option<u64>> = alone
        .chain(std::iter::repeat(None))
        .take(completions.len())
        .collect();
    let pairs = completions.iter().zip(&ideals);
    let slowdowns: Vec<Option<f64>> = pairs
        .map(|(completion, ideal)| Some((*completion)? as f64 / (*ideal)? as f64))
        .collect();
    table.push("completion_ps", completions);
    table.push("ideal_ps", ideals);
    table.push("slowdown", slowdowns);
    let rounds: Vec<Vec<Span>> = (0..programs.jobs().len())
        .map(|job| rounds(programs, ranks, job))
        .collect();
    let of = |read: fn(&Vec<Span>) -> Option<u64>| -> Vec<Option<u64>> {
        rounds.iter().map(read).collect()
    };
    let counts = rounds.iter().map(|rounds| rounds.len() as u64);
    table.push("iterations", counts.collect::<Vec<_>>());
    let sum = |rounds: &[Span]| rounds.iter().map(|span| span.as_ps()).sum::<u64>();
    let means = rounds
        .iter()
        .map(|rounds| Some(sum(rounds) as f64 / rounds.len() as f64));
    let means = means.map(|mean| mean.filter(|mean| mean.is_finite()));
    let means: Vec<Option<f64>> = means.collect();
    let bandwidths = bandwidths(programs, plans, &means);
    table.push("iteration_mean_ps", means);
    table.push(
        "iteration_max_ps",
        of(|rounds| Some(rounds.iter().max()?.as_ps())),
    );
    let shares = (0..programs.jobs().len()).map(|job| exposed_share(programs, ranks, job));
    table.push("exposed_share", shares.collect::<Vec<_>>());
    table.push(
        "algbw_gb_per_s",
        column(&bandwidths, |one| one.map(|of| of.0)),
    );
    table.push(
        "busbw_gb_per_s",
        column(&bandwidths, |one| one.map(|of| of.1)),
    );
    table
}

fn bandwidths(
    programs: &Programs,
    plans: &[JobPlan],
    means: &[Option<f64>],
) -> Vec<Option<(f64, f64)>> {
    // The benchmarks among the jobs, which come last, have no plan.
    let plans = plans.iter().map(Some).chain(std::iter::repeat(None));
    let jobs = programs.jobs().zip(plans).zip(means);
    jobs.map(|((job, plan), mean)| {
        let collective = match &plan?.work {
            Work::Collective { collective, .. } => collective,
            Work::Sharp { plan, .. } => &plan.collective,
            Work::Loops { collective, .. } => collective.as_ref()?,
            _ => return None,
        };
        let (bytes, bus_bytes) = collective.bandwidth_bytes(job.ranks)?;
        let gb_per_s = |bytes: f64| Some(bytes * 1e3 / (*mean)?);
        Some((gb_per_s(bytes)?, gb_per_s(bus_bytes)?))
    })
    .collect()
}

/// Returns the time of all ranks together for each measurement, if a job has a single label.
fn rounds(programs: &Programs, ranks: &[RankRecord], job: usize) -> Vec<Span> {
    let (jobs, _) = places(ranks);
    let is_single = programs
        .jobs()
        .nth(job)
        .is_some_and(|job| job.labels.len() == 1);
    let marks = programs.marks().iter();
    let own = marks.filter(|mark| is_single && jobs[mark.rank as usize] as usize == job);
    let mut rounds: BTreeMap<u32, (Time, Time)> = BTreeMap::new();
    for mark in own {
        let (begin, end) = rounds.entry(mark.index).or_insert((mark.begin, mark.end));
        *begin = (*begin).min(mark.begin);
        *end = (*end).max(mark.end);
    }
    rounds
        .into_values()
        .map(|(begin, end)| end.since(begin))
        .collect()
}

fn exposed_share(programs: &Programs, ranks: &[RankRecord], job: usize) -> Option<f64> {
    let start = programs.jobs().nth(job)?.start;
    let (mut all, mut compute) = (0, 0);
    let own = ranks
        .iter()
        .filter(|rank| rank.job as usize == job && !rank.is_helper);
    for rank in own {
        all += rank.done_at?.since(start).as_ps();
        compute += rank.totals.compute.as_ps();
    }
    (all > 0).then(|| 1.0 - compute as f64 / all as f64)
}

fn ranks(records: &[RankRecord]) -> Table {
    let of_hosts = records.iter().copied().filter(|rank| !rank.is_helper);
    let records = &of_hosts.collect::<Vec<_>>();
    let mut table = Table::new(&RANKS);
    table.push("program", column(records, |rank| rank.job));
    table.push("rank", column(records, |rank| rank.rank));
    table.push("host", column(records, |rank| rank.host.index() as u32));
    push_ends(&mut table, records.iter().map(|rank| rank.done_at));
    table.push("sends", column(records, |rank| rank.totals.sends));
    table.push("sent_bytes", column(records, |rank| rank.totals.sent_bytes));
    table.push("receives", column(records, |rank| rank.totals.receives));
    let compute = column(records, |rank| rank.totals.compute.as_ps());
    table.push("compute_ps", compute);
    let waiting = column(records, |rank| rank.totals.waiting.as_ps());
    table.push("waiting_ps", waiting);
    table
}

fn marks(programs: &Programs, ranks: &[RankRecord]) -> Table {
    let (jobs, numbers) = places(ranks);
    let labels: Vec<_> = programs.jobs().map(|job| job.labels).collect();
    let marks = programs.marks();
    let label =
        |rank: u32, label: u16| labels[jobs[rank as usize] as usize][usize::from(label)].clone();
    let mut table = Table::new(&PROGRAM_MARKS);
    let of_rank = |column: &[u32]| -> Vec<u32> {
        marks
            .iter()
            .map(|mark| column[mark.rank as usize])
            .collect()
    };
    table.push("program", of_rank(&jobs));
    table.push("rank", of_rank(&numbers));
    table.push(
        "label",
        marks
            .iter()
            .map(|mark| label(mark.rank, mark.label))
            .collect::<Vec<_>>(),
    );
    table.push(
        "index",
        marks.iter().map(|mark| mark.index).collect::<Vec<_>>(),
    );
    table.push(
        "begin_ps",
        marks
            .iter()
            .map(|mark| mark.begin.as_ps())
            .collect::<Vec<_>>(),
    );
    table.push(
        "end_ps",
        marks
            .iter()
            .map(|mark| mark.end.as_ps())
            .collect::<Vec<_>>(),
    );
    table
}

pub(crate) const PROGRAMS: TableSchema = TableSchema {
    name: "programs",
    rows: "One row per [program](../guide/programs.md).",
    columns: &[
        (
            &["program"],
            "Number of the program: its row in this table.",
        ),
        (&["name"], "Name of the program."),
        (&["ranks"], "Number of ranks."),
        (
            &["background"],
            "1 if the run does not wait for its end, otherwise 0.",
        ),
        (
            &["start_ps", "end_ps"],
            "Start of the program, and end of its last rank.",
        ),
        (&["finished"], "True if all ranks have ended."),
        (&["completion_ps"], "`end_ps` - `start_ps`."),
        (
            &["ideal_ps"],
            "Completion time alone in the empty fabric, without congestion control.",
        ),
        (&["slowdown"], "`completion_ps` / `ideal_ps`."),
        (&["iterations"], "Rounds that were measured."),
        (
            &["iteration_mean_ps", "iteration_max_ps"],
            "Time from the first rank's begin of a round to the last rank's end of it: mean and largest. Null without rounds.",
        ),
        (
            &["exposed_share"],
            "Share of the time of the ranks in which none of their processors computes: communication that computing does not hide. Null for a program that has not ended.",
        ),
        (
            &["algbw_gb_per_s", "busbw_gb_per_s"],
            "Bandwidths of a collective operation in GB/s as nccl-tests defines them, from `iteration_mean_ps`. `algbw` is the size of the operation per time: the vector, all parts, or the messages of a rank with its own. `busbw` is `algbw` times 2 (n - 1) / n for an allreduce, (n - 1) / n for a reduce-scatter, allgather, all-to-all, incast or scatter, 1 for a broadcast or reduction. Null for other programs.",
        ),
        (
            &["lost_messages"],
            "Messages that never arrived, because packets of them were lost. Only with `[[fault]]` that loses packets; 0 with `host.retry`.",
        ),
    ],
    has_counters: false,
};

pub(crate) const RANKS: TableSchema = TableSchema {
    name: "ranks",
    rows: "One row per rank of a program.",
    columns: &[
        (&["program"], "Row of `programs`."),
        (&["rank"], "Number of the rank."),
        (&["host"], "Row of `hosts`."),
        (&["finished"], "True if the rank has ended."),
        (&["end_ps"], "Its end."),
        (&["sends", "sent_bytes"], "Messages sent, and their bytes."),
        (&["receives"], "Messages received."),
        (
            &["compute_ps"],
            "Time in which the rank computed, on one or several processors at once, up to the end of the run.",
        ),
        (
            &["waiting_ps"],
            "Time in which the rank waited for messages and no processor of it worked, up to the end of the run.",
        ),
    ],
    has_counters: false,
};

pub(crate) const PROGRAM_MARKS: TableSchema = TableSchema {
    name: "program_marks",
    rows: "One row per measurement of a program; a collective operation is one on each rank.",
    columns: &[
        (&["program"], "Row of `programs`."),
        (&["rank"], "Number of the rank."),
        (&["label"], "Label of the measurement."),
        (
            &["index"],
            "Number of the measurement among those with this label.",
        ),
        (&["begin_ps", "end_ps"], "Start and end of the measurement."),
    ],
    has_counters: false,
};

pub(crate) const PROGRAM_OPS: TableSchema = TableSchema {
    name: "program_ops",
    rows: "One row per operation of a GOAL schedule.",
    columns: &[
        (&["program"], "Row of `programs`."),
        (&["rank"], "Number of the rank."),
        (&["line"], "Line of the schedule."),
        (&["start_ps", "end_ps"], "Start and end of the operation."),
    ],
    has_counters: false,
};

pub(crate) const PROGRAM_MESSAGES: TableSchema = TableSchema {
    name: "program_messages",
    rows: "One row per message of a program that has arrived, with `probe.messages = true`, in the order of their ends. Up to 10 million.",
    columns: &[
        (&["program"], "Row of `programs`."),
        (
            &["from_rank", "to_rank"],
            "Ranks; numbers from `ranks` of the program on are aggregation nodes (SHARP), or receivers of caches (inference).",
        ),
        (&["tag"], "Tag; 0 for puts and gets."),
        (&["bytes"], "Size."),
        (
            &["begin_ps"],
            "When the rank started to send it, or to ask for it.",
        ),
        (&["end_ps"], "When all of it had arrived."),
    ],
    has_counters: false,
};

pub(crate) const PROGRAM_STEPS: TableSchema = TableSchema {
    name: "program_steps",
    rows: "One row per step of a rank that does one operation after the other, with `probe.messages = true`: what it does between two waits for messages. Up to 10 million.",
    columns: &[
        (&["program"], "Row of `programs`."),
        (&["rank"], "Number of the rank."),
        (
            &["step"],
            "Number of the step since the last measurement began: the step of a collective operation, from 0.",
        ),
        (&["begin_ps"], "Start of its first send or receive."),
        (&["end_ps"], "End of the wait for all of them."),
    ],
    has_counters: false,
};

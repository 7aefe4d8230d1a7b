//! GOAL schedules of LogGOPSim and ATLAHS (T. Hoefler, C. Siebert and A. Lumsdaine, "Group Operation Assembly
//! Language", ICPP 2009), by the grammar of `txt2bin`.
//!
//! A `calc` takes ns. `requires` waits for the end of an operation, `irequires` for its start. `from -1` and `tag -1`
//! receive any. Operations of a rank's `cpu` follow each other; the only interface is `nic 0`. Beyond `txt2bin`, labels
//! may be used before their line, and ranks be in any order.

mod line;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use crate::programs::schedule::{Action, Dependency, Schedule, ScheduleOp};
use crate::programs::trace::{TraceError, TracePlace, first_few};
use line::{Line, statement};

/// Far more than hosts can hold, and few enough to be listed.
const MOST_RANKS: u32 = 1 << 24;

const MOST_CPUS: u32 = 256;

fn wrong(line: u32, message: impl Into<String>, hint: &'static str) -> TraceError {
    TraceError::line(line, message, hint)
}

struct Block<'a> {
    rank: u32,
    opened: u32,
    ops: Vec<ScheduleOp>,
    labels: BTreeMap<&'a str, u32>,
    /// Later label, earlier label, true if the start is enough, line.
    waits: Vec<(&'a str, &'a str, bool, u32)>,
}

const SHOWN: usize = 60;

/// Reads the ranks' schedules, or returns the first bad line, rank, label, block, or cycle.
pub fn parse(text: &str) -> Result<Vec<Arc<Schedule>>, TraceError> {
    let plain = without_comments(text);
    let mut ranks: Vec<Option<Arc<Schedule>>> = Vec::new();
    let mut declared = None;
    let mut open: Option<Block<'_>> = None;
    for (number, line) in (1..).zip(plain.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let statement = statement(line).map_err(|expected| {
            let start: String = line.chars().take(SHOWN).collect();
            let more = if start.len() < line.len() { "..." } else { "" };
            let message = format!("{start:?}{more} is not understood; expected {expected}");
            wrong(number, message, "see LogGOPSim's description of GOAL")
        })?;
        match (statement, &mut open) {
            (Line::Ranks(count), None) if declared.is_none() => {
                if count == 0 || count > MOST_RANKS {
                    let message = format!("{count} ranks: 1 to {MOST_RANKS} are supported");
                    return Err(wrong(
                        number,
                        message,
                        "write the number of ranks of the program",
                    ));
                }
                declared = Some(count);
                ranks = vec![None; count as usize];
            }
            (Line::Rank(rank), None) => {
                let slot = ranks.get(rank as usize);
                let count = ranks.len();
                match slot {
                    _ if declared.is_none() => {
                        let hint = "write num_ranks before the first rank";
                        return Err(wrong(number, "the number of ranks is not known yet", hint));
                    }
                    None => {
                        let message =
                            format!("rank {rank} is out of range: there are {count} ranks");
                        return Err(wrong(number, message, "ranks are numbered from 0"));
                    }
                    Some(Some(_)) => {
                        let message = format!("rank {rank} has a second block");
                        return Err(wrong(number, message, "join the two"));
                    }
                    Some(None) => {}
                }
                open = Some(Block {
                    rank,
                    opened: number,
                    ops: Vec::new(),
                    labels: BTreeMap::new(),
                    waits: Vec::new(),
                });
            }
            (Line::End, Some(block)) => {
                let rank = block.rank as usize;
                ranks[rank] = Some(Arc::new(close(block)?));
                open = None;
            }
            (Line::Op { nic, .. }, Some(_)) if nic > 0 => {
                let message = format!("network interface {nic} is out of range: a host has one");
                let hint = "write nic 0 or leave it out, and give each interface's ranks a host";
                return Err(wrong(number, message, hint));
            }
            (
                Line::Op {
                    label, action, cpu, ..
                },
                Some(block),
            ) => {
                add(block, ranks.len() as u32, label, action, cpu, number)?;
            }
            (
                Line::Requires {
                    later,
                    earlier,
                    start_only,
                },
                Some(block),
            ) => {
                block.waits.push((later, earlier, start_only, number));
            }
            (Line::Ranks(_), None) => {
                return Err(wrong(
                    number,
                    "num_ranks occurs a second time",
                    "leave it out",
                ));
            }
            (Line::Ranks(_) | Line::Rank(_), Some(block)) => {
                let message = format!("the block of rank {} is still open", block.rank);
                return Err(wrong(number, message, "close it with } first"));
            }
            (Line::End | Line::Op { .. } | Line::Requires { .. }, None) => {
                let hint = "open one with: rank 0 {";
                return Err(wrong(
                    number,
                    "this line is outside the block of a rank",
                    hint,
                ));
            }
        }
    }
    finish(ranks, open)
}

const TRUNCATED: &str = "the file may have been cut off";

fn finish(
    ranks: Vec<Option<Arc<Schedule>>>,
    open: Option<Block<'_>>,
) -> Result<Vec<Arc<Schedule>>, TraceError> {
    if let Some(block) = open {
        let message = format!("the block of rank {} is never closed", block.rank);
        return Err(wrong(block.opened, message, TRUNCATED));
    }
    let count = ranks.len();
    let missing = ranks.iter().position(Option::is_none);
    match missing {
        Some(rank) => Err(TraceError::new(
            TracePlace::Whole,
            format!("of {count} ranks, rank {rank} has no block"),
            TRUNCATED,
        )),
        None if count == 0 => Err(TraceError::new(
            TracePlace::Whole,
            "there is no rank in the schedule",
            "a schedule starts with num_ranks",
        )),
        None => Ok(ranks.into_iter().flatten().collect()),
    }
}

fn add<'a>(
    block: &mut Block<'a>,
    ranks: u32,
    label: Option<&'a str>,
    action: Action,
    cpu: u32,
    line: u32,
) -> Result<(), TraceError> {
    let partner = match action {
        Action::Calc(_) | Action::Delay(_) => None,
        Action::Send { to, .. } | Action::Put { to, .. } => Some(to),
        Action::Receive { from, .. } => from,
    };
    if let Some(partner) = partner {
        if partner >= ranks {
            let message = format!("rank {partner} is out of range: there are {ranks} ranks");
            return Err(wrong(line, message, "ranks are numbered from 0"));
        }
        if partner == block.rank {
            let message = format!("rank {partner} talks to itself");
            return Err(wrong(line, message, "use calc for what it does alone"));
        }
    }
    if cpu >= MOST_CPUS {
        let message = format!("processor {cpu} is out of range: a rank has {MOST_CPUS} at most");
        return Err(wrong(line, message, "processors are numbered from 0"));
    }
    let op = block.ops.len() as u32;
    if let Some(label) = label {
        if block.labels.insert(label, op).is_some() {
            let message = format!("label {label} names two operations of rank {}", block.rank);
            return Err(wrong(line, message, "give one of them another label"));
        }
    }
    block.ops.push(ScheduleOp { action, cpu, line });
    Ok(())
}

fn close(block: &mut Block<'_>) -> Result<Schedule, TraceError> {
    let mut dependencies = Vec::with_capacity(block.waits.len());
    for &(later, earlier, start_only, line) in &block.waits {
        let find = |label: &str| {
            block.labels.get(label).copied().ok_or_else(|| {
                let message = format!("rank {} has no operation labelled {label}", block.rank);
                wrong(line, message, "labels are those of the same rank")
            })
        };
        dependencies.push(Dependency {
            later: find(later)?,
            earlier: find(earlier)?,
            start_only,
        });
    }
    let lines: Vec<u32> = block.ops.iter().map(|op| op.line).collect();
    let ops = std::mem::take(&mut block.ops);
    Schedule::new(ops, &dependencies).map_err(|cycle| {
        let lines: Vec<u32> = cycle.iter().map(|op| lines[*op as usize]).collect();
        let message = format!(
            "operations of rank {} wait for each other in a cycle: lines {}",
            block.rank,
            first_few(lines.len(), lines.iter().map(u32::to_string), ", ")
        );
        wrong(lines[0], message, "remove one of the dependencies")
    })
}

/// Writes schedules as GOAL.
pub fn write(schedules: &[Arc<Schedule>]) -> String {
    let mut text = format!("num_ranks {}\n", schedules.len());
    let any = |number: Option<u32>| number.map_or("-1".to_owned(), |number| number.to_string());
    for (rank, schedule) in schedules.iter().enumerate() {
        let _ = writeln!(text, "rank {rank} {{");
        for (op, entry) in schedule.ops().iter().enumerate() {
            let action = match entry.action {
                // GOAL has neither delays nor puts; no schedule that is written here has one.
                Action::Calc(span) | Action::Delay(span) => {
                    format!("calc {}", span.as_ps() / 1000)
                }
                Action::Send { to, bytes, tag } => format!("send {bytes}b to {to} tag {tag}"),
                Action::Put { to, bytes } => format!("send {bytes}b to {to}"),
                Action::Receive { from, bytes, tag } => {
                    format!("recv {bytes}b from {} tag {}", any(from), any(tag))
                }
            };
            let _ = writeln!(text, "l{op}: {action} cpu {}", entry.cpu);
        }
        for op in 0..schedule.ops().len() as u32 {
            for later in schedule.after_end(op) {
                let _ = writeln!(text, "l{later} requires l{op}");
            }
            for later in schedule.after_start(op) {
                let _ = writeln!(text, "l{later} irequires l{op}");
            }
        }
        text.push_str("}\n");
    }
    text
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, comment) = rest.split_at(start);
        plain.push_str(before);
        let end = if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else if comment.starts_with("/*") {
            comment.find("*/").map_or(comment.len(), |end| end + 2)
        } else {
            plain.push('/');
            1
        };
        let dropped = &comment[..end];
        plain.push(' ');
        plain.extend(dropped.chars().filter(|character| *character == '\n'));
        rest = &comment[end..];
    }
    plain.push_str(rest);
    plain
}

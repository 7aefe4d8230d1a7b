use std::collections::BTreeMap;
use std::sync::Arc;

use silvan_core::Span;

use super::super::{
    COLLECTIVE_TAG, LONGEST, SHORTEN, TraceError, TracePlace, TraceSettings, check_length,
    check_places, first_few,
};
use super::{Node, NodeWork, Trace, messages};
use crate::programs::collective::{Collective, Operation};
use crate::programs::draft::{COMPUTE, Draft, HOST, MESSAGES, Member};
use crate::programs::schedule::{Action, Schedule};

pub(super) fn wrong(rank: usize, message: String, hint: &'static str) -> TraceError {
    TraceError::new(TracePlace::Whole, message, hint).in_file(rank)
}

#[derive(Clone, Copy, PartialEq)]
struct Entry {
    operation: Operation,
    bytes: u64,
    root: Option<u32>,
}

#[derive(Default)]
struct Sequence {
    entries: Vec<(Entry, u32, usize, u64)>,
    met: BTreeMap<usize, usize>,
}

pub(super) fn schedules(
    trace: &Trace,
    settings: &TraceSettings,
) -> Result<Vec<Arc<Schedule>>, TraceError> {
    let ranks = trace.ranks.len();
    if ranks == 0 {
        return Err(wrong(
            0,
            "the trace has no rank".to_owned(),
            "name the files of its ranks",
        ));
    }
    if trace.ranks.iter().all(Vec::is_empty) {
        let message = "no rank has a node".to_owned();
        return Err(wrong(0, message, "the files may have been cut off"));
    }
    check_places(ranks as u64, settings)?;
    check_groups(trace)?;
    messages::check(trace)?;
    let all: Vec<u32> = (0..ranks as u32).collect();
    let mut sequences: BTreeMap<Option<&str>, Sequence> = BTreeMap::new();
    let mut next_tag = COLLECTIVE_TAG;
    let mut drafts: Vec<Draft> = Vec::with_capacity(ranks);
    let mut ops = 0;
    let mut places = Vec::with_capacity(ranks);
    for (rank, nodes) in trace.ranks.iter().enumerate() {
        let mut draft = Draft::default();
        let mut spans = Vec::with_capacity(nodes.len());
        for (line, node) in (1..).zip(nodes) {
            let NodeWork::Collective {
                operation,
                bytes,
                group,
                root,
            } = &node.work
            else {
                let (action, cpu) =
                    simple(node, settings).map_err(|(message, hint)| wrong(rank, message, hint))?;
                let op = draft.add(action, cpu, line, &[]);
                spans.push((op, op));
                continue;
            };
            let members = members(trace, group.as_deref(), &all, rank, node)?;
            let size = members.len() as u64;
            let entry = Entry {
                operation: *operation,
                bytes: match operation {
                    Operation::Allgather => bytes.saturating_mul(size),
                    Operation::Alltoall | Operation::Scatter => bytes / size,
                    _ => *bytes,
                },
                root: *root,
            };
            let local = settings.local_members(members);
            let of_group = (members.len() as u32, local);
            let (algorithm, pipeline) = settings.method(entry.operation, entry.bytes, of_group);
            let pieces = pipeline.count(entry.bytes);
            let sequence = sequences.entry(group.as_deref()).or_default();
            let number = sequence.met.entry(rank).or_insert(0);
            let tag = match sequence.entries.get(*number) {
                Some(known) => {
                    if known.0 != entry {
                        return Err(wrong(rank, differs(rank, node, entry, known), SAME));
                    }
                    known.1
                }
                None => {
                    let tag = next_tag;
                    next_tag = u32::try_from(u64::from(tag) + pieces).map_err(|_| {
                        wrong(rank, format!("{pieces} pieces are too many"), SHORTEN)
                    })?;
                    sequence.entries.push((entry, tag, rank, node.id));
                    tag
                }
            };
            *number += 1;
            let place_of = |rank: u32| members.iter().position(|member| *member == rank);
            let root = root.map_or(Some(0), place_of).ok_or_else(|| {
                let message = format!(
                    "rank {rank}, {}: the root, {}, is no member of the group: {}",
                    node.label(),
                    root.unwrap_or(0),
                    first_of(members)
                );
                wrong(rank, message, "the root is a rank of the trace")
            })?;
            let collective = Collective {
                operation: entry.operation,
                algorithm,
                bytes: entry.bytes,
                root: root as u32,
                local,
            };
            let more = pieces.saturating_mul(collective.most_ops(members.len() as u32));
            check_length(more.saturating_add(ops + draft.len() as u64))
                .map_err(|message| wrong(rank, message, SHORTEN))?;
            let member = Member {
                ranks: members,
                place: place_of(rank as u32).unwrap_or(0) as u32,
                tag,
                line,
            };
            spans.push(draft.collective(collective, pipeline, &member, &[]));
        }
        ops += draft.len() as u64;
        drafts.push(draft);
        places.push(spans);
    }
    check_sequences(trace, &sequences, &all)?;
    let ranks = drafts
        .into_iter()
        .zip(&places)
        .zip(&trace.ranks)
        .enumerate();
    ranks
        .map(|(rank, ((draft, spans), nodes))| finish(rank, draft, spans, nodes))
        .collect()
}

const SAME: &str = "all members of a group do the same collective operations in the same order";

fn first_of(members: &[u32]) -> String {
    const NAMED: usize = 8;
    let names: Vec<String> = members.iter().take(NAMED).map(u32::to_string).collect();
    let more = if members.len() > NAMED { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}

impl Entry {
    fn label(&self) -> String {
        let name = match self.operation {
            Operation::Incast => "Gather".to_owned(),
            other => format!("{other:?}"),
        };
        format!("{name} of {} bytes", self.bytes)
    }
}

fn differs(rank: usize, node: &Node, entry: Entry, known: &(Entry, u32, usize, u64)) -> String {
    let (mut label, mut known_label) = (entry.label(), known.0.label());
    if label == known_label {
        let root = |entry: &Entry| match entry.root {
            Some(root) => format!(" with root {root}"),
            None => " without a root".to_owned(),
        };
        label += &root(&entry);
        known_label += &root(&known.0);
    }
    format!(
        "rank {rank}, {}: {label}, but node {} of rank {} in its place is {known_label}",
        node.label(),
        known.3,
        known.2,
    )
}

fn simple(node: &Node, settings: &TraceSettings) -> Result<(Action, u32), (String, &'static str)> {
    Ok(match node.work {
        NodeWork::Send { to, bytes, tag } => (Action::Send { to, bytes, tag }, MESSAGES),
        NodeWork::Receive { from, bytes, tag } => {
            let action = Action::Receive {
                from: Some(from),
                bytes,
                tag: Some(tag),
            };
            (action, MESSAGES)
        }
        NodeWork::Compute { micros, ops, host } => {
            let cpu = if host { HOST } else { COMPUTE };
            (Action::Calc(span(node, micros, ops, settings)?), cpu)
        }
        _ => (Action::Calc(Span::ZERO), HOST),
    })
}

fn span(
    node: &Node,
    micros: u64,
    ops: u64,
    settings: &TraceSettings,
) -> Result<Span, (String, &'static str)> {
    let too_long = || {
        let message = format!("{} takes longer than {LONGEST}", node.label());
        (message, "an operation computes for 20 hours at most")
    };
    if micros > 0 || ops == 0 {
        let ps = micros.checked_mul(1_000_000).map(Span::from_ps);
        return ps.filter(|span| *span <= LONGEST).ok_or_else(too_long);
    }
    let Some(rate) = settings.operations_per_second else {
        let message = format!("{} has num_ops, but no duration", node.label());
        return Err((message, "give the program operations-per-second, e.g. 3e14"));
    };
    let ps = (ops as f64 / rate * 1e12).round();
    match ps <= LONGEST.as_ps() as f64 {
        true => Ok(Span::from_ps(ps as u64)),
        false => Err(too_long()),
    }
}

fn members<'a>(
    trace: &'a Trace,
    group: Option<&str>,
    all: &'a [u32],
    rank: usize,
    node: &Node,
) -> Result<&'a [u32], TraceError> {
    let Some(name) = group else {
        return Ok(all);
    };
    let fail = |message: String| {
        let message = format!("rank {rank}, {}: {message}", node.label());
        let hint = "name a file with the groups as groups, e.g. {\"0\": [0, 1, 2, 3]}";
        Err(wrong(rank, message, hint))
    };
    match trace.groups.get(name) {
        None if name == "0" => Ok(all),
        None => fail(format!("group {name:?} of ranks is not described")),
        Some(ranks) if ranks.is_empty() => Ok(all),
        Some(ranks) if !ranks.contains(&(rank as u32)) => {
            fail(format!("the rank is no member of group {name:?}"))
        }
        Some(ranks) => Ok(ranks),
    }
}

fn check_groups(trace: &Trace) -> Result<(), TraceError> {
    let ranks = trace.ranks.len();
    for (name, members) in &trace.groups {
        let mut sorted = members.clone();
        sorted.sort_unstable();
        let fail = |message: String| {
            let hint = "list ranks of the trace, each once";
            Err(wrong(ranks, format!("group {name:?}: {message}"), hint))
        };
        if let Some(last) = sorted.last().filter(|last| **last as usize >= ranks) {
            return fail(format!(
                "rank {last} is out of range: the trace has {ranks}"
            ));
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return fail(format!("rank {} is there twice", pair[0]));
        }
    }
    Ok(())
}

/// Every member must have all collective operations of its group.
fn check_sequences(
    trace: &Trace,
    sequences: &BTreeMap<Option<&str>, Sequence>,
    all: &[u32],
) -> Result<(), TraceError> {
    for (group, sequence) in sequences {
        let named = group.and_then(|name| trace.groups.get(name));
        let members = named
            .filter(|ranks| !ranks.is_empty())
            .map_or(all, |ranks| ranks);
        for member in members {
            let met = sequence.met.get(&(*member as usize)).copied().unwrap_or(0);
            if let Some((entry, _, rank, node)) = sequence.entries.get(met) {
                let message = format!(
                    "rank {member} has no part in {}, node {node} of rank {rank}",
                    entry.label()
                );
                return Err(wrong(*member as usize, message, SAME));
            }
        }
    }
    Ok(())
}

fn finish(
    rank: usize,
    mut draft: Draft,
    spans: &[(u32, u32)],
    nodes: &[Node],
) -> Result<Arc<Schedule>, TraceError> {
    let mut by_id: BTreeMap<u64, usize> = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate() {
        if by_id.insert(node.id, place).is_some() {
            let message = format!("rank {rank}: two nodes have the id {}", node.id);
            return Err(wrong(rank, message, "give each node its own"));
        }
    }
    for (node, span) in nodes.iter().zip(spans) {
        let mut after = node.after.clone();
        after.sort_unstable();
        after.dedup();
        for id in after {
            let Some(&place) = by_id.get(&id) else {
                let message = format!(
                    "rank {rank}, {} waits for node {id}, which does not exist",
                    node.label()
                );
                return Err(wrong(rank, message, "the file may have been cut off"));
            };
            draft.wait(span.0, spans[place].1, false);
        }
    }
    draft.finish().map(Arc::new).map_err(|cycle| {
        let node = |op: &u32| spans.partition_point(|span| span.1 < *op);
        let mut turn: Vec<usize> = cycle.iter().map(node).collect();
        turn.dedup();
        if turn.len() > 1 && turn.first() == turn.last() {
            turn.pop();
        }
        let names = turn.iter().map(|node| nodes[*node].label());
        let message = format!(
            "rank {rank}: a cycle of dependencies: {}",
            first_few(turn.len(), names, " waits for ")
        );
        wrong(rank, message, "remove one of the dependencies")
    })
}

use std::collections::BTreeMap;

use silvan_core::Span;

use super::super::{LONGEST, MOST_BYTES, MOST_RANKS, TraceError, TracePlace};
use super::{CollectiveStep, Groups, Section, Step, Waiter};
use crate::programs::collective::Operation;

const COLUMNS: [&str; 4] = ["comm_type", "comm_group", "msg_size", GROUP_SIZE];
const GROUP_SIZE: &str = "comm_group_size";
const HEADER: &str =
    "a section starts with its ranks, e.g. [rank0 ~ rank127], and the names of the columns";

struct Row<'a> {
    line: u32,
    kind: &'a str,
    group: &'a str,
    size: u32,
    bytes: u64,
    root: u32,
    additional: &'a str,
    seconds: f64,
}

struct Lines<'a> {
    first: u32,
    last: u32,
    line: u32,
    lines: Vec<(u32, &'a str)>,
}

pub(super) fn is_list(text: &str) -> bool {
    let start = text.trim_start();
    let first = start.lines().next().unwrap_or("");
    start.starts_with('[') || first.split(',').any(|name| name.trim() == COLUMNS[0])
}

/// A list without ranks (AICB's micro tests) is one section of `places` ranks.
pub(super) fn read(text: &str, places: u32) -> Result<Vec<Section>, TraceError> {
    let mut sections: Vec<Lines<'_>> = Vec::new();
    let has_ranks = text.trim_start().starts_with('[');
    if !has_ranks {
        sections.push(Lines {
            first: 0,
            last: places.clamp(1, MOST_RANKS) - 1,
            line: 1,
            lines: Vec::new(),
        });
    }
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.starts_with('[') && has_ranks {
            let (first, last) = ranks(content).ok_or_else(|| {
                let message = format!("{content:?} is no range of ranks");
                TraceError::line(line, message, "write e.g. [rank0 ~ rank127], or [ pp_stage0: [rank0, rank1] ] with ranks side by side")
            })?;
            let expected = sections.last().map_or(0, |section| section.last + 1);
            if first != expected || last < first || last >= MOST_RANKS {
                let message = format!("ranks {first} to {last}: rank {expected} is next");
                return Err(TraceError::line(
                    line,
                    message,
                    "list each rank once, in order",
                ));
            }
            sections.push(Lines {
                first,
                last,
                line,
                lines: Vec::new(),
            });
        } else if !content.is_empty() {
            let Some(section) = sections.last_mut() else {
                return Err(TraceError::line(line, "the ranks are missing", HEADER));
            };
            section.lines.push((line, content));
        }
    }
    let ranks = sections.last().map_or(0, |section| section.last + 1);
    let mut rows = Vec::new();
    for section in &sections {
        let group = (!has_ranks).then_some(ranks);
        rows.push(table(section.line, &section.lines, group)?);
    }
    let sizes = sizes(rows.iter().flatten(), ranks)?;
    if sizes.pipeline > 1 {
        keep_embeddings(&mut rows)?;
    }
    let sections = sections.iter().zip(&rows);
    sections
        .map(|(section, rows)| {
            let steps = rows
                .iter()
                .filter_map(|row| match step(row, &sizes, ranks) {
                    Ok(Some(step)) => Some(Ok((row.line, step))),
                    Ok(None) => None,
                    Err(error) => Some(Err(error)),
                });
            Ok(Section {
                first: section.first,
                ranks: section.last - section.first + 1,
                steps: steps.collect::<Result<_, TraceError>>()?,
                routed: Vec::new(),
            })
        })
        .collect()
}

/// Group of a pipeline's first and last stage, which share the embedding's weights.
const EMBEDDING: &str = "embedding_group";

/// Removes operations on the embedding that only one of its two stages has, as in AICB's published lists.
fn keep_embeddings(rows: &mut [Vec<Row<'_>>]) -> Result<(), TraceError> {
    let is_there = |rows: &Vec<Row<'_>>| rows.iter().any(|row| row.group == EMBEDDING);
    let [first, middle @ .., last] = rows else {
        return Ok(());
    };
    let inner = middle.iter().flatten().find(|row| row.group == EMBEDDING);
    if let Some(row) = inner {
        let message = format!("{EMBEDDING} is in a stage that is neither the first nor the last");
        return Err(TraceError::line(row.line, message, "leave it out"));
    }
    if is_there(first) != is_there(last) {
        for rows in [first, last] {
            rows.retain(|row| row.group != EMBEDDING);
        }
    }
    Ok(())
}

pub(super) fn warning(text: &str) -> Option<String> {
    let mut counts: Vec<usize> = Vec::new();
    for line in text.lines() {
        match (line.trim_start().starts_with('['), counts.last_mut()) {
            (true, _) => counts.push(0),
            (false, Some(count)) => *count += usize::from(line.contains(EMBEDDING)),
            (false, None) => {}
        }
    }
    match counts.as_slice() {
        [first, .., last] if (*first == 0) != (*last == 0) => Some(format!(
            "{} collective operations are ignored: only one stage of their group has them",
            first + last
        )),
        _ => None,
    }
}

/// Ranks of `[rank0 ~ rank15]`, `[rank0, rank1]` or `[ pp_stage0: [rank0, rank1] ]`.
fn ranks(text: &str) -> Option<(u32, u32)> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    let rank = |text: &str| text.trim().strip_prefix("rank")?.parse::<u32>().ok();
    if let Some((name, list)) = inner.split_once(':') {
        let stage = name.trim().strip_prefix("pp_stage")?;
        stage.parse::<u32>().ok()?;
        return ranks(list.trim()).filter(|_| list.trim().starts_with('['));
    }
    if inner.contains(',') {
        let ranks: Vec<u32> = inner.split(',').map(rank).collect::<Option<_>>()?;
        let is_range = ranks
            .windows(2)
            .all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        return is_range.then_some((*ranks.first()?, *ranks.last()?));
    }
    match inner.split_once('~') {
        Some((first, last)) => Some((rank(first)?, rank(last)?)),
        None => rank(inner).map(|rank| (rank, rank)),
    }
}

fn table<'a>(
    line: u32,
    lines: &[(u32, &'a str)],
    group: Option<u32>,
) -> Result<Vec<Row<'a>>, TraceError> {
    let Some(((header_line, header), rows)) = lines.split_first() else {
        return Err(TraceError::line(line, "the section is empty", HEADER));
    };
    let names: BTreeMap<&str, usize> = header.split(',').map(str::trim).zip(0..).collect();
    let group = group.filter(|_| !names.contains_key(GROUP_SIZE));
    let needed = &COLUMNS[..COLUMNS.len() - usize::from(group.is_some())];
    if let Some(missing) = needed.iter().find(|name| !names.contains_key(**name)) {
        let message = format!("there is no column {missing:?}");
        return Err(TraceError::line(*header_line, message, HEADER));
    }
    let width = header.split(',').count();
    if names.len() != width {
        let message = "two columns have the same name";
        return Err(TraceError::line(*header_line, message, HEADER));
    }
    if rows.is_empty() {
        let message = "the section has no operation";
        let hint = "the file may have been cut off";
        return Err(TraceError::line(*header_line, message, hint));
    }
    rows.iter()
        .map(|&(line, content)| {
            let cells: Vec<&str> = content.split(',').map(str::trim).collect();
            if cells.len() != width {
                let message = format!(
                    "it has {} values, but there are {width} columns",
                    cells.len()
                );
                let hint = "the file may have been cut off";
                return Err(TraceError::line(line, message, hint));
            }
            let cell = |name: &str| names.get(name).map_or("", |place| cells[*place]);
            row(line, cell, group)
        })
        .collect()
}

fn row<'a>(
    line: u32,
    cell: impl Fn(&str) -> &'a str,
    group: Option<u32>,
) -> Result<Row<'a>, TraceError> {
    let number = |name: &str, limit: u64| match cell(name) {
        "None" | "" => Ok(0),
        text => {
            // Python writes whole numbers as 8 or 8.0.
            let value = text
                .parse::<f64>()
                .ok()
                .filter(|value| value.fract() == 0.0 && (0.0..=limit as f64).contains(value));
            value.map(|value| value as u64).ok_or_else(|| {
                let message = format!("{name} is {text:?}, not a whole number from 0 to {limit}");
                TraceError::line(line, message, "write the list again with AICB")
            })
        }
    };
    let kind = cell("comm_type");
    let kind = kind.strip_prefix("CommType.").unwrap_or(kind);
    let wrong = |message: String, hint| Err(TraceError::line(line, message, hint));
    let bytes = match (kind, cell("msg_size")) {
        ("computation", _) => 0,
        ("barrier" | "epoch_end", "None" | "") => 0,
        (_, text @ ("None" | "")) => {
            let message = format!("msg_size of {kind:?} is {text:?}");
            return wrong(message, "write the size in bytes");
        }
        _ => number("msg_size", MOST_BYTES)?,
    };
    let millis = match (kind, cell("_elapsed_time")) {
        ("computation", text) if !matches!(text, "None" | "") => text.parse::<f64>().ok(),
        _ => Some(0.0),
    };
    let Some(millis) = millis else {
        let text = cell("_elapsed_time");
        let message = format!("_elapsed_time is {text:?}, not a time in milliseconds");
        return wrong(message, "write e.g. 1.25, or None");
    };
    let root = match kind {
        "broadcast" => Some("src"),
        "reduce" => Some("dst"),
        _ => None,
    };
    let size = match group {
        Some(ranks) => u64::from(ranks),
        None => number(GROUP_SIZE, u64::from(MOST_RANKS))?,
    };
    let place = root.map_or(Ok(0), |name| number(name, u64::from(MOST_RANKS)))?;
    if let Some(name) = root.filter(|_| size > 0 && place >= size) {
        let message = format!("{name} is {place}, but the group has {size} ranks");
        return wrong(message, "it is a place in the group, from 0");
    }
    let name = cell("comm_group");
    Ok(Row {
        line,
        kind,
        group: name.strip_prefix("CommGroup.").unwrap_or(name),
        size: size as u32,
        bytes,
        root: place as u32,
        additional: cell("additional"),
        seconds: millis / 1e3,
    })
}

struct Sizes {
    tensor: u32,
    expert: u32,
    pipeline: u32,
}

fn sizes<'a>(rows: impl Iterator<Item = &'a Row<'a>>, ranks: u32) -> Result<Sizes, TraceError> {
    let mut sizes = Sizes {
        tensor: 1,
        expert: 1,
        pipeline: 1,
    };
    let mut data = 1;
    let mut sends = None;
    for row in rows {
        match row.group {
            "tp_group" => sizes.tensor = sizes.tensor.max(row.size),
            "ep_group" => sizes.expert = sizes.expert.max(row.size),
            "dp_group" => data = data.max(row.size),
            _ => {}
        }
        if matches!(row.kind, "isend" | "irecv") {
            sends = Some(row.line);
        }
    }
    let stage = u64::from(sizes.tensor) * u64::from(data);
    if let Some(line) = sends {
        if stage == 0 || u64::from(ranks) % stage != 0 || u64::from(ranks) <= stage {
            let message = format!(
                "{ranks} ranks are no pipeline of stages of {stage}: {} tensor times {data} data parallel ranks",
                sizes.tensor
            );
            let hint = "the list needs the ranks of all stages of the pipeline";
            return Err(TraceError::line(line, message, hint));
        }
        sizes.pipeline = (u64::from(ranks) / stage) as u32;
    }
    match ranks {
        0 => Err(TraceError::new(
            TracePlace::Whole,
            "there is no rank in the list",
            HEADER,
        )),
        _ => Ok(sizes),
    }
}

fn step(row: &Row<'_>, sizes: &Sizes, ranks: u32) -> Result<Option<Step>, TraceError> {
    let operation = match row.kind {
        "epoch_end" => return Ok(None),
        "computation" => {
            let span = (row.seconds * 1e12).round();
            if !(0.0..=LONGEST.as_ps() as f64).contains(&span) {
                let message = format!("a computation of {} s: 0 to {LONGEST}", row.seconds);
                return Err(TraceError::line(row.line, message, "correct _elapsed_time"));
            }
            return Ok(Some(Step::Compute(Span::from_ps(span as u64))));
        }
        "isend" | "irecv" => return neighbour(row, sizes, ranks).map(Some),
        "all_reduce" => Operation::Allreduce,
        "all_gather" | "all_gather_into_tensor" => Operation::Allgather,
        "reduce_scatter" | "reduce_scatter_tensor" => Operation::ReduceScatter,
        "all_to_all" | "all_to_all_single" => Operation::Alltoall,
        "broadcast" => Operation::Broadcast,
        "reduce" => Operation::Reduce,
        "barrier" => Operation::Barrier,
        kind => {
            let message = format!("{kind:?} is no type of communication that is known");
            let hint = "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, barrier, isend, irecv";
            return Err(TraceError::line(row.line, message, hint));
        }
    };
    let size = row.size;
    let stride = match row.group {
        "tp_group" | "ep_tp_group" | "all" => 1,
        "dp_group" | "ep_group" => sizes.tensor,
        "ep_dp_group" => sizes.tensor.saturating_mul(sizes.expert),
        EMBEDDING if sizes.pipeline > 1 => ranks - ranks / sizes.pipeline,
        "pp_group" | EMBEDDING => ranks / size.max(1),
        group => {
            let message = format!("{group:?} is no group of ranks that is known");
            let hint = "tp_group, dp_group, ep_group, ep_dp_group, ep_tp_group, pp_group, all";
            return Err(TraceError::line(row.line, message, hint));
        }
    };
    if size == 0 {
        let message = format!("a collective operation of an empty group: {:?}", row.group);
        return Err(TraceError::line(
            row.line,
            message,
            "write the size as comm_group_size",
        ));
    }
    let groups = Groups {
        size,
        stride: stride.max(1),
    };
    let is_embedding = row.group == EMBEDDING && sizes.pipeline > 1;
    if is_embedding && size != 2 {
        let message = format!("{EMBEDDING} has {size} ranks: the first and the last stage have 2");
        return Err(TraceError::line(
            row.line,
            message,
            "write 2 as comm_group_size",
        ));
    }
    if !is_embedding && !groups.divides(ranks) {
        let message = format!(
            "groups of {size} ranks at a distance of {} do not divide {ranks} ranks",
            groups.stride
        );
        return Err(TraceError::line(
            row.line,
            message,
            "correct the sizes of the groups",
        ));
    }
    Ok(Some(Step::Collective(CollectiveStep {
        operation,
        bytes: match operation {
            Operation::Alltoall => row.bytes / u64::from(size),
            _ => row.bytes,
        },
        root: row.root,
        groups,
        waiter: Waiter::Next,
        then: Span::ZERO,
    })))
}

fn neighbour(row: &Row<'_>, sizes: &Sizes, ranks: u32) -> Result<Step, TraceError> {
    let stage = i64::from(ranks / sizes.pipeline.max(1));
    let distance = match row.additional {
        "send_next" | "recv_next" => stage,
        "send_prev" | "recv_prev" => -stage,
        other => {
            let message = format!("{other:?} names no stage of the pipeline");
            let hint = "additional is send_next, recv_next, send_prev or recv_prev";
            return Err(TraceError::line(row.line, message, hint));
        }
    };
    let bytes = row.bytes;
    Ok(match row.kind {
        "isend" => Step::Send { distance, bytes },
        _ => Step::Receive { distance, bytes },
    })
}

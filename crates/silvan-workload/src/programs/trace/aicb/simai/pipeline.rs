//! The order of pipeline stages in SimAI's texts: the layers of one stage, `ga` times.
//!
//! SimAI adds a bubble of `(pp - 1)/(ga vpp)` of their time, and `2 vpp ga` messages of `pp_comm` bytes (`Layer.cc`,
//! `Layer::report`). Here stages send these in the order of that bubble (D. Narayanan et al., "Efficient Large-Scale
//! Language Model Training on GPU Clusters Using Megatron-LM", SC 2021, section 2.2).

use std::ops::Range;

use super::super::super::{TraceError, check_length};
use super::super::{Section, Step};
use super::Layer;
use super::order::Steps;
use super::parallelism::Parallelism;

const FIRST: &str = "embedding_layer";

/// Prefixes of layers after the last micro-batch in AICB's texts.
const AFTER: [&str; 2] = ["cross_entropy", "optimizer"];

pub(super) fn sections(
    parallelism: &Parallelism,
    layers: &[Layer<'_>],
) -> Result<Vec<Section>, TraceError> {
    if layers.is_empty() {
        return Ok(Vec::new());
    }
    let turns = turns(parallelism, layers)?;
    let stages = (0..parallelism.stages).map(|stage| {
        let ranks = parallelism.stage_ranks();
        Ok(Section {
            first: stage * ranks,
            ranks,
            steps: steps(parallelism, layers, &turns, stage)?,
            routed: Vec::new(),
        })
    });
    stages.collect()
}

struct Turns {
    before: Range<usize>,
    turns: Vec<(u32, Range<usize>)>,
    after: Range<usize>,
}

fn turns(parallelism: &Parallelism, layers: &[Layer<'_>]) -> Result<Turns, TraceError> {
    let (batches, parts) = (parallelism.micro_batches, parallelism.parts);
    let stages = parallelism.stages;
    let steps = 2 * (layers.len() as u64 + u64::from(batches).saturating_mul(u64::from(parts)));
    check_length(steps.saturating_mul(u64::from(stages)))
        .map_err(|message| TraceError::line(1, message, "use smaller pp, vpp and ga"))?;
    let starts: Vec<usize> = places_of(layers, FIRST).collect();
    let whole = match (starts.first(), starts.last()) {
        (Some(first), Some(last)) => {
            let mut later = (*last..layers.len()).filter(|place| {
                let name = layers[*place].name;
                AFTER.iter().any(|start| name.starts_with(start))
            });
            *first..later.next().unwrap_or(layers.len())
        }
        _ => 0..layers.len(),
    };
    let length = whole.len() / batches as usize;
    let is_whole = length > 0 && length * batches as usize == whole.len();
    let mut others = whole.clone().skip(length).zip(whole.clone());
    if !is_whole || others.any(|(place, before)| layers[place].name != layers[before].name) {
        let message = format!(
            "the layers of lines {} to {} are not {batches} times the same: ga is {batches}",
            layers[whole.start].line,
            layers[whole.end - 1].line
        );
        let hint = "ga is the number of micro-batches, whose layers have the same names";
        return Err(TraceError::line(1, message, hint));
    }
    let cuts = cuts(&layers[whole.start..whole.start + length], parts as usize);
    let mut order = Vec::new();
    // A part of the first stage continues after the last stage, so micro-batches come in groups of as many as stages.
    for group in (0..batches).step_by(stages as usize) {
        let end = batches.min(group.saturating_add(stages));
        for (part, cut) in (0..parts).zip(cuts.windows(2)) {
            for batch in group..end {
                let start = whole.start + batch as usize * length;
                order.push((part, start + cut[0]..start + cut[1]));
            }
        }
    }
    Ok(Turns {
        before: 0..whole.start,
        turns: order,
        after: whole.end..layers.len(),
    })
}

fn places_of(layers: &[Layer<'_>], name: &str) -> impl Iterator<Item = usize> {
    (0..layers.len()).filter(move |place| layers[*place].name == name)
}

/// First layers of a micro-batch's parts, and its end. Parts have equally many layers of the second name, which begins
/// a transformer's layer, if divisible.
fn cuts(layers: &[Layer<'_>], parts: usize) -> Vec<usize> {
    let name = layers.get(1).unwrap_or(&layers[0]).name;
    let starts: Vec<usize> = places_of(layers, name).collect();
    let inner = (1..parts).map(|part| match starts.len() % parts {
        0 => starts[part * (starts.len() / parts)],
        _ => part * layers.len() / parts,
    });
    [0].into_iter().chain(inner).chain([layers.len()]).collect()
}

fn steps(
    parallelism: &Parallelism,
    layers: &[Layer<'_>],
    turns: &Turns,
    stage: u32,
) -> Result<Vec<(u32, Step)>, TraceError> {
    let ranks = i64::from(parallelism.stage_ranks());
    let last = parallelism.stages - 1;
    let around = i64::from(last) * ranks;
    let bytes = parallelism.stage_bytes;
    let (to_next, to_previous) = (
        if stage == last { -around } else { ranks },
        if stage == 0 { around } else { -ranks },
    );
    let is_first = |part: u32| stage == 0 && part == 0;
    let is_last = |part: u32| stage == last && part + 1 == parallelism.parts;
    let receive = |distance: i64| Step::Receive { distance, bytes };
    let send = |distance: i64| Step::Send { distance, bytes };
    let lines = |range: &Range<usize>| {
        let first = range.start.min(layers.len() - 1);
        (
            layers[first].line,
            layers[range.end.max(first + 1) - 1].line,
        )
    };
    let mut steps = Steps::default();
    for layer in &layers[turns.before.clone()] {
        steps.part(layer.line, &layer.forward);
    }
    for (part, range) in &turns.turns {
        let (first, end) = lines(range);
        if !is_first(*part) {
            steps.steps.push((first, receive(to_previous)));
        }
        for layer in &layers[range.clone()] {
            steps.part(layer.line, &layer.forward);
        }
        if !is_last(*part) {
            steps.steps.push((end, send(to_next)));
        }
    }
    for layer in &layers[turns.after.clone()] {
        steps.part(layer.line, &layer.forward);
    }
    let backwards = |range: &Range<usize>, steps: &mut Steps| {
        let mut numbers = range.clone().rev();
        numbers.try_for_each(|number| steps.transformer_backwards(parallelism, layers, number))
    };
    backwards(&turns.after, &mut steps)?;
    for (part, range) in turns.turns.iter().rev() {
        let (first, end) = lines(range);
        if !is_last(*part) {
            steps.steps.push((end, receive(to_next)));
        }
        backwards(range, &mut steps)?;
        if !is_first(*part) {
            steps.steps.push((first, send(to_previous)));
        }
    }
    backwards(&turns.before, &mut steps)?;
    Ok(steps.steps)
}

//! SimAI's text: a line on the parallelism, the number of layers, and a line for each layer.
//!
//! A layer has a name, a number that is not used, and for each of the forward pass, the gradients of inputs and the gradients of
//! weights a time in nanoseconds, a collective operation and its bytes; at its end the time of the update. A step runs
//! the layers forwards, then backwards: of each, first the gradients of inputs, then those of weights. The latters'
//! collective operations go on while earlier layers compute.

use silvan_core::Span;

use super::super::{LONGEST, MOST_BYTES, MOST_RANKS, TraceError, TracePlace};
use super::{CollectiveStep, Groups, Section, Step};
use crate::programs::collective::Operation;

const HINT: &str = "see SimAI's description of workload files";

/// What the first line says of the ranks.
struct Parallelism {
    ranks: u32,
    tensor: u32,
    expert: u32,
    /// Whether all ranks are data parallel.
    is_data: bool,
}

/// Which ranks a layer's operation joins where its name does not say so.
#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Inputs,
    Weights,
}

/// Reads the only section. `places` is the number of ranks where the file does not say it.
pub(super) fn read(text: &str, places: u32) -> Result<Section, TraceError> {
    let mut lines = (1..).zip(text.lines());
    let Some((_, first)) = lines.next() else {
        return Err(TraceError::new(
            TracePlace::Whole,
            "the file is empty",
            HINT,
        ));
    };
    let parallelism = parallelism(first, places)?;
    let count = lines
        .next()
        .and_then(|(_, line)| line.trim().parse::<usize>().ok());
    let Some(count) = count else {
        return Err(TraceError::line(2, "the number of layers is missing", HINT));
    };
    let mut layers = Vec::new();
    for (line, content) in lines {
        if !content.trim().is_empty() {
            layers.push((line, layer(line, content, &parallelism)?));
        }
    }
    if layers.len() != count {
        let message = format!(
            "{count} layers are announced, but the file has {}",
            layers.len()
        );
        return Err(TraceError::line(
            2,
            message,
            "the file may have been cut off",
        ));
    }
    let mut steps = Vec::new();
    for (line, layer) in &layers {
        steps.extend(layer.forward.iter().map(|step| (*line, *step)));
    }
    for (line, layer) in layers.iter().rev() {
        steps.extend(layer.inputs.iter().map(|step| (*line, *step)));
        steps.extend(layer.weights.iter().map(|step| (*line, *step)));
    }
    Ok(Section {
        first: 0,
        ranks: parallelism.ranks,
        steps,
    })
}

fn parallelism(text: &str, places: u32) -> Result<Parallelism, TraceError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let value = |key: &str| -> Result<Option<u32>, TraceError> {
        let Some(place) = words
            .iter()
            .position(|word| word.trim_end_matches(':') == key)
        else {
            return Ok(None);
        };
        let word = words.get(place + 1).copied().unwrap_or("");
        word.parse()
            .map(Some)
            .map_err(|_| TraceError::line(1, format!("{key} is {word:?}, not a number"), HINT))
    };
    let is_data = match words.first().copied() {
        Some("DATA") => true,
        Some("HYBRID_TRANSFORMER" | "HYBRID_TRANSFORMER_FWD_IN_BCKWD") => false,
        other => {
            let message = format!("{:?} is no parallelism that is read", other.unwrap_or(""));
            let hint = "DATA, HYBRID_TRANSFORMER or HYBRID_TRANSFORMER_FWD_IN_BCKWD";
            return Err(TraceError::line(1, message, hint));
        }
    };
    for key in ["checkpoints", "checkpoint_initiates"] {
        if value(key)?.is_some_and(|count| count > 0) {
            let message = format!("{key}: layers that are computed twice are not read");
            return Err(TraceError::line(
                1,
                message,
                "write the file without recomputation",
            ));
        }
    }
    if value("pp")?.is_some_and(|stages| stages > 1) {
        let hint = "use AICB's list, with a section for each stage";
        return Err(TraceError::line(
            1,
            "stages of a pipeline are not read",
            hint,
        ));
    }
    let tensor = value("model_parallel_NPU_group")?.unwrap_or(1);
    let parallelism = Parallelism {
        ranks: value("all_gpus")?.unwrap_or(places),
        tensor,
        expert: value("ep")?.unwrap_or(1),
        is_data,
    };
    let ranks = parallelism.ranks;
    if ranks == 0 || ranks > MOST_RANKS {
        let message = format!("{ranks} ranks: 1 to {MOST_RANKS} are supported");
        return Err(TraceError::line(1, message, "correct all_gpus"));
    }
    let groups = u64::from(tensor) * u64::from(parallelism.expert);
    if groups == 0 || u64::from(ranks) % groups != 0 {
        let message = format!(
            "{ranks} ranks are not divided by {tensor} tensor times {} expert parallel ranks",
            parallelism.expert
        );
        return Err(TraceError::line(
            1,
            message,
            "write all_gpus, or give the program as many places",
        ));
    }
    Ok(parallelism)
}

/// The steps of a layer.
struct Layer {
    forward: Vec<Step>,
    inputs: Vec<Step>,
    weights: Vec<Step>,
}

fn layer(line: u32, text: &str, parallelism: &Parallelism) -> Result<Layer, TraceError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() < 12 {
        let message = format!("a layer has 12 values, but this one {}", words.len());
        return Err(TraceError::line(
            line,
            message,
            "the file may have been cut off",
        ));
    }
    let span = |place: usize| {
        let ns = words[place].parse::<u64>().ok();
        ns.filter(|ns| *ns <= LONGEST.as_ps() / 1000)
            .map(Span::from_ns)
            .ok_or_else(|| {
                let message = format!(
                    "{:?} is no time in nanoseconds, at most {LONGEST}",
                    words[place]
                );
                TraceError::line(line, message, HINT)
            })
    };
    let pass = |place: usize, pass: Pass, then: Span| -> Result<Vec<Step>, TraceError> {
        let compute = Step::Compute(span(place)?);
        let bytes = words[place + 2].parse::<u64>().ok();
        let Some(bytes) = bytes.filter(|bytes| *bytes <= MOST_BYTES) else {
            let message = format!("{:?} is no size from 0 to {MOST_BYTES}", words[place + 2]);
            return Err(TraceError::line(line, message, HINT));
        };
        let Some((operation, groups)) = communication(line, words[place + 1], pass, parallelism)?
        else {
            return Ok(vec![compute]);
        };
        let bytes = match operation {
            Operation::Alltoall => bytes / u64::from(groups.size),
            _ => bytes,
        };
        let collective = Step::Collective(CollectiveStep {
            operation,
            bytes,
            root: 0,
            groups,
            blocks: pass == Pass::Inputs,
            then,
        });
        Ok(vec![compute, collective])
    };
    Ok(Layer {
        forward: pass(2, Pass::Inputs, Span::ZERO)?,
        inputs: pass(5, Pass::Inputs, Span::ZERO)?,
        weights: pass(8, Pass::Weights, span(11)?)?,
    })
}

/// The operation and the groups that a word such as `ALLREDUCE_EP` stands for.
fn communication(
    line: u32,
    word: &str,
    pass: Pass,
    parallelism: &Parallelism,
) -> Result<Option<(Operation, Groups)>, TraceError> {
    let (name, suffix) = word.split_once('_').unwrap_or((word, ""));
    let operation = match name {
        "NONE" => return Ok(None),
        "ALLREDUCE" => Operation::Allreduce,
        "ALLGATHER" => Operation::Allgather,
        "REDUCESCATTER" => Operation::ReduceScatter,
        "ALLTOALL" => Operation::Alltoall,
        "BROADCAST" => Operation::Broadcast,
        _ => {
            let message = format!("{word:?} is no communication that is known");
            let hint = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST";
            return Err(TraceError::line(line, message, hint));
        }
    };
    let &Parallelism {
        ranks,
        tensor,
        expert,
        is_data,
    } = parallelism;
    let groups = |size: u32, stride: u32| Groups { size, stride };
    let groups = match (suffix, pass) {
        _ if is_data => groups(ranks, 1),
        ("", Pass::Inputs) => groups(tensor, 1),
        ("", Pass::Weights) => groups(ranks / tensor, tensor),
        ("EP", _) => groups(expert, tensor),
        ("DP_EP", _) => groups(ranks / (tensor * expert), tensor * expert),
        _ => {
            let message = format!("{word:?} names no group of ranks that is known");
            return Err(TraceError::line(
                line,
                message,
                "write e.g. ALLREDUCE_EP or ALLREDUCE_DP_EP",
            ));
        }
    };
    Ok(Some((operation, groups)))
}

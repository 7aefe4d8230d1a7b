//! The text of SimAI and ASTRA-sim 1.0: parallelism, number of layers, and a line per layer.
//!
//! A layer has a name, a number, three passes (forward, gradients of inputs and weights) with ns, operation and bytes,
//! and the update. [`order`] follows `Workload.cc`; [`pipeline`] orders stages (SimAI's `pp`).

mod order;
mod parallelism;
mod pipeline;

use silvan_core::Span;

use super::super::{LONGEST, MOST_BYTES, TraceError, TracePlace, TraceSettings};
use super::{CollectiveStep, Section, Waiter};
use crate::programs::collective::Operation;
use parallelism::{Parallelism, Pass, Policy};

/// First layers of AICB's texts for SimAI. Nothing else distinguishes its micro tests, and texts without the key
/// `all_gpus`, from ASTRA-sim's.
const AICB: [&str; 5] = [
    "norm",
    "grad_gather",
    "grad_norm",
    "micro_test",
    "Llama_layer1",
];

const HINT: &str = "see SimAI's description of workload files";

pub(super) fn read(text: &str, settings: &TraceSettings) -> Result<Vec<Section>, TraceError> {
    let mut lines = (1..).zip(text.lines());
    let Some((_, first)) = lines.next() else {
        return Err(TraceError::new(
            TracePlace::Whole,
            "the file is empty",
            HINT,
        ));
    };
    let mut parallelism = Parallelism::read(first, settings)?;
    let count = lines
        .next()
        .and_then(|(_, line)| line.trim().parse::<usize>().ok());
    let Some(count) = count else {
        return Err(TraceError::line(2, "the number of layers is missing", HINT));
    };
    let mut layers = Vec::new();
    for (line, content) in lines {
        let name = content.split_whitespace().next();
        parallelism.is_simai |= layers.is_empty() && name.is_some_and(|name| AICB.contains(&name));
        if name.is_some() {
            layers.push(layer(line, content, layers.len(), &parallelism)?);
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
    if parallelism.stages > 1 {
        return pipeline::sections(&parallelism, &layers);
    }
    Ok(vec![Section {
        first: 0,
        ranks: parallelism.ranks,
        steps: order::steps(&parallelism, &layers)?,
        routed: Vec::new(),
    }])
}

pub(super) fn warnings(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or("");
    let name = head.split_whitespace().next();
    let Some(policy) = name.and_then(Policy::named) else {
        return Vec::new();
    };
    let layers = lines.skip(1).filter(|line| !line.trim().is_empty());
    let ignored = layers.enumerate().map(|(number, content)| {
        let words: Vec<&str> = content.split_whitespace().collect();
        let scope = policy.of_layer(number, words.get(12).copied());
        let passes = PLACES.iter().filter(|(pass, place)| {
            let word = |place: usize| words.get(place).copied().unwrap_or("");
            let is_given = !matches!(word(place + 1), "" | "NONE") && word(place + 2) != "0";
            let is_read = scope.is_some_and(|scope| scope.has_group(*pass))
                && policy.issues(*pass, number, word(place + 1));
            is_given && !is_read
        });
        passes.count()
    });
    let mut warnings = Vec::new();
    match ignored.sum::<usize>() {
        0 => {}
        count => warnings.push(format!(
            "{count} collective operations are ignored: the parallelism of the file does not have them"
        )),
    }
    let is_empty = Parallelism::parse(head, 1, 1)
        .is_ok_and(|parallelism| parallelism.stages > 1 && parallelism.stage_bytes == 0);
    if is_empty {
        let warning =
            "the stages of the pipeline send each other empty messages: there is no pp_comm";
        warnings.push(warning.to_owned());
    }
    warnings
}

const PLACES: [(Pass, usize); 3] = [(Pass::Forward, 2), (Pass::Inputs, 5), (Pass::Weights, 8)];

struct Part {
    span: Span,
    collective: Option<CollectiveStep>,
}

struct Layer<'a> {
    line: u32,
    name: &'a str,
    forward: Part,
    inputs: Part,
    weights: Part,
}

fn layer<'a>(
    line: u32,
    text: &'a str,
    number: usize,
    parallelism: &Parallelism,
) -> Result<Layer<'a>, TraceError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let values = match parallelism.policy {
        Policy::Customized => 13,
        _ => 12,
    };
    if words.len() < values {
        let message = format!("a layer has {values} values, but this one {}", words.len());
        return Err(TraceError::line(
            line,
            message,
            "the file may have been cut off",
        ));
    }
    let scope = parallelism
        .policy
        .of_layer(number, words.get(12).copied())
        .ok_or_else(|| {
            let message = format!("{:?} is no parallelism of a layer", words[12]);
            TraceError::line(line, message, parallelism::KNOWN)
        })?;
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
    let part = |(pass, place): (Pass, usize), then: Span| -> Result<Part, TraceError> {
        let span = span(place)?;
        let bytes = words[place + 2].parse::<u64>().ok();
        let Some(bytes) = bytes.filter(|bytes| *bytes <= MOST_BYTES) else {
            let message = format!("{:?} is no size from 0 to {MOST_BYTES}", words[place + 2]);
            return Err(TraceError::line(line, message, HINT));
        };
        let word = words[place + 1];
        let known = parallelism.communication(line, word, pass, scope)?;
        let known = known.filter(|_| parallelism.policy.issues(pass, number, word));
        let Some((operation, groups)) = known else {
            let collective = None;
            return Ok(Part { span, collective });
        };
        let bytes = match operation {
            Operation::Alltoall => bytes / u64::from(groups.size),
            Operation::Allgather if !parallelism.is_simai => bytes * u64::from(groups.size),
            _ => bytes,
        };
        if bytes > MOST_BYTES {
            let message = format!("an allgather of {bytes} bytes: at most {MOST_BYTES}");
            let hint = "ASTRA-sim's size is the part of a rank, SimAI's (with all_gpus) the whole";
            return Err(TraceError::line(line, message, hint));
        }
        let collective = Some(CollectiveStep {
            operation,
            bytes,
            root: 0,
            groups,
            waiter: match pass {
                Pass::Weights => Waiter::End,
                Pass::Forward | Pass::Inputs => Waiter::Next,
            },
            then,
        });
        Ok(Part { span, collective })
    };
    let [forward, inputs, weights] = PLACES;
    Ok(Layer {
        line,
        name: words[0],
        forward: part(forward, Span::ZERO)?,
        inputs: part(inputs, Span::ZERO)?,
        weights: part(weights, span(11)?)?,
    })
}

use silvan_core::Span;

use super::super::super::TraceError;
use super::super::{CollectiveStep, Step, Waiter};
use super::parallelism::{Parallelism, Policy};
use super::{Layer, Part};

#[derive(Default)]
pub(super) struct Steps {
    pub steps: Vec<(u32, Step)>,
}

impl Steps {
    fn compute(&mut self, line: u32, span: Span) {
        self.steps.push((line, Step::Compute(span)));
    }

    fn collective(&mut self, line: u32, collective: Option<CollectiveStep>) {
        let collective = collective.map(|collective| (line, Step::Collective(collective)));
        self.steps.extend(collective);
    }

    /// Computes, then does the collective operation.
    pub fn part(&mut self, line: u32, part: &Part) {
        self.compute(line, part.span);
        self.collective(line, part.collective);
    }

    /// A transformer's backward pass through a layer: gradients of weights wait for operations on inputs.
    pub fn transformer_backwards(
        &mut self,
        parallelism: &Parallelism,
        layers: &[Layer<'_>],
        number: usize,
    ) -> Result<(), TraceError> {
        recompute(self, parallelism, layers, number)?;
        let layer = &layers[number];
        self.part(layer.line, &layer.inputs);
        self.part(layer.line, &layer.weights);
        Ok(())
    }
}

pub(super) fn steps(
    parallelism: &Parallelism,
    layers: &[Layer<'_>],
) -> Result<Vec<(u32, Step)>, TraceError> {
    let mut steps = Steps::default();
    let backwards = || layers.iter().enumerate().rev();
    match parallelism.policy {
        Policy::Micro => {
            for layer in layers {
                steps.collective(layer.line, layer.weights.collective);
            }
        }
        Policy::Dlrm => dlrm(&mut steps, parallelism, layers)?,
        policy => {
            for layer in layers {
                steps.part(layer.line, &layer.forward);
            }
            match policy {
                Policy::Inference => {}
                Policy::Data => {
                    for (number, layer) in backwards() {
                        steps.part(layer.line, &layer.weights);
                        // No layer needs the gradients of the first layer's inputs.
                        if number > 0 {
                            steps.compute(layer.line, layer.inputs.span);
                        }
                    }
                }
                Policy::Transformer | Policy::Recomputing => {
                    for number in (0..layers.len()).rev() {
                        steps.transformer_backwards(parallelism, layers, number)?;
                    }
                }
                _ => {
                    for (_, layer) in backwards() {
                        steps.compute(layer.line, layer.inputs.span);
                        steps.collective(layer.line, joined(layer.inputs.collective));
                        steps.part(layer.line, &layer.weights);
                        steps.steps.push((layer.line, Step::Join));
                    }
                }
            }
        }
    }
    Ok(steps.steps)
}

fn joined(collective: Option<CollectiveStep>) -> Option<CollectiveStep> {
    collective.map(|collective| CollectiveStep {
        waiter: Waiter::Join,
        ..collective
    })
}

/// The first layer's all-to-alls run beside the bottom layers.
fn dlrm(
    steps: &mut Steps,
    parallelism: &Parallelism,
    layers: &[Layer<'_>],
) -> Result<(), TraceError> {
    let last = parallelism.last_bottom;
    if last >= layers.len() {
        let message = format!(
            "DLRM_LAST_BOTTOM_LAYER is {last}, but there are {} layers",
            layers.len()
        );
        return Err(TraceError::line(1, message, "layers are numbered from 0"));
    }
    for (number, layer) in layers.iter().enumerate() {
        steps.compute(layer.line, layer.forward.span);
        steps.collective(layer.line, joined(layer.forward.collective));
        if number == last && layer.forward.collective.is_none() {
            steps.steps.push((layer.line, Step::Join));
        }
    }
    for (number, layer) in layers.iter().enumerate().rev() {
        steps.part(layer.line, &layer.weights);
        if number > 0 {
            steps.compute(layer.line, layer.inputs.span);
        }
        if number == last + 1 {
            let first = &layers[0];
            steps.collective(first.line, joined(first.inputs.collective));
        }
    }
    Ok(())
}

/// Repeats forward passes from the last checkpoint to the layer before an initiating one.
fn recompute(
    steps: &mut Steps,
    parallelism: &Parallelism,
    layers: &[Layer<'_>],
    number: usize,
) -> Result<(), TraceError> {
    let Parallelism {
        checkpoints,
        initiates,
        ..
    } = parallelism;
    if !initiates.contains(&number) {
        return Ok(());
    }
    let start = checkpoints.range(..number).next_back();
    let Some(&start) = start.filter(|_| !checkpoints.contains(&number)) else {
        let message =
            format!("checkpoint_initiates has layer {number}, before which is no checkpoint");
        let hint = "a layer that initiates comes after its checkpoint; layers are numbered from 0";
        return Err(TraceError::line(1, message, hint));
    };
    if let Some(between) = initiates.range(start + 1..number).next() {
        let message =
            format!("checkpoint_initiates has layers {between} and {number} after one checkpoint");
        let hint = "write a checkpoint between them";
        return Err(TraceError::line(1, message, hint));
    }
    for layer in &layers[start..number] {
        steps.part(layer.line, &layer.forward);
    }
    Ok(())
}

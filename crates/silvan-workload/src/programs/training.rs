//! A step of training a transformer as in Megatron-LM, by the numbers of the model; volumes are AICB's.
//!
//! Ranks are in Megatron's order: tensor parallel, then expert and data parallel, then pipeline stages.

use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::Span;

use crate::programs::collective::Operation;
use crate::programs::schedule::Schedule;
use crate::programs::trace::aicb::{CollectiveStep, Groups, Section, Step, Waiter, build};
use crate::programs::trace::{LONGEST, MOST_BYTES, MOST_OPS, TraceSettings};
use crate::traffic::rng::{Purpose, shuffle, stream};

const HALF: u64 = 2;
const SINGLE: u64 = 4;
/// A rank's part of the vocabulary is a multiple of this.
const VOCABULARY_UNIT: u64 = 128;
const MOST: u64 = 1 << 24;

/// A transformer and how its training is distributed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainingModel {
    /// Layers.
    pub layers: u32,
    /// Width of the model.
    pub hidden: u32,
    /// Tokens of a sequence.
    pub sequence: u32,
    /// Width of the layers' inner part. Default: four times `hidden`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward: Option<u32>,
    /// Words of the vocabulary, rounded up to a multiple of 128 for each tensor parallel rank.
    #[serde(default = "vocabulary")]
    pub vocabulary: u32,
    /// Sequences that a rank has at once.
    #[serde(default = "one")]
    pub micro_batch: u32,
    /// Micro-batches of each data parallel rank in a step.
    #[serde(default = "one")]
    pub micro_batches: u32,
    /// Tensor parallel ranks.
    #[serde(default = "one")]
    pub tensor: u32,
    /// Stages of the pipeline (1F1B). Where they do not divide `layers`, the first and the last have one layer less, then
    /// the ones beside them (Llama Team, "The Llama 3 herd of models", 2024).
    #[serde(default = "one")]
    pub pipeline: u32,
    /// Data parallel ranks. Default: as many as places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<u32>,
    /// Experts of each layer; 1 for none.
    #[serde(default = "one")]
    pub experts: u32,
    /// Expert parallel ranks; they divide the data parallel ones.
    #[serde(default = "one")]
    pub expert: u32,
    /// Experts that each token goes to.
    #[serde(default = "one")]
    pub top_k: u32,
    /// Share of the tokens that each expert gets, in all layers; shares are divided by their sum. Default: equal shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_shares: Option<Vec<f64>>,
    /// Exponent of Zipf's law, 0 to 10, by which shares of experts are drawn in each layer; not with `expert-shares`. The most
    /// popular expert gets 2^exponent times the tokens of the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub expert_zipf: Option<f64>,
    /// Seed of the order of experts by popularity; the same for all seeds of a run.
    #[serde(default)]
    pub expert_seed: u64,
    /// ZeRO stage: 0 reduces gradients to all ranks. 1 and 2 reduce them to the rank that updates a weight, which then
    /// sends it to all ranks. 3 gathers the weights of a layer when it is used.
    #[serde(default = "zero_one")]
    #[schemars(range(max = 3))]
    pub zero: u8,
}

fn one() -> u32 {
    1
}

fn zero_one() -> u8 {
    1
}

fn vocabulary() -> u32 {
    50_257
}

/// Numbers of a model that do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// The key at fault.
    pub key: &'static str,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

struct Training<'a> {
    model: &'a TrainingModel,
    data: u32,
    /// In operations per second; `None` computes nothing.
    speed: Option<f64>,
}

#[derive(Default)]
struct Writer {
    steps: Vec<(u32, Step)>,
}

impl Writer {
    fn compute(&mut self, span: Span) {
        if !span.is_zero() {
            self.steps.push((0, Step::Compute(span)));
        }
    }

    fn collective(&mut self, operation: Operation, bytes: u64, groups: Groups) {
        if groups.size > 1 {
            let step = CollectiveStep {
                operation,
                bytes,
                root: 0,
                groups,
                waiter: Waiter::Next,
                then: Span::ZERO,
            };
            self.steps.push((0, Step::Collective(step)));
        }
    }

    fn send(&mut self, distance: i64, bytes: u64) {
        self.steps.push((0, Step::Send { distance, bytes }));
    }

    fn receive(&mut self, distance: i64, bytes: u64) {
        self.steps.push((0, Step::Receive { distance, bytes }));
    }
}

impl TrainingModel {
    /// All ranks' schedules for a step, which wait for operation 0; an unfit number or too long a step is an error.
    pub fn schedules(&self, settings: &TraceSettings) -> Result<Vec<Arc<Schedule>>, ModelError> {
        let training = self.on(settings)?;
        let sections: Vec<Section> = (0..self.pipeline)
            .map(|stage| training.stage(stage))
            .collect();
        build(&sections, settings).map_err(|_| self.too_long())
    }

    fn too_long(&self) -> ModelError {
        let key = match self.layers / self.pipeline >= self.micro_batches {
            true => "layers",
            false => "micro-batches",
        };
        let message = format!("a step has more than {MOST_OPS} operations of all ranks");
        let hint =
            "use fewer layers, micro-batches or ranks, or larger chunks in traffic.collective";
        let hint = hint.to_owned();
        ModelError { key, message, hint }
    }

    fn on(&self, settings: &TraceSettings) -> Result<Training<'_>, ModelError> {
        let fail = |key, message: String, hint: String| Err(ModelError { key, message, hint });
        let numbers = [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("sequence", self.sequence),
            ("feed-forward", self.feed_forward.unwrap_or(1)),
            ("vocabulary", self.vocabulary),
            ("micro-batch", self.micro_batch),
            ("micro-batches", self.micro_batches),
            ("tensor", self.tensor),
            ("pipeline", self.pipeline),
            ("data", self.data.unwrap_or(1)),
            ("experts", self.experts),
            ("expert", self.expert),
            ("top-k", self.top_k),
        ];
        let wrong = numbers
            .iter()
            .find(|(_, n)| !(1..=MOST).contains(&u64::from(*n)));
        if let Some((key, number)) = wrong {
            return fail(
                key,
                format!("{number}: 1 to {MOST} are supported"),
                "write e.g. 8".to_owned(),
            );
        }
        if self.zero > 3 {
            let message = format!("there is no ZeRO stage {}", self.zero);
            return fail("zero", message, "write 0, 1, 2 or 3".to_owned());
        }
        let divides = |key, part: u32, name: &str, whole: u32| {
            if whole % part == 0 {
                return Ok(());
            }
            let message = format!("{part} does not divide {name}, {whole}");
            let hint = "choose a divisor".to_owned();
            Err(ModelError { key, message, hint })
        };
        divides("tensor", self.tensor, "hidden", self.hidden)?;
        divides("tensor", self.tensor, "feed-forward", self.inner())?;
        if self.pipeline > self.layers {
            let message = format!("{} stages for {} layers", self.pipeline, self.layers);
            return fail(
                "pipeline",
                message,
                "use at most a stage for each layer".to_owned(),
            );
        }
        divides("expert", self.expert, "experts", self.experts)?;
        if self.top_k > self.experts {
            let message = format!(
                "{} experts for a token, but there are {}",
                self.top_k, self.experts
            );
            return fail("top-k", message, "choose at most `experts`".to_owned());
        }
        let replica = u64::from(self.tensor) * u64::from(self.pipeline);
        let places = u64::from(settings.places);
        let data = match self.data {
            Some(data) => u64::from(data),
            None if places % replica == 0 => places / replica,
            None => {
                let message = format!(
                    "{places} places are no multiple of {replica} ranks, {} tensor parallel ones in {} stages",
                    self.tensor, self.pipeline
                );
                return fail(
                    "data",
                    message,
                    "give the number of data parallel ranks".to_owned(),
                );
            }
        };
        if replica * data > places || data == 0 {
            let message = format!(
                "{} ranks do not fit on {places} places",
                replica * data.max(1)
            );
            return fail(
                "data",
                message,
                "add hosts, or more ranks per host".to_owned(),
            );
        }
        let data = data as u32;
        divides("expert", self.expert, "the data parallel ranks", data)?;
        self.check_shares()?;
        let training = Training {
            model: self,
            data,
            speed: settings.operations_per_second,
        };
        let bytes = training.largest();
        if bytes > u128::from(MOST_BYTES) {
            let message = format!("an operation has {bytes} bytes: {MOST_BYTES} are supported");
            return fail("hidden", message, "make the model smaller".to_owned());
        }
        if training.least_operations() > u128::from(MOST_OPS) {
            return Err(self.too_long());
        }
        if training.longest() > LONGEST.as_ps() as f64 {
            let message = "a computation lasts longer than 20 hours".to_owned();
            return fail("hidden", message, "raise operations-per-second".to_owned());
        }
        Ok(training)
    }

    fn check_shares(&self) -> Result<(), ModelError> {
        let fail = |key, message: String, hint: &str| {
            let hint = hint.to_owned();
            Err(ModelError { key, message, hint })
        };
        if let Some(shares) = &self.expert_shares {
            let (count, experts) = (shares.len(), self.experts);
            if count != experts as usize {
                let message = format!("{count} shares for {experts} experts");
                return fail("expert-shares", message, "give a share for each expert");
            }
            let is_share = |share: &f64| (0.0..=1e9).contains(share);
            if !shares.iter().all(is_share) || shares.iter().sum::<f64>() <= 0.0 {
                let message = "shares are from 0 to 1e9, and not all 0".to_owned();
                return fail("expert-shares", message, "write e.g. [2, 1, 1, 1]");
            }
            if self.expert_zipf.is_some() {
                let message = "shares are given, too".to_owned();
                return fail("expert-zipf", message, "use expert-shares or expert-zipf");
            }
        }
        match self.expert_zipf {
            Some(zipf) if !(0.0..=10.0).contains(&zipf) => {
                let message = format!("{zipf} is not from 0 to 10");
                fail("expert-zipf", message, "write e.g. 0.5")
            }
            Some(_) if self.experts < 2 => {
                let message = "there are no experts".to_owned();
                fail("expert-zipf", message, "set experts, or leave it out")
            }
            _ => Ok(()),
        }
    }

    fn has_skew(&self) -> bool {
        self.experts > 1 && (self.expert_shares.is_some() || self.expert_zipf.is_some())
    }

    /// Shares of the experts in a layer, in any unit.
    fn shares(&self, layer: u32) -> Vec<f64> {
        if let Some(shares) = &self.expert_shares {
            return shares.clone();
        }
        let exponent = self.expert_zipf.unwrap_or(0.0);
        let mut order: Vec<u32> = (1..=self.experts).collect();
        let purpose = Purpose::Named("programs.experts", layer as usize);
        shuffle(&mut stream(self.expert_seed, purpose, 0), &mut order);
        let shares = order.iter().map(|rank| f64::from(*rank).powf(-exponent));
        shares.collect()
    }

    fn inner(&self) -> u32 {
        self.feed_forward.unwrap_or(4 * self.hidden)
    }
}

impl Training<'_> {
    fn tensor(&self) -> Groups {
        let (size, stride) = (self.model.tensor, 1);
        Groups { size, stride }
    }

    fn data(&self) -> Groups {
        let (size, stride) = (self.data, self.model.tensor);
        Groups { size, stride }
    }

    fn expert(&self) -> Groups {
        let (size, stride) = (self.model.expert, self.model.tensor);
        Groups { size, stride }
    }

    fn expert_data(&self) -> Groups {
        Groups {
            size: self.data / self.model.expert,
            stride: self.model.tensor * self.model.expert,
        }
    }

    fn has_experts(&self) -> bool {
        self.model.experts > 1
    }

    fn tokens(&self) -> u64 {
        u64::from(self.model.sequence) * u64::from(self.model.micro_batch)
    }

    fn activations(&self) -> u64 {
        HALF * self.tokens() * u64::from(self.model.hidden)
    }

    fn vocabulary(&self) -> u64 {
        let unit = VOCABULARY_UNIT * u64::from(self.model.tensor);
        u64::from(self.model.vocabulary).next_multiple_of(unit)
    }

    /// Per layer and rank, of all data parallel ranks. Norms are divided, too, as in AICB.
    fn shared_weights(&self) -> u64 {
        let model = self.model;
        let (hidden, tensor) = (u64::from(model.hidden), u64::from(model.tensor));
        let attention = (4 * hidden * hidden + 4 * hidden) / tensor;
        attention
            + if self.has_experts() {
                0
            } else {
                self.expert_weights()
            }
    }

    /// Per layer and rank: inner part or experts.
    fn expert_weights(&self) -> u64 {
        let model = self.model;
        let inner =
            2 * u64::from(model.hidden) * u64::from(model.inner()) / u64::from(model.tensor);
        inner * u64::from(model.experts / model.expert)
    }

    /// Embedding on the first stage's ranks, last norm on the last stage's.
    fn end_weights(&self, stage: u32) -> u64 {
        let (hidden, tensor) = (u64::from(self.model.hidden), u64::from(self.model.tensor));
        let embedding = self.vocabulary() * hidden / tensor;
        let is_last = stage + 1 == self.model.pipeline;
        u64::from(stage == 0) * embedding + u64::from(is_last) * hidden
    }

    fn largest(&self) -> u128 {
        let model = self.model;
        let hidden = u128::from(model.hidden);
        let inner = hidden * u128::from(model.inner()) * 2 * u128::from(model.experts);
        let layer = 4 * hidden * (hidden + 1) + inner;
        let most = model.layers.div_ceil(model.pipeline) * model.pipeline;
        let weights = u128::from(most) * layer + u128::from(self.vocabulary()) * hidden;
        let activations = 2 * hidden * u128::from(model.sequence) * u128::from(model.micro_batch);
        (weights / u128::from(model.tensor) * 4 / u128::from(model.pipeline * model.expert).max(1))
            .max(activations * u128::from(model.top_k))
    }

    /// Lower bound of operations of all ranks. Layers without operations take time to write, too.
    fn least_operations(&self) -> u128 {
        let steps = |layers: u32| {
            let model = &TrainingModel {
                layers: layers * self.model.pipeline,
                micro_batches: 1,
                ..self.model.clone()
            };
            Training { model, ..*self }.stage(0).steps.len()
        };
        let model = self.model;
        let passes = u128::from(model.layers) * u128::from(model.micro_batches);
        match (steps(2) - steps(1)) as u128 {
            0 => passes / u128::from(model.pipeline),
            each => each * passes * u128::from(model.tensor) * u128::from(self.data),
        }
    }

    /// In ps.
    fn longest(&self) -> f64 {
        let (attention, inner, words) = self.operations();
        2.0 * attention.max(inner).max(words) * self.speed.map_or(0.0, |speed| 1e12 / speed)
    }

    /// Forward operations: attention, inner part, and final words.
    fn operations(&self) -> (f64, f64, f64) {
        let model = self.model;
        let (tokens, hidden) = (self.tokens() as f64, f64::from(model.hidden));
        let tensor = f64::from(model.tensor);
        let attention = 8.0 * hidden + 4.0 * f64::from(model.sequence);
        let inner = 4.0 * f64::from(model.inner()) * f64::from(model.top_k);
        let words = 2.0 * self.vocabulary() as f64;
        let all = |each: f64| each * tokens * hidden / tensor;
        (all(attention), all(inner), all(words))
    }

    fn span(&self, operations: f64) -> Span {
        let ps = self.speed.map_or(0.0, |speed| operations / speed * 1e12);
        Span::from_ps(ps.round() as u64)
    }

    fn layers_of(&self, stage: u32) -> Range<u32> {
        let TrainingModel {
            layers, pipeline, ..
        } = *self.model;
        let most = layers.div_ceil(pipeline);
        let short = most * pipeline - layers;
        let (at_start, at_end) = (short / 2, short.div_ceil(2));
        // Short stages before a stage.
        let before = |stage: u32| {
            let behind = (stage + at_end).saturating_sub(pipeline);
            most * stage - stage.min(at_start) - behind
        };
        before(stage)..before(stage + 1)
    }

    fn stage(&self, stage: u32) -> Section {
        let model = self.model;
        let ranks = model.tensor * self.data;
        let mut writer = Writer::default();
        writer.steps.push((0, Step::Compute(Span::ZERO)));
        let ahead = (model.pipeline - stage - 1).min(model.micro_batches);
        for _ in 0..ahead {
            self.forwards(&mut writer, stage);
        }
        for _ in ahead..model.micro_batches {
            self.forwards(&mut writer, stage);
            self.backwards(&mut writer, stage);
        }
        for _ in 0..ahead {
            self.backwards(&mut writer, stage);
        }
        self.update(&mut writer, stage);
        let layers = self.layers_of(stage);
        Section {
            first: stage * ranks,
            ranks,
            steps: writer.steps,
            routed: match model.has_skew() {
                true => layers.map(|layer| self.routed(layer)).collect(),
                false => Vec::new(),
            },
        }
    }

    fn forwards(&self, writer: &mut Writer, stage: u32) {
        let model = self.model;
        let (attention, inner, words) = self.operations();
        let distance = i64::from(model.tensor * self.data);
        if stage > 0 {
            writer.receive(-distance, self.activations());
        } else {
            writer.collective(Operation::Allreduce, self.activations(), self.tensor());
        }
        for layer in 0..self.layers_of(stage).len() as u32 {
            self.gather_weights(writer);
            writer.compute(self.span(attention));
            writer.collective(Operation::Allreduce, self.activations(), self.tensor());
            self.run_experts(writer, layer, inner);
            writer.collective(Operation::Allreduce, self.activations(), self.tensor());
        }
        if stage + 1 < model.pipeline {
            writer.send(distance, self.activations());
            return;
        }
        writer.compute(self.span(words));
        for _ in 0..3 {
            writer.collective(Operation::Allreduce, SINGLE * self.tokens(), self.tensor());
        }
        writer.collective(Operation::Allreduce, SINGLE, self.data());
    }

    fn backwards(&self, writer: &mut Writer, stage: u32) {
        let model = self.model;
        let (attention, inner, words) = self.operations();
        let distance = i64::from(model.tensor * self.data);
        if stage + 1 < model.pipeline {
            writer.receive(distance, self.activations());
        } else {
            writer.compute(self.span(2.0 * words));
        }
        for layer in (0..self.layers_of(stage).len() as u32).rev() {
            self.gather_weights(writer);
            self.run_experts(writer, layer, 2.0 * inner);
            writer.collective(Operation::Allreduce, self.activations(), self.tensor());
            writer.compute(self.span(2.0 * attention));
            writer.collective(Operation::Allreduce, self.activations(), self.tensor());
            if model.zero == 3 {
                let (shared, own) = self.layer_weights();
                writer.collective(Operation::ReduceScatter, SINGLE * shared, self.data());
                writer.collective(Operation::ReduceScatter, SINGLE * own, self.expert_data());
            }
        }
        if stage > 0 {
            writer.send(-distance, self.activations());
        } else {
            writer.collective(Operation::Allreduce, self.activations(), self.tensor());
        }
    }

    fn layer_weights(&self) -> (u64, u64) {
        let own = if self.has_experts() {
            self.expert_weights()
        } else {
            0
        };
        (self.shared_weights(), own)
    }

    /// ZeRO stage 3 has each weight on one rank only.
    fn gather_weights(&self, writer: &mut Writer) {
        if self.model.zero == 3 {
            let (shared, own) = self.layer_weights();
            writer.collective(Operation::Allgather, HALF * shared, self.data());
            if own > 0 {
                writer.collective(Operation::Allgather, HALF * own, self.expert_data());
            }
        }
    }

    /// Tokens go to their experts, which compute, and back.
    fn run_experts(&self, writer: &mut Writer, layer: u32, operations: f64) {
        let span = self.span(operations);
        if !self.model.has_skew() {
            self.exchange_tokens(writer);
            writer.compute(span);
            self.exchange_tokens(writer);
            return;
        }
        let groups = self.expert();
        let tokens = |back: bool| Step::Tokens {
            layer,
            groups,
            back,
        };
        writer.steps.push((0, tokens(false)));
        if !span.is_zero() {
            writer.steps.push((0, Step::Experts { layer, span }));
        }
        writer.steps.push((0, tokens(true)));
    }

    /// Bytes that each rank sends to the experts of each expert parallel place in a layer; all together those of its tokens.
    fn routed(&self, layer: u32) -> Vec<u64> {
        let model = self.model;
        let all = self.activations() * u64::from(model.top_k) / u64::from(model.tensor);
        let shares = model.shares(layer);
        let sum: f64 = shares.iter().sum();
        let each = (model.experts / model.expert) as usize;
        let (mut before, mut share) = (0, 0.0);
        let places = shares.chunks(each).map(|experts| {
            share += experts.iter().sum::<f64>();
            let end = ((all as f64 * share / sum).round() as u64).min(all);
            end - std::mem::replace(&mut before, end)
        });
        places.collect()
    }

    fn exchange_tokens(&self, writer: &mut Writer) {
        let model = self.model;
        if self.has_experts() {
            let all = self.activations() * u64::from(model.top_k) / u64::from(model.tensor);
            let bytes = all / u64::from(model.expert);
            writer.collective(Operation::Alltoall, bytes, self.expert());
        }
    }

    fn update(&self, writer: &mut Writer, stage: u32) {
        let model = self.model;
        let layers = self.layers_of(stage).len() as u64;
        let (mut shared, mut own) = self.layer_weights();
        (shared, own) = match model.zero {
            3 => (0, 0),
            _ => (shared * layers, own * layers),
        };
        shared += self.end_weights(stage);
        let (data, expert_data) = (self.data(), self.expert_data());
        for (weights, groups) in [(shared, data), (own, expert_data)] {
            match model.zero {
                _ if weights == 0 => {}
                0 => writer.collective(Operation::Allreduce, SINGLE * weights, groups),
                _ => {
                    writer.collective(Operation::ReduceScatter, SINGLE * weights, groups);
                    writer.collective(Operation::Allgather, HALF * weights, groups);
                }
            }
        }
        // Gradients of norms (sequence parallel ranks), and the check for NaN.
        writer.collective(Operation::Allreduce, 0, self.tensor());
        writer.collective(Operation::Allreduce, SINGLE, self.tensor());
    }
}

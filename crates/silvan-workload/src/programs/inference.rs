//! Serving of a transformer: instances that prefill prompts send the key-value cache to instances that decode.
//!
//! P. Patel et al., "Splitwise: Efficient Generative LLM Inference Using Phase Splitting", ISCA 2024; Y. Zhong et al.,
//! "DistServe", OSDI 2024. Decode batches are continuous: G. Yu et al., "Orca", OSDI 2022.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Rate, Span, Time, schema};

use crate::programs::collective::{Collective, Operation};
use crate::programs::draft::Pipeline;
use crate::programs::op::{Group, Op, Steps};
use crate::programs::spec::Script;
use crate::programs::trace::{LONGEST, MOST_BYTES, TraceSettings};
use crate::programs::training::ModelError;
use crate::traffic::rng::{Purpose, exponential, stream};

const MOST: u32 = 1 << 24;
const MOST_REQUESTS: u32 = 1 << 20;
/// Bytes that tell the other ranks of an instance what they do next.
const CONTROL: u64 = 64;

const CONTROL_TAG: u32 = 0xfffe_0000;
const CACHE_TAG: u32 = CONTROL_TAG + 1;
const DONE_TAG: u32 = CONTROL_TAG + 2;
const WAKE_TAG: u32 = CONTROL_TAG + 3;

/// Measurements: from a request's arrival to its first token, to the arrival of its cache, and to its last token; and each step
/// of decoding.
pub const LABELS: [&str; 4] = ["first-token", "cache", "request", "decode"];
const FIRST_TOKEN: u16 = 0;
const CACHE: u16 = 1;
const REQUEST: u16 = 2;
const DECODE: u16 = 3;

/// A transformer, its instances, and the requests that they serve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Inference {
    /// Layers.
    pub layers: u32,
    /// Width of the model.
    pub hidden: u32,
    /// Heads of attention.
    pub heads: u32,
    /// Heads of keys and values. Default: `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u32>,
    /// Width of a head. Default: `hidden` / `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<u32>,
    /// Width of the layers' inner part, which has three matrices, as in Llama. Default: four times `hidden`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward: Option<u32>,
    /// Words of the vocabulary. Default: Llama 3's.
    #[serde(default = "vocabulary")]
    pub vocabulary: u32,
    /// Bytes of a weight, an activation, and a value of the cache.
    #[serde(default = "two")]
    pub value_bytes: u32,
    /// Instances that prefill.
    #[serde(default = "one")]
    pub prefill_instances: u32,
    /// Tensor parallel ranks of an instance that prefills.
    #[serde(default = "one")]
    pub prefill_tensor: u32,
    /// Most requests in a batch of a prefill.
    #[serde(default = "one")]
    pub prefill_batch: u32,
    /// Instances that decode.
    #[serde(default = "one")]
    pub decode_instances: u32,
    /// Tensor parallel ranks of an instance that decodes.
    #[serde(default = "one")]
    pub decode_tensor: u32,
    /// Most requests in a step of decoding.
    #[serde(default = "decode_batch")]
    pub decode_batch: u32,
    /// Transfer of the key-value cache.
    #[serde(default)]
    pub transfer: CacheTransfer,
    /// Rate at which a rank reads weights and cache from its memory. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub memory_rate: Option<Rate>,
    /// Number of requests; not with a list of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub requests: Option<u32>,
    /// Mean time between requests. Default: all at once.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub interval: Span,
    /// Spacing of requests.
    #[serde(default)]
    pub arrivals: RequestArrivals,
    /// Seed of the arrivals; the same for all seeds of a run.
    #[serde(default)]
    pub seed: u64,
    /// Tokens of a prompt.
    #[serde(default = "prompt")]
    pub prompt_tokens: u32,
    /// Tokens of an answer. The prefill makes the first one.
    #[serde(default = "answer")]
    pub output_tokens: u32,
    /// The requests, in the order of their arrival, in place of a number of equal ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<RequestEntry>,
}

/// Transfer of the key-value cache from prefill to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheTransfer {
    /// After each layer, while the next one computes.
    #[default]
    Layer,
    /// After the last layer.
    Whole,
}

/// Spacing of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestArrivals {
    /// At equal distances.
    #[default]
    Periodic,
    /// At exponentially distributed distances.
    Poisson,
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequestEntry {
    /// Arrival, from the start of the program.
    #[serde(default)]
    #[schemars(with = "schema::SpanText")]
    pub at: Span,
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the answer.
    pub output: u32,
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

fn vocabulary() -> u32 {
    128_256
}

fn decode_batch() -> u32 {
    64
}

fn prompt() -> u32 {
    1024
}

fn answer() -> u32 {
    128
}

/// A program that serves requests.
#[derive(Clone, Debug, PartialEq)]
pub struct InferencePlan {
    keys: Inference,
    requests: Vec<RequestEntry>,
    settings: TraceSettings,
    /// Start of the program.
    start: Span,
}

impl Inference {
    fn kv_heads(&self) -> u32 {
        self.kv_heads.unwrap_or(self.heads)
    }

    fn head_dim(&self) -> u32 {
        self.head_dim.unwrap_or(self.hidden / self.heads.max(1))
    }

    fn inner(&self) -> u32 {
        self.feed_forward.unwrap_or(self.hidden.saturating_mul(4))
    }

    /// Ranks of all instances: those that prefill, then those that decode.
    pub fn ranks(&self) -> u64 {
        u64::from(self.prefill_instances) * u64::from(self.prefill_tensor)
            + u64::from(self.decode_instances) * u64::from(self.decode_tensor)
    }

    /// Bytes of the key-value cache of this many tokens, in all layers and on all ranks.
    pub fn cache_bytes(&self, tokens: u32) -> u64 {
        u64::from(self.layers) * self.layer_cache(self.kv_heads(), tokens)
    }

    fn layer_cache(&self, heads: u32, tokens: u32) -> u64 {
        let factors = [heads, self.head_dim(), self.value_bytes, tokens];
        factors
            .iter()
            .map(|factor| u64::from(*factor))
            .product::<u64>()
            * 2
    }

    /// Weights of attention and inner part of a layer.
    fn layer_weights(&self) -> (f64, f64) {
        let hidden = f64::from(self.hidden);
        let of_heads = |heads: u32| hidden * f64::from(heads) * f64::from(self.head_dim());
        let attention = 2.0 * of_heads(self.heads) + 2.0 * of_heads(self.kv_heads());
        (attention, 3.0 * hidden * f64::from(self.inner()))
    }

    /// The plan on these places; or the key at fault.
    pub fn plan(&self, settings: &TraceSettings, start: Span) -> Result<InferencePlan, ModelError> {
        self.check(settings)?;
        let plan = InferencePlan {
            requests: self.all_requests()?,
            keys: self.clone(),
            settings: settings.clone(),
            start,
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self, settings: &TraceSettings) -> Result<(), ModelError> {
        let fail = |key, message: String, hint: &str| {
            let hint = hint.to_owned();
            Err(ModelError { key, message, hint })
        };
        let numbers = [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv-heads", self.kv_heads()),
            ("head-dim", self.head_dim()),
            ("feed-forward", self.inner()),
            ("vocabulary", self.vocabulary),
            ("value-bytes", self.value_bytes),
            ("prefill-instances", self.prefill_instances),
            ("prefill-tensor", self.prefill_tensor),
            ("prefill-batch", self.prefill_batch),
            ("decode-instances", self.decode_instances),
            ("decode-tensor", self.decode_tensor),
            ("decode-batch", self.decode_batch),
            ("prompt-tokens", self.prompt_tokens),
            ("output-tokens", self.output_tokens),
        ];
        let wrong = numbers
            .iter()
            .find(|(_, number)| !(1..=MOST).contains(number));
        if let Some((key, number)) = wrong {
            return fail(
                key,
                format!("{number}: 1 to {MOST} are supported"),
                "write e.g. 8",
            );
        }
        for (key, tensor) in [
            ("prefill-tensor", self.prefill_tensor),
            ("decode-tensor", self.decode_tensor),
        ] {
            for (name, whole) in [("heads", self.heads), ("kv-heads", self.kv_heads())] {
                if whole % tensor > 0 {
                    let message = format!("{tensor} does not divide {name}, {whole}");
                    return fail(key, message, "choose a divisor");
                }
            }
        }
        let (ranks, places) = (self.ranks(), settings.places);
        if ranks > u64::from(places) {
            let message = format!("{ranks} ranks do not fit on {places} places");
            return fail(
                "decode-instances",
                message,
                "add hosts, or more ranks per host",
            );
        }
        Ok(())
    }

    fn all_requests(&self) -> Result<Vec<RequestEntry>, ModelError> {
        let fail = |key, message: String, hint: &str| {
            let hint = hint.to_owned();
            Err(ModelError { key, message, hint })
        };
        if !self.request.is_empty() {
            if self.requests.is_some() {
                let message = "a number of requests is given together with a list".to_owned();
                return fail("requests", message, "use either of them");
            }
            let mut last = Span::ZERO;
            for (number, request) in self.request.iter().enumerate() {
                if request.at < last || request.at > LONGEST {
                    let message = format!("request {number} arrives at {}", request.at);
                    let hint = "list requests in the order of their arrival, within 20 hours";
                    return fail("request", message, hint);
                }
                if !(1..=MOST).contains(&request.prompt) || !(1..=MOST).contains(&request.output) {
                    let message = format!("request {number} has tokens that are not 1 to {MOST}");
                    return fail("request", message, "write e.g. 1024");
                }
                last = request.at;
            }
            return Ok(self.request.clone());
        }
        let count = self.requests.unwrap_or(1);
        if !(1..=MOST_REQUESTS).contains(&count) {
            let message = format!("{count} requests: 1 to {MOST_REQUESTS} are supported");
            return fail("requests", message, "write e.g. 100");
        }
        let mut draws = stream(self.seed, Purpose::Named("programs.requests", 0), 0);
        let mut at = 0_u128;
        let mut requests = Vec::with_capacity(count as usize);
        for number in 0..count {
            let gap = u128::from(self.interval.as_ps());
            at += match self.arrivals {
                _ if number == 0 => 0,
                RequestArrivals::Periodic => gap,
                RequestArrivals::Poisson => (gap * u128::from(exponential(&mut draws))) >> 32,
            };
            if at > u128::from(LONGEST.as_ps()) {
                let message = "the last request arrives after 20 hours".to_owned();
                return fail("interval", message, "write e.g. \"10 ms\"");
            }
            requests.push(RequestEntry {
                at: Span::from_ps(at as u64),
                prompt: self.prompt_tokens,
                output: self.output_tokens,
            });
        }
        Ok(requests)
    }
}

/// Next step of a decode instance, which its first rank decides.
#[derive(Clone, Copy, Debug)]
struct Iteration {
    batch: u32,
    /// Tokens in the caches of the batch.
    context: u64,
}

#[derive(Debug, Default)]
struct Decoding {
    /// Requests whose cache is there.
    ready: VecDeque<u32>,
    /// The first rank waits for the next one.
    is_idle: bool,
    steps: Vec<Iteration>,
}

/// Decisions of ranks. A rank reads those that a message has told it of, and those of ranks on its own host.
#[derive(Debug, Default)]
struct Board {
    prefills: Vec<Vec<Vec<u32>>>,
    decodings: Vec<Decoding>,
}

type Shared = Arc<Mutex<Board>>;

fn lock(board: &Shared) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InferencePlan {
    /// Returns the number of ranks that compute.
    pub fn ranks(&self) -> u32 {
        self.keys.ranks() as u32
    }

    /// Places of the further ranks, which receive caches next to the ranks that decode: the rank of each.
    pub fn receivers(&self) -> Vec<u32> {
        let ranks = self.ranks() - self.keys.decode_instances * self.keys.decode_tensor;
        let decoding = ranks..self.ranks();
        decoding
            .flat_map(|rank| std::iter::repeat_n(rank, self.keys.prefill_instances as usize))
            .collect()
    }

    /// The programs of all ranks, then of those that receive.
    pub fn scripts(plan: &Arc<Self>) -> Vec<Script> {
        let keys = &plan.keys;
        let mut board = Board::default();
        board
            .prefills
            .resize_with(keys.prefill_instances as usize, Vec::new);
        board
            .decodings
            .resize_with(keys.decode_instances as usize, Decoding::default);
        let board: Shared = Arc::new(Mutex::new(board));
        let mut scripts: Vec<Script> = Vec::new();
        for instance in 0..keys.prefill_instances {
            for place in 0..keys.prefill_tensor {
                let member = plan.member(&board, instance, place);
                scripts.push(Script::Sequence(Box::new(Prefill::new(member))));
            }
        }
        for instance in 0..keys.decode_instances {
            for place in 0..keys.decode_tensor {
                let member = plan.member(&board, instance, place);
                scripts.push(Script::Sequence(Box::new(Decode::new(member))));
            }
        }
        for instance in 0..keys.decode_instances {
            for place in 0..keys.decode_tensor {
                for source in 0..keys.prefill_instances {
                    let member = plan.member(&board, instance, place);
                    scripts.push(Script::Sequence(Box::new(Receiver::new(member, source))));
                }
            }
        }
        scripts
    }

    fn member(self: &Arc<Self>, board: &Shared, instance: u32, place: u32) -> Member {
        Member {
            plan: Arc::clone(self),
            board: Arc::clone(board),
            instance,
            place,
        }
    }

    fn prefill_rank(&self, instance: u32, place: u32) -> u32 {
        instance * self.keys.prefill_tensor + place
    }

    fn decode_rank(&self, instance: u32, place: u32) -> u32 {
        let first = self.keys.prefill_instances * self.keys.prefill_tensor;
        first + instance * self.keys.decode_tensor + place
    }

    fn receiver_rank(&self, instance: u32, place: u32, source: u32) -> u32 {
        let decode = instance * self.keys.decode_tensor + place;
        self.ranks() + decode * self.keys.prefill_instances + source
    }

    fn arrival(&self, request: u32) -> Time {
        Time::ZERO + self.start + self.requests[request as usize].at
    }

    fn prefill_of(&self, request: u32) -> u32 {
        request % self.keys.prefill_instances
    }

    fn decode_of(&self, request: u32) -> u32 {
        request % self.keys.decode_instances
    }

    fn messages(&self) -> u32 {
        match self.keys.transfer {
            CacheTransfer::Layer => self.keys.layers,
            CacheTransfer::Whole => 1,
        }
    }

    /// Heads of keys and values that a rank that prefills has for a rank that decodes.
    fn shared_heads(&self, from: u32, to: u32) -> u32 {
        let heads = self.keys.kv_heads();
        let (each, wanted) = (
            heads / self.keys.prefill_tensor,
            heads / self.keys.decode_tensor,
        );
        let end = ((from + 1) * each).min((to + 1) * wanted);
        end.saturating_sub((from * each).max(to * wanted))
    }

    fn message_bytes(&self, request: u32, from: u32, to: u32) -> u64 {
        let prompt = self.requests[request as usize].prompt;
        let layers = self.keys.layers / self.messages();
        u64::from(layers) * self.keys.layer_cache(self.shared_heads(from, to), prompt)
    }

    /// Time of an amount of work of one of `tensor` ranks: operations, or bytes of its memory.
    fn span(&self, operations: f64, bytes: f64, tensor: u32) -> Span {
        let by_speed = self
            .settings
            .operations_per_second
            .map(|speed| operations / speed);
        let by_memory = self
            .keys
            .memory_rate
            .map(|rate| bytes * 8.0 / rate.bits_per_sec() as f64);
        let seconds = by_speed.unwrap_or(0.0).max(by_memory.unwrap_or(0.0)) / f64::from(tensor);
        Span::from_ps((seconds * 1e12).round() as u64)
    }

    /// Times of a layer's attention and inner part for so many tokens, which see `pairs` tokens of `context` in the cache.
    fn layer(&self, tokens: f64, pairs: f64, context: f64, tensor: u32) -> [Span; 2] {
        let keys = &self.keys;
        let (attention, inner) = keys.layer_weights();
        let bytes = f64::from(keys.value_bytes);
        let width = f64::from(keys.heads) * f64::from(keys.head_dim());
        let cache = 2.0 * f64::from(keys.kv_heads()) * f64::from(keys.head_dim()) * context;
        [
            self.span(
                2.0 * attention * tokens + 4.0 * width * pairs,
                bytes * (attention + cache),
                tensor,
            ),
            self.span(2.0 * inner * tokens, bytes * inner, tensor),
        ]
    }

    /// Time of the words of so many sequences.
    fn words(&self, sequences: f64, tensor: u32) -> Span {
        let weights = f64::from(self.keys.hidden) * f64::from(self.keys.vocabulary);
        let bytes = weights * f64::from(self.keys.value_bytes);
        self.span(2.0 * weights * sequences, bytes, tensor)
    }

    fn longest_prefill(&self) -> f64 {
        let prompt = self
            .requests
            .iter()
            .map(|request| f64::from(request.prompt));
        let tokens = prompt.fold(0.0, f64::max) * f64::from(self.keys.prefill_batch);
        let [attention, inner] = self.layer(tokens, tokens * tokens, tokens, 1);
        attention.as_ps().max(inner.as_ps()) as f64
    }

    fn check(&self) -> Result<(), ModelError> {
        let fail = |key, message: String, hint: &str| {
            let hint = hint.to_owned();
            Err(ModelError { key, message, hint })
        };
        let prompts = self.requests.iter().map(|request| request.prompt);
        let longest = prompts.max().unwrap_or(1);
        let cache = [self.keys.layers, self.keys.kv_heads(), self.keys.head_dim()];
        let cache = cache
            .iter()
            .map(|factor| f64::from(*factor))
            .product::<f64>()
            * 2.0
            * f64::from(longest)
            * f64::from(self.keys.value_bytes);
        let activations = f64::from(longest)
            * f64::from(self.keys.prefill_batch)
            * f64::from(self.keys.hidden)
            * f64::from(self.keys.value_bytes);
        if cache.max(activations) > MOST_BYTES as f64 {
            let message = format!("a message may have {cache:e} bytes: {MOST_BYTES} are supported");
            return fail("hidden", message, "make the model or the prompts smaller");
        }
        if self.longest_prefill() > LONGEST.as_ps() as f64 {
            let message = "a computation lasts longer than 20 hours".to_owned();
            return fail(
                "hidden",
                message,
                "raise operations-per-second or memory-rate",
            );
        }
        let sizes = [1, u64::from(longest) * u64::from(self.keys.prefill_batch)];
        for tensor in [self.keys.prefill_tensor, self.keys.decode_tensor] {
            for tokens in sizes {
                let bytes = self.activations(tokens);
                let group = (tensor, 1);
                let (_, pipeline) = self.settings.method(Operation::Allreduce, bytes, group);
                if tensor > 1 && pipeline != Pipeline::default() {
                    let message = "collective operations of inference go in one piece".to_owned();
                    let hint = "leave channels, chunk and nccl out of traffic.collective";
                    return fail("layers", message, hint);
                }
            }
        }
        Ok(())
    }

    fn activations(&self, tokens: u64) -> u64 {
        tokens * u64::from(self.keys.hidden) * u64::from(self.keys.value_bytes)
    }
}

/// A rank of an instance.
#[derive(Clone, Debug)]
struct Member {
    plan: Arc<InferencePlan>,
    board: Shared,
    instance: u32,
    place: u32,
}

impl Member {
    fn is_first(&self) -> bool {
        self.place == 0
    }

    fn tell(&self, out: &mut Vec<Op>, group: Group) {
        if group.size < 2 {
            return;
        }
        out.extend((1..group.size).map(|place| Op::Send {
            to: group.rank(place),
            bytes: CONTROL,
            tag: CONTROL_TAG,
        }));
        out.push(Op::Wait);
    }

    fn listen(&self, out: &mut Vec<Op>, group: Group) {
        out.push(Op::Receive {
            from: Some(group.rank(0)),
            bytes: CONTROL,
            tag: Some(CONTROL_TAG),
        });
        out.push(Op::Wait);
    }

    fn allreduce(&self, out: &mut Vec<Op>, group: Group, tokens: u64) {
        let plan = &self.plan;
        let bytes = plan.activations(tokens);
        let members: Vec<u32> = (0..group.size).map(|place| group.rank(place)).collect();
        let local = plan.settings.local_members(&members);
        let of_group = (group.size, local);
        let (algorithm, _) = plan.settings.method(Operation::Allreduce, bytes, of_group);
        let collective = Collective {
            algorithm,
            local,
            ..Collective::new(Operation::Allreduce, bytes)
        };
        collective.append(out, group, self.place);
    }
}

#[derive(Debug)]
struct Prefill {
    member: Member,
    group: Group,
    /// Requests of the instance.
    requests: Vec<u32>,
    next: usize,
    /// End of the last pause.
    rested: Time,
    batches: usize,
    has_heard: bool,
}

impl Prefill {
    fn new(member: Member) -> Self {
        let plan = &member.plan;
        let all = 0..plan.requests.len() as u32;
        let own = all.filter(|request| plan.prefill_of(*request) == member.instance);
        Self {
            group: Group::range(
                plan.prefill_rank(member.instance, 0),
                plan.keys.prefill_tensor,
            ),
            requests: own.collect(),
            next: 0,
            rested: Time::ZERO,
            batches: 0,
            has_heard: false,
            member,
        }
    }

    fn send_cache(&self, batch: &[u32], out: &mut Vec<Op>) {
        let plan = &self.member.plan;
        let from = self.member.place;
        for request in batch {
            let decode = plan.decode_of(*request);
            for to in 0..plan.keys.decode_tensor {
                if plan.shared_heads(from, to) > 0 {
                    out.push(Op::Segment {
                        to: plan.receiver_rank(decode, to, self.member.instance),
                        bytes: plan.message_bytes(*request, from, to),
                        tag: CACHE_TAG,
                    });
                }
            }
        }
    }

    fn work(&self, batch: &[u32], out: &mut Vec<Op>) {
        let plan = &self.member.plan;
        let prompts = || {
            batch
                .iter()
                .map(|request| plan.requests[*request as usize].prompt)
        };
        let tokens: u64 = prompts().map(u64::from).sum();
        // A token sees those before it.
        let pairs: f64 = prompts()
            .map(|prompt| f64::from(prompt).powi(2) / 2.0)
            .sum();
        let tensor = plan.keys.prefill_tensor;
        let parts = plan.layer(tokens as f64, pairs, 0.0, tensor);
        for _ in 0..plan.keys.layers {
            for part in parts {
                out.push(Op::Compute(part));
                self.member.allreduce(out, self.group, tokens);
            }
            if plan.keys.transfer == CacheTransfer::Layer {
                self.send_cache(batch, out);
            }
        }
        if plan.keys.transfer == CacheTransfer::Whole {
            self.send_cache(batch, out);
        }
        out.push(Op::Compute(plan.words(batch.len() as f64, tensor)));
        if self.member.is_first() {
            out.extend(batch.iter().map(|request| Op::Mark {
                label: FIRST_TOKEN,
                index: *request,
                begin: plan.arrival(*request),
            }));
        }
    }
}

impl Steps for Prefill {
    fn step(&mut self, _step: u64, now: Time, out: &mut Vec<Op>) -> bool {
        let Some(first) = self.requests.get(self.next) else {
            return false;
        };
        let plan = Arc::clone(&self.member.plan);
        let instance = self.member.instance as usize;
        if self.member.is_first() {
            let arrival = plan.arrival(*first);
            let now = now.max(self.rested);
            if let Some(wait) = arrival.checked_since(now).filter(|wait| !wait.is_zero()) {
                self.rested = arrival;
                out.push(Op::Pause(wait));
                return true;
            }
            let waiting = self.requests[self.next..].iter().copied();
            let waiting = waiting.take_while(|request| plan.arrival(*request) <= now);
            let batch: Vec<u32> = waiting.take(plan.keys.prefill_batch as usize).collect();
            self.next += batch.len();
            self.member.tell(out, self.group);
            self.work(&batch, out);
            lock(&self.member.board).prefills[instance].push(batch);
            return true;
        }
        if !std::mem::replace(&mut self.has_heard, true) {
            self.member.listen(out, self.group);
            return true;
        }
        // An estimate asks a rank without its first one.
        let batch = lock(&self.member.board).prefills[instance]
            .get(self.batches)
            .cloned();
        let Some(batch) = batch else {
            return false;
        };
        self.has_heard = false;
        self.batches += 1;
        self.next += batch.len();
        self.work(&batch, out);
        true
    }
}

#[derive(Debug)]
struct Receiver {
    member: Member,
    source: u32,
    requests: VecDeque<u32>,
    received: Option<u32>,
}

impl Receiver {
    fn new(member: Member, source: u32) -> Self {
        let plan = &member.plan;
        let all = 0..plan.requests.len() as u32;
        let own = all.filter(|request| {
            plan.prefill_of(*request) == source && plan.decode_of(*request) == member.instance
        });
        Self {
            requests: own.collect(),
            received: None,
            source,
            member,
        }
    }

    fn receive(&self, request: u32, out: &mut Vec<Op>) {
        let plan = &self.member.plan;
        let Member {
            instance, place, ..
        } = self.member;
        for from in 0..plan.keys.prefill_tensor {
            if plan.shared_heads(from, place) > 0 {
                let receive = Op::Receive {
                    from: Some(plan.prefill_rank(self.source, from)),
                    bytes: plan.message_bytes(request, from, place),
                    tag: Some(CACHE_TAG),
                };
                out.extend(std::iter::repeat_n(receive, plan.messages() as usize));
            }
        }
        if self.member.is_first() {
            out.extend((1..plan.keys.decode_tensor).map(|other| Op::Receive {
                from: Some(plan.receiver_rank(instance, other, self.source)),
                bytes: 0,
                tag: Some(DONE_TAG),
            }));
        }
        out.push(Op::Wait);
    }
}

impl Steps for Receiver {
    fn step(&mut self, _step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        let plan = Arc::clone(&self.member.plan);
        let instance = self.member.instance;
        if let Some(request) = self.received.take() {
            if !self.member.is_first() {
                let to = plan.receiver_rank(instance, 0, self.source);
                let (bytes, tag) = (0, DONE_TAG);
                out.push(Op::Segment { to, bytes, tag });
            } else {
                let mut board = lock(&self.member.board);
                let decoding = &mut board.decodings[instance as usize];
                decoding.ready.push_back(request);
                out.push(Op::Mark {
                    label: CACHE,
                    index: request,
                    begin: plan.arrival(request),
                });
                if std::mem::take(&mut decoding.is_idle) {
                    let to = plan.decode_rank(instance, 0);
                    let (bytes, tag) = (0, WAKE_TAG);
                    out.push(Op::Segment { to, bytes, tag });
                }
            }
        }
        let Some(request) = self.requests.pop_front() else {
            return false;
        };
        self.receive(request, out);
        self.received = Some(request);
        true
    }
}

#[derive(Clone, Copy, Debug)]
struct Active {
    request: u32,
    left: u32,
    context: u64,
}

#[derive(Debug)]
struct Decode {
    member: Member,
    group: Group,
    active: Vec<Active>,
    /// Requests that have not ended.
    left: usize,
    steps: usize,
    has_heard: bool,
    was_idle: bool,
    has_ended: bool,
}

impl Decode {
    fn new(member: Member) -> Self {
        let plan = &member.plan;
        let all = 0..plan.requests.len() as u32;
        let own = all.filter(|request| plan.decode_of(*request) == member.instance);
        Self {
            group: Group::range(
                plan.decode_rank(member.instance, 0),
                plan.keys.decode_tensor,
            ),
            active: Vec::new(),
            left: own.count(),
            steps: 0,
            has_heard: false,
            was_idle: false,
            has_ended: false,
            member,
        }
    }

    fn work(&self, step: Iteration, out: &mut Vec<Op>) {
        let plan = &self.member.plan;
        let tensor = plan.keys.decode_tensor;
        let (batch, context) = (f64::from(step.batch), step.context as f64);
        let parts = plan.layer(batch, context, context, tensor);
        for _ in 0..plan.keys.layers {
            for part in parts {
                out.push(Op::Compute(part));
                self.member
                    .allreduce(out, self.group, u64::from(step.batch));
            }
        }
        out.push(Op::Compute(plan.words(batch, tensor)));
    }

    fn admit(&mut self, out: &mut Vec<Op>) {
        let plan = Arc::clone(&self.member.plan);
        let mut board = lock(&self.member.board);
        let ready = &mut board.decodings[self.member.instance as usize].ready;
        while self.active.len() < plan.keys.decode_batch as usize {
            let Some(request) = ready.pop_front() else {
                return;
            };
            let RequestEntry { prompt, output, .. } = plan.requests[request as usize];
            if output > 1 {
                self.active.push(Active {
                    request,
                    left: output - 1,
                    context: u64::from(prompt) + 1,
                });
                continue;
            }
            self.left -= 1;
            out.push(Op::Mark {
                label: REQUEST,
                index: request,
                begin: plan.arrival(request),
            });
        }
    }

    fn end(&mut self, out: &mut Vec<Op>) {
        let plan = Arc::clone(&self.member.plan);
        for active in &mut self.active {
            active.left -= 1;
            active.context += 1;
        }
        let ended = self.active.iter().filter(|active| active.left == 0);
        out.extend(ended.map(|active| Op::Mark {
            label: REQUEST,
            index: active.request,
            begin: plan.arrival(active.request),
        }));
        let before = self.active.len();
        self.active.retain(|active| active.left > 0);
        self.left -= before - self.active.len();
    }

    fn lead(&mut self, out: &mut Vec<Op>) -> bool {
        if self.has_ended {
            return false;
        }
        let left = self.left;
        self.admit(out);
        let instance = self.member.instance as usize;
        let step = Iteration {
            batch: self.active.len() as u32,
            context: self.active.iter().map(|active| active.context).sum(),
        };
        if step.batch == 0 && self.left > 0 {
            // No rank wakes that of an estimate.
            if self.was_idle && self.left == left {
                return false;
            }
            self.was_idle = true;
            lock(&self.member.board).decodings[instance].is_idle = true;
            out.push(Op::Receive {
                from: None,
                bytes: 0,
                tag: Some(WAKE_TAG),
            });
            out.push(Op::Wait);
            return true;
        }
        self.was_idle = false;
        if self.group.size > 1 {
            lock(&self.member.board).decodings[instance]
                .steps
                .push(step);
        }
        out.push(Op::Begin);
        self.member.tell(out, self.group);
        if step.batch == 0 {
            self.has_ended = true;
            return true;
        }
        self.work(step, out);
        let index = self.steps as u32;
        out.push(Op::End {
            label: DECODE,
            index,
        });
        self.steps += 1;
        self.end(out);
        true
    }
}

impl Steps for Decode {
    fn step(&mut self, _step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        if self.member.is_first() {
            return self.lead(out);
        }
        if self.has_ended {
            return false;
        }
        if !std::mem::replace(&mut self.has_heard, true) {
            self.member.listen(out, self.group);
            return true;
        }
        self.has_heard = false;
        let instance = self.member.instance as usize;
        let step = lock(&self.member.board).decodings[instance]
            .steps
            .get(self.steps)
            .copied();
        let Some(step) = step else {
            return false;
        };
        self.steps += 1;
        match step.batch {
            0 => self.has_ended = true,
            _ => self.work(step, out),
        }
        true
    }
}

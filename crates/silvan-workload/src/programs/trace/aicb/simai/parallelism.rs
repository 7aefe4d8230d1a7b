use std::collections::BTreeSet;

use super::super::super::{MOST_BYTES, MOST_RANKS, TraceError, TraceSettings};
use super::super::Groups;
use super::HINT;
use crate::programs::collective::Operation;

pub(super) const KNOWN: &str = "known: DATA, MODEL, MICRO, DISTRIBUTED_INFERENCE, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, \
    HYBRID_DLRM, HYBRID_DLRM_ENHANCED, HYBRID_CUSTOMIZED, HYBRID_TRANSFORMER, HYBRID_TRANSFORMER_FWD_IN_BCKWD";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Data,
    Model,
    Micro,
    Inference,
    DataModel,
    ModelData,
    Dlrm,
    Customized,
    Transformer,
    /// Computes layers again in the backward pass.
    Recomputing,
    /// All ranks in each pass: DLRM's first layer.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    Forward,
    Inputs,
    Weights,
}

impl Policy {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "DATA" => Self::Data,
            "MODEL" => Self::Model,
            "MICRO" => Self::Micro,
            "DISTRIBUTED_INFERENCE" => Self::Inference,
            "HYBRID_DATA_MODEL" => Self::DataModel,
            "HYBRID_MODEL_DATA" => Self::ModelData,
            "HYBRID_DLRM" | "HYBRID_DLRM_ENHANCED" => Self::Dlrm,
            "HYBRID_CUSTOMIZED" => Self::Customized,
            "HYBRID_TRANSFORMER" => Self::Transformer,
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD" => Self::Recomputing,
            _ => return None,
        })
    }

    /// `word` is the 13th word of the layer's line.
    pub fn of_layer(self, number: usize, word: Option<&str>) -> Option<Self> {
        match self {
            Self::Dlrm if number == 0 => Some(Self::All),
            Self::Customized => {
                let scope = Self::named(word.unwrap_or(""));
                scope.filter(|scope| *scope != Self::Customized)
            }
            other => Some(other),
        }
    }

    pub fn has_group(self, pass: Pass) -> bool {
        match self {
            Self::Data | Self::Micro | Self::Dlrm => pass == Pass::Weights,
            Self::Model | Self::Inference => pass != Pass::Weights,
            _ => true,
        }
    }

    pub fn issues(self, pass: Pass, layer: usize, word: &str) -> bool {
        match (self, pass) {
            (Self::Data | Self::Micro, pass) => pass == Pass::Weights,
            (Self::Model, Pass::Weights) => false,
            (Self::Inference, pass) => pass == Pass::Forward,
            (Self::Dlrm, Pass::Forward) => word == "ALLTOALL",
            (Self::Dlrm, Pass::Inputs) => layer == 0,
            (Self::Model | Self::DataModel | Self::ModelData | Self::Customized, Pass::Inputs) => {
                layer > 0
            }
            _ => true,
        }
    }
}

pub(super) struct Parallelism {
    pub policy: Policy,
    pub ranks: u32,
    tensor: u32,
    expert: u32,
    /// Pipeline stages, each with the text's layers.
    pub stages: u32,
    /// Micro-batches of a step, consecutive in the text.
    pub micro_batches: u32,
    /// Parts of a stage (virtual pipeline).
    pub parts: u32,
    /// Bytes between parts, per micro-batch.
    pub stage_bytes: u64,
    /// Ranks of the network's first dimension.
    server: u32,
    /// An allgather's size is the whole vector in SimAI (`MockNcclGroup.cc`), a rank's part in ASTRA-sim (`Ring.cc`). A
    /// reduce-scatter's is the whole vector in both.
    pub is_simai: bool,
    pub last_bottom: usize,
    pub checkpoints: BTreeSet<usize>,
    /// Layers that start recomputation from the last checkpoint.
    pub initiates: BTreeSet<usize>,
}

impl Parallelism {
    pub fn read(text: &str, settings: &TraceSettings) -> Result<Self, TraceError> {
        let parallelism = Self::parse(text, settings.places, settings.local)?;
        parallelism.check()?;
        Ok(parallelism)
    }

    /// `places` is the default number of ranks, `local` that of a server.
    pub fn parse(text: &str, places: u32, local: u32) -> Result<Self, TraceError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let place_of = |key: &str| {
            let mut keys = words.iter().map(|word| word.trim_end_matches(':'));
            keys.position(|word| word == key)
        };
        let number = |key: &str, place: usize| -> Result<u32, TraceError> {
            let word = words.get(place).copied().unwrap_or("");
            word.parse()
                .map_err(|_| TraceError::line(1, format!("{key} is {word:?}, not a number"), HINT))
        };
        let value = |key: &str| {
            place_of(key)
                .map(|place| number(key, place + 1))
                .transpose()
        };
        let layers = |key: &str| -> Result<BTreeSet<usize>, TraceError> {
            let Some(place) = place_of(key) else {
                return Ok(BTreeSet::new());
            };
            let count = (number(key, place + 1)? as usize).min(words.len());
            let layers = (0..count).map(|layer| number(key, place + 2 + layer));
            layers.map(|layer| Ok(layer? as usize)).collect()
        };
        let name = words.first().copied().unwrap_or("");
        let Some(policy) = Policy::named(name) else {
            let message = format!("{name:?} is no parallelism that is read");
            return Err(TraceError::line(1, message, KNOWN));
        };
        let stages = value("pp")?.unwrap_or(1);
        let has_stages = matches!(policy, Policy::Transformer | Policy::Recomputing);
        if stages > 1 && !has_stages {
            let message = format!("{name} has no stages of a pipeline, but pp is {stages}");
            let hint = "HYBRID_TRANSFORMER and HYBRID_TRANSFORMER_FWD_IN_BCKWD have stages";
            return Err(TraceError::line(1, message, hint));
        }
        let stage_bytes = place_of("pp_comm").map_or(Ok(0), |place| {
            let word = words.get(place + 1).copied().unwrap_or("");
            // Python divides to 4096.0; SimAI drops the fraction.
            let bytes = word.parse::<f64>().ok();
            let bytes = bytes.filter(|bytes| (0.0..=MOST_BYTES as f64).contains(bytes));
            bytes.map(|bytes| bytes as u64).ok_or_else(|| {
                let message = format!("pp_comm is {word:?}, no size from 0 to {MOST_BYTES}");
                TraceError::line(1, message, HINT)
            })
        })?;
        let last_bottom = match (policy, value("DLRM_LAST_BOTTOM_LAYER")?) {
            (Policy::Dlrm, None) => number("DLRM_LAST_BOTTOM_LAYER", 1)? as usize,
            (_, last) => last.unwrap_or(0) as usize,
        };
        let recomputes = policy == Policy::Recomputing;
        let of_recomputing = |key: &str| match recomputes {
            true => layers(key),
            false => Ok(BTreeSet::new()),
        };
        let gpus = value("all_gpus")?;
        Ok(Self {
            policy,
            ranks: gpus.unwrap_or(places),
            tensor: value("model_parallel_NPU_group")?.unwrap_or(1),
            expert: value("ep")?.unwrap_or(1),
            stages,
            micro_batches: value("ga")?.unwrap_or(1),
            parts: value("vpp")?.unwrap_or(1),
            stage_bytes,
            server: local.max(1),
            is_simai: gpus.is_some(),
            last_bottom,
            checkpoints: of_recomputing("checkpoints")?,
            initiates: of_recomputing("checkpoint_initiates")?,
        })
    }

    pub fn stage_ranks(&self) -> u32 {
        self.ranks / self.stages
    }

    fn has_servers(&self) -> bool {
        self.server > 1 && self.ranks % self.server == 0
    }

    fn check(&self) -> Result<(), TraceError> {
        let (ranks, server) = (self.ranks, self.server);
        if ranks == 0 || ranks > MOST_RANKS {
            let message = format!("{ranks} ranks: 1 to {MOST_RANKS} are supported");
            return Err(TraceError::line(1, message, "correct all_gpus"));
        }
        let groups = u128::from(self.tensor) * u128::from(self.expert) * u128::from(self.stages);
        if groups == 0 || u128::from(ranks) % groups != 0 {
            let message = format!(
                "{ranks} ranks are not divided by {} tensor times {} expert parallel ranks times {} stages",
                self.tensor, self.expert, self.stages
            );
            let hint = "write all_gpus, or give the program as many places";
            return Err(TraceError::line(1, message, hint));
        }
        if self.stages > 1 && (self.micro_batches == 0 || self.parts == 0) {
            let message = format!(
                "ga is {} and vpp is {}: a pipeline has 1 or more",
                self.micro_batches, self.parts
            );
            return Err(TraceError::line(1, message, HINT));
        }
        let is_hybrid = matches!(self.policy, Policy::DataModel | Policy::ModelData);
        if is_hybrid && !self.has_servers() {
            let message = format!(
                "the first dimension of the network has {server} of {ranks} ranks: a divisor from 2 on is needed"
            );
            let hint = "give the program server-ranks, the ranks of the first dimension";
            return Err(TraceError::line(1, message, hint));
        }
        Ok(())
    }

    /// Operation and groups of a word such as `ALLREDUCE_EP`, if the pass has a group.
    pub fn communication(
        &self,
        line: u32,
        word: &str,
        pass: Pass,
        scope: Policy,
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
        let (ranks, tensor, expert) = (self.stage_ranks(), self.tensor, self.expert);
        let groups = |size: u32, stride: u32| Groups { size, stride };
        let is_weights = pass == Pass::Weights;
        let groups = match (scope, suffix) {
            (Policy::Transformer | Policy::Recomputing, _) => match suffix {
                "" if is_weights => groups(ranks / tensor, tensor),
                "" => groups(tensor, 1),
                "EP" => groups(expert, tensor),
                "DP_EP" => groups(ranks / (tensor * expert), tensor * expert),
                _ => {
                    return Err(no_group(
                        line,
                        word,
                        "write e.g. ALLREDUCE_EP or ALLREDUCE_DP_EP",
                    ));
                }
            },
            (_, "") if !scope.has_group(pass) => return Ok(None),
            (Policy::DataModel | Policy::ModelData, "") => {
                let server = self.server;
                if !self.has_servers() {
                    let hint =
                        "give the program server-ranks, the ranks of the network's first dimension";
                    return Err(no_group(line, word, hint));
                }
                match is_weights == (scope == Policy::ModelData) {
                    true => groups(server, 1),
                    false => groups(ranks / server, server),
                }
            }
            (_, "") => groups(ranks, 1),
            _ => {
                let hint = "groups of experts need HYBRID_TRANSFORMER";
                return Err(no_group(line, word, hint));
            }
        };
        Ok(Some((operation, groups)))
    }
}

fn no_group(line: u32, word: &str, hint: &'static str) -> TraceError {
    let message = format!("{word:?} names no group of ranks that is known");
    TraceError::line(line, message, hint)
}

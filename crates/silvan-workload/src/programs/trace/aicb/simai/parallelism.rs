//! The first line of a text: the parallelism, and the groups of ranks that follow from it.

use std::collections::BTreeSet;

use super::super::super::{MOST_RANKS, TraceError, TraceSettings};
use super::super::Groups;
use super::HINT;
use crate::programs::collective::Operation;

/// The names of parallelisms.
pub(super) const KNOWN: &str = "known: DATA, MODEL, MICRO, DISTRIBUTED_INFERENCE, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, \
    HYBRID_DLRM, HYBRID_DLRM_ENHANCED, HYBRID_CUSTOMIZED, HYBRID_TRANSFORMER, HYBRID_TRANSFORMER_FWD_IN_BCKWD";

/// A parallelism: the order of a step, and the groups of its collective operations.
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
    /// All ranks in each pass: the first layer of DLRM.
    All,
}

/// A pass through a layer.
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

    /// The parallelism whose groups a layer has; `word` is the 13th word of its line.
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

    /// Returns true if collective operations of a pass have a group of ranks.
    pub fn has_group(self, pass: Pass) -> bool {
        match self {
            Self::Data | Self::Micro | Self::Dlrm => pass == Pass::Weights,
            Self::Model | Self::Inference => pass != Pass::Weights,
            _ => true,
        }
    }

    /// Returns true if a step has the collective operation of a pass through a layer.
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

/// The first line.
pub(super) struct Parallelism {
    pub policy: Policy,
    pub ranks: u32,
    tensor: u32,
    expert: u32,
    /// Ranks of the network's first dimension.
    server: u32,
    /// The size of an allgather is that of the whole vector, as SimAI has it, not of the part of a rank.
    pub is_simai: bool,
    /// The last layer before the layer that joins dense and sparse features.
    pub last_bottom: usize,
    pub checkpoints: BTreeSet<usize>,
    /// Layers before whose backward pass the layers from the last checkpoint are computed again.
    pub initiates: BTreeSet<usize>,
}

impl Parallelism {
    pub fn read(text: &str, settings: &TraceSettings) -> Result<Self, TraceError> {
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
        if value("pp")?.is_some_and(|stages| stages > 1) {
            let hint = "use AICB's list, with a section for each stage";
            return Err(TraceError::line(
                1,
                "stages of a pipeline are not read",
                hint,
            ));
        }
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
        let parallelism = Self {
            policy,
            ranks: gpus.unwrap_or(settings.places),
            tensor: value("model_parallel_NPU_group")?.unwrap_or(1),
            expert: value("ep")?.unwrap_or(1),
            server: settings.local.max(1),
            is_simai: gpus.is_some(),
            last_bottom,
            checkpoints: of_recomputing("checkpoints")?,
            initiates: of_recomputing("checkpoint_initiates")?,
        };
        parallelism.check()?;
        Ok(parallelism)
    }

    fn check(&self) -> Result<(), TraceError> {
        let &Self {
            ranks,
            tensor,
            expert,
            server,
            ..
        } = self;
        if ranks == 0 || ranks > MOST_RANKS {
            let message = format!("{ranks} ranks: 1 to {MOST_RANKS} are supported");
            return Err(TraceError::line(1, message, "correct all_gpus"));
        }
        let groups = u64::from(tensor) * u64::from(expert);
        if groups == 0 || u64::from(ranks) % groups != 0 {
            let message = format!(
                "{ranks} ranks are not divided by {tensor} tensor times {expert} expert parallel ranks"
            );
            return Err(TraceError::line(
                1,
                message,
                "write all_gpus, or give the program as many places",
            ));
        }
        let is_hybrid = matches!(self.policy, Policy::DataModel | Policy::ModelData);
        if is_hybrid && (server < 2 || ranks % server != 0) {
            let message = format!(
                "the first dimension of the network has {server} of {ranks} ranks: a divisor from 2 on is needed"
            );
            let hint = "give the program server-ranks, the ranks of the first dimension";
            return Err(TraceError::line(1, message, hint));
        }
        Ok(())
    }

    /// The operation and the groups that a word such as `ALLREDUCE_EP` stands for, if the pass has a group.
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
        let &Self {
            ranks,
            tensor,
            expert,
            server,
            ..
        } = self;
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
                if server < 2 || ranks % server != 0 {
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

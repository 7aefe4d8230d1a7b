//! NCCL's choice of algorithm, protocol and channels for an operation, by its published model of times.
//!
//! Figures and rules are those of NCCL 2.30.7: `src/graph/tuning.cc` (latencies, bandwidths, corrections, times),
//! `src/enqueue.cc` (channels, chunks), `src/include/comm.h` (thresholds), `src/init.cc` (buffers). Rings and trees only:
//! CollNet, NVLS and PAT need hardware that is not simulated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Rate, Span, schema};

use crate::programs::collective::{Algorithm, Operation};

/// Properties of servers that NCCL chooses by, for the algorithm `nccl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Nccl {
    /// Generation of the GPUs.
    pub gpu: Gpu,
    /// Vendor of the processors.
    pub cpu: Cpu,
    /// Most channels (NCCL_MAX_NCHANNELS). NCCL finds them in the topology of a server; they share its rate.
    #[schemars(range(min = 1, max = 64))]
    pub channels: u32,
    /// Algorithms to choose from (NCCL_ALGO).
    pub algorithms: Vec<NcclAlgorithm>,
    /// Protocols to choose from (NCCL_PROTO).
    pub protocols: Vec<Protocol>,
    /// Rate of a ring within a server of several ranks. Default: `traffic.messaging.local-rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub local_rate: Option<Rate>,
    /// Part of NCCL's latency of a step that the fabric and `traffic.messaging` take; ranks wait for the rest. A message of a
    /// packet takes about 1 us.
    #[schemars(with = "schema::SpanText")]
    pub simulated_latency: Span,
}

/// Generation of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gpu {
    /// Compute capability 7.
    Volta,
    /// Compute capability 8.
    Ampere,
    /// Compute capability 9.
    #[default]
    Hopper,
    /// Compute capability 10.
    Blackwell,
}

/// Vendor of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cpu {
    /// Intel.
    #[default]
    Intel,
    /// AMD.
    Amd,
}

/// Algorithm of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NcclAlgorithm {
    /// Two binary trees, each with half of the data.
    Tree,
    /// Rings.
    Ring,
}

/// Protocol of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Protocol {
    /// Half of the bytes on the wire are flags.
    #[serde(rename = "LL")]
    LowLatency,
    /// 8 of 128 bytes on the wire are flags.
    #[serde(rename = "LL128")]
    LowLatency128,
    /// All bytes are data.
    #[serde(rename = "Simple")]
    Simple,
}

impl Default for Nccl {
    fn default() -> Self {
        Self {
            gpu: Gpu::default(),
            cpu: Cpu::default(),
            channels: 8,
            algorithms: vec![NcclAlgorithm::Tree, NcclAlgorithm::Ring],
            protocols: vec![
                Protocol::LowLatency,
                Protocol::LowLatency128,
                Protocol::Simple,
            ],
            local_rate: None,
            simulated_latency: Span::from_us(1),
        }
    }
}

/// An operation that NCCL is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NcclCall {
    /// The operation.
    pub operation: Operation,
    /// Its size, as the operation defines it.
    pub bytes: u64,
    /// Ranks.
    pub ranks: u32,
    /// Ranks of a server.
    pub local: u32,
    /// Rate of all adapters of a server, in GB/s.
    pub server_rate: f64,
    /// Rate of a ring within a server, in GB/s.
    pub local_rate: f64,
}

/// NCCL's choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NcclChoice {
    /// The algorithm.
    pub algorithm: NcclAlgorithm,
    /// The protocol.
    pub protocol: Protocol,
    /// Channels.
    pub channels: u32,
    /// Data of a channel in a piece that passes through all ranks.
    pub chunk: u64,
    /// Time by NCCL's model, in us.
    pub time: f64,
    /// Time before the first step (launch of the kernel).
    pub launch: Span,
    /// Latency of a step between servers, or within one if there is only one.
    pub step: Span,
}

impl Protocol {
    /// Bytes on the wire of this much data.
    pub const fn wire_bytes(self, data: u64) -> u64 {
        match self {
            Self::LowLatency => 2 * data,
            Self::LowLatency128 => (data * 16).div_ceil(15),
            Self::Simple => data,
        }
    }

    /// Largest data of a step of a channel: a slot of the buffer.
    const fn step_bytes(self) -> u64 {
        match self {
            // 8 lines of 16 bytes for each of 512 threads, half of them flags.
            Self::LowLatency => 8 * 512 * 16 / 2,
            // 120 elements of 8 bytes for each of 640 threads, 15 of 16 elements data.
            Self::LowLatency128 => 120 * 640 * 8 / 16 * 15,
            // An eighth of 4 MiB.
            Self::Simple => 1 << 19,
        }
    }
}

impl NcclAlgorithm {
    /// The algorithm of collective operations.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Tree => Algorithm::DoubleTree,
            Self::Ring => Algorithm::Ring,
        }
    }
}

// Columns are the protocols LL, LL128 and Simple. All latencies are in us, all bandwidths in GB/s.
const BASE: [[f64; 3]; 2] = [[6.8, 14.0, 8.4], [6.6, 14.0, 8.4]];
const NVLINK: [[f64; 3]; 2] = [[0.6, 1.25, 4.0], [0.6, 1.9, 3.4]];
const NET: [[f64; 3]; 2] = [[5.0, 8.5, 14.0], [2.7, 4.0, 14.0]];
// Rows are generations of GPUs, columns 1, 2 and more servers.
const LL: [[f64; 3]; 4] = [
    [39.0, 39.0, 20.4],
    [87.7, 22.5, 19.0],
    [141.0, 45.0, 35.0],
    [282.0, 90.0, 70.0],
];
const RING_LL128: [[f64; 3]; 4] = [[20.0; 3], [20.0; 3], [36.7; 3], [40.0; 3]];
const TREE_LL128: [[f64; 3]; 4] = [
    [20.0; 3],
    [20.0; 3],
    [36.7, 36.7, 29.0],
    [55.6, 31.67, 20.0],
];
const TREE: [[f64; 3]; 4] = [
    [26.5, 18.5, 10.0],
    [24.0, 23.6, 17.8],
    [38.7, 41.4, 36.0],
    [70.0, 42.8, 24.0],
];
/// Corrections of the bandwidth of trees from 64 bytes on, by powers of two.
const CORRECTION: [[f64; 24]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9,
        0.9, 0.9, 0.9, 1.0, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8,
        0.7, 0.7, 0.8, 0.9, 0.9, 0.9,
    ],
];
/// Largest power of two, of 64 bytes, that is corrected: 22.
const CORRECTED: u32 = 23;

fn log2(number: u32) -> f64 {
    f64::from(number.max(1).ilog2())
}

struct Model {
    bandwidth: f64,
    latency: f64,
    step: f64,
}

impl Nccl {
    /// The choice for an operation. `None` if NCCL has no algorithm for it, or none is left.
    pub fn choose(&self, call: &NcclCall) -> Option<NcclChoice> {
        let mut best: Option<NcclChoice> = None;
        for algorithm in [NcclAlgorithm::Tree, NcclAlgorithm::Ring] {
            for protocol in [
                Protocol::LowLatency,
                Protocol::LowLatency128,
                Protocol::Simple,
            ] {
                let is_given =
                    self.algorithms.contains(&algorithm) && self.protocols.contains(&protocol);
                let model = self.model(call, algorithm, protocol).filter(|_| is_given);
                let Some(model) = model else {
                    continue;
                };
                let time = model.latency + call.bytes as f64 / (1000.0 * model.bandwidth);
                if best.is_none_or(|best| time < best.time) {
                    best = Some(self.choice(call, algorithm, protocol, time, model.step));
                }
            }
        }
        best
    }

    fn choice(
        &self,
        call: &NcclCall,
        algorithm: NcclAlgorithm,
        protocol: Protocol,
        time: f64,
        step: f64,
    ) -> NcclChoice {
        let channels = self.channels_for(call, algorithm, protocol);
        let us = |time: f64| Span::from_ps((time * 1e6).round() as u64);
        NcclChoice {
            algorithm,
            protocol,
            channels,
            chunk: chunk(call, algorithm, protocol, channels),
            time,
            launch: us(BASE[algorithm as usize][protocol as usize]),
            step: us(step),
        }
    }

    fn model(
        &self,
        call: &NcclCall,
        algorithm: NcclAlgorithm,
        protocol: Protocol,
    ) -> Option<Model> {
        use NcclAlgorithm::{Ring, Tree};
        let (a, p) = (algorithm as usize, protocol as usize);
        let ranks = f64::from(call.ranks);
        let servers = call.ranks / call.local.max(1);
        let is_allreduce = call.operation == Operation::Allreduce;
        let steps = match call.operation {
            Operation::Allreduce => 2.0 * (ranks - 1.0),
            Operation::ReduceScatter | Operation::Allgather => ranks - 1.0,
            Operation::Broadcast | Operation::Reduce => ranks,
            _ => return None,
        };
        if algorithm == Tree && !is_allreduce {
            return None;
        }
        let gpu = self.gpu as usize;
        let column = match servers {
            1 => 0,
            2 => 1,
            _ => 2,
        };
        let ll_row = match servers {
            1 => gpu,
            _ => self.cpu as usize,
        };
        let channels = f64::from(self.channels);
        let raw = match servers {
            1 => call.local_rate,
            _ => call.server_rate,
        };
        let mut bus = raw;
        match (algorithm, protocol) {
            (Ring, Protocol::LowLatency) => bus = (raw * 0.5).min(LL[ll_row][column]),
            (Ring, Protocol::LowLatency128) => {
                bus = (raw * 0.92).min(channels * RING_LL128[gpu][column]);
            }
            (Ring, Protocol::Simple) => {}
            (Tree, _) => {
                bus = (raw * 0.92).min(channels * TREE[gpu][column]);
                if protocol == Protocol::LowLatency {
                    bus = (bus / 3.8).min(LL[ll_row][column]);
                }
                if protocol == Protocol::LowLatency128 {
                    let share = if servers == 1 {
                        7.0 / 9.0
                    } else {
                        120.0 / 128.0
                    };
                    bus = (bus * share).min(channels * TREE_LL128[gpu][column]);
                }
            }
        }
        let mut bandwidth = bus
            * match algorithm {
                Ring => ranks / steps,
                Tree => 0.5,
            };
        let inner = NVLINK[a][p];
        let outer = match call.local {
            // With one rank on a server nothing hides latencies.
            0 | 1 => NET[Tree as usize][p],
            _ => NET[a][p],
        };
        let mut latency = BASE[a][p];
        match algorithm {
            Ring if matches!(call.operation, Operation::Broadcast | Operation::Reduce) => {
                latency += if servers == 1 { inner } else { NET[a][p] };
            }
            Ring => {
                let overhead = match (servers, self.cpu, protocol) {
                    (1, ..) => 0.0,
                    (_, Cpu::Intel, Protocol::Simple) => 3.0,
                    (_, Cpu::Amd, Protocol::Simple) => 6.0,
                    (_, Cpu::Intel, _) => 1.0,
                    (_, Cpu::Amd, _) => 2.0,
                };
                let between = f64::from(servers - 1) * if is_allreduce { 2.0 } else { 1.0 };
                latency += (steps - between) * inner.max(overhead) + between * outer;
            }
            Tree => {
                let within = f64::from(call.ranks / servers - 1);
                latency += 2.0 * (within * inner + log2(servers) * outer);
            }
        }
        let power = (call.bytes >> 6).checked_ilog2();
        if let (Tree, Some(power @ ..CORRECTED)) = (algorithm, power) {
            bandwidth *= CORRECTION[p][power as usize];
        }
        let part = call.bytes / (u64::from(self.channels) * u64::from(call.ranks));
        if algorithm == Ring
            && protocol == Protocol::Simple
            && servers > 1
            && is_allreduce
            && part >= 64
        {
            latency *= if self.gpu == Gpu::Volta { 1.9 } else { 1.4 };
        }
        let step = if servers == 1 { inner } else { outer };
        Some(Model {
            bandwidth,
            latency,
            step,
        })
    }

    /// Fewer channels for small operations, so that each thread has enough to do.
    fn channels_for(&self, call: &NcclCall, algorithm: NcclAlgorithm, protocol: Protocol) -> u32 {
        let ranks = u64::from(call.ranks);
        let (threads, threshold) = match (algorithm, protocol) {
            (NcclAlgorithm::Ring, Protocol::LowLatency) => (512, 8 * ranks),
            (NcclAlgorithm::Tree, Protocol::LowLatency) => (512, 8),
            (_, Protocol::LowLatency128) => (640, 8),
            (_, Protocol::Simple) => (512, 64),
        };
        let fit = call.bytes / (threads * threshold);
        fit.clamp(1, u64::from(self.channels)) as u32
    }

    /// Time that ranks wait before a step, so that it takes NCCL's latency.
    pub fn lag(&self, choice: &NcclChoice) -> Span {
        choice.step.saturating_sub(self.simulated_latency)
    }
}

fn chunk(call: &NcclCall, algorithm: NcclAlgorithm, protocol: Protocol, channels: u32) -> u64 {
    let mut chunk = protocol.step_bytes();
    let ranks = u64::from(call.ranks);
    match (algorithm, protocol) {
        // A ring's loop has a chunk of each rank; with Simple a chunk is four slots.
        (NcclAlgorithm::Ring, Protocol::Simple) => return 4 * chunk * ranks,
        (NcclAlgorithm::Ring, _) => return chunk * ranks,
        (NcclAlgorithm::Tree, Protocol::LowLatency128) => {
            let servers = call.ranks / call.local.max(1);
            let local = f64::from(call.local.max(1));
            let steps = 1.0 + log2(servers) + 0.1 * local;
            let pieces = |chunk: u64| (call.bytes / (u64::from(channels) * chunk)) as f64;
            while pieces(chunk) < steps * 64.0 / local && chunk > 131_072 {
                chunk /= 2;
            }
            while pieces(chunk) < steps * 16.0 / local && chunk > 32_768 {
                chunk /= 2;
            }
        }
        (NcclAlgorithm::Tree, _) => {}
    }
    chunk
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    fn call(operation: Operation, bytes: u64, ranks: u32, local: u32) -> NcclCall {
        NcclCall {
            operation,
            bytes,
            ranks,
            local,
            server_rate: 50.0 * f64::from(local),
            local_rate: 370.0,
        }
    }

    fn found(call: &NcclCall) -> (NcclAlgorithm, Protocol, u32, f64) {
        let choice = Nccl::default().choose(call).unwrap();
        (
            choice.algorithm,
            choice.protocol,
            choice.channels,
            choice.time,
        )
    }

    /// Oracle: the formulas of `tuning.cc` by hand, for 16 servers of one GPU and 50 GB/s.
    #[test]
    fn times_are_those_of_the_tables() {
        use NcclAlgorithm::{Ring, Tree};
        let (algorithm, protocol, channels, time) = found(&call(Operation::Allreduce, 8, 16, 1));
        assert_eq!(
            (algorithm, protocol, channels),
            (Tree, Protocol::LowLatency, 1)
        );
        // 2 log2 16 steps of 5 us; 50 * 0.92 / 3.8 / 2 GB/s.
        let bandwidth = 50.0 * 0.92 / 3.8 / 2.0;
        assert!((time - (6.8 + 2.0 * 4.0 * 5.0 + 8.0 / 1000.0 / bandwidth)).abs() < 1e-9);
        let (algorithm, protocol, channels, time) =
            found(&call(Operation::Allreduce, 1 << 30, 16, 1));
        assert_eq!((algorithm, protocol, channels), (Ring, Protocol::Simple, 8));
        // 30 steps of 14 us, lengthened by 1.4; 16 / 30 of 50 GB/s.
        let model = 1.4 * (8.4 + 30.0 * 14.0) + f64::from(1 << 30) / 1000.0 / (50.0 * 16.0 / 30.0);
        assert!((time - model).abs() < 1e-6, "{time} {model}");
        // 8 threads' worth: 1 MiB with LL128 has 640 * 8 bytes for each channel.
        let (_, protocol, channels, _) = found(&call(Operation::Allreduce, 1 << 20, 16, 1));
        assert_eq!((protocol, channels), (Protocol::LowLatency128, 8));
    }

    /// Corrections let a larger operation take at most a fifth less time. The order of protocols by size is LL, LL128, Simple.
    #[test]
    fn protocols_follow_each_other_by_size() {
        for (ranks, local) in [(2, 1), (8, 8), (16, 8), (64, 1), (1024, 8)] {
            for operation in [
                Operation::Allreduce,
                Operation::Allgather,
                Operation::Broadcast,
            ] {
                let (mut last, mut longest) = (Protocol::LowLatency, 0.0);
                for power in 3..33 {
                    let (_, protocol, _, time) = found(&call(operation, 1 << power, ranks, local));
                    assert!(
                        protocol as u8 >= last as u8,
                        "{operation:?}, {ranks} ranks, 2^{power}"
                    );
                    assert!(time >= longest * 0.8);
                    (last, longest) = (protocol, time);
                }
                assert_eq!(last, Protocol::Simple);
            }
        }
        assert!(
            Nccl::default()
                .choose(&call(Operation::Alltoall, 8, 4, 1))
                .is_none()
        );
    }
}

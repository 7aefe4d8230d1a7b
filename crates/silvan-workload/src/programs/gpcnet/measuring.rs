use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::Time;

use crate::traffic::rng::{Purpose, shuffle, stream};

use crate::programs::collective;
use crate::programs::op::{Group, Op, Steps};
use crate::programs::pattern::{part, parts};
use crate::programs::section::GpcnetSection;

/// Messages of a bandwidth test that are in progress at once in each direction.
pub const OUTSTANDING: u32 = 8;

/// Bytes of a message of the latency tests and of the allreduce test.
pub const SMALL: u64 = 8;

/// A test: the eight of `network_test`, of which `network_load_test` does the first, the fifth and the
/// seventh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Test {
    /// Latency of small messages in random rings.
    #[serde(rename = "rr-latency")]
    RingLatency,
    /// Latency of small reads in random rings.
    #[serde(rename = "rr-get-latency")]
    RingGetLatency,
    /// Bandwidth of messages in random rings.
    #[serde(rename = "rr-bandwidth")]
    RingBandwidth,
    /// Bandwidth of writes in random rings.
    #[serde(rename = "rr-put-bandwidth")]
    RingPutBandwidth,
    /// Bandwidth of messages in random rings, with a barrier in every iteration.
    #[serde(rename = "rr-bandwidth-sync")]
    RingBandwidthSync,
    /// Bandwidth of messages in the ring of ranks in their order.
    #[serde(rename = "nat-bandwidth")]
    NaturalBandwidth,
    /// Time of a small allreduce.
    #[serde(rename = "allreduce")]
    Allreduce,
    /// Bandwidth of an all-to-all.
    #[serde(rename = "alltoall")]
    Alltoall,
}

impl Test {
    /// All of them, in the order of `network_test`.
    pub const ALL: [Self; 8] = [
        Self::RingLatency,
        Self::RingGetLatency,
        Self::RingBandwidth,
        Self::RingPutBandwidth,
        Self::RingBandwidthSync,
        Self::NaturalBandwidth,
        Self::Allreduce,
        Self::Alltoall,
    ];

    /// Returns the label of the measurements.
    pub const fn label(self) -> &'static str {
        match self {
            Self::RingLatency => "rr-latency",
            Self::RingGetLatency => "rr-get-latency",
            Self::RingBandwidth => "rr-bandwidth",
            Self::RingPutBandwidth => "rr-put-bandwidth",
            Self::RingBandwidthSync => "rr-bandwidth-sync",
            Self::NaturalBandwidth => "nat-bandwidth",
            Self::Allreduce => "allreduce",
            Self::Alltoall => "alltoall",
        }
    }

    /// Measured iterations: of the whole test, or per ring.
    pub const fn iterations(self, keys: &GpcnetSection) -> u32 {
        match self {
            Self::RingLatency | Self::RingGetLatency => keys.latency_iterations,
            Self::Allreduce => keys.allreduce_iterations,
            Self::Alltoall => keys.alltoall_iterations,
            _ => keys.bandwidth_iterations,
        }
    }
}

#[derive(Debug)]
pub(super) struct Measuring {
    pub keys: GpcnetSection,
    pub seed: u64,
    pub slice: u32,
    pub me: u32,
    pub size: u32,
}

impl Measuring {
    fn neighbours(&self, test: Test, ring: u32) -> (u32, u32) {
        let mut order: Vec<u32> = (0..self.size).collect();
        if test != Test::NaturalBandwidth {
            let purpose = Purpose::Programs(1 + self.slice as usize);
            shuffle(&mut stream(self.seed, purpose, ring.into()), &mut order);
        }
        let place = order.iter().position(|rank| *rank == self.me).unwrap_or(0);
        let at = |offset: usize| self.slice * self.size + order[(place + offset) % order.len()];
        (at(order.len() - 1), at(1))
    }

    fn beside(&self, test: Test, (left, right): (u32, u32), out: &mut Vec<Op>) {
        let bytes = self.keys.bandwidth_bytes.as_u64();
        match test {
            Test::RingGetLatency => {
                let get = |from| Op::Get { from, bytes: SMALL };
                out.extend([get(left), get(right), Op::Wait]);
            }
            Test::RingPutBandwidth => {
                let put = |to| Op::Put { to, bytes };
                (0..OUTSTANDING).for_each(|_| out.extend([put(left), put(right)]));
                out.push(Op::Wait);
            }
            Test::RingLatency => collective::neighbours(out, left, right, SMALL, 1),
            _ => collective::neighbours(out, left, right, bytes, OUTSTANDING),
        }
        if test == Test::RingBandwidthSync {
            collective::doubling::barrier(out, self.group(), self.me);
        }
    }

    fn meet(&self, out: &mut Vec<Op>) {
        let all = Group::all(self.size * self.keys.ranks_per_host);
        collective::doubling::barrier(out, all, self.slice * self.size + self.me);
    }

    fn measured(
        &self,
        out: &mut Vec<Op>,
        label: u16,
        first: u32,
        iterations: u32,
        once: impl Fn(&mut Vec<Op>),
    ) {
        self.meet(out);
        for _ in 0..self.keys.warm_up {
            once(out);
        }
        out.push(Op::Begin);
        for index in first..first + iterations {
            once(out);
            out.push(Op::End { label, index });
        }
        collective::doubling::barrier(out, self.group(), self.me);
    }

    /// With many ranks, a single all-to-all has too many messages for one step.
    fn alltoall(&self, out: &mut Vec<Op>, label: u16, step: u64) {
        let (operation, steps, is_last) =
            part(collective::pairwise::alltoall_length(self.group()), step);
        let warm_up = u64::from(self.keys.warm_up);
        if step == 0 {
            self.meet(out);
        }
        if steps.start == 0 && operation == warm_up {
            out.push(Op::Begin);
        }
        let bytes = self.keys.alltoall_bytes.as_u64();
        collective::pairwise::alltoall_steps(out, self.group(), self.me, bytes, steps);
        if is_last && operation >= warm_up {
            let index = (operation - warm_up) as u32;
            out.push(Op::End { label, index });
        }
    }

    fn group(&self) -> Group {
        Group::range(self.slice * self.size, self.size)
    }

    fn length(&self, test: Test) -> u64 {
        match test {
            Test::Allreduce => 1,
            Test::Alltoall => {
                let times = u64::from(self.keys.warm_up) + u64::from(test.iterations(&self.keys));
                times * parts(collective::pairwise::alltoall_length(self.group()))
            }
            _ => self.keys.rings.into(),
        }
    }
}

impl Steps for Measuring {
    fn step(&mut self, step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        if step == 0 {
            out.push(Op::Compute(self.keys.settle));
        }
        let mut step = step;
        for (label, test) in (0..).zip(self.keys.tests.iter().copied()) {
            let length = self.length(test);
            if step >= length {
                step -= length;
                continue;
            }
            let iterations = test.iterations(&self.keys);
            match test {
                Test::Allreduce => self.measured(out, label, 0, iterations, |out| {
                    collective::doubling::allreduce(out, self.group(), self.me, SMALL);
                }),
                Test::Alltoall => self.alltoall(out, label, step),
                _ => {
                    let ring = step as u32;
                    let neighbours = self.neighbours(test, ring);
                    self.measured(out, label, ring * iterations, iterations, |out| {
                        self.beside(test, neighbours, out);
                    });
                }
            }
            return true;
        }
        false
    }
}

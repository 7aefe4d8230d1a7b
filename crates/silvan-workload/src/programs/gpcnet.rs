//! GPCNeT: slowdown of sensitive communication by congestion.
//!
//! S. Chunduri, T. Groves, P. Mendygral, B. Austin, J. Balma, K. Kandalla, K. Kumaran, G. Lockwood, S. Parker, S.
//! Warren, N. Wichmann and N. Wright, "GPCNeT: Designing a Benchmark Suite for Inducing and Measuring Contention in HPC
//! Networks", SC 2019; `network_load_test` and `network_test` 1.2.
//!
//! Four fifths of the hosts congest the network by one of four patterns per *slice* (ranks of one number on their
//! hosts), the others measure, with fewer iterations than the original's ten seconds.

mod measuring;

use crate::traffic::rng::{Purpose, shuffle, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, Time};

use crate::programs::collective;
use crate::programs::op::{Group, Op, Steps};
use crate::programs::pattern::part;
use crate::programs::section::GpcnetSection;
use crate::programs::spec::{Helpers, JobSpec, Script};
use measuring::Measuring;
pub use measuring::{OUTSTANDING, SMALL, Test};

/// Ranks that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The tests alone.
    Isolated,
    /// The congestors alone, for as long as the run lasts.
    Congestors,
    /// The tests among the congestors.
    #[default]
    Congested,
}

/// A benchmark run.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpcnet {
    /// The hosts, in their order.
    pub hosts: Vec<HostId>,
    /// Everything else.
    pub keys: GpcnetSection,
}

/// Names of jobs and traffic classes: the tests, then the congestors.
pub const JOBS: [&str; 5] = [
    "gpcnet-tests",
    "alltoall",
    "p2p-incast",
    "put-incast",
    "get-broadcast",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Congestor {
    Alltoall,
    TwoSidedIncast,
    PutIncast,
    GetBroadcast,
}

const CONGESTORS: [Congestor; 4] = [
    Congestor::Alltoall,
    Congestor::TwoSidedIncast,
    Congestor::PutIncast,
    Congestor::GetBroadcast,
];

impl Gpcnet {
    /// The hosts that congest, those of the four congestors in turn, and the hosts that measure.
    pub fn split(&self, seed: u64) -> ([Vec<HostId>; 4], Vec<HostId>) {
        let mut hosts = self.hosts.clone();
        let mut random = stream(seed, Purpose::Programs(0), 0);
        shuffle(&mut random, &mut hosts);
        let share = (self.keys.congestor_share * hosts.len() as f64).floor() as usize;
        let tests = hosts.split_off(share.min(hosts.len()));
        let mut colours: Vec<usize> = (0..hosts.len()).collect();
        shuffle(&mut random, &mut colours);
        let mut congestors: [Vec<HostId>; 4] = Default::default();
        for (host, colour) in hosts.into_iter().zip(colours) {
            congestors[colour % 4].push(host);
        }
        (congestors, tests)
    }

    /// Returns true if there are enough hosts: two for the tests and two for each congestor.
    pub fn has_hosts_enough(&self) -> bool {
        let share = (self.keys.congestor_share * self.hosts.len() as f64).floor() as usize;
        share >= 8 && self.hosts.len() >= share + 2
    }

    /// The jobs; their packets have the classes from `class` on, one each for [`JOBS`].
    pub fn jobs(&self, seed: u64, class: u16) -> Vec<JobSpec> {
        let (congestors, tests) = self.split(seed);
        let mut jobs = Vec::new();
        if self.keys.part != Part::Congestors {
            jobs.push(self.job(0, class, &tests, |slice, me, size| {
                Box::new(Measuring {
                    keys: self.keys.clone(),
                    seed,
                    slice,
                    me,
                    size,
                })
            }));
        }
        if self.keys.part != Part::Isolated {
            for ((number, hosts), congestor) in (1..).zip(&congestors).zip(CONGESTORS) {
                jobs.push(self.job(number, class, hosts, |slice, me, size| {
                    let group = Group::range(slice * size, size);
                    let bytes = self.keys.congestor_bytes.as_u64();
                    Box::new(Congesting {
                        congestor,
                        group,
                        me,
                        bytes,
                    })
                }));
            }
        }
        jobs
    }

    fn job(
        &self,
        number: u16,
        class: u16,
        hosts: &[HostId],
        steps: impl Fn(u32, u32, u32) -> Box<dyn Steps>,
    ) -> JobSpec {
        let size = hosts.len() as u32;
        let slices = 0..self.keys.ranks_per_host;
        let places = slices.flat_map(|slice| (0..size).map(move |me| (slice, me)));
        let ranks = places.map(|(slice, me)| {
            let script = Script::Sequence(steps(slice, me, size));
            (hosts[me as usize], script)
        });
        let tests = number == 0;
        let labels = self.keys.tests.iter().filter(|_| tests);
        JobSpec {
            name: JOBS[usize::from(number)].to_owned(),
            class: class + number,
            sl: if tests {
                self.keys.sl
            } else {
                self.keys.congestor_sl
            },
            start: Time::ZERO,
            background: !tests,
            stragglers: Vec::new(),
            ranks: ranks.collect(),
            rails: Vec::new(),
            helpers: Helpers::default(),
            labels: labels.map(|test| test.label().to_owned()).collect(),
        }
    }
}

#[derive(Debug)]
struct Congesting {
    congestor: Congestor,
    group: Group,
    me: u32,
    bytes: u64,
}

impl Steps for Congesting {
    fn step(&mut self, step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        let (root, bytes) = (self.group.first, self.bytes);
        match self.congestor {
            Congestor::Alltoall => {
                let (_, steps, _) = part(collective::pairwise::alltoall_length(self.group), step);
                collective::pairwise::alltoall_steps(out, self.group, self.me, bytes, steps);
            }
            Congestor::TwoSidedIncast => {
                collective::direct::incast(out, self.group, self.me, 0, bytes)
            }
            Congestor::PutIncast | Congestor::GetBroadcast if self.me == 0 => return false,
            Congestor::PutIncast => out.extend([Op::Put { to: root, bytes }, Op::Wait]),
            Congestor::GetBroadcast => out.extend([Op::Get { from: root, bytes }, Op::Wait]),
        }
        true
    }
}

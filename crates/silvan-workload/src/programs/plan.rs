use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{HostId, Sl, Span, Time};

use crate::programs::collective::Collective;
use crate::programs::gpcnet::{self, Gpcnet};
use crate::programs::hpcc::{self, Hpcc};
use crate::programs::inference::{self, InferencePlan};
use crate::programs::op::Group;
use crate::programs::pattern::{Burst, Bursts, Looped};
use crate::programs::schedule::Schedule;
use crate::programs::section::Messaging;
use crate::programs::sharp::SharpPlan;
use crate::programs::spec::{Helpers, JobSpec, Script, Straggler};
use crate::programs::stream::{Stream, StreamRank};

/// Assignment of ranks to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// A host gets its ranks one after the other.
    #[default]
    Block,
    /// Each host gets one rank, then each a second one.
    Cyclic,
    /// Like `block`, on the hosts in random order, which `placement-seed` chooses.
    Random,
    /// Like `block`, on the first host of each server, then on the second of each, and so on;
    /// `server-ranks` adjacent hosts make a server.
    Rail,
}

/// Work of a job's ranks.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A collective operation over and over.
    Collective {
        /// The operation.
        collective: Collective,
        /// Number of operations; `None` is without end.
        iterations: Option<u64>,
        /// Computing before each operation.
        compute: Span,
        /// Time before the first one.
        start: Span,
        /// Bursts with pauses between them, if there are any.
        burst: Option<Burst>,
    },
    /// A schedule for each rank.
    Schedules {
        /// The schedules.
        schedules: Vec<Arc<Schedule>>,
        /// Time before them.
        start: Span,
    },
    /// A list of steps that all ranks do.
    Stream {
        /// The list.
        stream: Arc<Stream>,
        /// Time before it.
        start: Span,
    },
    /// A collective operation over aggregation trees, over and over.
    Sharp {
        /// The operation and its trees.
        plan: Arc<SharpPlan>,
        /// Time before the first one.
        start: Span,
    },
    /// Serving of requests.
    Inference {
        /// Instances and requests.
        plan: Arc<InferencePlan>,
        /// Time before the first one.
        start: Span,
    },
    /// A schedule for each rank, over and over.
    Loops {
        /// The schedules.
        schedules: Vec<Arc<Schedule>>,
        /// Number of rounds; `None` is without end.
        iterations: Option<u64>,
        /// Time before the first one.
        start: Span,
        /// The collective operation of a round, if it is one.
        collective: Option<Collective>,
    },
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// Name of the job.
    pub name: String,
    /// Hosts in the order of the ranks. Adapters of one host are adjacent.
    pub hosts: Vec<HostId>,
    /// Adapters of each host.
    pub rails: u32,
    /// Ranks on each host.
    pub ranks_per_host: u32,
    /// Assignment of ranks to hosts.
    pub placement: Placement,
    /// Work of the ranks.
    pub work: Work,
    /// True if the run may end before the job.
    pub background: bool,
    /// Service level of its packets.
    pub sl: Sl,
    /// Ranks that are slower than their program.
    pub stragglers: Vec<Straggler>,
}

impl JobPlan {
    /// Returns the host of each rank: as many as programs, or as places.
    pub fn rank_hosts(&self) -> Vec<HostId> {
        let nodes: Vec<HostId> = (self.hosts.iter().copied())
            .step_by(self.rails as usize)
            .collect();
        let places = nodes.len() * self.ranks_per_host as usize;
        let count = match &self.work {
            Work::Collective { .. } | Work::Sharp { .. } => places,
            Work::Inference { plan, .. } => plan.ranks() as usize,
            Work::Schedules { schedules, .. } | Work::Loops { schedules, .. } => schedules.len(),
            Work::Stream { stream, .. } => stream.ranks as usize,
        };
        let host = |rank: usize| match self.placement {
            Placement::Block | Placement::Random | Placement::Rail => {
                nodes[rank / self.ranks_per_host as usize]
            }
            Placement::Cyclic => nodes[rank % nodes.len()],
        };
        (0..count.min(places)).map(host).collect()
    }

    fn start(&self) -> Time {
        match self.work {
            Work::Collective { start, .. }
            | Work::Sharp { start, .. }
            | Work::Inference { start, .. }
            | Work::Loops { start, .. }
            | Work::Stream { start, .. }
            | Work::Schedules { start, .. } => Time::ZERO + start,
        }
    }

    /// The job, whose packets have this class.
    pub fn job(&self, class: u16) -> JobSpec {
        let mut hosts = self.rank_hosts();
        let group = Group::all(hosts.len() as u32);
        let bursts = match &self.work {
            Work::Collective { burst, .. } => burst.map(Bursts::new),
            _ => None,
        };
        let mut helpers = Helpers::default();
        let mut scripts = Vec::new();
        let mut labels = vec!["operation".to_owned()];
        match &self.work {
            Work::Sharp { plan, .. } => {
                hosts.extend(plan.switch_hosts());
                helpers = plan.helpers();
                scripts = SharpPlan::scripts(plan);
            }
            Work::Inference { plan, .. } => {
                let receivers = plan.receivers();
                helpers.ranks = receivers.len() as u32;
                let more: Vec<HostId> =
                    receivers.iter().map(|rank| hosts[*rank as usize]).collect();
                hosts.extend(more);
                scripts = InferencePlan::scripts(plan);
                labels = inference::LABELS.map(str::to_owned).to_vec();
            }
            _ => {}
        }
        let mut scripts = scripts.into_iter();
        let mut script = |rank: usize| match &self.work {
            Work::Sharp { .. } | Work::Inference { .. } => {
                scripts.next().expect("a script for each rank")
            }
            Work::Schedules { schedules, .. } => Script::Schedule(schedules[rank].clone()),
            Work::Stream { stream, .. } => {
                Script::Sequence(Box::new(StreamRank::new(Arc::clone(stream), rank as u32)))
            }
            Work::Loops {
                schedules,
                iterations,
                ..
            } => Script::Loop {
                schedule: schedules[rank].clone(),
                times: *iterations,
            },
            &Work::Collective {
                collective,
                iterations,
                compute,
                ..
            } => Script::Sequence(Box::new(Looped {
                collective,
                group,
                me: rank as u32,
                compute,
                iterations,
                bursts: bursts.clone(),
            })),
        };
        let rails = match self.rails {
            1 => Vec::new(),
            rails => {
                let nodes = self.hosts.chunks(rails as usize);
                let adapters = |host: &HostId| {
                    let node = nodes.clone().find(|node| node[0] == *host);
                    node.unwrap_or_default().into()
                };
                hosts.iter().map(adapters).collect()
            }
        };
        let ranks = hosts.into_iter().enumerate();
        JobSpec {
            name: self.name.clone(),
            class,
            sl: self.sl,
            start: self.start(),
            background: self.background,
            ranks: ranks.map(|(rank, host)| (host, script(rank))).collect(),
            rails,
            stragglers: self.stragglers.clone(),
            helpers,
            labels,
        }
    }
}

/// Everything that runs on the hosts in addition to the traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Parameters of messages.
    pub messaging: Messaging,
    /// Jobs.
    pub jobs: Vec<JobPlan>,
    /// The benchmark GPCNeT, if it runs.
    pub gpcnet: Option<Gpcnet>,
    /// The benchmark HPCC, if it runs.
    pub hpcc: Option<Hpcc>,
}

impl Plan {
    /// Returns true if the run ends with the jobs, perhaps before its time is over.
    pub fn ends_run(&self) -> bool {
        let ends = self.jobs.iter().any(|job| !job.background);
        ends || self.gpcnet.is_some() || self.hpcc.is_some()
    }

    /// Names of the traffic classes of the jobs' packets, in order.
    pub fn classes(&self) -> Vec<String> {
        let jobs = self.jobs.iter().map(|job| job.name.clone());
        let gpcnet = self.gpcnet.iter().flat_map(|_| gpcnet::JOBS);
        let hpcc = self.hpcc.iter().map(|_| hpcc::JOB.to_owned());
        jobs.chain(gpcnet.map(str::to_owned)).chain(hpcc).collect()
    }

    /// The jobs of a run with this seed, with traffic classes from `class` on.
    pub fn jobs(&self, seed: u64, class: u16) -> Vec<JobSpec> {
        let mut next = class;
        let mut jobs = Vec::new();
        for plan in &self.jobs {
            jobs.push(plan.job(next));
            next += 1;
        }
        if let Some(gpcnet) = &self.gpcnet {
            jobs.extend(gpcnet.jobs(seed, next));
            next += gpcnet::JOBS.len() as u16;
        }
        jobs.extend(self.hpcc.as_ref().map(|hpcc| hpcc.job(seed, next)));
        jobs
    }
}

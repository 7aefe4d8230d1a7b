use std::collections::BTreeSet;

use silvan_core::{HostId, Rate, Time};
use silvan_workload::Demand;
use silvan_workload::programs::{JobSpec, Plan, Script};
use silvan_workload::traffic::Traffic;

use crate::checks::limits::series_bytes;
use crate::checks::refused;
use crate::{Scenario, ScenarioError};

/// Memory of a process with the interpreter and its libraries, before a run [bytes].
const PROCESS: f64 = 50e6;
/// Memory of the data plane for each port, the median of the benchmarks [bytes].
const PORT: f64 = 1_300.0;
/// Memory of a port, of its cable and of its part of a node, as the fabric has them [bytes].
const CABLED_PORT: f64 = 130.0;
/// Memory of a host in addition: its name, its traffic and its rows of tables [bytes].
const HOST: f64 = 1_500.0;
/// Memory of an operation of a program, with its place in the schedule [bytes].
const OPERATION: f64 = 100.0;
/// Time that programs take over that of their bytes on the links of their hosts: ranks wait for each other.
const SYNCHRONISATION: f64 = 1.5;
/// Share of its demand up to which a receiver counts as saturated, so that congestion trees grow.
const SATURATED: f64 = 0.5;
/// Part that other receivers get beside saturated ones, by head-of-line blocking: an average of the examples.
const BLOCKED: f64 = 0.5;
/// Memory of a flow: its record and its row of the table `flows` [bytes].
const FLOW: f64 = 256.0;

/// Resources of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Delivered packets, each times the links that it crosses.
    pub packet_hops: f64,
    /// Memory of the process at its peak, in bytes.
    pub memory_bytes: f64,
}

impl Scenario {
    /// Estimates the size of a run with this seed, or refuses an impossible placement.
    pub fn estimate(&self, seed: u64) -> Result<Estimate, ScenarioError> {
        let environment = self.environment(seed);
        let traffic =
            Traffic::new(self.traffic(), &environment).map_err(|error| refused(&error))?;
        let hosts = self.fabric().host_count() as f64;
        let mtu = self.file().packet.mtu.as_u64() as u32;
        let rates = &environment.injection;
        let rate_of = |hosts: &BTreeSet<HostId>| -> f64 {
            // Aggregation nodes have no rate of their own.
            let rates = hosts.iter().filter_map(|host| rates.get(host.index()));
            let rates = rates.map(|rate| rate.bits_per_sec());
            rates.map(|rate| rate as f64 / 8.0).sum()
        };
        let plan = self.programs();
        let jobs = plan.map_or_else(Vec::new, |plan| plan.jobs(seed, 0));
        let ops: f64 = jobs.iter().map(operations).sum();
        let (background, foreground): (Vec<JobSpec>, Vec<JobSpec>) =
            jobs.into_iter().partition(|job| job.background);
        let mut seconds = self.duration().as_secs_f64();
        let mut of_programs = Demand::default();
        let ends_run = plan.is_some_and(Plan::ends_run);
        let mut longest = 0_f64;
        for job in foreground {
            let rate = rate_of(&hosts_of(&job));
            let of_rank = rate * seconds / job.ranks.len().max(1) as f64;
            let demand = job.demand(of_rank, mtu);
            longest = longest.max(SYNCHRONISATION * demand.bytes / rate.max(1.0));
            of_programs.add(demand);
        }
        // All else lasts as long as the programs that end the run.
        if ends_run {
            seconds = seconds.min(longest);
        }
        for job in background {
            let of_rank = rate_of(&hosts_of(&job)) * seconds / job.ranks.len().max(1) as f64;
            of_programs.add(job.demand(of_rank, mtu));
        }
        let end = Time::from_ps((seconds * 1e12) as u64);
        let demands = traffic.demands(end, rates);
        let shares: Vec<f64> = { demands.iter().zip(rates) }
            .map(|(demand, link)| self.sink_rate(*link) / 8.0 * seconds / demand.bytes.max(1.0))
            .collect();
        // Without control, packets to saturated receivers block the others.
        let is_saturated = shares.iter().any(|share| *share < SATURATED);
        let others = match is_saturated && !self.scheme().acts() {
            true => BLOCKED,
            false => 1.0,
        };
        let taken = { demands.iter().zip(shares) }.map(|(demand, share)| {
            let share = if share < 1.0 { share } else { others };
            demand.packets * share
        });
        let of_traffic: f64 = taken.sum();
        let report = self.routes();
        let ports = self.fabric().ports.len() as f64;
        let tables = self.forwarding().tables;
        let entries = match tables.rule() {
            Some(_) => 0.0,
            None => self.fabric().switch_count() as f64 * hosts,
        };
        let flows = traffic.expected_flows(end) as f64;
        let classes = traffic.classes().len();
        Ok(Estimate {
            packet_hops: (of_traffic + of_programs.packets) * report.mean_hops,
            memory_bytes: PROCESS
                + ports * (PORT + CABLED_PORT)
                + hosts * HOST
                + entries
                + flows * FLOW
                + ops * OPERATION
                + series_bytes(self.file(), self.fabric(), classes),
        })
    }

    fn sink_rate(&self, link: Rate) -> f64 {
        let sink = self.engine_config().host.sink_rate;
        let most = sink.map_or(link, |sink| sink.min(link));
        most.bits_per_sec() as f64
    }
}

fn hosts_of(job: &JobSpec) -> BTreeSet<HostId> {
    job.ranks.iter().map(|(host, _)| *host).collect()
}

fn operations(job: &JobSpec) -> f64 {
    let scripts = job.ranks.iter().map(|(_, script)| script);
    let counts = scripts.map(|script| match script {
        Script::Schedule(schedule) | Script::Loop { schedule, .. } => schedule.ops().len(),
        Script::Sequence(_) | Script::External => 0,
    });
    counts.sum::<usize>() as f64
}

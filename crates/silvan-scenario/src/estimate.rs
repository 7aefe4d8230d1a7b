//! An estimate of the size of a run before it starts.

use silvan_core::{Rate, Time};
use silvan_workload::Demand;
use silvan_workload::programs::Plan;
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
/// Memory of a flow: its record and its row of the table `flows` [bytes].
const FLOW: f64 = 256.0;

/// What a run takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Delivered packets, each times the links that it crosses.
    pub packet_hops: f64,
    /// Memory of the process at its peak, in bytes.
    pub memory_bytes: f64,
}

impl Scenario {
    /// Estimates the size of a run with this seed: what its sources send, as far as the receivers take it, over routes of mean
    /// length. Programs send all that they have to send.
    ///
    /// # Errors
    ///
    /// The placement that this seed gives is impossible.
    pub fn estimate(&self, seed: u64) -> Result<Estimate, ScenarioError> {
        let environment = self.environment(seed);
        let traffic =
            Traffic::new(self.traffic(), &environment).map_err(|error| refused(&error))?;
        let hosts = self.fabric().host_count() as f64;
        let mtu = self.file().packet.mtu.as_u64() as u32;
        let rates = environment.injection.iter();
        let rate: f64 = rates.map(|rate| rate.bits_per_sec() as f64 / 8.0).sum();
        let most = rate * self.duration().as_secs_f64();
        let plan = self.programs();
        let mut of_programs = Demand::default();
        for job in plan.into_iter().flat_map(|plan| plan.jobs(seed, 0)) {
            let of_rank = most / job.ranks.len().max(1) as f64;
            of_programs.add(job.demand(of_rank, mtu));
        }
        let of_programs = of_programs.scaled((most / of_programs.bytes.max(1.0)).min(1.0));
        // Traffic next to programs lasts as long as these take; half of the links' time is theirs.
        let seconds = match plan.is_some_and(Plan::ends_run) {
            true => (2.0 * of_programs.bytes / rate).min(self.duration().as_secs_f64()),
            false => self.duration().as_secs_f64(),
        };
        let end = Time::from_ps((seconds * 1e12) as u64);
        let packets = |demands: &[Demand]| -> f64 {
            let taken = demands.iter().zip(&environment.injection);
            taken
                .map(|(demand, link)| {
                    let most = self.sink_rate(*link) / 8.0 * seconds;
                    demand.packets * (most / demand.bytes.max(1.0)).min(1.0)
                })
                .sum()
        };
        let of_traffic = packets(&traffic.demands(end, &environment.injection));
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
                + series_bytes(self.file(), self.fabric(), classes),
        })
    }

    /// Payload rate at which a host receives.
    fn sink_rate(&self, link: Rate) -> f64 {
        let sink = self.engine_config().host.sink_rate;
        let most = sink.map_or(link, |sink| sink.min(link));
        most.bits_per_sec() as f64
    }
}

//! Running a scenario: engine, traffic and control together.
//!
//! A step ends at samples, at the end of the warm-up, at changes of settings and at sweeps of a controller. Steps
//! follow from the scenario alone, and results do not depend on them. The caller passes [`Engines`], those of
//! `silvan-instances`.
//!
//! ```
//! use std::ops::ControlFlow;
//! use silvan_instances::Fastest;
//! use silvan_sim::run;
//! use silvan_scenario::Scenario;
//!
//! let text = r#"
//! [fabric]
//! generator = "single-switch"
//! hosts = 8
//! [[traffic.incast]]
//! to = "host-0000"
//! "#;
//! let scenario = Scenario::from_toml(text, "incast.toml", &[])?;
//! let output = run(&Fastest, &scenario, scenario.seed(), &mut |_| ControlFlow::Continue(()))?;
//! let hosts = output.table("hosts").expect("every run has it");
//! let delivered = hosts.u64_column("delivered_bytes").expect("a column of whole numbers");
//! assert!(delivered[0] > 0 && delivered[1..].iter().all(|bytes| *bytes == 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alone;
mod assemble;
mod decisions;
mod faults;
mod flows;
mod hops;
mod ideal;
mod latencies;
mod limits;
mod measure;
mod programs;
mod schedule;
mod sequences;
mod session;
mod steps;
mod table;
mod tables;
mod trees;

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;
use silvan_cc::dcms::DcmsController;
use silvan_cc::hooks::{Controller, UnknownSetting};
use silvan_core::{Span, Time};
use silvan_model::BuildError;
pub use silvan_model::Latencies;
use silvan_workload::programs::{Fault, JobRecord};
use silvan_workload::traffic::TrafficError;
use thiserror::Error;

pub use assemble::{build_live_control, build_load};
pub use latencies::LatencySummary;
pub use schedule::{EndCheck, Schedule};
pub use session::{Pause, Session, SessionTotals, has_route, request};
pub use table::{Column, ColumnData, Table};
pub use tables::table_reference;

use assemble::{assemble, build_control};
use measure::Measurement;
use programs::{ProgramState, program_state};
use silvan_cc::schemes::SchemeError;
use silvan_cc::schemes::callbacks::{Callbacks, Failure, Stopped};
use silvan_fabric::Fabric;
use silvan_model::{EngineError, Engines, Simulation};
use silvan_scenario::Scenario;
use steps::RunSteps;
use trees::TreeLog;

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Simulated time so far.
    pub simulated: Span,
    /// Simulated time at the end.
    pub total: Span,
    /// Delivered packets so far, each times the links it crossed.
    pub packet_hops: u64,
    /// Events processed so far.
    pub events: u64,
    /// Time that the run has taken so far, in seconds.
    pub wall_s: f64,
}

/// Cost and origin of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// [Hash](Scenario::hash) of the scenario.
    pub hash: String,
    /// Seed of the run.
    pub seed: u64,
    /// Version of this crate.
    pub version: &'static str,
    /// Simulated time, in picoseconds.
    pub simulated_ps: u64,
    /// Time that the run has taken, without building it, in seconds.
    pub wall_s: f64,
    /// Most threads that could process events; one where the run cannot be divided.
    pub threads: u64,
    /// Mean seconds that threads take to meet, of the measured lookahead windows; `None` on one thread.
    pub barrier_s: Option<f64>,
    /// Work of the thread with most of it over the mean of all, by lookahead window; 1 is even, `None` on one thread.
    pub imbalance: Option<f64>,
    /// Events processed.
    pub events: u64,
    /// Delivered packets, each times the links it crossed, the warm-up included.
    pub packet_hops: u64,
    /// Packet-hops that were leapt over because they repeat others.
    pub leapt_packet_hops: u64,
    /// Why nothing was leapt over; `None` if the run could.
    pub no_leaps: Option<&'static str>,
    /// Data packets delivered, the warm-up included.
    pub delivered_packets: u64,
    /// Payload delivered after the warm-up, in bytes.
    pub delivered_bytes: u64,
    /// Latencies of the packets that were delivered after the warm-up; `None` if there are none, or they are not kept.
    pub latency: Option<LatencySummary>,
    /// Packets discarded for want of a forwarding entry, with the warm-up; 0 unless the scenario allows them.
    pub unroutable_packets: u64,
    /// Data packets overtaken by later ones of their flow, with the warm-up; 0 on single paths.
    pub reordered_packets: u64,
    /// Unmet conditions of a scheme that never acted, such as "no queue reached k-min, 5 KB".
    pub idle_scheme: Option<String>,
    /// Ports of the fabric.
    pub ports: u64,
    /// Memory of the data plane at the end, in bytes.
    pub memory_bytes: u64,
    /// Memory per port, in bytes.
    pub bytes_per_port: f64,
}

/// Results of a run: deliveries, counters and samples.
///
/// | table | rows | covers |
/// |---|---|---|
/// | `hosts` | one per host | from the end of the warm-up |
/// | `host_latencies` | one per host and interval of latencies, if kept by host | from the end of the warm-up |
/// | `latency_series` | one per probe interval and interval of latencies, if kept by host | from the start |
/// | `host_series` | one per probe interval and host, by time | from the start |
/// | `classes` | one per traffic class | from the end of the warm-up |
/// | `flows` | one per flow with a given number of bytes, if there are any | from the start |
/// | `flow_sizes` | one per class of many flows and range of sizes, if there are any | from the end of the warm-up |
/// | `sequences` | one per sequence, if there are any | from the start |
/// | `ports` | one per cabled port | from the end of the warm-up |
/// | `port_series` | one per probe interval and row of `ports`, by time, if asked for | from the start |
/// | `packet_hops` | one per traced packet and port that it leaves, if asked for | from the start |
/// | `forest`, `trees`, `tree_ports`, `tree_hosts`, `tree_lifetimes` | congestion trees, if asked for | from the start |
/// | `dcms` | one per decision of the DCMS, by time, if the scenario has one | from the start |
/// | `programs`, `ranks`, `program_marks`, `program_ops` | message-passing programs, if there are any | from the start |
/// | `program_messages`, `program_steps` | messages and steps of programs, if asked for | from the start |
/// | `class_series` | one per probe interval and traffic class, by time, if asked for | from the start |
/// | `flow_limits` | one per probe interval and flow whose rate is limited, by time, if asked for | from the start |
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutput {
    /// The tables.
    pub tables: Vec<Table>,
    /// Cost and provenance.
    pub summary: Summary,
}

impl RunOutput {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The observer said so.
    #[error("interrupted at {at}")]
    Interrupted {
        /// Simulated time reached.
        at: Time,
    },
    /// Packets wait for each other's buffers in a cycle.
    #[error("{description}")]
    Deadlock {
        /// Time and place, in the fabric's names.
        description: String,
        /// Ports of the cycle in the order of travel, as `switch:port (VL n)`.
        cycle: Vec<String>,
    },
    /// A buffer under PFC had no room for a packet.
    #[error("{description}")]
    Loss {
        /// Time, place and number of bytes, in the fabric's names.
        description: String,
        /// Settings that prevent the loss.
        hint: String,
    },
    /// The engine cannot go on.
    #[error(transparent)]
    Engine(EngineError),
    /// The engine cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The traffic does not work with this seed.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Congestion control cannot be built.
    #[error(transparent)]
    Control(#[from] SchemeError),
    /// A function of a scheme in Python raised an exception, or returned a value that is not valid.
    #[error("{} failed at {} ps", .0.hook, .0.arguments[0])]
    Scheme(Failure),
    /// A controller asked for a setting that the scheme does not have.
    #[error(transparent)]
    Setting(#[from] UnknownSetting),
    /// A message-passing program cannot go on, or ends as no correct one does.
    #[error(transparent)]
    Program(#[from] Fault),
    /// A message-passing program has not ended with the run.
    #[error(
        "program {job:?} has not ended after {duration}: {left} of its {ranks} ranks are at work{lost}"
    )]
    Unfinished {
        /// Name of the job.
        job: String,
        /// Simulated time.
        duration: Span,
        /// Ranks that have not come to their end.
        left: usize,
        /// All its ranks.
        ranks: u32,
        /// Messages of which packets were lost, in words; empty if there are none.
        lost: String,
    },
    /// Messages of a driver can no longer arrive.
    #[error(
        "{pending} messages have not arrived, and nothing has moved since {since}: switches have discarded them, or \
        congestion control holds them back for good"
    )]
    Stalled {
        /// Number of pending requests.
        pending: u32,
        /// Time of the last event.
        since: Time,
    },
}

/// Runs a scenario with a seed; the scenario's own is [`Scenario::seed`].
///
/// The observer is called many times a second with the progress, and stops the run by breaking.
///
/// # Errors
/// [`RunError`]; nothing is left of the run.
///
/// ```
/// use std::ops::ControlFlow;
/// use silvan_instances::Fastest;
/// use silvan_sim::run;
/// use silvan_scenario::Scenario;
///
/// let text = r#"
/// [fabric]
/// generator = "single-switch"
/// hosts = 2
/// [[traffic.flow]]
/// from = "host-0000"
/// to = "host-0001"
/// bytes = "64 KiB"
/// [run]
/// duration = "100 us"
/// "#;
/// let scenario = Scenario::from_toml(text, "flow.toml", &[])?;
/// let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(output.summary.delivered_bytes, 64 << 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let Some(dcms) = scenario.dcms() else {
        return run_controlled(engines, scenario, seed, None, observer);
    };
    let mut controller = DcmsController::new(dcms.clone());
    let mut output = run_controlled(engines, scenario, seed, Some(&mut controller), observer)?;
    let table = decisions::table(scenario, &controller);
    output.tables.push(table);
    Ok(output)
}

/// Runs a scenario whose counters and settings a given manager watches and changes. Errors as [`run`].
pub fn run_controlled(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    controller: Option<&mut dyn Controller>,
    observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let control = build_control(scenario, seed)?;
    let engine = assemble(engines, scenario, seed, control)?;
    Run::new(engines, scenario, seed, engine).complete(controller, observer)
}

/// Runs a scenario with functions in place of its own scheme. Errors as [`run`].
pub fn run_callbacks(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    callbacks: Callbacks,
    observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let engine = assemble(engines, scenario, seed, callbacks.clone().into())?;
    let mut run = Run::new(engines, scenario, seed, engine);
    run.callbacks = Some(callbacks);
    run.complete(None, observer)
}

fn engine_error(error: EngineError, fabric: &Fabric) -> RunError {
    match error {
        EngineError::Deadlock(deadlock) => RunError::Deadlock {
            description: deadlock.describe(fabric),
            cycle: deadlock
                .cycle
                .iter()
                .map(|(port, vl)| format!("{} (VL {vl})", fabric.port_name(*port)))
                .collect(),
        },
        EngineError::Loss(loss) => RunError::Loss {
            description: loss.describe(fabric),
            hint: loss.hint(),
        },
        other => RunError::Engine(other),
    }
}

struct Run<'a> {
    engines: &'a dyn Engines,
    scenario: &'a Scenario,
    seed: u64,
    engine: Box<dyn Simulation>,
    callbacks: Option<Callbacks>,
    started: Instant,
}

impl<'a> Run<'a> {
    fn new(
        engines: &'a dyn Engines,
        scenario: &'a Scenario,
        seed: u64,
        engine: Box<dyn Simulation>,
    ) -> Self {
        Self {
            engines,
            scenario,
            seed,
            engine,
            callbacks: None,
            started: Instant::now(),
        }
    }

    fn complete(
        mut self,
        controller: Option<&mut dyn Controller>,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<RunOutput, RunError> {
        let mut steps = RunSteps::new(self.scenario);
        let mut schedule = Schedule::new(self.scenario, controller).until(steps.end());
        let mut measurement = Measurement::new(self.scenario, self.engine.as_ref());
        let mut trees = TreeLog::new(self.scenario, &measurement.ports);
        while let Some(step) = steps.next_step(schedule.next()) {
            let is_due = schedule.next() <= step.until;
            let check = match step.may_end {
                _ if step.is_for_programs(steps.end()) && !is_due => EndCheck::ProgramsOnly,
                true => EndCheck::Full,
                false => EndCheck::Periodic,
            };
            let ran = schedule.advance(self.engine.as_mut(), step.until, check);
            // After a failure of the scheme, no other error counts.
            self.check_callbacks()?;
            ran.map_err(|error| engine_error(error, self.scenario.fabric()))?;
            if step.sample {
                measurement.sample(self.engine.as_ref());
            }
            if step.merge {
                measurement.merge_pairs(0);
            }
            if let (true, Some(trees)) = (step.trees, trees.as_mut()) {
                trees.sample(self.engine.as_ref(), steps.is_last_tree_sample());
            }
            if step.warm {
                measurement.start_totals(self.engine.as_mut());
            }
            schedule.apply(self.engine.as_mut())?;
            if observer(self.progress()).is_break() {
                let at = self.engine.now();
                return Err(RunError::Interrupted { at });
            }
            if !step.may_end {
                continue;
            }
            match program_state(self.engine.programs()) {
                ProgramState::Running => {}
                ProgramState::Finished => break,
                ProgramState::Failed(fault) => return Err(fault.into()),
            }
        }
        self.engine.settle();
        if steps.closes_series() {
            measurement.close(self.engine.as_ref());
        }
        self.check_finished()?;
        self.check_invariants()?;
        let summary = self.summary(&measurement);
        let traced = self.scenario.packet_filter().map(|_| {
            let hops = self.engine.take_hops();
            hops::table(&hops, &measurement.ports)
        });
        let mut tables = measurement.tables(self.engine.as_ref());
        tables.extend(traced);
        tables.extend(flows::tables(self.scenario, self.engine.as_ref()));
        tables.extend(sequences::table(self.scenario, self.engine.as_ref()));
        tables.extend(
            trees
                .into_iter()
                .flat_map(|trees| trees.tables(self.engine.now())),
        );
        if let Some(programs) = self.engine.programs() {
            let completed: Vec<Option<Span>> =
                programs.jobs().map(|job| job.completion()).collect();
            let ran_alone = completed.len() == 1
                && self.engine.classes().len() == 1
                && self.callbacks.is_none()
                && !self.scenario.scheme().acts();
            let progress = self.progress();
            let alone = alone::completions(
                self.engines,
                self.scenario,
                &completed,
                ran_alone,
                &mut || match observer(progress) {
                    ControlFlow::Continue(()) => Ok(()),
                    ControlFlow::Break(()) => Err(RunError::Interrupted {
                        at: self.engine.now(),
                    }),
                },
            )?;
            let plans = self.scenario.programs().map_or(&[][..], |plan| &plan.jobs);
            tables.extend(programs::tables(programs, plans, &alone, self.engine.now()));
            if self.scenario.may_lose_packets() {
                let lost = programs::lost_messages(self.engine.as_ref(), programs);
                let table = tables.iter_mut().find(|table| table.name == "programs");
                if let Some(table) = table {
                    table.push("lost_messages", lost);
                }
            }
        }
        Ok(RunOutput { tables, summary })
    }

    fn check_callbacks(&self) -> Result<(), RunError> {
        match self.callbacks.as_ref().and_then(Callbacks::stopped) {
            None => Ok(()),
            Some(Stopped::Failed(failure)) => Err(RunError::Scheme(failure.clone())),
            Some(Stopped::Interrupted) => Err(RunError::Interrupted {
                at: self.engine.now(),
            }),
        }
    }

    fn check_invariants(&self) -> Result<(), RunError> {
        let at = self.engine.now();
        let audited = self.engine.audit();
        audited.map_err(|error| RunError::Engine(EngineError::Invariant { at, error }))
    }

    fn check_finished(&self) -> Result<(), RunError> {
        let Some(programs) = self.engine.programs() else {
            return Ok(());
        };
        let unfinished =
            |(_, job): &(usize, JobRecord<'_>)| !job.background && job.done_at.is_none();
        let Some((number, job)) = programs.jobs().enumerate().find(unfinished) else {
            return Ok(());
        };
        let at_work = programs
            .ranks(self.engine.now())
            .filter(|rank| rank.done_at.is_none());
        Err(RunError::Unfinished {
            job: job.name.to_owned(),
            duration: self.scenario.duration(),
            left: at_work.filter(|rank| rank.job as usize == number).count(),
            ranks: job.ranks,
            lost: programs::name_lost(self.engine.as_ref(), programs, number),
        })
    }

    fn progress(&self) -> Progress {
        Progress {
            simulated: self.engine.now().since(Time::ZERO),
            total: self.scenario.duration(),
            packet_hops: self.engine.packet_hops(),
            events: self.engine.events(),
            wall_s: self.started.elapsed().as_secs_f64(),
        }
    }

    fn reordered_packets(&self) -> u64 {
        let hosts = self.scenario.fabric().host_ids();
        hosts
            .map(|host| self.engine.host_counters(host).reordered_packets)
            .sum()
    }

    fn unroutable_packets(&self) -> u64 {
        let ports = self.scenario.fabric().ports.ids();
        ports
            .map(|port| self.engine.port_counters(port).relay_errors)
            .sum()
    }

    fn idle_scheme(&self) -> Option<String> {
        let scheme = self.scenario.scheme();
        if !scheme.acts() || self.engine.control_acted() {
            return None;
        }
        let reasons = scheme.idle_reasons(self.scenario.scheme_parameters());
        Some(match reasons.is_empty() {
            true => "it held no flow back, and changed no lane and no path".to_owned(),
            false => reasons.join(", and "),
        })
    }

    fn summary(&self, measurement: &Measurement) -> Summary {
        let ports = self.scenario.fabric().ports.len() as u64;
        let memory = self.engine.memory_bytes() as u64;
        let balance = self.engine.balance();
        Summary {
            name: self.scenario.name().to_owned(),
            hash: self.scenario.hash(),
            seed: self.seed,
            version: env!("CARGO_PKG_VERSION"),
            simulated_ps: self.engine.now().as_ps(),
            wall_s: self.started.elapsed().as_secs_f64(),
            threads: self.engine.threads() as u64,
            barrier_s: balance.map(|balance| balance.barrier_s),
            imbalance: balance.map(|balance| balance.imbalance),
            events: self.engine.events(),
            packet_hops: self.engine.packet_hops(),
            leapt_packet_hops: self.engine.leapt_packet_hops(),
            no_leaps: self.engine.no_leaps(),
            delivered_packets: self.engine.delivered_packets(),
            delivered_bytes: measurement.delivered_bytes(self.engine.as_ref()),
            latency: LatencySummary::of(self.engine.as_ref()),
            unroutable_packets: self.unroutable_packets(),
            reordered_packets: self.reordered_packets(),
            idle_scheme: self.idle_scheme(),
            ports,
            memory_bytes: memory,
            bytes_per_port: memory as f64 / ports.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests;

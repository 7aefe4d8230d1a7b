//! Running a scenario: engine, traffic and control together, from the start to the end.
//!
//! The engine is driven in steps that end at every sample of the time series, at the end of the
//! warm-up, at every change of settings and every sweep of a controller, and otherwise so often
//! that the observer is asked many times a second. A change at an instant holds for everything that
//! happens at that instant. The steps are a function of the scenario alone, and results do not
//! depend on them.
//!
//! This is where the engine's type parameters are chosen, so the hot loop is compiled here and
//! the crate holds little else.
//!
//! ```
//! use std::ops::ControlFlow;
//! use silvan_runner::run;
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
//! let output = run(&scenario, scenario.seed(), &mut |_| ControlFlow::Continue(()))?;
//! let hosts = output.table("hosts").expect("every run has it");
//! let delivered = hosts.u64_column("delivered_bytes").expect("a column of whole numbers");
//! assert!(delivered[0] > 0 && delivered[1..].iter().all(|bytes| *bytes == 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decisions;
mod load;
mod measure;
mod own;
mod programs;
mod schedule;
mod table;
mod tables;
mod trees;

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;
use silvan_control::Both;
use silvan_control::dcms::DcmsController;
use silvan_control::ecn::{EcnError, EcnSource, EcnSwitch};
use silvan_control::ib::{IbAdapter, IbSwitch, ParameterError};
use silvan_control::pft::{PftError, PftSource};
use silvan_control::seam::{
    Controller, NoControl, PortReading, SettingChange, Settings, SourceControl, SwitchControl,
    UnknownSetting,
};
use silvan_engine::{BuildError, Engine};
use silvan_programs::{Fault, JobRecord};
use silvan_traffic::TrafficError;
use silvan_units::{PortId, Span, Time};
use thiserror::Error;

pub use own::run_callbacks;
pub use table::{Column, ColumnData, Table};

use load::{ProgramState, RunLoad, program_state, run_load};
use measure::Measurement;
use schedule::Schedule;
use silvan_scenario::{IbControl, Scenario, switch_ports};
use trees::TreeLog;

/// How far a run has come.
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

/// What a run cost and where it came from.
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
    /// Events processed.
    pub events: u64,
    /// Delivered packets, each times the links it crossed, the warm-up included.
    pub packet_hops: u64,
    /// Data packets delivered, the warm-up included.
    pub delivered_packets: u64,
    /// Payload delivered after the warm-up, in bytes.
    pub delivered_bytes: u64,
    /// Ports of the fabric.
    pub ports: u64,
    /// Memory of the data plane at the end, in bytes.
    pub memory_bytes: u64,
    /// The same per port, in bytes.
    pub bytes_per_port: f64,
}

/// What a run delivered, counted and sampled.
///
/// | table | rows | covers |
/// |---|---|---|
/// | `hosts` | one per host | from the end of the warm-up |
/// | `host_series` | one per probe interval and host, by time | from the start |
/// | `classes` | one per traffic class | from the end of the warm-up |
/// | `ports` | one per cabled port | from the end of the warm-up |
/// | `port_series` | one per probe interval and row of `ports`, by time, if asked for | from the start |
/// | `forest`, `trees`, `tree_ports`, `tree_hosts`, `tree_lifetimes` | congestion trees, if asked for | from the start |
/// | `dcms` | one per decision of the DCMS, by time, if the scenario has one | from the start |
/// | `programs`, `ranks`, `program_marks`, `program_ops` | message-passing programs, if there are any | from the start |
/// | `class_series` | one per probe interval and traffic class, by time, if asked for | from the start |
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
    /// Packets wait for each other's buffers in a circle.
    #[error("{description}")]
    Deadlock {
        /// When and where, in the fabric's names.
        description: String,
        /// Ports of the circle in the order of travel, as `switch:port (VL n)`.
        cycle: Vec<String>,
    },
    /// The engine cannot go on.
    #[error(transparent)]
    Engine(silvan_engine::RunError),
    /// The engine cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The traffic does not work with this seed.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Congestion control cannot be built.
    #[error(transparent)]
    Control(#[from] ParameterError),
    /// The scheme `ecn` cannot be built.
    #[error(transparent)]
    Ecn(#[from] EcnError),
    /// The scheme `pft` cannot be built.
    #[error(transparent)]
    Pft(#[from] PftError),
    /// The scheme stands in Python, and no functions of it were given.
    #[error("the scheme of {name} is in Python, which this program does not run")]
    PythonScheme {
        /// The scenario's name.
        name: String,
    },
    /// A controller asked for a setting that the scheme does not have.
    #[error(transparent)]
    Setting(#[from] UnknownSetting),
    /// A message-passing program cannot go on, or ends as no correct one does.
    #[error(transparent)]
    Program(#[from] Fault),
    /// A message-passing program has not ended with the run.
    #[error("job {job:?} has not ended after {duration}: {left} of its {ranks} ranks are at work")]
    Unfinished {
        /// Name of the job.
        job: String,
        /// Simulated time.
        duration: Span,
        /// Ranks that have not come to their end.
        left: usize,
        /// All its ranks.
        ranks: u32,
    },
}

/// Runs a scenario with a seed; the scenario's own is [`Scenario::seed`].
///
/// The observer is told of progress many times a second, and stops the run by breaking.
///
/// # Errors
///
/// [`RunError`]; nothing is left of the run.
///
/// ```
/// use std::ops::ControlFlow;
/// use silvan_runner::run;
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
/// let output = run(&scenario, 1, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(output.summary.delivered_bytes, 64 << 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(
    scenario: &Scenario,
    seed: u64,
    observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let Some(dcms) = scenario.dcms() else {
        return run_controlled(scenario, seed, None, observer);
    };
    let mut controller = DcmsController::new(dcms.clone());
    let mut output = run_controlled(scenario, seed, Some(&mut controller), observer)?;
    let table = decisions::table(scenario, &controller);
    output.tables.push(table);
    Ok(output)
}

/// Runs a scenario with something that watches its port counters and changes its settings, in
/// place of the scenario's own manager.
///
/// # Errors
///
/// As [`run`].
pub fn run_controlled(
    scenario: &Scenario,
    seed: u64,
    controller: Option<&mut dyn Controller>,
    observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let pft = || {
        let parameters = scenario.pft_control()?;
        let hosts = scenario.fabric().host_count();
        Some(PftSource::new(*parameters, hosts, seed ^ THROTTLE_STREAM))
    };
    if let Some(control) = scenario.ib_control() {
        let (switch, adapter) = build_ib(scenario, control, seed)?;
        if let Some(pft) = pft() {
            let source = Both(adapter, pft?);
            return run_load(scenario, seed, switch, source, controller, observer);
        }
        return run_load(scenario, seed, switch, adapter, controller, observer);
    }
    if let Some(control) = scenario.ecn_control() {
        let fabric = scenario.fabric();
        let data_vls = scenario.engine_config().data_vls;
        let switch = EcnSwitch::new(control.marking, fabric.ports.len(), data_vls);
        let source = EcnSource::new(control.source.clone(), fabric.host_count())?;
        return run_load(scenario, seed, switch, source, controller, observer);
    }
    if let Some(pft) = pft() {
        return run_load(scenario, seed, NoControl, pft?, controller, observer);
    }
    if let Some((choice, parameters)) = scenario.own_control() {
        let start = own::Start {
            scenario,
            seed,
            controller,
            observer,
        };
        return choice.visit(parameters, start);
    }
    if scenario.python_control().is_some() {
        return Err(RunError::PythonScheme {
            name: scenario.name().to_owned(),
        });
    }
    run_load(scenario, seed, NoControl, NoControl, controller, observer)
}

/// Random streams of different parts must differ although they have the same seed.
const SWITCH_STREAM: u64 = 0x5357_4954_4348;
const ADAPTER_STREAM: u64 = 0x4144_4150_5445;
const THROTTLE_STREAM: u64 = 0x5448_524f_5454;

/// InfiniBand's congestion control as a run of the scenario with this seed starts with it.
///
/// # Errors
///
/// [`RunError::Control`] or [`RunError::Setting`] for parameters that cannot be.
pub fn build_ib(
    scenario: &Scenario,
    control: &IbControl,
    seed: u64,
) -> Result<(IbSwitch, IbAdapter), RunError> {
    let fabric = scenario.fabric();
    let data_vls = scenario.engine_config().data_vls;
    let parameters = &control.parameters;
    let ports = switch_ports(fabric);
    let mut switch = parameters.build_switch(&ports, data_vls, seed ^ SWITCH_STREAM)?;
    for change in &control.initial {
        switch.apply(Time::ZERO, change)?;
    }
    let adapter = parameters.build_adapter(fabric.host_count(), seed ^ ADAPTER_STREAM)?;
    Ok((switch, adapter))
}

/// What the runner needs of a scheme at the switches: the seam, and settings.
pub(crate) trait Marks: SwitchControl + Settings {}

impl<S: SwitchControl + Settings> Marks for S {}

/// A run under way.
struct Run<'a, S, C, W> {
    scenario: &'a Scenario,
    seed: u64,
    engine: Engine<S, C, W>,
    started: Instant,
}

impl<'a, S: Marks, C: SourceControl + Settings, W: RunLoad> Run<'a, S, C, W> {
    fn new(
        scenario: &'a Scenario,
        seed: u64,
        switch: S,
        source: C,
        load: W,
    ) -> Result<Self, RunError> {
        let engine = Engine::new(
            scenario.fabric(),
            scenario.forwarding(),
            scenario.engine_config(),
            switch,
            source,
            load,
        )?;
        Ok(Self {
            scenario,
            seed,
            engine,
            started: Instant::now(),
        })
    }

    fn complete(
        mut self,
        mut controller: Option<&mut dyn Controller>,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<RunOutput, RunError> {
        let sweep = controller.as_deref().map(Controller::interval);
        let mut schedule = Schedule::new(self.scenario, sweep);
        let mut measurement = Measurement::new(self.scenario, &self.engine);
        let mut trees = TreeLog::new(self.scenario, &measurement.ports);
        while let Some(step) = schedule.next_step() {
            if step.until > self.engine.now() {
                self.engine
                    .run_until(step.until)
                    .map_err(|error| self.engine_error(error))?;
            }
            if step.sample {
                measurement.sample(&self.engine);
            }
            if let (true, Some(trees)) = (step.trees, trees.as_mut()) {
                trees.look(&self.engine);
            }
            if step.warm {
                measurement.start_totals(&mut self.engine);
            }
            for change in step.changes {
                self.apply(change)?;
            }
            if let (true, Some(controller)) = (step.sweep, controller.as_deref_mut()) {
                self.sweep(controller)?;
                schedule.sweep_after(controller.interval());
            }
            if observer(self.progress()).is_break() {
                let at = self.engine.now();
                return Err(RunError::Interrupted { at });
            }
            match program_state(self.engine.workload()) {
                ProgramState::Running => {}
                ProgramState::Finished => break,
                ProgramState::Failed(fault) => return Err(fault.into()),
            }
        }
        self.check_finished()?;
        let summary = self.summary(&measurement);
        let mut tables = measurement.tables(&self.engine);
        tables.extend(
            trees
                .into_iter()
                .flat_map(|trees| trees.tables(self.engine.now())),
        );
        tables.extend(
            self.engine
                .workload()
                .programs()
                .into_iter()
                .flat_map(programs::tables),
        );
        Ok(RunOutput { tables, summary })
    }

    /// The first program that should have ended and has not is an error.
    fn check_finished(&self) -> Result<(), RunError> {
        let Some(programs) = self.engine.workload().programs() else {
            return Ok(());
        };
        let unfinished =
            |(_, job): &(usize, JobRecord<'_>)| !job.background && job.done_at.is_none();
        let Some((number, job)) = programs.jobs().enumerate().find(unfinished) else {
            return Ok(());
        };
        let at_work = programs.ranks().filter(|rank| rank.done_at.is_none());
        Err(RunError::Unfinished {
            job: job.name.to_owned(),
            duration: self.scenario.duration(),
            left: at_work.filter(|rank| rank.job as usize == number).count(),
            ranks: job.ranks,
        })
    }

    /// Settings belong to the switches or to the adapters; each knows its own.
    fn apply(&mut self, change: &SettingChange) -> Result<(), RunError> {
        let now = self.engine.now();
        match self.engine.switch_control_mut().apply(now, change) {
            Ok(()) => Ok(()),
            Err(_) => Ok(self.engine.source_control_mut().apply(now, change)?),
        }
    }

    fn sweep(&mut self, controller: &mut dyn Controller) -> Result<(), RunError> {
        let fabric = self.scenario.fabric();
        let ports = fabric.ports.iter_enumerated();
        let readings: Vec<PortReading> = ports
            .filter(|(_, port)| fabric.nodes[port.node].as_switch().is_some())
            .map(|(id, _): (PortId, _)| self.engine.reading(id))
            .collect();
        let mut changes = Vec::new();
        controller.step(self.engine.now(), &readings, &mut changes);
        changes.iter().try_for_each(|change| self.apply(change))
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

    fn engine_error(&self, error: silvan_engine::RunError) -> RunError {
        let fabric = self.scenario.fabric();
        match error {
            silvan_engine::RunError::Deadlock(deadlock) => RunError::Deadlock {
                description: deadlock.describe(fabric),
                cycle: deadlock
                    .cycle
                    .iter()
                    .map(|(port, vl)| format!("{} (VL {vl})", fabric.port_name(*port)))
                    .collect(),
            },
            other => RunError::Engine(other),
        }
    }

    fn summary(&self, measurement: &Measurement) -> Summary {
        let ports = self.scenario.fabric().ports.len() as u64;
        let memory = self.engine.memory_bytes() as u64;
        Summary {
            name: self.scenario.name().to_owned(),
            hash: self.scenario.hash(),
            seed: self.seed,
            version: env!("CARGO_PKG_VERSION"),
            simulated_ps: self.engine.now().as_ps(),
            wall_s: self.started.elapsed().as_secs_f64(),
            events: self.engine.events(),
            packet_hops: self.engine.packet_hops(),
            delivered_packets: self.engine.delivered_packets(),
            delivered_bytes: measurement.delivered_bytes(&self.engine),
            ports,
            memory_bytes: memory,
            bytes_per_port: memory as f64 / ports.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests;

//! What the hosts have to do in a run: traffic, or traffic and programs.

use silvan_control::seam::{Controller, SourceControl};
use silvan_engine::workload::Workload;
use silvan_programs::{Fault, Load, Programs};
use silvan_scenario::Scenario;
use silvan_traffic::Traffic;

use crate::{Marks, Progress, Run, RunError, RunOutput};
use silvan_control::seam::Settings;
use std::ops::ControlFlow;

/// What the runner needs of a workload beyond the seam.
pub(crate) trait RunLoad: Workload {
    /// The traffic that is described by rates and patterns.
    fn traffic(&self) -> &Traffic;

    /// Names of all traffic classes.
    fn classes(&self) -> &[String];

    /// The programs, if there are any.
    fn programs(&self) -> Option<&Programs> {
        None
    }
}

impl RunLoad for Traffic {
    fn traffic(&self) -> &Traffic {
        self
    }

    fn classes(&self) -> &[String] {
        self.classes()
    }
}

impl RunLoad for Load {
    fn traffic(&self) -> &Traffic {
        self.traffic()
    }

    fn classes(&self) -> &[String] {
        self.classes()
    }

    fn programs(&self) -> Option<&Programs> {
        Some(self.programs())
    }
}

/// Runs a scenario's traffic, and its programs if it has any, with a scheme. Without programs the engine
/// is compiled without what they need.
pub(crate) fn run_load<S: Marks, C: SourceControl + Settings>(
    scenario: &Scenario,
    seed: u64,
    switch: S,
    source: C,
    controller: Option<&mut dyn Controller>,
    observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunOutput, RunError> {
    let traffic = Traffic::new(scenario.traffic(), &scenario.environment(seed))?;
    let Some(plan) = scenario.programs() else {
        return Run::new(scenario, seed, switch, source, traffic)?.complete(controller, observer);
    };
    let hosts = scenario.fabric().host_count();
    // The traffic refuses more classes than 16 bits can number.
    let jobs = plan.jobs(seed, traffic.classes().len() as u16);
    let programs = Programs::new(jobs, plan.messaging, hosts);
    let load = Load::new(traffic, programs, plan.classes(), hosts);
    Run::new(scenario, seed, switch, source, load)?.complete(controller, observer)
}

/// How far programs have come.
pub(crate) enum ProgramState {
    /// There are none to wait for, or they are at work.
    Running,
    /// All that the run waits for have ended.
    Finished,
    /// One of them cannot go on.
    Failed(Fault),
}

pub(crate) fn program_state(load: &impl RunLoad) -> ProgramState {
    let Some(programs) = load.programs() else {
        return ProgramState::Running;
    };
    if let Some(fault) = programs.fault() {
        return ProgramState::Failed(fault.clone());
    }
    let waits_for_any = programs.jobs().any(|job| !job.background);
    match waits_for_any && programs.is_finished() {
        true => ProgramState::Finished,
        false => ProgramState::Running,
    }
}

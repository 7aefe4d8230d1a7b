//! Times of programs alone in the empty fabric, without congestion control: all schemes are compared with one time.

use silvan_core::{Span, Time};
use silvan_model::Engines;
use silvan_scenario::Scenario;
use silvan_workload::programs::JobPlan;

use crate::RunError;
use crate::assemble::assemble_alone;
use crate::programs::{ProgramState, program_state};

const STEP: Span = Span::from_us(100);

pub(crate) fn completions(
    engines: &dyn Engines,
    scenario: &Scenario,
    completed: &[Option<Span>],
    ran_alone: bool,
    observer: &mut dyn FnMut() -> Result<(), RunError>,
) -> Result<Vec<Option<Span>>, RunError> {
    let Some(plan) = scenario.programs() else {
        return Ok(Vec::new());
    };
    let jobs = plan.jobs.iter().zip(completed);
    jobs.map(|(job, completed)| {
        if completed.is_none() || !scenario.file().probe.slowdown {
            return Ok(None);
        }
        if ran_alone {
            return Ok(*completed);
        }
        let alone = JobPlan {
            background: false,
            ..job.clone()
        };
        let mut engine = assemble_alone(engines, scenario, plan.messaging, &alone)?;
        let end = Time::ZERO + scenario.duration();
        while engine.now() < end {
            let next = (engine.now() + STEP).min(end);
            engine.advance_until(next).map_err(RunError::Engine)?;
            observer()?;
            match program_state(engine.programs()) {
                ProgramState::Running => {}
                ProgramState::Finished => break,
                ProgramState::Failed(fault) => return Err(fault.into()),
            }
        }
        let record = engine
            .programs()
            .and_then(|programs| programs.jobs().next());
        Ok(record.and_then(|job| job.completion()))
    })
    .collect()
}

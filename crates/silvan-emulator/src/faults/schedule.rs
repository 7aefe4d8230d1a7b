use std::time::Duration;

use silvan_core::{Span, Time};
use silvan_fabric::Fabric;
use silvan_scenario::ScenarioError;
use silvan_scenario::faults::{FaultTimes, PlannedFault, read_faults};

use crate::clients::Clients;

/// The text of a file of faults, and what errors call it.
#[derive(Clone, Debug)]
pub struct FaultSchedule {
    /// TOML.
    pub text: String,
    /// Name of the file.
    pub name: String,
}

#[derive(Debug, Default)]
pub(crate) struct Timetable(FaultTimes);

impl Timetable {
    pub fn new(
        planned: &[PlannedFault],
        schedule: Option<&FaultSchedule>,
        fabric: &Fabric,
    ) -> Result<Self, ScenarioError> {
        let mut all = planned.to_vec();
        if let Some(FaultSchedule { text, name }) = schedule {
            all.extend(read_faults(text, name, fabric)?);
        }
        Ok(Self(FaultTimes::new(all)))
    }

    pub fn next(&self) -> Option<Time> {
        self.0.next()
    }

    pub fn apply(&mut self, clients: &mut Clients, scale: f64) -> Vec<String> {
        let now = clients.subnet.now();
        let mut happened = Vec::new();
        while let Some((time, begins, planned)) = self.0.take(now) {
            let outcome = if begins {
                let seconds = planned.lasts.map_or(0.0, Span::as_secs_f64) / scale;
                let span = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                clients.bring_about(planned.fault, span)
            } else {
                clients.repair(planned.fault);
                Ok(())
            };
            let change = match (outcome, begins) {
                (Err(reason), _) => format!("{} has no effect: {reason}", planned.words),
                (Ok(()), true) => planned.words.clone(),
                (Ok(()), false) => format!("{} ends", planned.words),
            };
            happened.push(format!("at {:.6} s: {change}", time.as_secs_f64()));
        }
        happened
    }
}

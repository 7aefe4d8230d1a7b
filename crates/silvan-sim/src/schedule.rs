//! Timed changes, controller sweeps and faults of a scenario, for runs, sessions and the live fabric.

use std::collections::VecDeque;

use silvan_cc::hooks::{Controller, SettingChange, UnknownSetting};
use silvan_core::{PortCounters, PortId, Span, Time};
use silvan_model::{EngineError, Simulation};
use silvan_scenario::Scenario;

use silvan_cc::dcms::DcmsController;

use crate::faults::RunFaults;

/// Checks of an engine at the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCheck {
    /// Looks for deadlocks and losses, see [`Simulation::run_until`].
    Full,
    /// Leaves that to the engine, see [`Simulation::step_until`].
    Periodic,
    /// So, too; the fabric must [settle](Simulation::settle) before it is read or changed.
    ProgramsOnly,
}

/// Timed changes, sweeps of a controller, and faults, which apply in this order at one instant.
///
/// Its owner [advances](Self::advance) a simulation and [applies](Self::apply) the due ones, in a loop.
#[derive(Debug)]
pub struct Schedule<C> {
    changes: VecDeque<(Time, SettingChange)>,
    controller: Option<C>,
    /// Time of the controller's next sweep; [`Time::MAX`] for never.
    sweep_at: Time,
    ports: Vec<PortId>,
    applied: Vec<SettingChange>,
    faults: Option<RunFaults>,
}

impl Schedule<DcmsController> {
    /// The schedule of a scenario with its DCMS, if there is one.
    pub fn of(scenario: &Scenario) -> Self {
        let dcms = scenario.dcms();
        Self::new(scenario, dcms.map(|dcms| DcmsController::new(dcms.clone())))
    }
}

impl<C: Controller> Schedule<C> {
    /// The schedule of a scenario with this controller in place of its DCMS.
    pub fn new(scenario: &Scenario, controller: Option<C>) -> Self {
        let fabric = scenario.fabric();
        let ports = fabric.ports.iter_enumerated();
        let of_switches = ports.filter(|(_, port)| fabric.nodes[port.node].as_switch().is_some());
        let mut schedule = Self {
            changes: scenario.scheme_settings().timed.iter().cloned().collect(),
            ports: match controller {
                Some(_) => of_switches.map(|(id, _)| id).collect(),
                None => Vec::new(),
            },
            controller,
            sweep_at: Time::MAX,
            applied: Vec::new(),
            faults: Some(RunFaults::of(scenario)),
        };
        schedule.plan_sweep(Time::ZERO);
        schedule
    }

    /// Leaves out changes and faults at `end` and later: a simulation until `end` has no event after them.
    #[must_use]
    pub fn until(mut self, end: Time) -> Self {
        self.changes.retain(|(at, _)| *at < end);
        self.faults = self.faults.map(|faults| faults.until(end));
        self
    }

    /// Leaves out faults, for an owner that brings them about itself.
    #[must_use]
    pub fn without_faults(mut self) -> Self {
        self.faults = None;
        self
    }

    /// The next instant at which something is due; [`Time::MAX`] if nothing is.
    pub fn next(&self) -> Time {
        let change = self.changes.front().map_or(Time::MAX, |(at, _)| *at);
        let fault = self.faults.as_ref().map_or(Time::MAX, RunFaults::next);
        change.min(self.sweep_at).min(fault)
    }

    /// Runs to `end` or the next due instant, or until a driver pauses.
    pub fn advance<S: Simulation + ?Sized>(
        &self,
        simulation: &mut S,
        end: Time,
        check: EndCheck,
    ) -> Result<(), EngineError> {
        let end = end.min(self.next());
        if end <= simulation.now() {
            return Ok(());
        }
        match check {
            EndCheck::Full => simulation.run_until(end),
            EndCheck::Periodic => simulation.step_until(end),
            EndCheck::ProgramsOnly => simulation.advance_until(end),
        }
    }

    /// Applies the due changes and returns them; [`UnknownSetting`] leaves earlier ones in force.
    pub fn apply<S: Simulation + ?Sized>(
        &mut self,
        simulation: &mut S,
    ) -> Result<&[SettingChange], UnknownSetting> {
        let now = simulation.now();
        self.applied.clear();
        while let Some((_, change)) = self.changes.front().filter(|(at, _)| *at <= now) {
            simulation.apply(change)?;
            let done = self.changes.pop_front();
            self.applied.extend(done.map(|(_, change)| change));
        }
        if self.sweep_at == now {
            self.sweep(simulation)?;
            self.plan_sweep(now);
        }
        if let Some(faults) = &mut self.faults {
            faults.apply(simulation);
        }
        Ok(&self.applied)
    }

    fn sweep<S: Simulation + ?Sized>(&mut self, simulation: &mut S) -> Result<(), UnknownSetting> {
        let Some(controller) = &mut self.controller else {
            return Ok(());
        };
        let ports = self.ports.iter();
        let readings: Vec<(PortId, PortCounters)> = ports
            .map(|&port| (port, simulation.port_counters(port)))
            .collect();
        let first = self.applied.len();
        controller.step(simulation.now(), &readings, &mut self.applied);
        for change in &self.applied[first..] {
            simulation.apply(change)?;
        }
        Ok(())
    }

    fn plan_sweep(&mut self, now: Time) {
        let interval = self.controller.as_ref().map(Controller::interval);
        let interval = interval.filter(|interval: &Span| !interval.is_zero());
        self.sweep_at = interval.map_or(Time::MAX, |interval| now.saturating_add(interval));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use silvan_cc::schemes::ib_cc::{PortSetting, ThresholdWeight};
    use silvan_instances::Fastest;

    use super::*;
    use crate::assemble::{assemble, build_control};

    const CHANGES: &str = r#"
[fabric]
generator = "single-switch"
hosts = 2
[control]
scheme = "ib-cc"
[[control.ib-cc.change]]
at = "0 s"
marking-rate = 1
switch = "switch-00"
port = 1
[[control.ib-cc.change]]
at = "5 us"
ccti-timer = 3
sl = 0
[[control.ib-cc.change]]
at = "6 us"
threshold = 2
switch = "switch-00"
port = 2
[[control.ib-cc.change]]
at = "20 us"
ccti-timer = 4
sl = 0
"#;

    const OWN: SettingChange = SettingChange::Port {
        port: PortId::new(0),
        setting: PortSetting::Threshold(ThresholdWeight::OFF),
    };

    /// Requests one change at each sweep. The first interval is 6 us, then these follow, then 6 us again.
    #[derive(Debug)]
    struct Watcher {
        intervals: Vec<u64>,
        sweeps: Vec<u64>,
    }

    impl Controller for Watcher {
        fn interval(&self) -> Span {
            let next = self.sweeps.len().checked_sub(1);
            let us = next.and_then(|next| self.intervals.get(next));
            Span::from_us(us.copied().unwrap_or(6))
        }

        fn step(
            &mut self,
            now: Time,
            readings: &[(PortId, PortCounters)],
            changes: &mut Vec<SettingChange>,
        ) {
            // The ports of the switch, without those of the hosts.
            assert_eq!(readings.len(), 2);
            self.sweeps.push(now.as_ps() / 1_000_000);
            changes.push(OWN);
        }
    }

    /// Changes by the microsecond at which they apply, of 20, and the sweeps of the controller.
    fn applied(until_end: bool, intervals: &[u64]) -> (Vec<(u64, Vec<SettingChange>)>, Vec<u64>) {
        let scenario = Scenario::from_toml(CHANGES, "test", &[]).unwrap();
        let control = build_control(&scenario, 1).unwrap();
        let mut engine = assemble(&Fastest, &scenario, 1, control).unwrap();
        let end = Time::ZERO + Span::from_us(20);
        let mut watcher = Watcher {
            intervals: intervals.to_vec(),
            sweeps: Vec::new(),
        };
        let mut schedule = Schedule::new(&scenario, Some(&mut watcher));
        if until_end {
            schedule = schedule.until(end);
        }
        let mut all = Vec::new();
        loop {
            let changes = schedule.apply(engine.as_mut()).unwrap().to_vec();
            all.push((engine.now().as_ps() / 1_000_000, changes));
            if engine.now() >= end {
                return (all, watcher.sweeps);
            }
            let before = schedule.next().min(end);
            schedule
                .advance(engine.as_mut(), end, EndCheck::Periodic)
                .unwrap();
            assert_eq!(engine.now(), before);
        }
    }

    /// Oracle: the instants named in the scenario, and sums of the interval, written down by hand. The change of an
    /// instant comes before that of the sweep.
    #[test]
    fn changes_and_sweeps_come_once_at_their_instants() {
        let scenario = Scenario::from_toml(CHANGES, "test", &[]).unwrap();
        let timed = scenario.scheme_settings().timed.clone();
        let change = |number: usize| timed[number].1.clone();
        let (all, sweeps) = applied(false, &[]);
        assert_eq!(
            all,
            [
                (0, vec![change(0)]),
                (5, vec![change(1)]),
                (6, vec![change(2), OWN]),
                (12, vec![OWN]),
                (18, vec![OWN]),
                (20, vec![change(3)]),
            ]
        );
        assert_eq!(sweeps, [6, 12, 18]);
    }

    #[test]
    fn changes_from_the_end_on_are_left_out() {
        let (all, _) = applied(true, &[]);
        assert_eq!(all.last().unwrap(), &(20, Vec::new()));
    }

    /// Oracle: sums of the intervals asked for.
    #[test]
    fn sweeps_may_come_at_changing_intervals() {
        assert_eq!(applied(false, &[2, 2, 7]).1, [6, 8, 10, 17]);
        // An interval of zero ends them.
        assert_eq!(applied(false, &[3, 0]).1, [6, 9]);
    }

    #[test]
    fn a_change_that_the_control_does_not_have_is_an_error() {
        let scenario = Scenario::from_toml(CHANGES, "test", &[]).unwrap();
        let without = "[fabric]\ngenerator = \"single-switch\"\nhosts = 2\n";
        let without = Scenario::from_toml(without, "test", &[]).unwrap();
        let control = build_control(&without, 1).unwrap();
        let mut engine = assemble(&Fastest, &without, 1, control).unwrap();
        let error = Schedule::of(&scenario).apply(engine.as_mut()).unwrap_err();
        assert_eq!(error.0, scenario.scheme_settings().timed[0].1);
    }
}

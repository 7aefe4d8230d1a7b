//! When the runner stops the engine, and what it does then.

use silvan_cc::hooks::SettingChange;
use silvan_core::{Span, Time};

use silvan_scenario::Scenario;

/// Simulated time between two calls of the observer, times the number of hosts. At full load a host
/// sends a packet every microsecond or so; that makes some 500,000 packet-hops, about 50 milliseconds
/// of work. Each time the engine checks for deadlocks, too, which takes long in a large fabric.
const CHECK_HOST_TIME: Span = Span::from_ms(128);

/// The same if the run ends with its programs, and the most it may be then: totals count up to the check that
/// finds them done.
const CHECK_PROGRAMS_HOST_TIME: Span = Span::from_ms(32);
const CHECK_PROGRAMS: Span = Span::from_us(100);

/// The engine runs to an instant, then these things are done, in this order.
#[derive(Debug, PartialEq)]
pub(crate) struct ScheduleStep<'a> {
    /// The instant.
    pub until: Time,
    /// Take a sample of the time series.
    pub sample: bool,
    /// Sample the congestion trees.
    pub trees: bool,
    /// The warm-up is over: totals start.
    pub warm: bool,
    /// Apply these changes.
    pub changes: Vec<&'a SettingChange>,
    /// The controller sweeps.
    pub sweep: bool,
    /// The run may end here: deadlocks and losses are looked for.
    pub may_end: bool,
}

/// The steps of a run, one after the other.
#[derive(Debug)]
pub(crate) struct Schedule<'a> {
    end: Time,
    warm_up: Option<Time>,
    sample: Ticks,
    trees: Option<Ticks>,
    sweep: Option<Ticks>,
    check: Span,
    ends_with_programs: bool,
    changes: &'a [(Time, SettingChange)],
    now: Option<Time>,
}

/// Instants at equal distances.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    next: Time,
    interval: Span,
}

impl Ticks {
    fn every(interval: Span) -> Self {
        Self {
            next: Time::ZERO + interval,
            interval,
        }
    }

    /// Whether there is a tick at `now`; if so, the next one is due.
    fn take(&mut self, now: Time) -> bool {
        let is_due = self.next == now;
        if is_due {
            self.next = self.next.saturating_add(self.interval);
        }
        is_due
    }
}

impl<'a> Schedule<'a> {
    /// The schedule of a run, with a controller that sweeps at this interval, if there is one.
    pub fn new(scenario: &'a Scenario, sweep: Option<Span>) -> Self {
        let file = scenario.file();
        let hosts = scenario.fabric().host_count() as u64;
        let ranks = scenario.programs().map_or(0, |plan| {
            let places = plan.jobs.iter().map(|job| job.rank_hosts().len() as u64);
            places.sum()
        });
        let trees = file.probe.trees.as_ref().and_then(|trees| trees.interval);
        // Ranks that share a host work as much as hosts do.
        let per_host = |time: Span| Span::from_ps((time.as_ps() / hosts.max(ranks).max(1)).max(1));
        Self {
            end: Time::ZERO + scenario.duration(),
            warm_up: Some(Time::ZERO + file.run.warm_up),
            sample: Ticks::every(file.probe.interval.unwrap_or(file.run.duration)),
            trees: trees
                .filter(|interval| !interval.is_zero())
                .map(Ticks::every),
            sweep: sweep
                .filter(|interval| !interval.is_zero())
                .map(Ticks::every),
            check: match scenario.programs() {
                Some(_) => per_host(CHECK_PROGRAMS_HOST_TIME).min(CHECK_PROGRAMS),
                None => per_host(CHECK_HOST_TIME),
            },
            ends_with_programs: scenario.programs().is_some(),
            changes: &scenario.scheme_settings().timed,
            now: None,
        }
    }

    /// The next step, `None` after the end. The first one is at the start.
    pub fn next_step(&mut self) -> Option<ScheduleStep<'a>> {
        let until = match self.now {
            None => Time::ZERO,
            Some(now) if now >= self.end => return None,
            Some(now) => self.next_instant(now),
        };
        self.now = Some(until);
        let due = self.changes.iter().take_while(|(at, _)| *at <= until);
        let due = if until < self.end { due.count() } else { 0 };
        let (changes, later) = self.changes.split_at(due);
        self.changes = later;
        Some(ScheduleStep {
            until,
            may_end: until == self.end || self.ends_with_programs,
            sample: self.sample.take(until),
            trees: self.trees.as_mut().is_some_and(|trees| trees.take(until)),
            warm: self.warm_up.take_if(|at| *at == until).is_some(),
            changes: changes.iter().map(|(_, change)| change).collect(),
            sweep: self.sweep.as_mut().is_some_and(|sweep| sweep.take(until)),
        })
    }

    /// Sets the time from the step at hand to the next sweep.
    pub fn sweep_after(&mut self, interval: Span) {
        let start = self.now.unwrap_or(Time::ZERO);
        self.sweep = (!interval.is_zero()).then(|| Ticks {
            next: start.saturating_add(interval),
            interval,
        });
    }

    /// Whether no sample of the trees is due after those up to now.
    pub fn is_last_tree_sample(&self) -> bool {
        self.trees.is_none_or(|trees| trees.next > self.end)
    }

    /// The earliest instant after `now` at which something is to be done.
    fn next_instant(&self, now: Time) -> Time {
        let instants = [
            Some(self.end),
            Some(now.saturating_add(self.check)),
            Some(self.sample.next),
            self.trees.map(|trees| trees.next),
            self.warm_up,
            self.sweep.map(|sweep| sweep.next),
            self.changes.first().map(|(at, _)| *at),
        ];
        instants.into_iter().flatten().min().unwrap_or(self.end)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;
    use silvan_scenario::Override;

    fn scenario(overrides: &[(&str, &str)]) -> Scenario {
        let overrides: Vec<Override> = overrides
            .iter()
            .map(|(key, value)| Override::new(*key, *value))
            .collect();
        Scenario::from_toml("", "test", &overrides).unwrap()
    }

    /// Oracle: the instants named in the scenario, written down by hand.
    #[test]
    fn everything_is_done_once_at_its_instant() {
        let scenario = scenario(&[
            ("run.duration", "20 us"),
            ("run.warm-up", "8 us"),
            ("probe.interval", "4 us"),
            ("control.scheme", "ib-cc"),
            (
                "control.ib-cc.change",
                "[{ at = \"0 s\", marking-rate = 1, switch = \"switch-00\", port = 1 }, { at = \"5 us\", ccti-timer = 3, sl = 0 }, { at = \"20 us\", ccti-timer = 4, sl = 0 }]",
            ),
        ]);
        let mut schedule = Schedule::new(&scenario, Some(Span::from_us(6)));
        let mut seen = Vec::new();
        while let Some(step) = schedule.next_step() {
            let ScheduleStep {
                until,
                sample,
                trees,
                warm,
                changes,
                sweep,
                may_end,
            } = step;
            assert!(!trees);
            assert_eq!(may_end, until == Time::ZERO + scenario.duration());
            seen.push((
                until.as_ps() / 1_000_000,
                sample,
                warm,
                changes.len(),
                sweep,
            ));
        }
        assert_eq!(
            seen,
            [
                (0, false, false, 1, false),
                (4, true, false, 0, false),
                (5, false, false, 1, false),
                (6, false, false, 0, true),
                (8, true, true, 0, false),
                (12, true, false, 0, true),
                (16, true, false, 0, false),
                (18, false, false, 0, true),
                // A change at the end could change nothing any more.
                (20, true, false, 0, false),
            ]
        );
    }

    /// Oracle: sums of the intervals asked for.
    #[test]
    fn sweeps_may_come_at_changing_intervals() {
        let scenario = scenario(&[("run.duration", "20 us")]);
        let mut schedule = Schedule::new(&scenario, Some(Span::from_us(6)));
        let mut intervals = [2, 2, 7].into_iter();
        let mut sweeps = Vec::new();
        while let Some(step) = schedule.next_step() {
            if step.sweep {
                sweeps.push(step.until.as_ps() / 1_000_000);
                schedule.sweep_after(Span::from_us(intervals.next().unwrap_or(6)));
            }
        }
        assert_eq!(sweeps, [6, 8, 10, 17]);
    }

    #[test]
    fn the_observer_is_asked_in_between() {
        let scenario = scenario(&[("run.duration", "1.6 s")]);
        let mut schedule = Schedule::new(&scenario, None);
        let mut steps = Vec::new();
        while let Some(step) = schedule.next_step() {
            steps.push(step.until);
        }
        // 8 hosts: 128 ms / 8.
        assert_eq!(steps.len(), 101);
        assert!(
            steps
                .windows(2)
                .all(|pair| pair[1].since(pair[0]) == Span::from_ms(16))
        );
    }

    /// Oracle: 32 ms of the ranks together, which are many more than hosts.
    #[test]
    fn runs_of_many_ranks_on_a_host_are_checked_often() {
        let program = "[{ name = \"a\", kind = \"barrier\", ranks-per-host = 4000 }]";
        let scenario = scenario(&[("traffic.program", program), ("run.duration", "1 ms")]);
        let mut schedule = Schedule::new(&scenario, None);
        schedule.next_step().unwrap();
        let step = schedule.next_step().unwrap();
        assert_eq!(
            (step.until, step.may_end),
            (Time::ZERO + Span::from_us(1), true)
        );
    }
}

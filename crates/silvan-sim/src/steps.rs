use silvan_core::{Span, Time};

use silvan_scenario::{Sampling, Scenario, Spread};
use silvan_workload::programs::Plan;

/// Simulated time between observations times hosts: about 500,000 packet-hops or 50 ms of work.
const CHECK_HOST_TIME: Span = Span::from_ms(128);

/// Totals of runs that end with programs count up to this check.
const CHECK_PROGRAMS_HOST_TIME: Span = Span::from_ms(32);
const CHECK_PROGRAMS: Span = Span::from_us(100);

#[derive(Debug, PartialEq)]
pub(crate) struct RunStep {
    pub until: Time,
    pub sample: bool,
    pub merge: bool,
    pub trees: bool,
    pub warm: bool,
    pub may_end: bool,
}

impl RunStep {
    /// Returns true if only programs are read after this step of a run until `end`.
    pub fn is_for_programs(&self, end: Time) -> bool {
        !(self.sample || self.merge || self.trees || self.warm) && self.until < end
    }
}

#[derive(Debug)]
pub(crate) struct RunSteps {
    end: Time,
    warm_up: Option<Time>,
    sample: Samples,
    trees: Option<Ticks>,
    check: Span,
    checked: Time,
    ends_with_programs: bool,
    now: Option<Time>,
}

#[derive(Debug)]
enum Samples {
    Every(Ticks),
    Spread(SpreadTicks),
}

impl Samples {
    fn new(sampling: Sampling, may_end_early: bool) -> Self {
        match sampling {
            Sampling::Every(interval) => Self::Every(Ticks::every(interval)),
            Sampling::Spread(spread) => {
                let level = if may_end_early {
                    spread.first_level()
                } else {
                    0
                };
                Self::Spread(SpreadTicks::new(spread, level))
            }
        }
    }

    fn next(&self) -> Time {
        match self {
            Self::Every(ticks) => ticks.next,
            Self::Spread(ticks) => ticks.next(),
        }
    }

    fn take(&mut self, now: Time) -> (bool, bool) {
        match self {
            Self::Every(ticks) => (ticks.take(now), false),
            Self::Spread(ticks) if ticks.next() == now => (true, ticks.advance()),
            Self::Spread(_) => (false, false),
        }
    }
}

#[derive(Debug)]
struct SpreadTicks {
    spread: Spread,
    level: u32,
    number: u64,
}

impl SpreadTicks {
    fn new(spread: Spread, level: u32) -> Self {
        let mut ticks = Self {
            spread,
            level,
            number: 0,
        };
        ticks.skip_instant();
        ticks
    }

    fn next(&self) -> Time {
        self.spread.instant(self.number, self.level)
    }

    fn advance(&mut self) -> bool {
        let merges = self.level > 0 && self.number == self.spread.capacity();
        if merges {
            self.level -= 1;
            self.number /= 2;
        }
        self.skip_instant();
        merges
    }

    /// Intervals of less than a picosecond have no sample.
    fn skip_instant(&mut self) {
        let last = self.next();
        while self.next() == last {
            self.number += 1;
        }
    }
}

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

    fn take(&mut self, now: Time) -> bool {
        let is_due = self.next == now;
        if is_due {
            self.next = self.next.saturating_add(self.interval);
        }
        is_due
    }
}

impl RunSteps {
    pub fn new(scenario: &Scenario) -> Self {
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
            sample: Samples::new(
                scenario.sampling(),
                scenario.programs().is_some_and(Plan::ends_run),
            ),
            trees: trees
                .filter(|interval| !interval.is_zero())
                .map(Ticks::every),
            check: match scenario.programs() {
                Some(_) => per_host(CHECK_PROGRAMS_HOST_TIME).min(CHECK_PROGRAMS),
                None => per_host(CHECK_HOST_TIME),
            },
            checked: Time::ZERO,
            ends_with_programs: scenario.programs().is_some(),
            now: None,
        }
    }

    pub fn end(&self) -> Time {
        self.end
    }

    pub fn next_step(&mut self, due: Time) -> Option<RunStep> {
        let others = match self.now {
            None => Time::ZERO,
            Some(now) if now >= self.end => return None,
            Some(_) => self.next_instant().min(due),
        };
        let until = others.min(self.sample.next());
        self.now = Some(until);
        let is_check = until == others || matches!(self.sample, Samples::Every(_));
        if is_check {
            self.checked = until;
        }
        let (sample, merge) = self.sample.take(until);
        Some(RunStep {
            until,
            may_end: until == self.end || (self.ends_with_programs && is_check),
            sample,
            merge,
            trees: self.trees.as_mut().is_some_and(|trees| trees.take(until)),
            warm: self.warm_up.take_if(|at| *at == until).is_some(),
        })
    }

    /// The last sample of a run that ends early covers its rest.
    pub fn closes_series(&self) -> bool {
        matches!(self.sample, Samples::Spread(_))
    }

    pub fn is_last_tree_sample(&self) -> bool {
        self.trees.is_none_or(|trees| trees.next > self.end)
    }

    fn next_instant(&self) -> Time {
        let instants = [
            Some(self.end),
            Some(self.checked.saturating_add(self.check)),
            self.trees.map(|trees| trees.next),
            self.warm_up,
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

    /// Oracle: the instants named in the scenario, and those of the schedule, written down by hand.
    #[test]
    fn everything_is_done_once_at_its_instant() {
        let scenario = scenario(&[
            ("run.duration", "20 us"),
            ("run.warm-up", "8 us"),
            ("probe.interval", "4 us"),
        ]);
        let mut steps = RunSteps::new(&scenario);
        // Changes at 0 and 5 us, sweeps every 6 us.
        let due = [0, 5, 6, 12, 18, 24].map(|us| Time::ZERO + Span::from_us(us));
        let mut seen = Vec::new();
        let mut now = None;
        while let Some(step) = {
            let mut later = due.into_iter().filter(|at| now.is_none_or(|now| *at > now));
            steps.next_step(later.next().unwrap())
        } {
            let RunStep {
                until,
                sample,
                merge,
                trees,
                warm,
                may_end,
            } = step;
            assert!(!trees && !merge);
            assert_eq!(may_end, until == steps.end());
            now = Some(until);
            seen.push((until.as_ps() / 1_000_000, sample, warm));
        }
        assert_eq!(
            seen,
            [
                (0, false, false),
                (4, true, false),
                (5, false, false),
                (6, false, false),
                (8, true, true),
                (12, true, false),
                (16, true, false),
                (18, false, false),
                (20, true, false),
            ]
        );
    }

    #[test]
    fn the_observer_is_asked_in_between() {
        let scenario = scenario(&[("run.duration", "1.6 s"), ("probe.interval", "1.6 s")]);
        let mut run = RunSteps::new(&scenario);
        let mut steps = Vec::new();
        while let Some(step) = run.next_step(Time::MAX) {
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
        let scenario = scenario(&[
            ("traffic.program", program),
            ("run.duration", "1 ms"),
            ("probe.interval", "1 ms"),
        ]);
        let mut run = RunSteps::new(&scenario);
        run.next_step(Time::MAX).unwrap();
        let step = run.next_step(Time::MAX).unwrap();
        assert_eq!(
            (step.until, step.may_end),
            (Time::ZERO + Span::from_us(1), true)
        );
    }
}

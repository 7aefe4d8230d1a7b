//! The design conditions of santos2003, section V: 1 and 2 prevent overshoot and drift, 3 asks for the fastest
//! recovery.
//!
//! A function without `Finc` is followed acknowledgement by acknowledgement, 1/r apart at rate r.

use super::response::ResponseFunction;

/// The design condition of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `increase` never lowers and `decrease` never raises a rate, and both keep it within Rmin to Rmax.
    Range,
    /// Condition 1, avoiding the congested state: `finc(fdec(r)) <= r`.
    CongestionAvoidance,
    /// Condition 2, fairness convergence: `Trec(r1) <= Trec(r2)` for `r1 < r2`.
    FairnessConvergence,
    /// Condition 3, maximal use of bandwidth: `Trec(r) = 1 / Rmin`.
    FastRecovery,
    /// Equation (2): `Finc(t) = fdec(Finc(t + Trec))`.
    RecoveryCurve,
}

impl Condition {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [
        Self::Range,
        Self::CongestionAvoidance,
        Self::FairnessConvergence,
        Self::FastRecovery,
        Self::RecoveryCurve,
    ];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::CongestionAvoidance => "condition 1",
            Self::FairnessConvergence => "condition 2",
            Self::FastRecovery => "condition 3",
            Self::RecoveryCurve => "equation (2)",
        }
    }

    /// Returns the guarantee of the condition.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Range => "rates move the right way and stay between Rmin and Rmax",
            Self::CongestionAvoidance => "finc(fdec(r)) <= r: avoids congestion",
            Self::FairnessConvergence => "Trec(r1) <= Trec(r2) for r1 < r2: converges to fairness",
            Self::FastRecovery => "Trec(r) = 1/Rmin: recovers as fast as fairness allows",
            Self::RecoveryCurve => "Finc(t) = fdec(Finc(t + Trec)): the two functions fit",
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagnosis {
    /// The checked condition.
    pub condition: Condition,
    /// True if the condition holds at every checked rate.
    pub holds: bool,
    /// The rate at which it holds worst, or fails most, as a fraction of Rmax.
    pub rate: f64,
    /// Value of the function there: a rate, or a time in packet times.
    pub value: f64,
    /// The bound on the value.
    pub bound: f64,
}

const EXACT: f64 = 1e-9;
const STEPPED: f64 = 0.02;
const RATES: usize = 256;
/// Acknowledgements after which a rate counts as never recovering: AIMD with m = 2 takes some 25,000 from Rmax/2.
const MOST_STEPS: usize = 1 << 16;

/// Puts a response function to every condition. Condition 1 to 3 and equation (2) concern rates from
/// which one mark does not lead below Rmin; from lower ones it leads to Rmin itself.
pub fn check(function: &impl ResponseFunction) -> Vec<Diagnosis> {
    let recovery = Recovery::of(function);
    let rates = Grid::new(function);
    let slowest = 1.0 / function.min_rate();
    vec![
        range(function),
        rates.worst(Condition::CongestionAvoidance, |rate| {
            let value = function.increase(function.decrease(rate));
            (value, rate, value / rate - 1.0 - EXACT)
        }),
        fairness(&rates, &recovery),
        rates.worst(Condition::FastRecovery, |rate| {
            let value = recovery.time(rate);
            let excess = (value / slowest - 1.0).abs() - recovery.tolerance;
            (value, slowest, excess)
        }),
        rates.worst(Condition::RecoveryCurve, |rate| {
            let value = recovery.rate_after(rate, slowest);
            (value, rate, (value / rate - 1.0).abs() - recovery.tolerance)
        }),
    ]
}

struct Grid {
    rates: Vec<f64>,
}

impl Grid {
    fn new(function: &impl ResponseFunction) -> Self {
        let lowest = unclamped_from(function);
        Self {
            rates: spread(lowest, 1.0),
        }
    }

    fn worst(&self, condition: Condition, at: impl Fn(f64) -> (f64, f64, f64)) -> Diagnosis {
        let mut diagnosis = Diagnosis {
            condition,
            holds: true,
            rate: 1.0,
            value: 0.0,
            bound: 0.0,
        };
        let mut most = f64::NEG_INFINITY;
        for &rate in &self.rates {
            let (value, bound, excess) = at(rate);
            // A NaN fails.
            let excess = if excess.is_nan() {
                f64::INFINITY
            } else {
                excess
            };
            if excess > most {
                most = excess;
                diagnosis = Diagnosis {
                    rate,
                    value,
                    bound,
                    holds: excess <= 0.0,
                    ..diagnosis
                };
            }
        }
        diagnosis
    }
}

fn spread(from: f64, to: f64) -> Vec<f64> {
    let ratio = libm::log(to / from) / (RATES - 1) as f64;
    let mut rates: Vec<f64> = (0..RATES)
        .map(|index| from * libm::exp(ratio * index as f64))
        .collect();
    rates[0] = from;
    rates[RATES - 1] = to;
    rates
}

fn unclamped_from(function: &impl ResponseFunction) -> f64 {
    let min = function.min_rate();
    let is_clamped = |rate: f64| function.decrease(rate) <= min * (1.0 + EXACT);
    if is_clamped(1.0) {
        return 1.0;
    }
    let (mut low, mut high) = (min, 1.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if is_clamped(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn range(function: &impl ResponseFunction) -> Diagnosis {
    let min = function.min_rate();
    let rates = Grid {
        rates: spread(min, 1.0),
    };
    let slack = 1.0 + EXACT;
    rates.worst(Condition::Range, |rate| {
        let (up, down) = (function.increase(rate), function.decrease(rate));
        let up_is_right = up >= rate / slack && up <= slack;
        let down_is_right = down <= rate * slack && down >= min / slack;
        match (up_is_right, down_is_right) {
            (false, _) => (up, rate, 1.0),
            (true, false) => (down, rate, 1.0),
            (true, true) => (up, rate, -1.0),
        }
    })
}

fn fairness<F: ResponseFunction>(rates: &Grid, recovery: &Recovery<F>) -> Diagnosis {
    let longest = std::cell::Cell::new(0.0_f64);
    rates.worst(Condition::FairnessConvergence, |rate| {
        let (value, bound) = (recovery.time(rate), longest.get());
        longest.set(bound.max(value));
        (value, bound, bound / value - 1.0 - recovery.tolerance)
    })
}

struct Recovery<'a, F> {
    function: &'a F,
    tolerance: f64,
}

impl<'a, F: ResponseFunction> Recovery<'a, F> {
    fn of(function: &'a F) -> Self {
        let min = function.min_rate();
        let is_closed = function.rate_after(0.0).is_some() && function.time_to(min).is_some();
        Self {
            function,
            tolerance: if is_closed { EXACT } else { STEPPED },
        }
    }

    fn time(&self, rate: f64) -> f64 {
        let lowered = self.function.decrease(rate);
        let closed = (self.function.time_to(lowered), self.function.time_to(rate));
        if let (Some(from), Some(to)) = closed {
            return to - from;
        }
        let steps = self.steps(lowered);
        let found = steps.into_iter().find(|step| step.to >= rate);
        found.map_or(f64::INFINITY, |step| {
            let part = (rate - step.from) / (step.to - step.from);
            step.start + part / step.from
        })
    }

    fn rate_after(&self, rate: f64, elapsed: f64) -> f64 {
        let lowered = self.function.decrease(rate);
        if let Some(start) = self.function.time_to(lowered) {
            if let Some(rate) = self.function.rate_after(start + elapsed) {
                return rate;
            }
        }
        let mut reached = lowered;
        for step in self.steps(lowered) {
            let part = (elapsed - step.start) * step.from;
            if part < 1.0 {
                return step.from + (step.to - step.from) * part;
            }
            reached = step.to;
        }
        reached
    }

    fn steps(&self, from: f64) -> impl Iterator<Item = SampledStep> {
        let first = SampledStep {
            start: 0.0,
            from,
            to: self.function.increase(from),
        };
        let rises = |step: &SampledStep| step.to > step.from;
        let next = move |step: &SampledStep| {
            let next = SampledStep {
                start: step.start + 1.0 / step.from,
                from: step.to,
                to: self.function.increase(step.to),
            };
            rises(&next).then_some(next)
        };
        std::iter::successors(Some(first).filter(rises), next).take(MOST_STEPS)
    }
}

#[derive(Clone, Copy, Debug)]
struct SampledStep {
    /// Start in packet times.
    start: f64,
    from: f64,
    to: f64,
}

#[cfg(test)]
mod tests;

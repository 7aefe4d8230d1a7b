#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;

use super::*;
use crate::schemes::ecn::{Aimd, Fimd, Fixed, Lipd, MIN_RATE};

/// A function known only by its two steps, as a user would give it.
struct Steps<F>(F);

impl<F: ResponseFunction> ResponseFunction for Steps<F> {
    fn min_rate(&self) -> f64 {
        self.0.min_rate()
    }
    fn increase(&self, rate: f64) -> f64 {
        self.0.increase(rate)
    }
    fn decrease(&self, rate: f64) -> f64 {
        self.0.decrease(rate)
    }
}

/// Any two closures.
struct Pair(fn(f64) -> f64, fn(f64) -> f64);

impl ResponseFunction for Pair {
    fn min_rate(&self) -> f64 {
        MIN_RATE
    }
    fn increase(&self, rate: f64) -> f64 {
        (self.0)(rate)
    }
    fn decrease(&self, rate: f64) -> f64 {
        (self.1)(rate)
    }
}

fn holding(function: &impl ResponseFunction) -> Vec<Condition> {
    let diagnoses = check(function);
    assert_eq!(diagnoses.len(), Condition::ALL.len());
    let holding = diagnoses.into_iter().filter(|diagnosis| diagnosis.holds);
    holding.map(|diagnosis| diagnosis.condition).collect()
}

const FAIR: [Condition; 3] = [
    Condition::Range,
    Condition::CongestionAvoidance,
    Condition::FairnessConvergence,
];

/// Section V: FIMD and LIPD are derived from the conditions. AIMD is fair, but not as fast.
#[test]
fn the_papers_functions_are_what_the_paper_says() {
    let fimd = Fimd::new(2.0, MIN_RATE).unwrap();
    let lipd = Lipd::new(MIN_RATE).unwrap();
    let aimd = Aimd::new(2.0, MIN_RATE).unwrap();
    assert_eq!(holding(&fimd), Condition::ALL);
    assert_eq!(holding(&lipd), Condition::ALL);
    assert_eq!(holding(&aimd), FAIR);
    assert_eq!(holding(&Steps(fimd)), Condition::ALL);
    assert_eq!(holding(&Steps(lipd)), Condition::ALL);
    assert_eq!(holding(&Steps(aimd)), FAIR);
}

proptest! {
    #[test]
    fn families_hold_for_every_parameter(factor in 1.05f64..64.0, min in 0.001f64..0.015) {
        prop_assert_eq!(holding(&Fimd::new(factor, min).unwrap()), Condition::ALL);
        prop_assert_eq!(holding(&Lipd::new(min).unwrap()), Condition::ALL);
        let aimd = holding(&Aimd::new(factor, min).unwrap());
        prop_assert!(FAIR.iter().all(|condition| aimd.contains(condition)));
    }

    /// The recovery time by stepping is that of the closed form, within the last step's rounding.
    #[test]
    fn stepping_finds_the_recovery_time(rate in (2.0 * MIN_RATE)..=1.0) {
        let fimd = Fimd::new(2.0, MIN_RATE).unwrap();
        let (exact, stepped) = (Recovery::of(&fimd).time(rate), Steps(fimd));
        let stepped = Recovery::of(&stepped).time(rate);
        prop_assert!((exact - 256.0).abs() < 1e-6);
        prop_assert!((stepped / exact - 1.0).abs() < STEPPED, "{stepped}");
    }
}

/// Each function has one known fault.
#[test]
fn faults_are_found() {
    // An acknowledgement undoes more than a mark.
    let eager = Pair(
        |rate| (4.0 * rate).min(1.0),
        |rate| (rate / 2.0).max(MIN_RATE),
    );
    let failing = |function: &Pair| {
        let diagnoses = check(function).into_iter();
        let failing = diagnoses.filter(|diagnosis| !diagnosis.holds);
        failing
            .map(|diagnosis| diagnosis.condition)
            .collect::<Vec<_>>()
    };
    assert!(failing(&eager).contains(&Condition::CongestionAvoidance));
    // A constant step per acknowledgement: fast flows get more of them, so they recover sooner.
    let unfair = Pair(
        |rate| (rate + MIN_RATE).min(1.0),
        |rate| (rate / 2.0).max(MIN_RATE),
    );
    assert!(failing(&unfair).contains(&Condition::FairnessConvergence));
    let wrong_way = Pair(|rate| rate / 2.0, |rate| rate);
    assert!(failing(&wrong_way).contains(&Condition::Range));
    let below = Pair(|rate| rate, |rate| rate / 2.0);
    assert!(failing(&below).contains(&Condition::Range));
    let no_number = Pair(|_| f64::NAN, |_| f64::NAN);
    assert!(failing(&no_number).contains(&Condition::Range));
    // Never recovers at all, and is so not as fast as it could be.
    assert!(!holding(&Fixed).contains(&Condition::FastRecovery));
}

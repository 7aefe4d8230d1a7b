use proptest::prelude::*;

use super::*;

/// A wall clock and a data plane that needs `cost` seconds per simulated second.
struct Clock {
    start: Instant,
    wall: f64,
    simulated: Time,
    cost: f64,
}

impl Clock {
    fn new(cost: f64) -> Self {
        Self {
            start: Instant::now(),
            wall: 0.0,
            simulated: Time::ZERO,
            cost,
        }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_secs_f64(self.wall)
    }

    fn pace(&self, scale: f64) -> Pace {
        let mut pace = Pace::new(scale, self.now(), self.simulated);
        pace.start(self.now(), self.simulated);
        pace
    }

    /// Does what the server does until the wall clock shows `end`.
    fn run(&mut self, pace: &mut Pace, end: f64) {
        while self.wall < end {
            match pace.next_step(self.now(), self.simulated, false) {
                Some(until) => {
                    let step = until.since(self.simulated);
                    let taken = (step.as_secs_f64() * self.cost).max(1e-7);
                    pace.stepped(step, Duration::from_secs_f64(taken));
                    self.simulated = until;
                    self.wall += taken;
                }
                None => self.wall += 1e-3,
            }
        }
    }

    /// Simulated seconds that the law of conservation asks for: what is not simulated is still to be
    /// made up for, or given up.
    fn accounted(&self, pace: &Pace) -> f64 {
        let lag = pace.lag(self.now(), self.simulated).as_secs_f64();
        self.simulated.as_secs_f64() + lag + pace.given_up()
    }
}

#[test]
fn simulated_time_keeps_to_the_scale_while_it_can() {
    for scale in [0.01, 1.0, 3.0] {
        let mut clock = Clock::new(0.2);
        let mut pace = clock.pace(scale);
        clock.run(&mut pace, 2.0);
        let reached = clock.simulated.as_secs_f64();
        assert!((reached - 2.0 * scale).abs() < 0.002 * scale, "{reached}");
        assert!((pace.speed() - scale).abs() < 0.02 * scale);
        assert!(pace.given_up() < 1e-12);
    }
}

/// A data plane that costs nothing is left alone for most of the time.
#[test]
fn steps_are_few_while_there_is_little_to_do() {
    let start = Instant::now();
    let mut pace = Pace::new(1.0, start, Time::ZERO);
    let mut simulated = Time::ZERO;
    let mut steps = 0;
    for tick in 0..10_000 {
        let now = start + Duration::from_micros(100 * tick);
        while let Some(until) = pace.next_step(now, simulated, false) {
            simulated = until;
            steps += 1;
        }
    }
    assert!((900..=2100).contains(&steps), "{steps}");
    assert!(simulated > Time::ZERO + Span::from_ms(997));
}

#[test]
fn a_slow_data_plane_falls_behind_and_says_so() {
    let mut clock = Clock::new(4.0);
    let mut pace = clock.pace(1.0);
    clock.run(&mut pace, 8.0);
    let reached = clock.simulated.as_secs_f64();
    assert!((reached - 2.0).abs() < 0.01, "{reached}");
    assert!((pace.speed() - 0.25).abs() < 0.01);
    // All but the second that might still be made up for.
    assert!((pace.given_up() - 5.0).abs() < 0.01, "{}", pace.given_up());
    // A step takes about as long as it should.
    assert!(
        (10_000_000..16_000_000).contains(&pace.step),
        "{}",
        pace.step
    );
}

#[test]
fn a_pause_stops_simulated_time() {
    let mut clock = Clock::new(0.1);
    let mut pace = clock.pace(1.0);
    pace.set_paused(true, clock.now(), clock.simulated);
    clock.run(&mut pace, 1.0);
    assert_eq!(clock.simulated, Time::ZERO);
    pace.set_paused(false, clock.now(), Time::ZERO);
    // The speed from before the pause does not count now.
    assert!((pace.speed() - 1.0).abs() < 1e-9);
    clock.wall += 0.005;
    assert!(pace.next_step(clock.now(), Time::ZERO, false).is_some());
    assert!(pace.given_up() < 1e-9);
}

proptest! {
    /// Oracle: wall time by scale. Delays of less than a second, with time left to make up for them, have no lasting
    /// effect.
    #[test]
    fn short_lags_are_made_up_for(
        scale in prop_oneof![Just(0.01), Just(1.0), 0.1..10.0],
        share in 0.05..0.7,
        lags in prop::collection::vec((0.0..0.95, 0.0..0.5), 1..8),
    ) {
        // The share of its time that the processor needs.
        let mut clock = Clock::new(share / scale);
        let mut pace = clock.pace(scale);
        for (lag, rest) in lags {
            clock.wall += lag;
            let enough = clock.wall + rest + 0.1 + lag * share / (1.0 - share) * 1.2;
            clock.run(&mut pace, enough);
            let expected = clock.wall * scale;
            let reached = clock.simulated.as_secs_f64();
            prop_assert!((reached - expected).abs() < 0.003 * scale, "{reached} of {expected}");
            prop_assert_eq!(pace.given_up(), 0.0);
        }
    }

    /// Oracle: conservation. Simulated time, lag and given-up time add up to the wall time by the scales that were set.
    /// At most a second waits to be made up for.
    #[test]
    fn nothing_is_lost_without_a_word(
        costs in prop::collection::vec(
            (0.05..5.0, 0.0..4.0, 0.0..1.0, prop_oneof![Just(0.0), 0.1..3.0]), 1..8),
    ) {
        let mut clock = Clock::new(1.0);
        let mut pace = clock.pace(1.0);
        let (mut expected, mut since) = (0.0, 0.0);
        for (cost, lag, busy, scale) in costs {
            clock.cost = cost;
            clock.wall += lag;
            let end = clock.wall + busy;
            clock.run(&mut pace, end);
            if !pace.is_paused() {
                expected += (clock.wall - since) * pace.scale();
            }
            since = clock.wall;
            let accounted = clock.accounted(&pace);
            prop_assert!((accounted - expected).abs() < 1e-6, "{accounted} of {expected}");
            // A step can last beyond the limit.
            let most = pace.scale() * (1.0 + 0.01);
            let lag = pace.lag(clock.now(), clock.simulated).as_secs_f64();
            prop_assert!(busy == 0.0 || lag < most, "{lag}");
            // A scale of 0 means a pause.
            pace.set_paused(scale == 0.0, clock.now(), clock.simulated);
            if scale > 0.0 {
                pace.set_scale(scale, clock.now(), clock.simulated);
            }
        }
    }
}

//! Keeping simulated time in step with the wall clock.

use std::time::{Duration, Instant};

use silvan_units::{Span, Time};

/// Wall time that a step of the data plane shall take: as long as a datagram may have to wait.
const SLICE: Duration = Duration::from_micros(50);
/// Longest and shortest step, in ps.
const LONGEST_STEP: u64 = 1_000_000_000;
const SHORTEST_STEP: u64 = 1_000_000;
/// Lag from which on simulated time is made to catch up: less is not worth a step.
const GRAIN: Duration = Duration::from_millis(1);
/// Lag that is made up for; more is given up, so that simulated time falls behind for good.
const MOST_LAG: Duration = Duration::from_millis(20);
/// Wall time over which the speed is measured.
const WINDOW: Duration = Duration::from_millis(500);

/// How simulated time follows the wall clock.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Simulated seconds per second.
    scale: f64,
    /// An instant at which both clocks agreed.
    wall: Instant,
    simulated: Time,
    paused: bool,
    /// Whether simulated time is being made to catch up.
    catching_up: bool,
    /// Step of the data plane that takes about [`SLICE`], in ps.
    step: u64,
    /// Simulated time given up so far, in seconds.
    given_up: f64,
    window: (Instant, Time),
    speed: f64,
}

impl Pace {
    pub fn new(scale: f64, now: Instant, simulated: Time) -> Self {
        Self {
            scale,
            wall: now,
            simulated,
            paused: false,
            catching_up: false,
            step: LONGEST_STEP,
            given_up: 0.0,
            window: (now, simulated),
            speed: 0.0,
        }
    }

    /// Simulated seconds per second that are aimed at.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Simulated seconds per second that were reached of late.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Simulated seconds that the data plane is behind for good.
    pub fn given_up(&self) -> f64 {
        self.given_up
    }

    /// Starts to count from an instant.
    fn agree(&mut self, now: Instant, simulated: Time) {
        self.wall = now;
        self.simulated = simulated;
    }

    /// Counts anew, at another speed, which is taken for reached until it has been measured.
    fn start_anew(&mut self, now: Instant, simulated: Time) {
        self.agree(now, simulated);
        self.window = (now, simulated);
        self.speed = if self.paused { 0.0 } else { self.scale };
    }

    pub fn set_scale(&mut self, scale: f64, now: Instant, simulated: Time) {
        self.scale = scale;
        self.start_anew(now, simulated);
    }

    pub fn set_paused(&mut self, paused: bool, now: Instant, simulated: Time) {
        self.paused = paused;
        self.start_anew(now, simulated);
    }

    /// Where simulated time should be.
    fn target(&self, now: Instant) -> Time {
        if self.paused {
            return self.simulated;
        }
        let passed = now.saturating_duration_since(self.wall).as_secs_f64() * self.scale;
        self.simulated
            .saturating_add(Span::from_ps((passed * 1e12) as u64))
    }

    /// The end of the next step, `None` if simulated time is about where it should be.
    pub fn next_step(&mut self, now: Instant, simulated: Time) -> Option<Time> {
        if now.saturating_duration_since(self.window.0) >= WINDOW {
            let passed = simulated.since(self.window.1).as_secs_f64();
            self.speed = passed / now.saturating_duration_since(self.window.0).as_secs_f64();
            self.window = (now, simulated);
        }
        let target = self.target(now);
        let behind = target.checked_since(simulated)?;
        let wall = |span: Duration| span.as_secs_f64() * self.scale;
        let little = !self.catching_up && behind.as_secs_f64() < wall(GRAIN);
        if behind.is_zero() || little {
            return None;
        }
        if behind.as_secs_f64() > wall(MOST_LAG) {
            self.given_up += behind.as_secs_f64();
            self.agree(now, simulated);
            return Some(simulated + Span::from_ps(self.step));
        }
        let until = target.min(simulated + Span::from_ps(self.step));
        self.catching_up = until < target;
        Some(until)
    }

    /// A step of this length has taken that long.
    pub fn stepped(&mut self, simulated: Span, wall: Duration) {
        let taken = wall.as_nanos().max(1) as u64;
        let ideal = simulated.as_ps().saturating_mul(SLICE.as_nanos() as u64) / taken;
        // A pause of the whole process must not make all further steps tiny.
        let ideal = ideal.clamp(self.step / 2, self.step.saturating_mul(2));
        self.step = ideal.clamp(SHORTEST_STEP, LONGEST_STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps as a data plane that needs `cost` seconds per simulated second would take, on a clock of
    /// its own.
    fn run(pace: &mut Pace, start: Instant, seconds: f64, cost: f64) -> Time {
        let mut wall = 0.0;
        let mut simulated = Time::ZERO;
        while wall < seconds {
            let now = start + Duration::from_secs_f64(wall);
            match pace.next_step(now, simulated) {
                Some(until) => {
                    let step = until.since(simulated);
                    let taken = (step.as_secs_f64() * cost).max(1e-7);
                    pace.stepped(step, Duration::from_secs_f64(taken));
                    simulated = until;
                    wall += taken;
                }
                None => wall += 1e-3,
            }
        }
        simulated
    }

    #[test]
    fn simulated_time_keeps_to_the_scale_while_it_can() {
        for scale in [0.01, 1.0, 3.0] {
            let start = Instant::now();
            let mut pace = Pace::new(scale, start, Time::ZERO);
            let reached = run(&mut pace, start, 2.0, 0.2).as_secs_f64();
            assert!(
                (reached - 2.0 * scale).abs() < 0.01 * scale,
                "{scale} {reached}"
            );
            assert!((pace.speed() - scale).abs() < 0.02 * scale);
            assert!(pace.given_up() < 1e-9);
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
            while let Some(until) = pace.next_step(now, simulated) {
                simulated = until;
                steps += 1;
            }
        }
        assert!((900..=2100).contains(&steps), "{steps}");
        assert!(simulated > Time::ZERO + Span::from_ms(997));
    }

    #[test]
    fn a_slow_data_plane_falls_behind_and_says_so() {
        let start = Instant::now();
        let mut pace = Pace::new(1.0, start, Time::ZERO);
        let reached = run(&mut pace, start, 2.0, 4.0).as_secs_f64();
        assert!((reached - 0.5).abs() < 0.02, "{reached}");
        assert!((pace.speed() - 0.25).abs() < 0.01);
        assert!((pace.given_up() - 1.5).abs() < 0.1, "{}", pace.given_up());
        // A step takes about as long as it should.
        assert!(
            (10_000_000..16_000_000).contains(&pace.step),
            "{}",
            pace.step
        );
    }

    #[test]
    fn a_pause_stops_simulated_time() {
        let start = Instant::now();
        let mut pace = Pace::new(1.0, start, Time::ZERO);
        pace.set_paused(true, start, Time::ZERO);
        assert_eq!(run(&mut pace, start, 1.0, 0.1), Time::ZERO);
        pace.set_paused(false, start + Duration::from_secs(1), Time::ZERO);
        let now = start + Duration::from_millis(1005);
        // What was reached before the pause says nothing now.
        assert!((pace.speed() - 1.0).abs() < 1e-9);
        assert!(pace.next_step(now, Time::ZERO).is_some());
        assert!(pace.given_up() < 1e-9);
    }
}

use std::time::{Duration, Instant};

use silvan_core::{Span, Time};

const SLICE: Duration = Duration::from_micros(50);
/// Longest and shortest step, in ps.
const LONGEST_STEP: u64 = 1_000_000_000;
const SHORTEST_STEP: u64 = 1_000_000;
const GRAIN: Duration = Duration::from_millis(1);
const FINE_GRAIN: Duration = Duration::from_micros(20);
/// Largest lag that is made up for; beyond, simulated time falls behind permanently.
const MOST_LAG: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Pace {
    /// Simulated seconds per second.
    scale: f64,
    /// Factor by which simulated time is slower than that at the moment.
    slowdown: f64,
    wall: Instant,
    simulated: Time,
    paused: bool,
    catching_up: bool,
    /// Step that takes about [`SLICE`], in ps.
    step: u64,
    /// Simulated time given up, in seconds: it may exceed the clock's range.
    given_up: f64,
    window: (Instant, Time),
    speed: f64,
}

impl Pace {
    pub fn new(scale: f64, now: Instant, simulated: Time) -> Self {
        Self {
            scale,
            slowdown: 1.0,
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

    pub fn scale(&self) -> f64 {
        self.scale
    }

    pub fn scale_now(&self) -> f64 {
        self.scale / self.slowdown
    }

    pub fn slow_down(&mut self, factor: f64, now: Instant) {
        if factor != self.slowdown {
            self.agree(now, self.target(now));
            self.slowdown = factor;
        }
    }

    /// Recently reached simulated seconds per second.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    pub fn given_up(&self) -> f64 {
        self.given_up
    }

    pub fn lag(&self, now: Instant, simulated: Time) -> Span {
        let behind = self.target(now).checked_since(simulated);
        behind.unwrap_or(Span::ZERO)
    }

    fn scaled(&self, wall: Duration) -> Span {
        Span::from_ps((wall.as_secs_f64() * self.scale_now() * 1e12) as u64)
    }

    fn agree(&mut self, now: Instant, simulated: Time) {
        self.wall = now;
        self.simulated = simulated;
    }

    pub fn start(&mut self, now: Instant, simulated: Time) {
        self.agree(now, simulated);
        self.window = (now, simulated);
        self.speed = if self.paused { 0.0 } else { self.scale };
    }

    pub fn set_scale(&mut self, scale: f64, now: Instant, simulated: Time) {
        self.given_up += self.lag(now, simulated).as_secs_f64();
        self.scale = scale;
        self.start(now, simulated);
    }

    pub fn set_paused(&mut self, paused: bool, now: Instant, simulated: Time) {
        self.given_up += self.lag(now, simulated).as_secs_f64();
        self.paused = paused;
        self.start(now, simulated);
    }

    /// Gives up all lag.
    pub fn hold(&mut self, now: Instant, simulated: Time) {
        self.agree(now, simulated);
        self.catching_up = false;
    }

    /// Gives up lag beyond this wall time.
    pub fn limit_lag(&mut self, now: Instant, simulated: Time, most: Duration) {
        let most = self.scaled(most);
        if self.lag(now, simulated) > most {
            self.agree(now, simulated.saturating_add(most));
        }
    }

    pub fn target(&self, now: Instant) -> Time {
        if self.paused {
            return self.simulated;
        }
        let passed = now.saturating_duration_since(self.wall);
        self.simulated.saturating_add(self.scaled(passed))
    }

    /// The end of the next step, `None` if the lag is small; `waits` means that programs wait for it.
    pub fn next_step(
        &mut self,
        now: Instant,
        simulated: Time,
        is_waited_for: bool,
    ) -> Option<Time> {
        if now.saturating_duration_since(self.window.0) >= WINDOW {
            let passed = simulated.since(self.window.1).as_secs_f64();
            self.speed = passed / now.saturating_duration_since(self.window.0).as_secs_f64();
            self.window = (now, simulated);
        }
        let behind = self.lag(now, simulated);
        let grain = if is_waited_for { FINE_GRAIN } else { GRAIN };
        let little = !self.catching_up && behind < self.scaled(grain);
        if behind.is_zero() || little {
            return None;
        }
        let most = self.scaled(MOST_LAG);
        if let Some(too_much) = behind.checked_sub(most).filter(|span| !span.is_zero()) {
            self.given_up += too_much.as_secs_f64();
            self.agree(now, simulated.saturating_add(most));
        }
        let step = behind.min(Span::from_ps(self.step));
        self.catching_up = step < behind;
        Some(simulated.saturating_add(step))
    }

    pub fn stepped(&mut self, simulated: Span, wall: Duration) {
        let taken = wall.as_nanos().max(1) as u64;
        let ideal = simulated.as_ps().saturating_mul(SLICE.as_nanos() as u64) / taken;
        let ideal = ideal.clamp(self.step / 2, self.step.saturating_mul(2));
        self.step = ideal.clamp(SHORTEST_STEP, LONGEST_STEP);
    }
}

#[cfg(test)]
mod tests;

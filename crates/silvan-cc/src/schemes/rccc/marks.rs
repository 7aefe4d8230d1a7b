//! RCCC's second signal: marks slow the pulls if the fabric is the bottleneck, with the reference simulator's numbers.
//!
//! Every one and a half base round trips, the smoothed part of marked packets above the target lowers the rate by the
//! excess; else a step raises it, which doubles while no packet is marked.

use silvan_core::{Span, Time};

/// In base round trips.
const INTERVAL: f64 = 1.5;
/// Part of marked packets above which the rate falls.
const TARGET: f64 = 0.3;
const WEIGHT: f64 = 0.5;
const DECREASE: f64 = 0.5;
const INCREASE: f64 = 0.01;
const LEAST: f64 = 0.01;
/// Doublings that lead from any rate to the full rate.
const MOST_DOUBLINGS: u32 = 7;
/// Empty intervals that lead from any rate to the full rate.
const MOST_EMPTY: u64 = 16;

pub(super) fn whole_after(base_rtt: Span) -> Span {
    Span::from_ps((base_rtt.as_ps() as f64 * INTERVAL * MOST_EMPTY as f64) as u64)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PullRate {
    part: f64,
    marked_part: f64,
    increases: u32,
    received: u32,
    marked: u32,
    /// Zero before the first packet.
    end: Time,
}

impl Default for PullRate {
    fn default() -> Self {
        Self {
            part: 1.0,
            marked_part: 0.0,
            increases: 0,
            received: 0,
            marked: 0,
            end: Time::ZERO,
        }
    }
}

impl PullRate {
    #[inline]
    pub fn part(&self) -> f64 {
        self.part
    }

    pub fn arrived(&mut self, base_rtt: Span, now: Time, marked: bool) {
        let interval = Span::from_ps((base_rtt.as_ps() as f64 * INTERVAL) as u64);
        if self.end == Time::ZERO {
            self.end = now.saturating_add(interval);
        }
        if now >= self.end {
            self.adjust();
            let empty = now.since(self.end).as_ps() / interval.as_ps().max(1);
            for _ in 0..empty.min(MOST_EMPTY) {
                self.adjust();
            }
            self.end = now.saturating_add(interval);
        }
        self.received += 1;
        self.marked += u32::from(marked);
    }

    fn adjust(&mut self) {
        let part = f64::from(self.marked) / f64::from(self.received.max(1));
        self.marked_part = self.marked_part * (1.0 - WEIGHT) + part * WEIGHT;
        if self.marked_part > TARGET {
            self.part *= 1.0 - (self.marked_part - TARGET) * DECREASE;
            self.increases = 0;
        } else {
            let doublings = match self.marked {
                0 => self.increases.min(MOST_DOUBLINGS),
                _ => 0,
            };
            self.part += INCREASE * f64::from(1_u32 << doublings);
            self.increases = self.increases.saturating_add(1);
        }
        self.part = self.part.clamp(LEAST, 1.0);
        (self.received, self.marked) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE_RTT: Span = Span::from_us(10);

    /// An interval of ten packets, so many of them marked.
    fn interval(rate: &mut PullRate, number: u64, marked: u64) -> f64 {
        for packet in 0..10 {
            let now = Time::ZERO + Span::from_us(1 + 15 * number + packet);
            rate.arrived(BASE_RTT, now, packet < marked);
        }
        // The first packet of the next one ends it.
        let mut after = *rate;
        after.arrived(
            BASE_RTT,
            Time::ZERO + Span::from_us(16 + 15 * number),
            false,
        );
        after.part()
    }

    fn is(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-12,
            "{found} is not {expected}"
        );
    }

    /// All packets marked: the smoothed parts are 1/2, 3/4, 7/8.
    #[test]
    fn the_rate_falls_in_proportion_to_the_excess() {
        let mut rate = PullRate::default();
        let mut expected = 1.0;
        for (number, smoothed) in [0.5, 0.75, 0.875].into_iter().enumerate() {
            expected *= 1.0 - (smoothed - 0.3) * 0.5;
            is(interval(&mut rate, number as u64, 10), expected);
        }
    }

    /// Without marks 0.01, 0.02, 0.04 are added; with few marks 0.01 each time.
    #[test]
    fn the_step_doubles_while_nothing_is_marked() {
        for (marked, steps) in [(0, [1.0, 2.0, 4.0]), (1, [1.0, 1.0, 1.0])] {
            let mut rate = PullRate {
                part: 0.5,
                ..PullRate::default()
            };
            let mut expected = 0.5;
            for (number, step) in steps.into_iter().enumerate() {
                expected += 0.01 * step;
                is(interval(&mut rate, number as u64, marked), expected);
            }
        }
    }

    #[test]
    fn a_pause_restores_the_rate_and_marks_never_stop_it() {
        let mut rate = PullRate::default();
        for number in 0..100 {
            interval(&mut rate, number, 10);
        }
        is(rate.part(), 0.01);
        rate.arrived(BASE_RTT, Time::ZERO + Span::from_us(5_000), false);
        is(rate.part(), 1.0);
    }
}

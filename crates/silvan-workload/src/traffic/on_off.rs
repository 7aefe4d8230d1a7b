//! An ON-OFF process (santos2003, section VI-B.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Span, Time, schema};

use crate::traffic::rng::{Stream, below, exponential};

/// Mean times for which a source comes and goes; both are exponentially distributed. Each time on is a
/// new flow to congestion control; a message that was begun is sent to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OnOffMeans {
    /// Mean time on.
    #[schemars(with = "schema::SpanText")]
    pub on: Span,
    /// Mean time off.
    #[schemars(with = "schema::SpanText")]
    pub off: Span,
}

impl OnOffMeans {
    pub(crate) fn share_on(means: Option<Self>) -> f64 {
        means.map_or(1.0, |means| {
            let (on, off) = (means.on.as_ps() as f64, means.off.as_ps() as f64);
            on / (on + off)
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OnOff {
    on: Span,
    off: Span,
    is_on: bool,
    has_started: bool,
    until: Time,
    draws: Stream,
}

impl OnOff {
    /// Starts in a state of the stationary distribution.
    pub(crate) fn new(spec: OnOffMeans, start: Time, mut draws: Stream) -> Self {
        let (on, off) = (spec.on, spec.off);
        // Resolution of the share of time on: 1 / 2^24.
        const PARTS: u32 = 1 << 24;
        let share = u128::from(on.as_ps()) * u128::from(PARTS)
            / (u128::from(on.as_ps()) + u128::from(off.as_ps()));
        let is_on = u128::from(below(&mut draws, PARTS)) < share;
        let mut process = Self {
            on,
            off,
            is_on,
            has_started: is_on,
            until: start,
            draws,
        };
        process.until = start.saturating_add(process.draw());
        process
    }

    pub(crate) fn advance(&mut self, now: Time) -> Result<(), Time> {
        while self.until <= now {
            self.is_on = !self.is_on;
            self.has_started |= self.is_on;
            self.until = self.until.saturating_add(self.draw());
        }
        if self.is_on { Ok(()) } else { Err(self.until) }
    }

    pub(crate) fn take_start(&mut self) -> bool {
        std::mem::take(&mut self.has_started)
    }

    fn draw(&mut self) -> Span {
        let mean = if self.is_on { self.on } else { self.off };
        let draw = u128::from(exponential(&mut self.draws));
        let ps = (u128::from(mean.as_ps()) * draw) >> 32;
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::rng::{Purpose, stream};

    fn process(on_us: u64, off_us: u64, seed: u64) -> OnOff {
        let spec = OnOffMeans {
            on: Span::from_us(on_us),
            off: Span::from_us(off_us),
        };
        OnOff::new(spec, Time::ZERO, stream(seed, Purpose::FlowOnOff(0), 0))
    }

    /// Time on and number of starts within a second, asked every microsecond.
    fn observe(mut process: OnOff) -> (f64, u32) {
        let (mut on, mut starts) = (0_u32, 0);
        for us in 0..1_000_000 {
            if process.advance(Time::ZERO + Span::from_us(us)).is_ok() {
                on += 1;
            }
            starts += u32::from(process.take_start());
        }
        (f64::from(on) / 1e6, starts)
    }

    /// 2,000 cycles of 100 + 400 us: the share of time on is 1/5. Its standard deviation over n cycles
    /// is share (1 - share) sqrt(2 / n), that of the number of cycles sqrt(n (0.2² + 0.8²)); four of each.
    #[test]
    fn shares_and_cycles_are_those_of_the_means() {
        let (on, starts) = observe(process(100, 400, 1));
        assert!(
            (on - 0.2).abs() < 4.0 * 0.16 * f64::sqrt(2.0 / 2_000.0),
            "{on}"
        );
        let deviation = f64::sqrt(2_000.0 * 0.68);
        assert!(
            (f64::from(starts) - 2_000.0).abs() < 4.0 * deviation,
            "{starts}"
        );
    }

    /// The probability of being on at the start equals the share of time on.
    #[test]
    fn it_starts_as_it_goes_on() {
        let on_at_start = |seed| process(300, 100, seed).advance(Time::ZERO).is_ok();
        let found = (0..4_000).filter(|&seed| on_at_start(seed)).count() as f64;
        assert!((found / 4_000.0 - 0.75).abs() < 4.0 * f64::sqrt(0.75 * 0.25 / 4_000.0));
    }

    #[test]
    fn an_answer_holds_until_it_says() {
        let mut process = process(1, 1, 9);
        let mut now = Time::ZERO;
        for _ in 0..1_000 {
            if let Err(at) = process.advance(now) {
                assert!(at > now);
                assert_eq!(process.advance(at), Ok(()));
            }
            now += Span::from_ns(700);
        }
    }
}

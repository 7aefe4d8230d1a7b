use rand_core::RngCore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Rate, Span, Time};

/// Spacing of the messages of a source that does not saturate. Messages that cannot leave in time
/// queue up without limit and follow as soon as they can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps, with a random phase for each host.
    Periodic,
}

use crate::traffic::rng::{Stream, exponential};

/// Instants are in 2^-32 ps, so that a rate holds over any run although its gap is no whole number of picoseconds.
const FRACTION_BITS: u32 = 32;

#[derive(Clone, Debug)]
pub(crate) struct Pace {
    due: u128,
    /// Mean gap [2^-32 ps].
    gap: u128,
    /// Draws Poisson gaps; `None` for equal gaps.
    random: Option<Stream>,
}

/// In 2^-32 ps, rounded down.
pub(crate) fn gap_at_rate(message: Bytes, rate: Rate) -> u128 {
    const PS_BITS_PER_BYTE: u128 = 8_000_000_000_000;
    ((u128::from(message.as_u64()) * PS_BITS_PER_BYTE) << FRACTION_BITS)
        / u128::from(rate.bits_per_sec())
}

impl Pace {
    pub(crate) fn periodic(start: Time, gap: u128) -> Self {
        Self {
            due: fixed(start),
            gap,
            random: None,
        }
    }

    pub(crate) fn periodic_with_phase(start: Time, gap: u128, stream: &mut Stream) -> Self {
        let phase = (gap * u128::from(stream.next_u32())) >> 32;
        Self {
            due: fixed(start) + phase,
            gap,
            random: None,
        }
    }

    pub(crate) fn poisson(start: Time, gap: u128, stream: Stream) -> Self {
        let mut pace = Self {
            due: fixed(start),
            gap,
            random: Some(stream),
        };
        pace.advance();
        pace
    }

    pub(crate) fn spaced(spacing: Spacing, start: Time, gap: u128, mut stream: Stream) -> Self {
        match spacing {
            Spacing::Poisson => Self::poisson(start, gap, stream),
            Spacing::Periodic => Self::periodic_with_phase(start, gap, &mut stream),
        }
    }

    pub(crate) fn expected(&self, span: Span) -> u64 {
        let messages = (u128::from(span.as_ps()) << FRACTION_BITS) / self.gap.max(1);
        u64::try_from(messages).unwrap_or(u64::MAX)
    }

    pub(crate) fn due(&self) -> Time {
        let ps = self.due.div_ceil(1 << FRACTION_BITS);
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    #[inline]
    pub(crate) fn ready(&self, now: Time) -> bool {
        fixed(now) >= self.due
    }

    pub(crate) fn skip_to(&mut self, now: Time) {
        self.due = self.due.max(fixed(now));
    }

    pub(crate) fn advance(&mut self) {
        self.due += match &mut self.random {
            // The gap stays below 2^75 and the draw below 2^38 in practice.
            Some(stream) => (self.gap * u128::from(exponential(stream))) >> 32,
            None => self.gap,
        };
    }
}

fn fixed(time: Time) -> u128 {
    u128::from(time.as_ps()) << FRACTION_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::rng::{Purpose, stream};

    const MESSAGE: Bytes = Bytes::from_bytes(4096);

    fn rate(gbit: u64) -> Rate {
        Rate::from_bits_per_sec(gbit * 1_000_000_000).expect("not zero")
    }

    /// Arrivals in one second against rate / message size.
    fn arrivals_in_a_second(mut pace: Pace) -> u64 {
        let end = Time::from_ps(1_000_000_000_000);
        let mut count = 0;
        while pace.due() < end {
            count += 1;
            pace.advance();
        }
        count
    }

    #[test]
    fn periodic_arrivals_do_not_drift() {
        // 7 Gbit/s: the gap of 4,681,142.857... ps is no whole number.
        let pace = Pace::periodic(Time::ZERO, gap_at_rate(MESSAGE, rate(7)));
        let exact = 7e9 / (4096.0 * 8.0);
        assert_eq!(arrivals_in_a_second(pace), f64::ceil(exact) as u64);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_rate() {
        let pace = Pace::poisson(
            Time::ZERO,
            gap_at_rate(MESSAGE, rate(7)),
            stream(3, Purpose::UniformGaps(0), 0),
        );
        let exact = 7e9 / (4096.0 * 8.0);
        let count = arrivals_in_a_second(pace) as f64;
        // The count has the variance of its mean: four standard deviations.
        assert!((count - exact).abs() < 4.0 * exact.sqrt(), "{count}");
    }
}

use std::fmt;
use std::ops::Add;

use crate::time::{Span, Time};

const PS_PER_NS: u64 = 1_000;
const NS_PER_S: f64 = 1e9;

/// An instant of some clock, simulated or real.
pub trait Instant: Copy + Default + fmt::Debug + PartialEq {
    /// The span from `earlier` to `self`, at most [`Span::MAX`]; `None` if `earlier` is later.
    fn checked_since(self, earlier: Self) -> Option<Span>;
}

impl Instant for Time {
    #[inline]
    fn checked_since(self, earlier: Self) -> Option<Span> {
        self.checked_since(earlier)
    }
}

/// An instant of the machine's clock, in nanoseconds from some start; longer spans count as [`Span::MAX`], 213 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct MonotonicTime(u64);

impl MonotonicTime {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be represented; serves as "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Seconds since the start, rounded to the nearest `f64`; for reports, not for arithmetic.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S
    }

    /// The span from `earlier` to `self`, at most [`Span::MAX`]; `None` if `earlier` is later.
    pub fn checked_since(self, earlier: Self) -> Option<Span> {
        let ns = self.0.checked_sub(earlier.0)?;
        Some(Span::from_ps(ns.saturating_mul(PS_PER_NS)))
    }

    /// The instant `span` later, rounded up to a nanosecond, at most [`MonotonicTime::MAX`].
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_ps().div_ceil(PS_PER_NS)))
    }
}

impl Instant for MonotonicTime {
    #[inline]
    fn checked_since(self, earlier: Self) -> Option<Span> {
        self.checked_since(earlier)
    }
}

/// Saturates, as [`MonotonicTime::saturating_add`].
impl Add<Span> for MonotonicTime {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        self.saturating_add(span)
    }
}

/// Prints the seconds since the start, e.g. `86400.000000001 s`.
impl fmt::Display for MonotonicTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{seconds}.{ns:09} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    /// Oracle: counting in 128 bits of picoseconds.
    #[test]
    fn spans_are_exact_until_they_saturate() {
        let days = |count: u64| count * 86_400 * 1_000_000_000;
        let starts = [0, 1, days(213), days(214), days(365 * 50), u64::MAX - 5];
        let lengths = [0, 1, 999, days(1), days(213), days(214), days(365 * 80)];
        for start in starts {
            for length in lengths {
                let Some(end) = start.checked_add(length) else {
                    continue;
                };
                let (earlier, later) = (MonotonicTime::from_ns(start), MonotonicTime::from_ns(end));
                let exact = u128::from(length) * 1_000;
                let expected = exact.min(u128::from(u64::MAX)) as u64;
                assert_eq!(later.checked_since(earlier), Some(Span::from_ps(expected)));
                assert_eq!(earlier.checked_since(later).is_none(), length > 0);
            }
        }
    }

    #[test]
    fn sums_round_up_and_saturate() {
        let at = MonotonicTime::from_ns(7);
        assert_eq!(at + Span::from_ps(1), MonotonicTime::from_ns(8));
        assert_eq!(at + Span::from_ns(2), MonotonicTime::from_ns(9));
        assert_eq!(MonotonicTime::MAX + SECOND, MonotonicTime::MAX);
        assert_eq!((at + SECOND).to_string(), "1.000000007 s");
    }
}

//! Simulated time in picoseconds, of which a byte takes a whole number at most rates. 64 bits hold 213 days.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

use crate::quantity::{Dimension, ParseQuantityError, Unit, text_quantity, unit};

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

pub(crate) static DIMENSION: Dimension = Dimension {
    quantity: "time span",
    example: "150 us",
    max: u64::MAX,
    units: &[
        unit("ps", 1),
        unit("ns", PS_PER_NS),
        unit("us", PS_PER_US),
        unit("ms", PS_PER_MS),
        unit("s", PS_PER_S),
    ],
    refused: &[
        ("\u{b5}s", "write \"us\" for microseconds"),
        ("\u{3bc}s", "write \"us\" for microseconds"),
    ],
};

/// An instant of simulated time, counted from the start of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(u64);

impl Time {
    /// The start of the simulation.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be represented, about 213 days; serves as "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds since the start, rounded to the nearest `f64`; for reports, not for arithmetic.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// The span from `earlier`. Panics if that is later; see [`checked_since`](Self::checked_since).
    #[inline]
    pub const fn since(self, earlier: Self) -> Span {
        match self.checked_since(earlier) {
            Some(span) => span,
            None => panic!("Time::since: the given instant is not earlier"),
        }
    }

    /// The span from `earlier` to `self`, `None` if `earlier` is later than `self`.
    #[inline]
    pub const fn checked_since(self, earlier: Self) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(ps) => Some(Span(ps)),
            None => None,
        }
    }

    /// The instant `span` later, `None` if it cannot be represented.
    #[inline]
    pub const fn checked_add(self, span: Span) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// The instant `span` later, at most [`Time::MAX`].
    #[inline]
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, `None` if that is before the start.
    #[inline]
    pub const fn checked_sub(self, span: Span) -> Option<Self> {
        match self.0.checked_sub(span.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// The instant `span` earlier, at least [`Time::ZERO`].
    #[inline]
    pub const fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// Prints the span since the start, e.g. `1.5 ms`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// Overflow panics in builds with overflow checks, like integer addition.
impl Add<Span> for Time {
    type Output = Self;

    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// A length of simulated time, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 213 days.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds. Panics if it is longer than [`Span::MAX`]; likewise for the coarser units below.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self::from_units(ns, PS_PER_NS)
    }

    /// A span of `us` microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Self {
        Self::from_units(us, PS_PER_US)
    }

    /// A span of `ms` milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Self {
        Self::from_units(ms, PS_PER_MS)
    }

    /// A span of `secs` seconds.
    #[inline]
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_units(secs, PS_PER_S)
    }

    const fn from_units(count: u64, ps_per_unit: u64) -> Self {
        match count.checked_mul(ps_per_unit) {
            Some(ps) => Self(ps),
            None => panic!("span does not fit in 64 bits of picoseconds"),
        }
    }

    /// Picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds, rounded to the nearest `f64`; for reports, not for arithmetic.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns true if the span is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Sum, `None` if it cannot be represented.
    #[inline]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// Difference, `None` if `other` is longer.
    #[inline]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// Difference, at least [`Span::ZERO`].
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Product, `None` if it cannot be represented.
    #[inline]
    pub const fn checked_mul(self, count: u64) -> Option<Self> {
        match self.0.checked_mul(count) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    fn from_base(ps: u64, _input: &str) -> Result<Self, ParseQuantityError> {
        Ok(Self(ps))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds: &Unit = &DIMENSION.units[DIMENSION.units.len() - 1];
        let unit = if self.0 == 0 {
            seconds
        } else {
            Dimension::largest_unit_within(self.0, DIMENSION.units)
        };
        DIMENSION.print(f, self.0, unit)
    }
}

text_quantity!(Span, "a time span as text with its unit", "150 us");

impl Add for Span {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Span {
    type Output = Self;

    #[inline]
    fn mul(self, count: u64) -> Self {
        Self(self.0 * count)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

mod aimd;
mod fimd;
mod lipd;
mod tables;

pub use aimd::Aimd;
pub use fimd::Fimd;
pub use lipd::Lipd;
pub use tables::{Increase, RATES, RateTables};

use super::EcnError;

/// Rmin = Rmax/256, the lowest rate of an inter-packet delay of 8 bits (santos2003, section VI-B).
pub const MIN_RATE: f64 = 1.0 / 256.0;

pub(super) const MOST_FACTOR: f64 = 256.0;

/// An increase and a decrease function (santos2003, section V), in fractions of Rmax and packet times at Rmax.
pub trait ResponseFunction {
    /// Rmin, the smallest rate.
    fn min_rate(&self) -> f64;

    /// `finc`: the rate after an acknowledgement without a mark.
    fn increase(&self, rate: f64) -> f64;

    /// `fdec`: the rate after an acknowledgement with a mark.
    fn decrease(&self, rate: f64) -> f64;

    /// `Finc`: the rate a time after Rmin without marks, in continuous time; `None` without a closed form.
    fn rate_after(&self, elapsed: f64) -> Option<f64> {
        let _ = elapsed;
        None
    }

    /// The inverse of [`rate_after`](Self::rate_after): how long the rate takes from Rmin to `rate`.
    fn time_to(&self, rate: f64) -> Option<f64> {
        let _ = rate;
        None
    }
}

/// A rate that never changes: the window alone limits, or rates are set by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fixed;

impl ResponseFunction for Fixed {
    fn min_rate(&self) -> f64 {
        MIN_RATE
    }

    #[inline]
    fn increase(&self, rate: f64) -> f64 {
        rate
    }

    #[inline]
    fn decrease(&self, rate: f64) -> f64 {
        rate
    }
}

/// Any response function. The functions share one type so that an engine is compiled once for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Response {
    /// Rates never change.
    Fixed(Fixed),
    /// Additive increase, multiplicative decrease.
    Aimd(Aimd),
    /// Fast increase, multiplicative decrease.
    Fimd(Fimd),
    /// Linear inter-packet delay.
    Lipd(Lipd),
}

impl ResponseFunction for Response {
    fn min_rate(&self) -> f64 {
        match self {
            Self::Fixed(function) => function.min_rate(),
            Self::Aimd(function) => function.min_rate(),
            Self::Fimd(function) => function.min_rate(),
            Self::Lipd(function) => function.min_rate(),
        }
    }

    #[inline]
    fn increase(&self, rate: f64) -> f64 {
        match self {
            Self::Fixed(function) => function.increase(rate),
            Self::Aimd(function) => function.increase(rate),
            Self::Fimd(function) => function.increase(rate),
            Self::Lipd(function) => function.increase(rate),
        }
    }

    #[inline]
    fn decrease(&self, rate: f64) -> f64 {
        match self {
            Self::Fixed(function) => function.decrease(rate),
            Self::Aimd(function) => function.decrease(rate),
            Self::Fimd(function) => function.decrease(rate),
            Self::Lipd(function) => function.decrease(rate),
        }
    }

    fn rate_after(&self, elapsed: f64) -> Option<f64> {
        match self {
            Self::Fixed(function) => function.rate_after(elapsed),
            Self::Aimd(function) => function.rate_after(elapsed),
            Self::Fimd(function) => function.rate_after(elapsed),
            Self::Lipd(function) => function.rate_after(elapsed),
        }
    }

    fn time_to(&self, rate: f64) -> Option<f64> {
        match self {
            Self::Fixed(function) => function.time_to(rate),
            Self::Aimd(function) => function.time_to(rate),
            Self::Fimd(function) => function.time_to(rate),
            Self::Lipd(function) => function.time_to(rate),
        }
    }
}

fn checked_min_rate(min_rate: f64) -> Result<f64, EcnError> {
    if min_rate > 0.0 && min_rate < 1.0 {
        Ok(min_rate)
    } else {
        Err(EcnError::MinRate(min_rate))
    }
}

fn checked_factor(factor: f64) -> Result<f64, EcnError> {
    if factor > 1.0 && factor <= MOST_FACTOR {
        Ok(factor)
    } else {
        Err(EcnError::DecreaseFactor(factor))
    }
}

#[cfg(test)]
mod tests;

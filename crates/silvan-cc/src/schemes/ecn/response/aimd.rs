use super::{ResponseFunction, checked_factor, checked_min_rate};
use crate::schemes::ecn::EcnError;

/// AIMD (santos2003, section VI-B): a mark divides the rate by m, and other acknowledgements raise it.
///
/// The slope (m - 1) Rmin² is the steepest that condition 1 allows: after an interval of 1/r the rate is
/// r + (m - 1) Rmin²/r.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    factor: f64,
    min_rate: f64,
    slope: f64,
}

impl Aimd {
    /// Checks factor m, above 1, and Rmin: [`EcnError::DecreaseFactor`], [`EcnError::MinRate`].
    pub fn new(factor: f64, min_rate: f64) -> Result<Self, EcnError> {
        let factor = checked_factor(factor)?;
        let min_rate = checked_min_rate(min_rate)?;
        Ok(Self {
            factor,
            min_rate,
            slope: (factor - 1.0) * min_rate * min_rate,
        })
    }
}

impl ResponseFunction for Aimd {
    fn min_rate(&self) -> f64 {
        self.min_rate
    }

    #[inline]
    fn increase(&self, rate: f64) -> f64 {
        (rate + self.slope / rate).min(1.0)
    }

    #[inline]
    fn decrease(&self, rate: f64) -> f64 {
        (rate / self.factor).max(self.min_rate)
    }

    fn rate_after(&self, elapsed: f64) -> Option<f64> {
        Some((self.min_rate + self.slope * elapsed).min(1.0))
    }

    fn time_to(&self, rate: f64) -> Option<f64> {
        Some((rate - self.min_rate) / self.slope)
    }
}

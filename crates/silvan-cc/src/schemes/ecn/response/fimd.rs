use super::{ResponseFunction, checked_factor, checked_min_rate};
use crate::schemes::ecn::EcnError;

/// FIMD (santos2003, section V-C): a mark divides the rate by m; recovery takes Trec = 1/Rmin from any start.
///
/// `Finc(t) = Rmin m^(t / Trec)`, `finc(r) = min(r m^(Rmin / r), Rmax)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fimd {
    factor: f64,
    min_rate: f64,
}

impl Fimd {
    /// Checks factor m, above 1, and Rmin: [`EcnError::DecreaseFactor`], [`EcnError::MinRate`].
    pub fn new(factor: f64, min_rate: f64) -> Result<Self, EcnError> {
        Ok(Self {
            factor: checked_factor(factor)?,
            min_rate: checked_min_rate(min_rate)?,
        })
    }
}

// The powers come from libm, because the last digits of the platform's library may differ.
impl ResponseFunction for Fimd {
    fn min_rate(&self) -> f64 {
        self.min_rate
    }

    #[inline]
    fn increase(&self, rate: f64) -> f64 {
        (rate * libm::pow(self.factor, self.min_rate / rate)).min(1.0)
    }

    #[inline]
    fn decrease(&self, rate: f64) -> f64 {
        (rate / self.factor).max(self.min_rate)
    }

    fn rate_after(&self, elapsed: f64) -> Option<f64> {
        Some((self.min_rate * libm::pow(self.factor, elapsed * self.min_rate)).min(1.0))
    }

    fn time_to(&self, rate: f64) -> Option<f64> {
        Some(libm::log(rate / self.min_rate) / libm::log(self.factor) / self.min_rate)
    }
}

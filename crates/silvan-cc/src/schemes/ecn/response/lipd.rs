use super::{ResponseFunction, checked_min_rate};
use crate::schemes::ecn::EcnError;

/// LIPD (santos2003, section V-D): a mark lengthens the inter-packet delay by one packet time.
///
/// So n flows at their fair share Rmax/n make room for one more flow by one mark each: `fdec(r) =
/// max(Rmax / (Rmax/r + 1), Rmin)`, `Finc(t) = Rmax / (Rmax/Rmin - t/Trec)`, `finc(r) = min(r / (1
/// - Rmin/Rmax), Rmax)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lipd {
    min_rate: f64,
}

impl Lipd {
    /// Returns the function with Rmin as a fraction of Rmax. Errors: [`EcnError::MinRate`].
    pub fn new(min_rate: f64) -> Result<Self, EcnError> {
        let min_rate = checked_min_rate(min_rate)?;
        Ok(Self { min_rate })
    }
}

impl ResponseFunction for Lipd {
    fn min_rate(&self) -> f64 {
        self.min_rate
    }

    #[inline]
    fn increase(&self, rate: f64) -> f64 {
        (rate / (1.0 - self.min_rate)).min(1.0)
    }

    #[inline]
    fn decrease(&self, rate: f64) -> f64 {
        (1.0 / (1.0 / rate + 1.0)).max(self.min_rate)
    }

    fn rate_after(&self, elapsed: f64) -> Option<f64> {
        let delay = 1.0 / self.min_rate - elapsed * self.min_rate;
        Some(if delay > 1.0 { 1.0 / delay } else { 1.0 })
    }

    fn time_to(&self, rate: f64) -> Option<f64> {
        Some((1.0 / self.min_rate - 1.0 / rate) / self.min_rate)
    }
}

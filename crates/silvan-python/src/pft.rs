//! An interface of proactive flow throttling on its own.

use pyo3::prelude::*;
use silvan_cc::schemes::SchemeName;
use silvan_cc::schemes::pft::injection_rate;

use crate::scenario::Scenario;

/// Measures the injection rate of the scenario's interfaces while they throttle, as a fraction of the link's rate.
///
/// `used` credits are taken, and the count covers `cycles` clock cycles. Returns `None` if the scheme has no such part.
#[pyfunction]
pub fn pft_injection_rate(
    scenario: &Bound<'_, Scenario>,
    used: u32,
    cycles: u64,
    seed: u64,
) -> Option<f64> {
    let scenario = &scenario.get().0;
    if !scenario.scheme().includes(SchemeName::Pft) {
        return None;
    }
    let link_rate = scenario.file().link.kind().data_rate();
    // The scenario has checked the parameters.
    let parameters = scenario.scheme_parameters().pft.interface(link_rate).ok()?;
    Some(injection_rate(&parameters, used, cycles.max(1), seed))
}

use pyo3::prelude::*;
use silvan_cc::schemes::SchemeName;
use silvan_cc::schemes::pft::injection_rate;

use crate::scenario::Scenario;

/// Injection rate of throttling interfaces as a fraction of the link's, with `used` credits over `cycles` clock cycles;
/// `None` without such a part.
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
    let parameters = scenario.scheme_parameters().pft.interface(link_rate).ok()?;
    Some(injection_rate(&parameters, used, cycles.max(1), seed))
}

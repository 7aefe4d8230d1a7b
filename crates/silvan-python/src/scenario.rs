use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silvan_cc::schemes::SchemeName;
use silvan_core::Time;
use silvan_scenario::Override;
use silvan_workload::traffic::Arrivals;

use crate::errors::scenario_error;

#[pyclass(frozen, module = "silvan._silvan")]
pub struct Scenario(pub silvan_scenario::Scenario);

pub(crate) fn read_overrides(overrides: Vec<(String, String)>) -> Vec<Override> {
    let overrides = overrides.into_iter();
    overrides
        .map(|(key, value)| Override::new(key, value))
        .collect()
}

#[pymethods]
impl Scenario {
    /// Overrides are dotted keys and TOML literals.
    #[staticmethod]
    #[pyo3(signature = (text, source, overrides))]
    fn from_toml(
        py: Python<'_>,
        text: &str,
        source: Option<&str>,
        overrides: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let overrides = read_overrides(overrides);
        let name = source.unwrap_or_default();
        // A large fabric takes a while to build and to check.
        py.detach(|| silvan_scenario::Scenario::from_toml(text, name, &overrides))
            .map(Self)
            .map_err(|error| scenario_error(py, &error))
    }

    fn with_overrides(&self, py: Python<'_>, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let overrides = read_overrides(overrides);
        py.detach(|| self.0.with_overrides(&overrides))
            .map(Self)
            .map_err(|error| scenario_error(py, &error))
    }

    fn written(&self) -> (&str, Option<&str>, Vec<(&str, &str)>) {
        let (text, source, overrides) = self.0.written();
        let overrides = overrides.iter();
        let overrides = overrides.map(|o| (o.key.as_str(), o.value.as_str()));
        let source = Some(source).filter(|source| !source.is_empty());
        (text, source, overrides.collect())
    }

    fn single_run(&self, seed: u64) -> Self {
        Self(self.0.single_run(seed))
    }

    /// One empty list if nothing varies.
    fn sweep_points(&self) -> Vec<Vec<(String, String)>> {
        let points = self.0.sweep_points().into_iter();
        points
            .map(|point| point.into_iter().map(|o| (o.key, o.value)).collect())
            .collect()
    }

    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    fn ibsim_net(&self, py: Python<'_>) -> PyResult<String> {
        let net = self.0.ibsim_net();
        net.map_err(|error| scenario_error(py, &error))
    }

    fn graph(&self) -> String {
        self.0.graph().to_string()
    }

    /// Switches, and their port for each host, switch by switch.
    fn egress_ports<'py>(&self, py: Python<'py>) -> (Vec<&str>, Bound<'py, PyBytes>) {
        let (names, ports) = self.0.egress_ports();
        (names, PyBytes::new(py, &ports))
    }

    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    fn describe(&self) -> String {
        self.0.describe().to_string()
    }

    /// The variants of all schemes with published settings, or why they take no part, as JSON text.
    fn scheme_variants(&self, py: Python<'_>) -> PyResult<String> {
        // Some are tried on the fabric, which takes a while to check if it is large.
        py.detach(|| self.0.scheme_variants())
            .map(|variants| variants.to_string())
            .map_err(|error| scenario_error(py, &error))
    }

    /// The longest round trip without queues, in seconds.
    fn base_rtt_s(&self) -> f64 {
        self.0.base_rtt_s()
    }

    /// Mean receive rate of hosts that are not hotspots [bit/s].
    fn tmax(&self, py: Python<'_>, seed: u64, at_ps: u64) -> PyResult<f64> {
        self.0
            .tmax(seed, Time::from_ps(at_ps))
            .map_err(|error| scenario_error(py, &error))
    }

    /// Messages or flows and bytes of open-loop sources after the warm-up, by class.
    fn arrivals(
        &self,
        py: Python<'_>,
        seed: u64,
    ) -> PyResult<BTreeMap<String, Option<(u64, u64)>>> {
        let arrivals = py.detach(|| self.0.arrivals(seed));
        let arrivals = arrivals.map_err(|error| scenario_error(py, &error))?;
        let numbers = |of: Arrivals| (of.count, of.bytes.as_u64());
        let by_class = arrivals.into_iter();
        Ok(by_class
            .map(|(class, of)| (class, of.map(numbers)))
            .collect())
    }

    /// Payload bytes that sources offer after the warm-up by their mean rates, by class.
    fn offered_bytes(&self, py: Python<'_>, seed: u64) -> PyResult<BTreeMap<String, f64>> {
        let offered = self.0.offered_bytes(seed);
        let offered = offered.map_err(|error| scenario_error(py, &error))?;
        Ok(offered.into_iter().collect())
    }

    fn estimate(&self, py: Python<'_>, seed: u64) -> PyResult<(f64, f64)> {
        let estimate = py.detach(|| self.0.estimate(seed));
        let estimate = estimate.map_err(|error| scenario_error(py, &error))?;
        Ok((estimate.packet_hops, estimate.memory_bytes))
    }

    #[getter]
    fn has_traffic(&self) -> bool {
        self.0.has_traffic()
    }

    fn hash(&self) -> String {
        self.0.hash()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings().to_vec()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    #[getter]
    fn link_bits_per_s(&self) -> u64 {
        self.0.file().link.kind().data_rate().bits_per_sec()
    }

    /// Text, name, function and parameters; `None` for another scheme.
    fn python_scheme(&self) -> Option<(&str, &str, &str, BTreeMap<String, f64>)> {
        if !self.0.scheme().includes(SchemeName::Python) {
            return None;
        }
        let section = &self.0.scheme_parameters().python;
        Some((
            section.source.as_deref()?,
            section.name.as_deref()?,
            &section.function,
            section.parameters.clone(),
        ))
    }

    #[getter]
    fn duration_ps(&self) -> u64 {
        self.0.duration().as_ps()
    }

    #[getter]
    fn warm_up_ps(&self) -> u64 {
        self.0.file().run.warm_up.as_ps()
    }
}

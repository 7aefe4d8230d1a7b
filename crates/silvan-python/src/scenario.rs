//! The class `Scenario`.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silvan_cc::schemes::SchemeName;
use silvan_core::Time;
use silvan_scenario::Override;
use silvan_workload::traffic::Arrivals;

use crate::errors::scenario_error;

/// A checked scenario.
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
    /// Reads a scenario; each override is a dotted key and a TOML literal.
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

    /// Returns the scenario with more overrides.
    fn with_overrides(&self, py: Python<'_>, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let overrides = read_overrides(overrides);
        py.detach(|| self.0.with_overrides(&overrides))
            .map(Self)
            .map_err(|error| scenario_error(py, &error))
    }

    /// The text that the scenario was read from, the name of its source, and the overrides.
    fn written(&self) -> (&str, Option<&str>, Vec<(&str, &str)>) {
        let (text, source, overrides) = self.0.written();
        let overrides = overrides.iter();
        let overrides = overrides.map(|o| (o.key.as_str(), o.value.as_str()));
        let source = Some(source).filter(|source| !source.is_empty());
        (text, source, overrides.collect())
    }

    /// Returns one run of the scenario, with a fixed seed and without variation.
    fn single_run(&self, seed: u64) -> Self {
        Self(self.0.single_run(seed))
    }

    /// The overrides of every point of the scenario's sweep; one empty list if nothing varies.
    fn sweep_points(&self) -> Vec<Vec<(String, String)>> {
        let points = self.0.sweep_points().into_iter();
        points
            .map(|point| point.into_iter().map(|o| (o.key, o.value)).collect())
            .collect()
    }

    /// The scenario as TOML text, every default as a comment.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// The fabric as a net file of ibsim.
    fn ibsim_net(&self, py: Python<'_>) -> PyResult<String> {
        let net = self.0.ibsim_net();
        net.map_err(|error| scenario_error(py, &error))
    }

    /// The nodes and cables of the fabric, as JSON text.
    fn graph(&self) -> String {
        self.0.graph().to_string()
    }

    /// Names of the switches, and the port of each for each host, switch by switch.
    fn egress_ports<'py>(&self, py: Python<'py>) -> (Vec<&str>, Bound<'py, PyBytes>) {
        let (names, ports) = self.0.egress_ports();
        (names, PyBytes::new(py, &ports))
    }

    /// The effective scenario as JSON text.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// Describes the parts that the scenario builds, as JSON text.
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

    /// Theoretical maximum mean receive rate of the hosts that are not hotspots, in bit/s.
    fn tmax(&self, py: Python<'_>, seed: u64, at_ps: u64) -> PyResult<f64> {
        self.0
            .tmax(seed, Time::from_ps(at_ps))
            .map_err(|error| scenario_error(py, &error))
    }

    /// Messages or flows, and their bytes, that arrive at open-loop sources after the warm-up, by class.
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

    /// About how many packet-hops a run with this seed has, and how many bytes of memory its process takes.
    fn estimate(&self, py: Python<'_>, seed: u64) -> PyResult<(f64, f64)> {
        let estimate = py.detach(|| self.0.estimate(seed));
        let estimate = estimate.map_err(|error| scenario_error(py, &error))?;
        Ok((estimate.packet_hops, estimate.memory_bytes))
    }

    /// Returns true if any host sends anything.
    #[getter]
    fn has_traffic(&self) -> bool {
        self.0.has_traffic()
    }

    /// SHA-256 of the effective text in hexadecimal digits.
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

    /// Data rate of a cable that says nothing else, in bit/s.
    #[getter]
    fn link_bits_per_s(&self) -> u64 {
        self.0.file().link.kind().data_rate().bits_per_sec()
    }

    /// Text, name and function of a scheme in Python with its parameters; `None` if the scheme is another one.
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

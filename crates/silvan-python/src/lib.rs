//! Thin Python bindings: the module `silvan._silvan`, which the package `silvan` wraps and documents.
//!
//! The stub `_silvan.pyi` is checked against it. `Emulation`, `Manager` and `SubnetWatch` exist on Linux only.

mod column;
#[cfg(target_os = "linux")]
mod dcms;
mod diagnose;
#[cfg(target_os = "linux")]
mod emulate;
mod errors;
mod hooks;
mod network;
mod pft;
mod programs;
mod response;
mod run;
mod scenario;
mod scenario_text;
mod shutdown;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use silvan_cc::schemes::{SchemeChoice, SchemeName};
use silvan_core::{Bytes, Length, Rate, Span};

use crate::errors::quantity_error;

/// Large pages for the engine's random visits: about a tenth of the speed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pyfunction]
fn schema() -> String {
    silvan_scenario::json_schema().to_string()
}

#[pyfunction]
fn reference() -> String {
    silvan_scenario::reference_markdown()
}

/// The value of a quantity as text: bytes, picoseconds, bit/s or millimetres.
#[pyfunction]
fn parse_quantity(py: Python<'_>, text: &str, kind: &str) -> PyResult<u64> {
    let value = match kind {
        "size" => text.parse().map(Bytes::as_u64),
        "span" => text.parse().map(Span::as_ps),
        "rate" => text.parse().map(Rate::bits_per_sec),
        "length" => text.parse().map(|length: Length| length.as_mm().into()),
        _ => return Err(PyValueError::new_err(format!("no such quantity: {kind}"))),
    };
    value.map_err(|error| quantity_error(py, &error))
}

#[pyfunction]
fn port_counters() -> String {
    silvan_core::PortCounters::reference()
}

#[pyfunction]
fn table_reference() -> String {
    silvan_sim::table_reference()
}

#[pyfunction]
fn latency_percentile_resolution() -> f64 {
    silvan_sim::Latencies::PERCENTILE_RESOLUTION
}

#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pyfunction]
fn schemes() -> Vec<(&'static str, &'static str)> {
    let all = SchemeName::ALL.iter();
    all.map(|scheme| (scheme.as_str(), scheme.summary()))
        .collect()
}

#[pyfunction]
fn scheme_names() -> Vec<&'static str> {
    SchemeChoice::all().iter().map(|one| one.name()).collect()
}

/// The tables within `[control]` that the scheme of this name has its parameters in; none for a name that is none.
#[pyfunction]
fn scheme_tables(name: &str) -> Vec<&'static str> {
    let parts = SchemeChoice::find(name).map_or(&[][..], |one| one.scheme().parts());
    parts.iter().map(|part| part.as_str()).collect()
}

#[pyfunction]
fn scheme_searches(name: &str) -> String {
    let searches = SchemeChoice::find(name).map(silvan_scenario::scheme_searches);
    searches.map_or_else(|| "[]".to_owned(), |searches| searches.to_string())
}

/// The compiled part of silvan; use the package `silvan` instead.
#[pymodule]
mod _silvan {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::column::Column;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::dcms::Manager;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::diagnose::SubnetWatch;
    #[pymodule_export]
    use super::diagnose::diagnose_dumps;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::emulate::Emulation;
    #[pymodule_export]
    use super::hooks::scheme_hooks;
    #[pymodule_export]
    use super::latency_percentile_resolution;
    #[pymodule_export]
    use super::network::Network;
    #[pymodule_export]
    use super::parse_quantity;
    #[pymodule_export]
    use super::pft::pft_injection_rate;
    #[pymodule_export]
    use super::port_counters;
    #[pymodule_export]
    use super::programs::collective;
    #[pymodule_export]
    use super::reference;
    #[pymodule_export]
    use super::response::Response;
    #[pymodule_export]
    use super::run::{RunOutput, run};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::scenario_text::ScenarioText;
    #[pymodule_export]
    use super::schema;
    #[pymodule_export]
    use super::scheme_names;
    #[pymodule_export]
    use super::scheme_searches;
    #[pymodule_export]
    use super::scheme_tables;
    #[pymodule_export]
    use super::schemes;
    #[pymodule_export]
    use super::shutdown::stop_runs;
    #[pymodule_export]
    use super::table_reference;
    #[pymodule_export]
    use super::version;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let atexit = module.py().import("atexit")?;
        atexit.call_method1("register", (module.getattr("stop_runs")?,))?;
        Ok(())
    }
}

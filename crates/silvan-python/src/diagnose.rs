//! The functions that diagnose a subnet. Reports are JSON text.

use pyo3::prelude::*;
use silvan_core::Span;
use silvan_diagnose::dumps::{FileRole, Files, diagnose_files};
use silvan_diagnose::report::Report;

use crate::errors::diagnosis_error;

fn json(py: Python<'_>, report: &Report) -> PyResult<String> {
    serde_json::to_string(report).map_err(|error| diagnosis_error(py, &error.to_string(), None))
}

/// What a file is, for messages.
fn role(role: FileRole) -> &'static str {
    match role {
        FileRole::Topology => "topology",
        FileRole::Routes => "routes",
        FileRole::Before => "before",
        FileRole::After => "after",
    }
}

/// Diagnoses a subnet from files. Gives the report, and what is odd about which file; raises
/// `DiagnosisError` with the file before the message.
#[pyfunction]
#[pyo3(signature = (*, topology, routes, before, after, interval_ps, tick_ps))]
pub fn diagnose_dumps(
    py: Python<'_>,
    topology: &str,
    routes: Option<&str>,
    before: &str,
    after: &str,
    interval_ps: u64,
    tick_ps: u64,
) -> PyResult<(String, Vec<(&'static str, String)>)> {
    let files = Files {
        topology,
        routes,
        before,
        after,
    };
    let (interval, tick) = (Span::from_ps(interval_ps), Span::from_ps(tick_ps));
    let done = py.detach(|| diagnose_files(files, interval, tick));
    let (report, odd) = done.map_err(|(file, error)| {
        diagnosis_error(py, &format!("{}:{error}", role(file)), Some(error.hint))
    })?;
    let odd = odd.into_iter().map(|(file, text)| (role(file), text));
    Ok((json(py, &report)?, odd.collect()))
}

/// Diagnoses the subnet behind a port of an adapter.
#[cfg(target_os = "linux")]
#[pyfunction]
#[pyo3(signature = (*, device, port, interval_ps, tick_ps, time_scale))]
pub fn diagnose_subnet(
    py: Python<'_>,
    device: Option<&str>,
    port: u8,
    interval_ps: u64,
    tick_ps: u64,
    time_scale: f64,
) -> PyResult<String> {
    use silvan_dcms::client::Client;
    use silvan_dcms::umad::UmadTransport;
    use silvan_diagnose::survey::{LIMITS, SurveyError, diagnose_live};

    let (interval, tick) = (Span::from_ps(interval_ps), Span::from_ps(tick_ps));
    let done = py.detach(|| {
        let transport = UmadTransport::open(device, port).map_err(SurveyError::from)?;
        diagnose_live(
            &mut Client::new(transport, LIMITS),
            interval,
            tick,
            time_scale,
        )
    });
    let report =
        done.map_err(|error| diagnosis_error(py, &error.to_string(), Some(error.hint())))?;
    json(py, &report)
}

// A caller's functions come as addresses.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use silvan_cc::schemes::callbacks::{Addresses, Callbacks};
use silvan_core::{Span, Time};
use silvan_instances::Fastest;
use silvan_scenario::parsed::Threads;
use silvan_sim::{ColumnData, Progress, Table};

use crate::column::Column;
use crate::errors::run_error;
use crate::scenario::Scenario;
use crate::shutdown::ActiveRun;

/// Time between two checks of the interpreter, for signals and to report progress. A check needs the interpreter's lock, for which other threads may make it wait.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Columns by table, and numbers as JSON.
#[pyclass(frozen, module = "silvan._silvan")]
pub struct RunOutput {
    #[pyo3(get)]
    tables: Py<PyDict>,
    #[pyo3(get)]
    summary: String,
}

/// Without the interpreter's lock, on the scenario's threads unless given; exceptions of callbacks end the run.
#[pyfunction]
#[pyo3(signature = (scenario, seed, progress, callbacks=None, threads=None))]
pub fn run(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    seed: u64,
    progress: Option<Py<PyAny>>,
    callbacks: Option<BTreeMap<String, usize>>,
    threads: Option<u16>,
) -> PyResult<RunOutput> {
    let callbacks = callbacks.map(addresses).transpose()?;
    let scenario = &scenario.get().0;
    let other = threads.map(|count| scenario.with_threads(threads_of(count)));
    let scenario = other.as_ref().unwrap_or(scenario);
    let observer = Observer::new(progress);
    let mut observe = |state: Progress| match observer.check(state) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let finished = py.detach(|| {
        let finished = match callbacks {
            None => silvan_sim::run(&Fastest, scenario, seed, &mut observe),
            Some(addresses) => {
                let observer = Arc::clone(&observer);
                let alive = Box::new(move |now: Time| observer.check_again(now));
                // SAFETY: the package has compiled the functions for these arguments, and holds them
                // and a table of its own until this call is over.
                let callbacks = unsafe { Callbacks::at(addresses, alive) };
                silvan_sim::run_callbacks(&Fastest, scenario, seed, callbacks, &mut observe)
            }
        };
        observer.active.check();
        finished
    });
    if let Some(error) = observer.raised() {
        return Err(error);
    }
    let output = finished.map_err(|error| run_error(py, &error))?;
    observer.report_end(py)?;
    let tables = PyDict::new(py);
    for table in output.tables {
        tables.set_item(table.name, columns(py, table)?)?;
    }
    Ok(RunOutput {
        tables: tables.unbind(),
        summary: serde_json::json!(output.summary).to_string(),
    })
}

fn threads_of(count: u16) -> Threads {
    NonZeroU16::new(count).map_or(Threads::AUTO, Threads::Count)
}

fn addresses(mut named: BTreeMap<String, usize>) -> PyResult<Addresses> {
    let state = named.remove("state").unwrap_or_default();
    let mut addresses = Addresses::new(state);
    for (name, address) in named {
        if !addresses.add(&name, address) {
            return Err(PyValueError::new_err(format!("no hook {name:?}")));
        }
    }
    Ok(addresses)
}

struct Observer {
    active: ActiveRun,
    progress: Option<Py<PyAny>>,
    last: Mutex<LastCheck>,
}

struct LastCheck {
    at: Instant,
    state: Progress,
    state_at: Instant,
    raised: Option<PyErr>,
}

impl Observer {
    fn new(progress: Option<Py<PyAny>>) -> Arc<Self> {
        let last = LastCheck {
            at: Instant::now(),
            state: Progress {
                simulated: Span::ZERO,
                total: Span::ZERO,
                packet_hops: 0,
                events: 0,
                wall_s: 0.0,
            },
            state_at: Instant::now(),
            raised: None,
        };
        Arc::new(Self {
            active: ActiveRun::start(),
            progress,
            last: Mutex::new(last),
        })
    }

    fn check(&self, state: Progress) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.state = state;
        last.state_at = Instant::now();
        self.check_if_due(&mut last)
    }

    fn check_again(&self, now: Time) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.state.simulated = now.since(Time::ZERO).min(last.state.total);
        last.state.wall_s += last.state_at.elapsed().as_secs_f64();
        last.state_at = Instant::now();
        self.check_if_due(&mut last)
    }

    fn check_if_due(&self, last: &mut LastCheck) -> bool {
        if last.raised.is_some() || last.at.elapsed() < CHECK_INTERVAL {
            return last.raised.is_none();
        }
        last.at = Instant::now();
        self.active.check();
        let report = || Python::attach(|py| report(py, self.progress.as_ref(), last.state));
        last.raised = report().err();
        last.raised.is_none()
    }

    fn report_end(&self, py: Python<'_>) -> PyResult<()> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let state = last.state;
        drop(last);
        report(py, self.progress.as_ref(), state)
    }

    fn raised(&self) -> Option<PyErr> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.raised.take()
    }
}

fn report(py: Python<'_>, callback: Option<&Py<PyAny>>, state: Progress) -> PyResult<()> {
    py.check_signals()?;
    let Some(callback) = callback else {
        return Ok(());
    };
    let report = PyDict::new(py);
    report.set_item("simulated_ps", state.simulated.as_ps())?;
    report.set_item("duration_ps", state.total.as_ps())?;
    report.set_item("packet_hops", state.packet_hops)?;
    report.set_item("events", state.events)?;
    report.set_item("wall_s", state.wall_s)?;
    callback.call1(py, (report,))?;
    Ok(())
}

/// Columns by name: type and values (truth values as bits); type, validity bits and values, or `"str"`, offsets and UTF-8
/// bytes.
fn columns(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for column in table.columns {
        let parts: Bound<'_, PyTuple> = match column.data {
            ColumnData::U32(values) => ("u32", Column::from(values)).into_pyobject(py)?,
            ColumnData::U64(values) => ("u64", Column::from(values)).into_pyobject(py)?,
            ColumnData::F64(values) => ("f64", Column::from(values)).into_pyobject(py)?,
            ColumnData::Text(texts) => {
                let (offsets, bytes) = text_column(&texts);
                ("str", Column::from(offsets), Column::from(bytes)).into_pyobject(py)?
            }
            ColumnData::Bool(values) => {
                ("bool", Column::from(bits(values.into_iter()))).into_pyobject(py)?
            }
            ColumnData::OptionalU64(values) => {
                let (valid, values) = optional_column(&values);
                ("u64", Column::from(valid), Column::from(values)).into_pyobject(py)?
            }
            ColumnData::OptionalF64(values) => {
                let (valid, values) = optional_column(&values);
                ("f64", Column::from(valid), Column::from(values)).into_pyobject(py)?
            }
        };
        columns.set_item(column.name, parts)?;
    }
    Ok(columns)
}

fn optional_column<T: Copy + Default>(values: &[Option<T>]) -> (Vec<u8>, Vec<T>) {
    let valid = bits(values.iter().map(Option::is_some));
    let values = values.iter().map(|value| value.unwrap_or_default());
    (valid, values.collect())
}

/// Eight to a byte, the first one lowest.
fn bits(values: impl ExactSizeIterator<Item = bool>) -> Vec<u8> {
    let mut bytes = vec![0; values.len().div_ceil(8)];
    for (index, value) in values.enumerate() {
        bytes[index / 8] |= u8::from(value) << (index % 8);
    }
    bytes
}

/// Arrow's layout: offsets and joined text. Panics from 2 GiB on, as offsets have 32 bits.
fn text_column(texts: &[String]) -> (Vec<i32>, Vec<u8>) {
    let mut offsets = Vec::with_capacity(texts.len() + 1);
    let mut bytes = Vec::with_capacity(texts.iter().map(String::len).sum());
    offsets.push(0);
    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
        let end = i32::try_from(bytes.len()).expect("the names of a fabric are below 2 GiB");
        offsets.push(end);
    }
    (offsets, bytes)
}

use std::collections::VecDeque;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use silvan_dcms::daemon::{Daemon, StartError};
use silvan_dcms::event::Event;
use silvan_dcms::log::Log;
use silvan_dcms::manager::Task;
use silvan_dcms::settings::{EXAMPLE, ManagerSettings, emulated_example};
use silvan_diagnose::managed::ManagedSubnet;
use silvan_subnet::log::{Format, Level, LineLog};
use silvan_subnet::observer::{Observer, Round};

use crate::diagnose::{SubnetTables, subnet_tables};
use crate::errors::{manager_error, scenario_error};

type ManagerResult = Result<usize, StartError>;

const MOST_ROUNDS: usize = 300;
const MOST_LOG: usize = 1 << 20;

#[derive(Default)]
struct Shown {
    /// Rounds with their times in nanoseconds since 1970.
    rounds: VecDeque<(u64, Round)>,
    log: Vec<u8>,
}

type SharedShown = Arc<Mutex<Shown>>;

fn lock(shown: &Mutex<Shown>) -> std::sync::MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

struct ShownLog(SharedShown);

impl Write for ShownLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut shown = lock(&self.0);
        if shown.log.len() + bytes.len() <= MOST_LOG {
            shown.log.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn observer(shown: SharedShown) -> Observer {
    Arc::new(move |round| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let at_ns = now.map_or(0, |since| since.as_nanos() as u64);
        let mut shown = lock(&shown);
        if shown.rounds.len() == MOST_ROUNDS {
            shown.rounds.pop_front();
        }
        shown.rounds.push_back((at_ns, round));
    })
}

/// Nanoseconds since 1970, activity as JSON, loads, and the subnet if it has changed.
type ShownRound = (u64, String, Py<PyBytes>, Option<SubnetTables>);

/// A congestion manager in a thread of its own, without the interpreter's lock.
#[pyclass(frozen, module = "silvan._silvan")]
pub struct Manager {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<ManagerResult>>>,
    shown: SharedShown,
    map: Mutex<Option<ManagedSubnet>>,
}

#[pymethods]
impl Manager {
    /// Reads the configuration and starts, logging to standard error; a live one keeps `rounds` and `log`.
    #[new]
    #[pyo3(signature = (text, source, *, act, once, restore, json, verbose, live))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        py: Python<'_>,
        text: &str,
        source: &str,
        act: bool,
        once: bool,
        restore: bool,
        json: bool,
        verbose: bool,
        live: bool,
    ) -> PyResult<Self> {
        let settings =
            ManagerSettings::from_toml(text, source).map_err(|error| scenario_error(py, &error))?;
        let format = if json { Format::Json } else { Format::Text };
        let least = if verbose { Level::Debug } else { Level::Info };
        let mut lines = LineLog::new(std::io::stderr(), format, least);
        let shown = SharedShown::default();
        let log: Box<dyn Log> = if live {
            let mut kept = LineLog::new(ShownLog(Arc::clone(&shown)), Format::Json, Level::Info);
            Box::new(move |event: &Event| {
                lines.take(event);
                kept.take(event);
            })
        } else {
            Box::new(lines)
        };
        let observer = live.then(|| observer(Arc::clone(&shown)));
        let task = match (restore, once) {
            (true, _) => Task::Restore,
            (false, true) => Task::Once,
            (false, false) => Task::Run,
        };
        let mut daemon = py
            .detach(|| Daemon::open(settings, act, log, observer))
            .map_err(|error| manager_error(py, &error, error.hint()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("silvan-dcms".into())
            .spawn(move || daemon.run(task, &seen))?;
        Ok(Self {
            stop,
            thread: Mutex::new(Some(thread)),
            shown,
            map: Mutex::new(None),
        })
    }

    fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn join(&self, py: Python<'_>) -> PyResult<usize> {
        let thread = {
            let mut guard = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            guard.take()
        };
        let Some(thread) = thread else {
            return Ok(0);
        };
        match py.detach(|| thread.join()) {
            Ok(outcome) => outcome.map_err(|error| manager_error(py, &error, error.hint())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Since the last call, without contradictory subnets; a real subnet's time scale is 1.
    fn rounds(&self, py: Python<'_>, time_scale: f64) -> PyResult<Vec<ShownRound>> {
        let rounds = std::mem::take(&mut lock(&self.shown).rounds);
        let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for (at_ns, round) in rounds {
            let is_new = !map.as_ref().is_some_and(|map| map.is_of(&round));
            if is_new {
                *map = ManagedSubnet::new(Arc::clone(&round.subnet)).ok();
            }
            let Some(map) = map.as_ref() else { continue };
            let (report, loads) = map.report(&round, time_scale);
            let report = serde_json::to_string(&report)
                .map_err(|error| manager_error(py, &error, "report this as a bug"))?;
            let laid_out = is_new.then(|| subnet_tables(py, &map.map)).transpose()?;
            found.push((at_ns, report, PyBytes::new(py, &loads).unbind(), laid_out));
        }
        Ok(found)
    }

    fn log<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &std::mem::take(&mut lock(&self.shown).log))
    }

    #[staticmethod]
    fn check(py: Python<'_>, text: &str, source: &str) -> PyResult<PathBuf> {
        let read = ManagerSettings::from_toml(text, source);
        let settings = read.map_err(|error| scenario_error(py, &error))?;
        Ok(settings.state)
    }

    #[staticmethod]
    #[pyo3(signature = (time_scale=None))]
    fn example(time_scale: Option<f64>) -> String {
        time_scale.map_or_else(|| EXAMPLE.to_owned(), emulated_example)
    }
}

//! The class `Manager`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use pyo3::prelude::*;
use silvan_dcms::daemon::{Daemon, StartError};
use silvan_dcms::event::Level;
use silvan_dcms::log::{Format, LineLog};
use silvan_dcms::manager::Task;
use silvan_dcms::settings::{EXAMPLE, ManagerSettings, emulated_example};

use crate::errors::{manager_error, scenario_error};

type ManagerResult = Result<usize, StartError>;

/// A congestion manager that runs in a thread of its own, without the interpreter's lock.
#[pyclass(frozen, module = "silvan._silvan")]
pub struct Manager {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<ManagerResult>>>,
}

#[pymethods]
impl Manager {
    /// Reads the configuration, opens everything and starts. It logs to standard error.
    #[new]
    #[pyo3(signature = (text, source, *, act, once, restore, json, verbose))]
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
    ) -> PyResult<Self> {
        let settings =
            ManagerSettings::from_toml(text, source).map_err(|error| scenario_error(py, &error))?;
        let format = if json { Format::Json } else { Format::Text };
        let least = if verbose { Level::Debug } else { Level::Info };
        let log = Box::new(LineLog::new(std::io::stderr(), format, least));
        let task = match (restore, once) {
            (true, _) => Task::Restore,
            (false, true) => Task::Once,
            (false, false) => Task::Run,
        };
        let mut daemon = py
            .detach(|| Daemon::open(settings, act, log))
            .map_err(|error| manager_error(py, &error, error.hint()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("silvan-dcms".into())
            .spawn(move || daemon.run(task, &seen))?;
        Ok(Self {
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Whether it still runs.
    fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Lets it restore everything and end.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until it has ended, and gives the number of changes that could not be restored.
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

    /// Raises what is wrong with a configuration. Gives its state folder.
    #[staticmethod]
    fn check(py: Python<'_>, text: &str, source: &str) -> PyResult<PathBuf> {
        let read = ManagerSettings::from_toml(text, source);
        let settings = read.map_err(|error| scenario_error(py, &error))?;
        Ok(settings.state)
    }

    /// A configuration with every default spelled out; with a time scale, one for a fabric that is
    /// emulated at that speed.
    #[staticmethod]
    #[pyo3(signature = (time_scale=None))]
    fn example(time_scale: Option<f64>) -> String {
        time_scale.map_or_else(|| EXAMPLE.to_owned(), emulated_example)
    }
}

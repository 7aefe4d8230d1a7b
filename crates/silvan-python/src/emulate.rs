use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pyo3::prelude::*;
use silvan_emulator::{
    Address, AllowedUsers, EmulatorError, FaultSchedule, Notices, Options, Server, Setup, Start,
    SwitchDevices, UnknownDevices,
};
use silvan_instances::Fastest;

use crate::errors::emulator_error;
use crate::scenario::Scenario;

type EmulatorResult = Result<(), EmulatorError>;

/// An emulated fabric in a thread of its own, without the interpreter's lock.
#[pyclass(frozen, module = "silvan._silvan")]
pub struct Emulation {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<EmulatorResult>>>,
    notices: Notices,
    #[pyo3(get)]
    default_host: String,
}

#[pymethods]
impl Emulation {
    /// Over UDP from a port without a socket name; without users, everybody may attach; only controllers control.
    #[new]
    #[pyo3(signature = (scenario, *, sockname, udp_port, users, controllers, time_scale, host, blank, devices, paused, follows_programs, faults))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        py: Python<'_>,
        scenario: &Bound<'_, Scenario>,
        sockname: Option<String>,
        udp_port: u16,
        users: Option<Vec<u32>>,
        controllers: Vec<u32>,
        time_scale: f64,
        host: Option<String>,
        blank: bool,
        devices: &str,
        paused: bool,
        follows_programs: bool,
        faults: Option<(String, String)>,
    ) -> PyResult<Self> {
        let devices: SwitchDevices = devices
            .parse()
            .map_err(|error: UnknownDevices| emulator_error(py, &error.into()))?;
        let address = sockname.map_or(Address::Udp(udp_port), Address::Unix);
        let options = Options {
            users: users.map_or(AllowedUsers::Everybody, AllowedUsers::Ids),
            controllers: AllowedUsers::Ids(controllers),
            time_scale,
            host,
            setup: Setup {
                start: if blank {
                    Start::Blank
                } else {
                    Start::Configured
                },
                devices,
            },
            paused,
            follows_programs,
            faults: faults.map(|(text, name)| FaultSchedule { text, name }),
            ..Options::new(address)
        };
        let notices = options.notices.clone();
        let scenario = &scenario.get().0;
        let mut server = py
            .detach(|| Server::bind(&Fastest, scenario, options))
            .map_err(|error| emulator_error(py, &error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let default_host = server.default_host().to_owned();
        let seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("silvan-emulator".into())
            .spawn(move || server.run(&seen))?;
        Ok(Self {
            stop,
            thread: Mutex::new(Some(thread)),
            notices,
            default_host,
        })
    }

    #[staticmethod]
    fn preload_library() -> &'static [u8] {
        include_bytes!(concat!(env!("OUT_DIR"), "/libsilvan_shim.so"))
    }

    fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Returns the notices since the last call: refused users, clients disconnected.
    fn take_notices(&self) -> Vec<String> {
        self.notices.take()
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = {
            let mut guard = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            guard.take()
        };
        let Some(thread) = thread else {
            return Ok(());
        };
        match py.detach(|| thread.join()) {
            Ok(outcome) => outcome.map_err(|error| emulator_error(py, &error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

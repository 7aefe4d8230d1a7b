// The session of a scenario without callbacks is moved between threads.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use silvan_core::{HostId, PortCounters, PortNumber, Span, Time};
use silvan_instances::Fastest;
use silvan_sim::{Session, has_route};
use silvan_workload::programs::{Driver, LARGEST_MESSAGE, Request, SendQueue};

use crate::errors::{argument_error, run_error};
use crate::scenario::Scenario;
use crate::shutdown::ActiveRun;

/// Other threads get the interpreter's lock then.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

type Event = (u32, Time);

#[derive(Debug)]
struct Mail(Arc<Mutex<VecDeque<Event>>>);

impl Driver for Mail {
    fn notify(&mut self, token: u32, now: Time, requests: &mut Vec<Request>) {
        lock(&self.0).push_back((token, now));
        requests.push(Request::Stop);
    }
}

struct Open {
    session: Session,
    requests: Vec<Request>,
}

// SAFETY: of the schemes of a session only callbacks share memory without locks (`Rc`), and the package refuses scenarios
// with them. Everything else in a session is its own. Python's collector may drop a network on any thread.
unsafe impl Send for Open {}

/// A fabric that Python steers, on the thread that made it; the package tags events.
#[pyclass(frozen, module = "silvan._silvan")]
pub struct Network {
    open: Mutex<Open>,
    events: Arc<Mutex<VecDeque<Event>>>,
}

#[pymethods]
impl Network {
    #[new]
    fn new(py: Python<'_>, scenario: &Bound<'_, Scenario>, seed: u64) -> PyResult<Self> {
        let scenario = scenario.get().0.clone();
        let events = Arc::new(Mutex::new(VecDeque::new()));
        let driver = Box::new(Mail(Arc::clone(&events)));
        let session = Session::open(&Fastest, scenario, seed, driver)
            .map_err(|error| run_error(py, &error))?;
        let open = Open {
            session,
            requests: Vec::new(),
        };
        Ok(Self {
            open: Mutex::new(open),
            events,
        })
    }

    fn host_names(&self) -> PyResult<Vec<String>> {
        let open = self.open()?;
        let fabric = open.session.scenario().fabric();
        let names = fabric.host_ids().map(|host| fabric.host(host).name.clone());
        Ok(names.collect())
    }

    /// The current instant in picoseconds.
    fn now(&self) -> PyResult<u64> {
        Ok(self.open()?.session.now().as_ps())
    }

    fn send(&self, py: Python<'_>, src: usize, dst: usize, bytes: u64, token: u32) -> PyResult<()> {
        let mut open = self.open()?;
        let (from, to) = (HostId::new(src), HostId::new(dst));
        if !has_route(open.session.scenario(), from, to) {
            let fabric = open.session.scenario().fabric();
            let [from, to] = [from, to].map(|host| &fabric.host(host).name);
            let message = format!("there is no route from {from:?} to {to:?}");
            return Err(argument_error(py, &message));
        }
        if bytes > LARGEST_MESSAGE {
            let message =
                format!("a message of {bytes} bytes: at most {LARGEST_MESSAGE} are supported");
            return Err(argument_error(py, &message));
        }
        open.requests.push(Request::Send {
            from,
            to,
            bytes,
            sl: None,
            queue: SendQueue::default(),
            token,
        });
        Ok(())
    }

    /// Requests an event after a delay in picoseconds.
    fn alarm(&self, delay: u64, token: u32) -> PyResult<()> {
        let delay = Span::from_ps(delay);
        self.open()?.requests.push(Request::Timer { delay, token });
        Ok(())
    }

    /// To the next event, to `end` [ps], or until nothing is pending.
    fn next_event(&self, py: Python<'_>, end: Option<u64>) -> PyResult<Option<(u32, u64)>> {
        if let Some((token, at)) = lock(&self.events).pop_front() {
            return Ok(Some((token, at.as_ps())));
        }
        let active = ActiveRun::start();
        let mut last = Instant::now();
        let mut raised = None;
        let mut goes_on = || {
            if last.elapsed() >= CHECK_INTERVAL {
                py.detach(|| {
                    std::thread::yield_now();
                    active.check();
                });
                raised = py.check_signals().err();
                last = Instant::now();
            }
            raised.is_none()
        };
        let mut open = self.open()?;
        let Open { session, requests } = &mut *open;
        session
            .request(requests)
            .and_then(|()| session.run(end.map(Time::from_ps), &mut goes_on))
            .map_err(|error| run_error(py, &error))?;
        if let Some(error) = raised {
            return Err(error);
        }
        let event = lock(&self.events).pop_front();
        Ok(event.map(|(token, at)| (token, at.as_ps())))
    }

    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = self.open()?.session.totals();
        let by_name = PyDict::new(py);
        by_name.set_item("events", totals.events)?;
        by_name.set_item("packet_hops", totals.packet_hops)?;
        by_name.set_item("delivered_packets", totals.delivered_packets)?;
        by_name.set_item("memory_bytes", totals.memory_bytes)?;
        Ok(by_name)
    }

    fn host_counters<'py>(&self, py: Python<'py>, host: usize) -> PyResult<Bound<'py, PyDict>> {
        let open = self.open()?;
        let counters = open.session.simulation().host_counters(HostId::new(host));
        let by_name = PyDict::new(py);
        by_name.set_item("injected_bytes", counters.injected_bytes)?;
        by_name.set_item("delivered_bytes", counters.delivered_bytes)?;
        by_name.set_item("delivered_packets", counters.delivered_packets)?;
        by_name.set_item("fecn_received", counters.fecn_received)?;
        by_name.set_item("becn_received", counters.becn_received)?;
        Ok(by_name)
    }

    fn port_counters<'py>(
        &self,
        py: Python<'py>,
        node: &str,
        port: u8,
    ) -> PyResult<Bound<'py, PyDict>> {
        let open = self.open()?;
        let fabric = open.session.scenario().fabric();
        let Some(known) = fabric.node_by_name(node) else {
            let message = format!("no host or switch is named {node:?}");
            return Err(argument_error(py, &message));
        };
        let Some(port) = fabric.port(known, PortNumber::new(port)) else {
            let ports = fabric.nodes[known].ports().len();
            let message = format!("{node:?} has no port {port}: its ports are 1 to {ports}");
            return Err(argument_error(py, &message));
        };
        let counters = open.session.simulation().port_counters(port);
        let by_name = PyDict::new(py);
        for counter in PortCounters::ALL {
            by_name.set_item(counter.column, counter.read(&counters))?;
        }
        Ok(by_name)
    }
}

impl Network {
    fn open(&self) -> PyResult<MutexGuard<'_, Open>> {
        let open = self.open.try_lock();
        open.map_err(|_| PyRuntimeError::new_err("the network is running"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

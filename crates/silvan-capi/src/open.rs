//! The open simulations of a thread.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::{CString, c_char};
use std::ptr::without_provenance_mut;
use std::rc::Rc;

use silvan_core::{HostId, Time};
use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::{RunError, Session};
use silvan_workload::programs::Request;

use crate::driver::{Callbacks, Shared};
use crate::failure::Failure;
use crate::types::{Simulation, Status};

pub(crate) struct Opened {
    pub shared: Rc<Shared>,
    pub scenario: Scenario,
    session: RefCell<Session>,
    names: OnceCell<Vec<CString>>,
    warnings: CString,
    /// True if an internal error has left the simulation in an unknown state.
    is_broken: Cell<bool>,
}

/// A place for simulations, one at a time. `used` counts them, so that an old pointer is an error.
#[derive(Default)]
struct Entry {
    used: u16,
    opened: Option<Rc<Opened>>,
}

thread_local! {
    static PLACES: RefCell<Vec<Entry>> = RefCell::default();
}

/// Bits of a pointer's value with the place; higher bits have `used`. Every value is odd, so it is not null, and not
/// the address of an object.
const PLACE_BITS: u32 = 12;

fn pointer(place: usize, used: u16) -> *mut Simulation {
    without_provenance_mut((usize::from(used) << PLACE_BITS | place) << 1 | 1)
}

pub(crate) fn open(scenario: Scenario) -> Result<*mut Simulation, Failure> {
    let (place, used) = PLACES.with_borrow_mut(|places| {
        let free = places.iter().position(|place| place.opened.is_none());
        let place = free.unwrap_or_else(|| {
            places.push(Entry::default());
            places.len() - 1
        });
        // The pointer of a simulation that was closed is not used again soon.
        places[place].used = places[place].used.wrapping_add(1);
        (place, places[place].used)
    });
    if place >= 1 << PLACE_BITS {
        let most = 1 << PLACE_BITS;
        return Err(Failure::argument(format!(
            "{place} simulations are open in this thread: {most} are possible (hint: close some)"
        )));
    }
    let simulation = pointer(place, used);
    let shared = Rc::new(Shared::new(simulation));
    let driver = Box::new(Callbacks(shared.clone()));
    let seed = scenario.seed();
    let session = Session::open(&Fastest, scenario.clone(), seed, driver)
        .map_err(|error| Failure::new(Status::BadScenario, error.to_string()))?;
    let warnings = scenario.warnings().join("\n").replace('\0', " ");
    let opened = Opened {
        shared,
        session: RefCell::new(session),
        names: OnceCell::new(),
        warnings: CString::new(warnings).unwrap_or_default(),
        scenario,
        is_broken: Cell::new(false),
    };
    PLACES.with_borrow_mut(|places| places[place].opened = Some(Rc::new(opened)));
    Ok(simulation)
}

fn place_of(simulation: *const Simulation, places: &[Entry]) -> Result<usize, Failure> {
    if simulation.is_null() {
        return Err(Failure::argument("the simulation is a null pointer"));
    }
    let value = simulation.addr();
    let place = value >> 1 & ((1 << PLACE_BITS) - 1);
    let is_open = places
        .get(place)
        .is_some_and(|known| known.opened.is_some() && pointer(place, known.used).addr() == value);
    match is_open {
        true => Ok(place),
        false => Err(Failure::argument(format!(
            "{value:#x} is no open simulation of this thread (hint: it may have been closed, or opened by another thread)"
        ))),
    }
}

pub(crate) fn find(simulation: *const Simulation) -> Result<Rc<Opened>, Failure> {
    PLACES.with_borrow(|places| {
        let place = place_of(simulation, places)?;
        let opened = places[place].opened.clone();
        opened.ok_or_else(|| Failure::argument("the simulation is closed"))
    })
}

pub(crate) fn close(simulation: *mut Simulation) -> Result<(), Failure> {
    let opened = find(simulation)?;
    if opened.session.try_borrow_mut().is_err() {
        return Err(is_running());
    }
    drop(opened);
    let closed = PLACES.with_borrow_mut(|places| {
        let place = place_of(simulation, places)?;
        Ok(places[place].opened.take())
    })?;
    drop(closed);
    Ok(())
}

fn is_running() -> Failure {
    let text = "the simulation is running: call this after the run, not from a callback";
    Failure::new(Status::IsRunning, text)
}

impl Opened {
    fn check_whole(&self) -> Result<(), Failure> {
        match self.is_broken.get() {
            false => Ok(()),
            true => Err(Failure::new(
                Status::Internal,
                "the simulation has had an internal error: it can only be closed",
            )),
        }
    }

    /// Reads the simulation.
    pub fn read<T>(&self, read: impl FnOnce(&Session) -> T) -> Result<T, Failure> {
        let session = self.session.try_borrow().map_err(|_| is_running())?;
        self.check_whole()?;
        Ok(read(&session))
    }

    /// Runs the simulation.
    pub fn run(
        &self,
        run: impl FnOnce(&mut Session) -> Result<(), RunError>,
    ) -> Result<(), Failure> {
        let mut session = self.session.try_borrow_mut().map_err(|_| is_running())?;
        self.check_whole()?;
        // If the run panics, the simulation stays broken.
        self.is_broken.set(true);
        // An earlier stop must not end this run.
        self.shared.drop_stop();
        let mut requests: Vec<Request> = Vec::new();
        self.shared.take_requests(&mut requests);
        let ran = session
            .request(&mut requests)
            .and_then(|()| run(&mut session));
        self.shared.now.set(session.now());
        self.is_broken.set(false);
        ran.map_err(|error| Failure::new(Status::RunFailed, error.to_string()))
    }

    /// Checks the number of a host.
    pub fn host(&self, host: u32) -> Result<HostId, Failure> {
        let hosts = self.scenario.fabric().host_count();
        match (host as usize) < hosts {
            true => Ok(HostId::new(host as usize)),
            false => Err(Failure::argument(format!(
                "host {host}: the fabric has {hosts} hosts, numbered from 0"
            ))),
        }
    }

    /// The name of a host; it lives as long as the simulation.
    pub fn host_name(&self, host: HostId) -> *const c_char {
        let names = self.names.get_or_init(|| {
            let fabric = self.scenario.fabric();
            let names = fabric.host_ids().map(|host| fabric.host(host).name.clone());
            // Scenarios refuse names with a zero inside.
            names
                .map(|name| CString::new(name).unwrap_or_default())
                .collect()
        });
        names[host.index()].as_ptr()
    }

    /// Returns the warnings of the scenario; they live as long as the simulation.
    pub fn warnings(&self) -> *const c_char {
        self.warnings.as_ptr()
    }

    /// The current instant.
    pub fn now(&self) -> Time {
        self.shared.now.get()
    }
}

//! The functions of the C interface. Each checks its arguments, but the driver ensures that non-null pointers are
//! valid.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use silvan_core::counters::PortCounter;
use silvan_core::{PortCounters, PortNumber, Span, Time};
use silvan_fabric::Fabric;
use silvan_model::LATEST;
use silvan_scenario::{Override, Scenario, read_scenario};
use silvan_sim::has_route;
use silvan_workload::programs::{LARGEST_MESSAGE, Request};

use crate::failure::{Failure, guard, last_error};
use crate::open::{close, find, open};
use crate::types::{HostCounters, Message, OnArrival, OnTimer, Simulation, Statistics, Status};

/// The text of a C string.
///
/// # Safety
/// The pointer is null, or leads to a string that ends with a zero and lives for `'a`.
unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is a null pointer")));
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|error| Failure::argument(format!("{what} is not UTF-8: {error}")))
}

/// Writes a result where C wants it.
///
/// # Safety
/// The pointer is null, or leads to room for the value.
unsafe fn put<T>(room: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if room.is_null() {
        return Err(Failure::argument(format!("{what} is a null pointer")));
    }
    // SAFETY: the caller says so. The room need not hold a value yet.
    unsafe { room.write(value) };
    Ok(())
}

/// The settings that replace keys of a scenario.
///
/// # Safety
/// The pointer is null, or leads to `count` strings as [`text`] wants them.
unsafe fn overrides(
    settings: *const *const c_char,
    count: usize,
) -> Result<Vec<Override>, Failure> {
    if count > 0 && settings.is_null() {
        return Err(Failure::argument("settings is a null pointer"));
    }
    let read = |place: usize| {
        // SAFETY: there are `count` of them.
        let setting = unsafe { *settings.add(place) };
        // SAFETY: the caller says so.
        let setting = unsafe { text(setting, &format!("settings[{place}]")) }?;
        let Some((key, value)) = setting.split_once('=') else {
            return Err(Failure::argument(format!(
                "settings[{place}]: {setting:?} is no setting (hint: write \"key=value\", for example \"run.seed=2\")"
            )));
        };
        Ok(Override::new(key.trim(), value.trim()))
    };
    (0..count).map(read).collect()
}

/// Opens a scenario and writes the simulation to `simulation`.
unsafe fn open_scenario(
    toml: &str,
    name: &str,
    overrides: &[Override],
    simulation: *mut *mut Simulation,
) -> Result<(), Failure> {
    if simulation.is_null() {
        return Err(Failure::argument("simulation is a null pointer"));
    }
    let scenario = Scenario::from_toml(toml, name, overrides);
    let scenario =
        scenario.map_err(|error| Failure::new(Status::BadScenario, error.to_string()))?;
    let opened = open(scenario)?;
    // SAFETY: the caller says that it leads to room for a pointer.
    unsafe { put(simulation, opened, "simulation") }
}

/// The version of the library, such as "1.0.0".
#[unsafe(no_mangle)]
pub extern "C" fn silvan_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The text of the last error in this thread, in English, without a line end; empty if there was none. It is valid until
/// the next error in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn silvan_last_error() -> *const c_char {
    last_error()
}

/// Opens the scenario of a file. Each of the `count` settings is text such as "run.seed=2", which replaces a key of the
/// scenario; `settings` may be null if there are none. The scenario's fabric, congestion control and load are simulated; its
/// duration, warm-up and probes have no effect. On an error `*simulation` is null.
///
/// # Safety
/// Pointers that are not null lead to strings that end with a zero, `count` of them for `settings`, and to room for a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_open_file(
    path: *const c_char,
    settings: *const *const c_char,
    count: usize,
    simulation: *mut *mut Simulation,
) -> Status {
    guard(|| {
        // SAFETY: the driver says so.
        unsafe {
            clear(simulation);
            let path = text(path, "path")?;
            let overrides = overrides(settings, count)?;
            let toml = read_scenario(Path::new(path)).map_err(|error| {
                Failure::new(
                    Status::BadScenario,
                    format!("cannot read {path:?}: {error}"),
                )
            })?;
            open_scenario(&toml, path, &overrides, simulation)
        }
    })
}

/// Opens a scenario that is given as text (TOML). Errors call it `name`, and the files that it names are looked for in the
/// folder of `name`, as if it were the path of a file. Otherwise as `silvan_open_file`.
///
/// # Safety
/// As `silvan_open_file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_open_text(
    toml: *const c_char,
    name: *const c_char,
    settings: *const *const c_char,
    count: usize,
    simulation: *mut *mut Simulation,
) -> Status {
    guard(|| {
        // SAFETY: the driver says so.
        unsafe {
            clear(simulation);
            let overrides = overrides(settings, count)?;
            open_scenario(
                text(toml, "toml")?,
                text(name, "name")?,
                &overrides,
                simulation,
            )
        }
    })
}

/// Makes sure that an error leaves no pointer.
///
/// # Safety
/// The pointer is null, or leads to room for one.
unsafe fn clear(simulation: *mut *mut Simulation) {
    if !simulation.is_null() {
        // SAFETY: the caller says so.
        unsafe { simulation.write(std::ptr::null_mut()) };
    }
}

/// Closes a simulation. Callbacks that are pending are not called. Not from a callback.
#[unsafe(no_mangle)]
pub extern "C" fn silvan_close(simulation: *mut Simulation) -> Status {
    guard(|| close(simulation))
}

/// Writes the warnings about the scenario, one per line, as text that is valid until the simulation is closed.
///
/// # Safety
/// `warnings` is null or leads to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_warnings(
    simulation: *const Simulation,
    warnings: *mut *const c_char,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        // SAFETY: the driver says so.
        unsafe { put(warnings, opened.warnings(), "warnings") }
    })
}

/// Writes the number of hosts. They are numbered from 0, in the order of the scenario's fabric.
///
/// # Safety
/// `count` is null or leads to room for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_host_count(
    simulation: *const Simulation,
    count: *mut u32,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        // An engine numbers its ports with 32 bits.
        let hosts = opened.scenario.fabric().host_count() as u32;
        // SAFETY: the driver says so.
        unsafe { put(count, hosts, "count") }
    })
}

/// Writes the name of a host, which is valid until the simulation is closed.
///
/// # Safety
/// `name` is null or leads to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_host_name(
    simulation: *const Simulation,
    host: u32,
    name: *mut *const c_char,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        let host = opened.host(host)?;
        // SAFETY: the driver says so.
        unsafe { put(name, opened.host_name(host), "name") }
    })
}

/// Writes the number of the host with this name.
///
/// # Safety
/// `name` is null or a string that ends with a zero; `host` is null or leads to room for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_host_by_name(
    simulation: *const Simulation,
    name: *const c_char,
    host: *mut u32,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        // SAFETY: the driver says so.
        let name = unsafe { text(name, "name") }?;
        let fabric = opened.scenario.fabric();
        let Some(node) = fabric.node_by_name(name) else {
            return Err(unknown_name(fabric, name, "host"));
        };
        let Some(known) = fabric.nodes[node].as_host() else {
            return Err(Failure::argument(format!(
                "{name:?} is a switch, not a host"
            )));
        };
        // SAFETY: the driver says so.
        unsafe { put(host, known.index() as u32, "host") }
    })
}

/// Sends a message now, from one host to another or to itself. When all of it has arrived, `on_arrival` is called with
/// `user`; it may be null. Messages between two hosts arrive in the order in which they were sent where all packets take one
/// path. A message without bytes takes a packet, too.
#[unsafe(no_mangle)]
pub extern "C" fn silvan_send(
    simulation: *mut Simulation,
    from: u32,
    to: u32,
    bytes: u64,
    tag: u64,
    on_arrival: OnArrival,
    user: *mut c_void,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        let (source, target) = (opened.host(from)?, opened.host(to)?);
        if !has_route(&opened.scenario, source, target) {
            let fabric = opened.scenario.fabric();
            let [source, target] = [source, target].map(|host| &fabric.host(host).name);
            return Err(Failure::argument(format!(
                "there is no route from {source:?} to {target:?}"
            )));
        }
        if bytes > LARGEST_MESSAGE {
            return Err(Failure::argument(format!(
                "a message of {bytes} bytes: at most {LARGEST_MESSAGE} are supported"
            )));
        }
        let message = Message {
            from,
            to,
            bytes,
            tag,
            sent_ps: 0,
            arrived_ps: 0,
        };
        match opened.shared.send(message, on_arrival, user) {
            true => Ok(()),
            false => Err(too_many()),
        }
    })
}

/// Returns the failure for a name that no node has.
fn unknown_name(fabric: &Fabric, name: &str, what: &str) -> Failure {
    let near = fabric.nearest_name(name);
    let hint = near.map_or(String::new(), |near| {
        format!(" (hint: did you mean {near:?}?)")
    });
    Failure::argument(format!("{name:?} is no {what}{hint}"))
}

fn too_many() -> Failure {
    Failure::argument("4,294,967,294 messages and timers are pending: no more are possible")
}

/// Calls `on_timer` with `user` after a time in picoseconds. Timers of one instant go off in the order in which they were
/// started.
#[unsafe(no_mangle)]
pub extern "C" fn silvan_schedule(
    simulation: *mut Simulation,
    delay_ps: u64,
    on_timer: OnTimer,
    user: *mut c_void,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        let delay = Span::from_ps(delay_ps);
        if opened.now().saturating_add(delay) >= LATEST {
            return Err(Failure::argument(format!(
                "a delay of {delay}: the clock ends after about 53 days"
            )));
        }
        match opened.shared.start_timer(delay, on_timer, user) {
            true => Ok(()),
            false => Err(too_many()),
        }
    })
}

/// Writes the current instant in picoseconds since the start. It can be read in callbacks, too.
///
/// # Safety
/// `now_ps` is null or leads to room for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_now(simulation: *const Simulation, now_ps: *mut u64) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        // SAFETY: the driver says so.
        unsafe { put(now_ps, opened.now().as_ps(), "now_ps") }
    })
}

/// Runs until all messages of the driver have arrived and all its timers have gone off, or until a callback calls
/// `silvan_stop`. The current instant is then that of the last of them. Not from a callback.
#[unsafe(no_mangle)]
pub extern "C" fn silvan_run_until_idle(simulation: *mut Simulation) -> Status {
    guard(|| find(simulation)?.run(|session| session.run_until_idle().map(|_| ())))
}

/// Runs until an instant in picoseconds since the start, or until a callback calls `silvan_stop`. Events at the instant
/// itself belong to the next run. Without effect if the instant has passed. Not from a callback.
#[unsafe(no_mangle)]
pub extern "C" fn silvan_run_until(simulation: *mut Simulation, end_ps: u64) -> Status {
    let end = Time::from_ps(end_ps);
    guard(|| find(simulation)?.run(|session| session.run_until(end).map(|_| ())))
}

/// Ends the run at the current instant, from a callback. Other messages that arrive with the same packet are reported
/// before it ends. The next run goes on from there. Without effect outside a run.
#[unsafe(no_mangle)]
pub extern "C" fn silvan_stop(simulation: *mut Simulation) -> Status {
    guard(|| {
        find(simulation)?.shared.request(Request::Stop);
        Ok(())
    })
}

/// Writes totals since the start. Not from a callback.
///
/// # Safety
/// `statistics` is null or leads to room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_read_statistics(
    simulation: *const Simulation,
    statistics: *mut Statistics,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        let totals = opened.read(|session| session.totals())?;
        let counts = opened.shared.counts();
        let read = Statistics {
            now_ps: opened.now().as_ps(),
            messages_sent: counts.messages_sent,
            messages_arrived: counts.messages_arrived,
            bytes_sent: counts.bytes_sent,
            bytes_arrived: counts.bytes_arrived,
            timers_pending: counts.timers_pending,
            events: totals.events,
            delivered_packets: totals.delivered_packets,
            packet_hops: totals.packet_hops,
            memory_bytes: totals.memory_bytes as u64,
        };
        // SAFETY: the driver says so.
        unsafe { put(statistics, read, "statistics") }
    })
}

/// Writes the counters of a host. Not from a callback.
///
/// # Safety
/// `counters` is null or leads to room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_read_host(
    simulation: *const Simulation,
    host: u32,
    counters: *mut HostCounters,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        let host = opened.host(host)?;
        let of_host = opened.read(|session| session.simulation().host_counters(host))?;
        let read = HostCounters {
            injected_bytes: of_host.injected_bytes,
            delivered_bytes: of_host.delivered_bytes,
            delivered_packets: of_host.delivered_packets,
            fecn_received: of_host.fecn_received,
            becn_received: of_host.becn_received,
        };
        // SAFETY: the driver says so.
        unsafe { put(counters, read, "counters") }
    })
}

/// Writes a counter of a port of a host or switch, such as `xmit_bytes`; times are in picoseconds. The reference of result
/// tables lists the counters, as columns of the table "ports". Not from a callback.
///
/// # Safety
/// `node` and `counter` are null or strings that end with a zero; `value` is null or leads to room for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvan_read_port(
    simulation: *const Simulation,
    node: *const c_char,
    port: u8,
    counter: *const c_char,
    value: *mut u64,
) -> Status {
    guard(|| {
        let opened = find(simulation)?;
        // SAFETY: the driver says so.
        let (node, counter) = unsafe { (text(node, "node")?, text(counter, "counter")?) };
        let fabric = opened.scenario.fabric();
        let Some(known) = fabric.node_by_name(node) else {
            return Err(unknown_name(fabric, node, "host or switch"));
        };
        let Some(port_id) = fabric.port(known, PortNumber::new(port)) else {
            let ports = fabric.nodes[known].ports().len();
            return Err(Failure::argument(format!(
                "{node:?} has no port {port}: its ports are 1 to {ports}"
            )));
        };
        let named = |one: &&PortCounter| one.name == counter || one.column == counter;
        let Some(declared) = PortCounters::ALL.iter().find(named) else {
            let names: Vec<&str> = PortCounters::ALL.iter().map(|one| one.name).collect();
            return Err(Failure::argument(format!(
                "{counter:?} is no counter: the counters are {}",
                names.join(", ")
            )));
        };
        let counters = opened.read(|session| session.simulation().port_counters(port_id))?;
        // SAFETY: the driver says so.
        unsafe { put(value, declared.read(&counters), "value") }
    })
}

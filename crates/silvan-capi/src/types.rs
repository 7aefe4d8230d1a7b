//! Types of the C interface.

use std::ffi::c_void;

/// Result of a function. `silvan_last_error` returns the text of a thread's last error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// An argument is null, not UTF-8, or names no simulation, host, port or counter.
    BadArgument = 1,
    /// The scenario cannot be read or is not valid; the text has the place and often a hint.
    BadScenario = 2,
    /// The run cannot go on: a deadlock, messages that can no longer arrive, or the end of the clock after about 53 days.
    RunFailed = 3,
    /// Not from a callback: the simulation is running.
    IsRunning = 4,
    /// An error in silvan itself. The simulation can only be closed.
    Internal = 5,
}

/// A simulation. It belongs to the thread that opened it.
///
/// Pointers to it are only identifiers: a wrong pointer, or a pointer to a closed simulation, is an error and nothing
/// worse.
#[derive(Debug)]
pub struct Simulation {
    _private: [u8; 0],
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Message {
    /// The sending host.
    pub from: u32,
    /// The receiving host.
    pub to: u32,
    /// Payload in bytes.
    pub bytes: u64,
    /// The tag that the sender gave.
    pub tag: u64,
    /// Send time, in picoseconds.
    pub sent_ps: u64,
    /// Arrival time of the last byte, in picoseconds: now.
    pub arrived_ps: u64,
}

/// Totals of a simulation since its start.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Statistics {
    /// The current instant, in picoseconds.
    pub now_ps: u64,
    /// Messages that the driver has sent.
    pub messages_sent: u64,
    /// Messages that have arrived.
    pub messages_arrived: u64,
    /// Payload of the messages sent, in bytes.
    pub bytes_sent: u64,
    /// Payload of the messages that have arrived, in bytes.
    pub bytes_arrived: u64,
    /// Timers that have not gone off.
    pub timers_pending: u64,
    /// Events that were processed.
    pub events: u64,
    /// Data packets delivered, those of the scenario's own load included.
    pub delivered_packets: u64,
    /// Delivered packets, each times the links that it crossed.
    pub packet_hops: u64,
    /// Memory of the simulated network, in bytes.
    pub memory_bytes: u64,
}

/// Counters of a host since the start.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct HostCounters {
    /// Payload whose injection has started, in bytes.
    pub injected_bytes: u64,
    /// Payload received, in bytes.
    pub delivered_bytes: u64,
    /// Data packets received.
    pub delivered_packets: u64,
    /// Data packets received with a mark of congestion (FECN or ECN).
    pub fecn_received: u64,
    /// Notifications of congestion received (BECN or CNP).
    pub becn_received: u64,
}

/// Called when all of a message has arrived. It may send, start timers and stop the run, and must return: no exception
/// and no longjmp may leave it. The message is valid until it returns.
pub type OnArrival = Option<
    unsafe extern "C-unwind" fn(
        simulation: *mut Simulation,
        message: *const Message,
        user: *mut c_void,
    ),
>;

/// Called when the time of a timer has come. The rules are those of `silvan_on_arrival`.
pub type OnTimer =
    Option<unsafe extern "C-unwind" fn(simulation: *mut Simulation, user: *mut c_void)>;

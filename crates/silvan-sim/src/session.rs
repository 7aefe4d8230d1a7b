use silvan_cc::dcms::DcmsController;
use silvan_core::{HostId, Span, Time};
use silvan_fabric::Fabric;
use silvan_model::{EngineError, Engines, LATEST, Simulation};
use silvan_scenario::Scenario;
use silvan_workload::programs::{Driver, Programs, Request};

use crate::RunError;
use crate::assemble::assemble_driven;
use crate::engine_error;
use crate::programs::{ProgramState, program_state};
use crate::schedule::{EndCheck, Schedule};

const CHECK: Span = Span::from_ms(1);

const STALLED: Span = Span::from_secs(1);

/// Why a call that runs the simulation has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The instant has come, or nothing of the driver is pending.
    Reached,
    /// The driver has requested it.
    Stopped,
    /// The caller's check has refused to go on.
    Interrupted,
}

/// Totals of a session so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTotals {
    /// Events processed.
    pub events: u64,
    /// Delivered packets, each times the links that it crossed.
    pub packet_hops: u64,
    /// Data packets delivered, those of the scenario's own load included.
    pub delivered_packets: u64,
    /// Messages and timers of the driver that are pending.
    pub pending: u32,
    /// Memory of the data plane, in bytes.
    pub memory_bytes: usize,
}

/// A simulation that a [`Driver`] steers.
///
/// The fabric, the congestion control with its changes at given times, the DCMS, and the load are those of the
/// scenario; its warm-up, duration and probes have no effect. The scenario's own load runs next to the driver's
/// requests.
///
/// ```
/// use silvan_core::{HostId, Span, Time};
/// use silvan_instances::Fastest;
/// use silvan_scenario::Scenario;
/// use silvan_sim::{Pause, Session};
/// use silvan_workload::programs::{Driver, Request, SendQueue};
///
/// /// Sends each message back until it has crossed the fabric four times.
/// #[derive(Debug)]
/// struct PingPong;
///
/// impl Driver for PingPong {
///     fn notify(&mut self, token: u32, _now: Time, requests: &mut Vec<Request>) {
///         let [one, other] = [HostId::new(0), HostId::new(1)];
///         let (from, to) = if token % 2 == 0 { (one, other) } else { (other, one) };
///         if token < 4 {
///             let queue = SendQueue::default();
///             requests.push(Request::Send { from, to, bytes: 8, sl: None, queue, token: token + 1 });
///         }
///     }
/// }
///
/// let scenario = Scenario::from_toml("", "empty", &[])?;
/// let mut session = Session::open(&Fastest, scenario, 1, Box::new(PingPong))?;
/// session.request(&mut vec![Request::Timer { delay: Span::from_us(1), token: 0 }])?;
/// assert_eq!(session.run_until_idle()?, Pause::Reached);
/// assert_eq!(session.totals().delivered_packets, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    scenario: Scenario,
    engine: Box<dyn Simulation>,
    schedule: Schedule<DcmsController>,
    moved: (u64, Time),
}

impl Session {
    /// Starts a scenario with a seed, or returns the [`RunError`] of its parts.
    pub fn open(
        engines: &dyn Engines,
        scenario: Scenario,
        seed: u64,
        driver: Box<dyn Driver>,
    ) -> Result<Self, RunError> {
        let engine = assemble_driven(engines, &scenario, seed, driver)?;
        let schedule = Schedule::of(&scenario);
        Ok(Self {
            scenario,
            engine,
            schedule,
            moved: (0, Time::ZERO),
        })
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The simulation, to read counters; after an early end they include packets that receivers still take in.
    pub fn simulation(&self) -> &dyn Simulation {
        self.engine.as_ref()
    }

    /// The instant that has been reached.
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> SessionTotals {
        let programs = self.engine.programs();
        SessionTotals {
            events: self.engine.events(),
            packet_hops: self.engine.packet_hops(),
            delivered_packets: self.engine.delivered_packets(),
            pending: programs.map_or(0, Programs::requests_pending),
            memory_bytes: self.engine.memory_bytes(),
        }
    }

    /// Takes requests outside a notification; [`EngineError::TooLate`] for a timer beyond the clock leaves all undone.
    pub fn request(&mut self, requests: &mut Vec<Request>) -> Result<(), RunError> {
        request(self.engine.as_mut(), requests).map_err(RunError::Engine)
    }

    /// Runs until nothing of the driver is pending; a [`RunError`] returns on further calls.
    pub fn run_until_idle(&mut self) -> Result<Pause, RunError> {
        self.run(None, &mut || true)
    }

    /// Runs until `end`, exclusive. Errors as [`run_until_idle`](Self::run_until_idle).
    pub fn run_until(&mut self, end: Time) -> Result<Pause, RunError> {
        self.run(Some(end), &mut || true)
    }

    /// Runs as [`run_until`](Self::run_until), or without an end as [`run_until_idle`](Self::run_until_idle); `goes_on`
    /// may end it as [`Pause::Interrupted`] each simulated millisecond.
    pub fn run(
        &mut self,
        end: Option<Time>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Pause, RunError> {
        let when_idle = end.is_none();
        let end = end.unwrap_or(Time::MAX);
        if end >= LATEST && !when_idle {
            return Err(RunError::Engine(EngineError::TooLate(end)));
        }
        self.engine
            .change_programs(&mut |programs, _| programs.start_call(when_idle));
        self.moved = (self.engine.events(), self.now());
        loop {
            if self.pauses() {
                return Ok(self.pause());
            }
            let engine = self.engine.as_mut();
            self.schedule.apply(engine)?;
            let now = engine.now();
            if now >= end {
                return Ok(Pause::Reached);
            }
            if !goes_on() {
                return Ok(Pause::Interrupted);
            }
            let next = now.saturating_add(CHECK).min(end);
            let ran = self.schedule.advance(engine, next, EndCheck::Full);
            ran.map_err(|error| engine_error(error, self.scenario.fabric()))?;
            if let ProgramState::Failed(fault) = program_state(self.engine.programs()) {
                return Err(fault.into());
            }
            if when_idle {
                self.check_stalled()?;
            }
        }
    }

    fn pauses(&self) -> bool {
        self.engine.programs().is_some_and(Programs::pauses)
    }

    fn pause(&self) -> Pause {
        let programs = self.engine.programs();
        match programs.is_some_and(Programs::is_stopped) {
            true => Pause::Stopped,
            false => Pause::Reached,
        }
    }

    fn check_stalled(&mut self) -> Result<(), RunError> {
        let (now, events) = (self.now(), self.engine.events());
        let programs = self.engine.programs();
        let has_timer = programs.is_some_and(|programs| programs.next_timer().is_some());
        if events != self.moved.0 || has_timer {
            self.moved = (events, now);
        }
        let since = self.moved.1;
        match now.since(since) < STALLED {
            true => Ok(()),
            false => Err(RunError::Stalled {
                pending: programs.map_or(0, Programs::requests_pending),
                since,
            }),
        }
    }
}

/// Takes requests outside a notification; [`EngineError::TooLate`] for a timer beyond the clock leaves all undone.
pub fn request<S: Simulation + ?Sized>(
    simulation: &mut S,
    requests: &mut Vec<Request>,
) -> Result<(), EngineError> {
    let now = simulation.now();
    let late = requests.iter().find_map(|request| match request {
        Request::Timer { delay, .. } => Some(now.saturating_add(*delay)).filter(|at| *at >= LATEST),
        _ => None,
    });
    if let Some(at) = late {
        return Err(EngineError::TooLate(at));
    }
    simulation.change_programs(&mut |programs, now| programs.request(requests, now));
    Ok(())
}

/// Returns true if packets from one host to another have a route. Only scenarios that allow missing routes lack routes.
pub fn has_route(scenario: &Scenario, from: HostId, to: HostId) -> bool {
    if scenario.routes().unreachable == 0 || from == to {
        return true;
    }
    let fabric: &Fabric = scenario.fabric();
    let (mut switch, _) = fabric.host_attachment(from);
    // A route has no loop, so it visits each switch once at most.
    for _ in 0..fabric.switch_count() {
        if fabric.host_attachment(to).0 == switch {
            return true;
        }
        let output = scenario.forwarding().tables.to_host(switch, to);
        let port = output.and_then(|output| fabric.port(fabric.node_of_switch(switch), output));
        match port.and_then(|port| fabric.peer_switch(port)) {
            Some((next, _)) => switch = next,
            None => return false,
        }
    }
    false
}

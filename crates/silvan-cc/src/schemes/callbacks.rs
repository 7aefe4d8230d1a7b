//! A scheme that consists of compiled functions of another language, handed over by address.
//!
//! All numbers are `int64`, times in picoseconds; the first argument is a table of `float64` in which
//! the functions keep what they remember. A function that is left out does nothing.
//!
//! | function | arguments after the table | value |
//! |---|---|---|
//! | `on_queued` | now, port VL, bytes queued, credits left, bytes of the packet | 0 |
//! | `on_departure` | now, port VL, bytes queued, credits left, bytes of the packet, marked before | not 0: mark it |
//! | `release` | now, source, destination, SL | when the flow may send |
//! | `host_release` | now, host | when the host may send |
//! | `on_flow_start` | now, source, destination, SL | 0 |
//! | `on_send` | now, source, destination, SL, time on the link, payload | 0 |
//! | `on_feedback` | now, source, destination, SL, payload acknowledged (0: a notification), marked | not 0: ask again |
//! | `on_credit` | now, host, credits taken, credits in all | 0 |
//!
//! A function returns the bitwise complement of its value, which is never negative. So every valid
//! result is negative: 0 means that the function raised an exception, and a positive number that its
//! value is not valid. The first such call is recorded as the [`Failure`] of the run. No function is
//! called after it: no flow may send, and whoever drives the run ends it at its next step.

// Calling what stands at an address is unsafe whatever one does; nothing else here is.
#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use crate::hooks::{
    Feedback, Flow, PacketView, PortVl, QueueView, SettingChange, Settings, SourceControl,
    SwitchControl, UnknownSetting,
};
use silvan_core::{HostId, Span, Time};

type State = *mut f64;
type OnQueued = unsafe extern "C" fn(State, i64, i64, i64, i64, i64) -> i64;
type OnDeparture = unsafe extern "C" fn(State, i64, i64, i64, i64, i64, i64) -> i64;
type Release = unsafe extern "C" fn(State, i64, i64, i64, i64) -> i64;
type HostRelease = unsafe extern "C" fn(State, i64, i64) -> i64;
type OnFlowStart = unsafe extern "C" fn(State, i64, i64, i64, i64) -> i64;
type OnSend = unsafe extern "C" fn(State, i64, i64, i64, i64, i64, i64) -> i64;
type OnFeedback = unsafe extern "C" fn(State, i64, i64, i64, i64, i64, i64) -> i64;
type OnCredit = unsafe extern "C" fn(State, i64, i64, i64, i64) -> i64;

/// Where the functions and their table stand in memory. 0 stands for a function that is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The table of `float64`.
    pub state: usize,
    /// [`SwitchControl::on_queued`].
    pub on_queued: usize,
    /// [`SwitchControl::on_departure`].
    pub on_departure: usize,
    /// [`SourceControl::release`].
    pub release: usize,
    /// [`SourceControl::host_release`].
    pub host_release: usize,
    /// [`SourceControl::on_flow_start`].
    pub on_flow_start: usize,
    /// [`SourceControl::on_send`].
    pub on_send: usize,
    /// [`SourceControl::on_feedback`].
    pub on_feedback: usize,
    /// [`SourceControl::on_credit`].
    pub on_credit: usize,
}

/// The first call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which function.
    pub hook: &'static str,
    /// Its arguments after the table; the first one is the simulated time.
    pub arguments: Vec<i64>,
    /// Whether it raised an exception; else its value is not valid.
    pub raised: bool,
}

/// Why no function is called any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A call failed.
    Failed(Failure),
    /// The observer has ended the run.
    Interrupted,
}

/// Called from time to time with the simulated time; `false` ends the run.
///
/// A scheme can keep simulated time from passing, for example if a flow may always send one picosecond
/// later. Then the engine never reaches the end of its step, and only the calls come back regularly.
pub type Observer = Box<dyn Fn(Time) -> bool>;

/// Calls of functions between two calls of the observer: some tenths of a millisecond.
const CALLS_PER_OBSERVATION: u32 = 1 << 14;

/// What both parts of a scheme share.
struct Watch {
    stopped: Cell<bool>,
    calls: Cell<u32>,
    reason: OnceCell<Stopped>,
    observer: Observer,
}

impl Watch {
    /// Counts a call that is about to start. Returns whether it must not.
    #[inline]
    fn stops(&self, now: i64) -> bool {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        if calls % CALLS_PER_OBSERVATION == 0 {
            self.observe(now);
        }
        self.stopped.get()
    }

    #[cold]
    fn observe(&self, now: i64) {
        if !self.stopped.get() && !(self.observer)(Time::from_ps(now.unsigned_abs())) {
            self.stop(Stopped::Interrupted);
        }
    }

    #[cold]
    fn stop(&self, reason: Stopped) {
        // The first reason counts.
        let _ = self.reason.set(reason);
        self.stopped.set(true);
    }
}

/// Functions at addresses, as both parts of a scheme.
#[derive(Clone)]
pub struct Callbacks {
    watch: Rc<Watch>,
    state: State,
    on_queued: Option<OnQueued>,
    on_departure: Option<OnDeparture>,
    release: Option<Release>,
    host_release: Option<HostRelease>,
    on_flow_start: Option<OnFlowStart>,
    on_send: Option<OnSend>,
    on_feedback: Option<OnFeedback>,
    on_credit: Option<OnCredit>,
}

impl Callbacks {
    /// The functions at these addresses.
    ///
    /// # Safety
    /// Each address but 0 is that of a function of the C calling convention with the arguments and the
    /// result that the module's table gives it, and `state` is what these functions take it for.
    /// Functions and table stay where they are for as long as this value or a copy of it is used, and
    /// nobody else touches the table meanwhile.
    pub unsafe fn at(addresses: Addresses, observer: Observer) -> Self {
        use std::mem::transmute;
        // SAFETY: an `Option` of a function pointer is as large as an address and `None` at 0; the
        // caller vouches for all others.
        unsafe {
            Self {
                watch: Rc::new(Watch {
                    stopped: Cell::new(false),
                    calls: Cell::new(0),
                    reason: OnceCell::new(),
                    observer,
                }),
                state: addresses.state as State,
                on_queued: transmute::<usize, Option<OnQueued>>(addresses.on_queued),
                on_departure: transmute::<usize, Option<OnDeparture>>(addresses.on_departure),
                release: transmute::<usize, Option<Release>>(addresses.release),
                host_release: transmute::<usize, Option<HostRelease>>(addresses.host_release),
                on_flow_start: transmute::<usize, Option<OnFlowStart>>(addresses.on_flow_start),
                on_send: transmute::<usize, Option<OnSend>>(addresses.on_send),
                on_feedback: transmute::<usize, Option<OnFeedback>>(addresses.on_feedback),
                on_credit: transmute::<usize, Option<OnCredit>>(addresses.on_credit),
            }
        }
    }
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = formatter.debug_struct("Callbacks");
        text.field("stopped", &self.stopped())
            .finish_non_exhaustive()
    }
}

/// Picoseconds as a function gets them.
#[inline]
fn ps(time: Time) -> i64 {
    i64::try_from(time.as_ps()).unwrap_or(i64::MAX)
}

/// A time that a function has given; the largest number means never.
#[inline]
fn time(ps: i64) -> Time {
    match ps {
        i64::MAX => Time::MAX,
        _ => Time::from_ps(ps.unsigned_abs()),
    }
}

/// Source, destination and service level.
#[inline]
fn ends(flow: Flow) -> (i64, i64, i64) {
    let Flow {
        source,
        destination,
        sl,
    } = flow;
    (
        source.index() as i64,
        destination.index() as i64,
        sl.index() as i64,
    )
}

impl Callbacks {
    /// Why no function is called any more; `None` while all is well.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.watch.reason.get()
    }

    /// The value of a call, `None` if it failed or if no function is called any more.
    #[inline]
    fn value<const N: usize>(
        &self,
        hook: &'static str,
        arguments: [i64; N],
        call: impl FnOnce(State, [i64; N]) -> i64,
    ) -> Option<i64> {
        if self.watch.stops(arguments[0]) {
            return None;
        }
        let answer = call(self.state, arguments);
        if answer < 0 {
            return Some(!answer);
        }
        self.watch.stop(Stopped::Failed(Failure {
            hook,
            arguments: arguments.to_vec(),
            raised: answer == 0,
        }));
        None
    }
}

// SAFETY of all calls below: `Callbacks::at` has the caller's word.

impl SwitchControl for Callbacks {
    #[inline]
    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        if let Some(hook) = self.on_queued {
            let (queued, credit) = (i64::from(queue.queued_bytes), i64::from(queue.has_credit));
            let (output, wire) = (i64::from(output.0), i64::from(packet.wire_bytes));
            let arguments = [ps(now), output, queued, credit, wire];
            self.value("on_queued", arguments, |state, [a, b, c, d, e]| unsafe {
                hook(state, a, b, c, d, e)
            });
        }
    }

    #[inline]
    fn on_departure(
        &mut self,
        now: Time,
        output: PortVl,
        queue: QueueView,
        packet: PacketView,
    ) -> bool {
        let Some(hook) = self.on_departure else {
            return false;
        };
        let (queued, credit) = (i64::from(queue.queued_bytes), i64::from(queue.has_credit));
        let (wire, marked) = (i64::from(packet.wire_bytes), i64::from(packet.marked));
        let arguments = [ps(now), i64::from(output.0), queued, credit, wire, marked];
        let mark = self.value(
            "on_departure",
            arguments,
            |state, [a, b, c, d, e, f]| unsafe { hook(state, a, b, c, d, e, f) },
        );
        mark.unwrap_or(0) != 0
    }
}

impl SourceControl for Callbacks {
    #[inline]
    fn needs_credit(&self) -> bool {
        self.on_credit.is_some()
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        let Some(hook) = self.release else {
            return now;
        };
        let (source, destination, sl) = ends(flow);
        let arguments = [ps(now), source, destination, sl];
        let at = self.value("release", arguments, |state, [a, b, c, d]| unsafe {
            hook(state, a, b, c, d)
        });
        at.map_or(Time::MAX, time)
    }

    #[inline]
    fn host_release(&mut self, now: Time, host: HostId) -> Time {
        if self.watch.stopped.get() {
            return Time::MAX;
        }
        let Some(hook) = self.host_release else {
            return now;
        };
        let arguments = [ps(now), host.index() as i64];
        let at = self.value("host_release", arguments, |state, [a, b]| unsafe {
            hook(state, a, b)
        });
        at.map_or(Time::MAX, time)
    }

    fn on_flow_start(&mut self, now: Time, flow: Flow) {
        if let Some(hook) = self.on_flow_start {
            let (source, destination, sl) = ends(flow);
            let arguments = [ps(now), source, destination, sl];
            self.value("on_flow_start", arguments, |state, [a, b, c, d]| unsafe {
                hook(state, a, b, c, d)
            });
        }
    }

    #[inline]
    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        if let Some(hook) = self.on_send {
            let (source, destination, sl) = ends(flow);
            let (wire, payload) = (wire_time.as_ps() as i64, i64::from(payload));
            let arguments = [ps(now), source, destination, sl, wire, payload];
            self.value("on_send", arguments, |state, [a, b, c, d, e, f]| unsafe {
                hook(state, a, b, c, d, e, f)
            });
        }
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, flow: Flow, feedback: Feedback) -> bool {
        let Some(hook) = self.on_feedback else {
            return false;
        };
        let (source, destination, sl) = ends(flow);
        let (bytes, becn) = match feedback {
            Feedback::Cnp => (0, 1),
            Feedback::Ack { bytes, becn } => (i64::from(bytes), i64::from(becn)),
        };
        let arguments = [ps(now), source, destination, sl, bytes, becn];
        let again = self.value(
            "on_feedback",
            arguments,
            |state, [a, b, c, d, e, f]| unsafe { hook(state, a, b, c, d, e, f) },
        );
        again.unwrap_or(0) != 0
    }

    fn on_credit(&mut self, now: Time, host: HostId, used: u32, capacity: u32) {
        if let Some(hook) = self.on_credit {
            let (used, capacity) = (i64::from(used), i64::from(capacity));
            let arguments = [ps(now), host.index() as i64, used, capacity];
            self.value("on_credit", arguments, |state, [a, b, c, d]| unsafe {
                hook(state, a, b, c, d)
            });
        }
    }
}

/// Nothing of it changes during a run.
impl Settings for Callbacks {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

#[cfg(test)]
mod tests {
    use silvan_core::{PortId, Sl};

    use super::*;

    unsafe extern "C" fn departure(
        state: State,
        now: i64,
        port_vl: i64,
        queued: i64,
        credit: i64,
        wire: i64,
        marked: i64,
    ) -> i64 {
        let seen = [now, port_vl, queued, credit, wire, marked];
        for (at, value) in seen.into_iter().enumerate() {
            // SAFETY: the test's table has room for eight numbers.
            unsafe { *state.add(at) = value as f64 };
        }
        !i64::from(queued > 100)
    }

    unsafe extern "C" fn release(_: State, now: i64, source: i64, to: i64, sl: i64) -> i64 {
        !(now + 1_000 * source + 100 * to + sl)
    }

    unsafe extern "C" fn never(_: State, _: i64, _: i64) -> i64 {
        !i64::MAX
    }

    /// Counts its calls; fails as its last argument says: 0 is an exception, 1 a value that is not valid.
    unsafe extern "C" fn failing(
        state: State,
        _: i64,
        _: i64,
        _: i64,
        _: i64,
        _: i64,
        how: i64,
    ) -> i64 {
        // SAFETY: the test's table has room for eight numbers.
        unsafe { *state += 1.0 };
        how
    }

    const FLOW: Flow = Flow {
        source: HostId::new(3),
        destination: HostId::new(2),
        sl: Sl::ZERO,
    };

    #[test]
    fn arguments_and_results_arrive() {
        let mut table = [0.0; 8];
        let addresses = Addresses {
            state: table.as_mut_ptr() as usize,
            on_departure: departure as *const () as usize,
            release: release as *const () as usize,
            host_release: never as *const () as usize,
            ..Addresses::default()
        };
        // SAFETY: functions of this module, and a table that outlives the calls.
        let mut calls = unsafe { Callbacks::at(addresses, Box::new(|_| true)) };
        let now = Time::from_ps(7);
        assert_eq!(calls.release(now, FLOW), Time::from_ps(3_207));
        assert_eq!(calls.host_release(now, FLOW.source), Time::MAX);
        let queue = |queued_bytes| QueueView {
            queued_bytes,
            has_credit: true,
        };
        let packet = PacketView {
            wire_bytes: 64,
            marked: false,
            input: PortId::new(0),
        };
        assert!(calls.on_departure(now, PortVl(9), queue(101), packet));
        assert!(!calls.on_departure(now, PortVl(9), queue(100), packet));
        // What is left out does nothing, and is never called.
        assert!(!calls.on_feedback(now, FLOW, Feedback::Cnp));
        assert!(!calls.needs_credit());
        calls.on_credit(now, FLOW.source, 1, 2);
        assert_eq!(table, [7.0, 9.0, 100.0, 1.0, 64.0, 0.0, 0.0, 0.0]);
        assert_eq!(calls.stopped(), None);
    }

    #[test]
    fn no_function_is_called_after_the_first_failure() {
        for (payload, raised) in [(0, true), (1, false)] {
            let mut table = [0.0; 8];
            let addresses = Addresses {
                state: table.as_mut_ptr() as usize,
                on_send: failing as *const () as usize,
                release: release as *const () as usize,
                ..Addresses::default()
            };
            // SAFETY: functions of this module, and a table that outlives the calls.
            let mut calls = unsafe { Callbacks::at(addresses, Box::new(|_| true)) };
            let other = calls.clone();
            calls.on_send(Time::from_ps(7), FLOW, Span::from_ps(5), payload);
            calls.on_send(Time::from_ps(8), FLOW, Span::from_ps(5), payload);
            assert_eq!(calls.release(Time::from_ps(8), FLOW), Time::MAX);
            assert_eq!(calls.host_release(Time::from_ps(8), FLOW.source), Time::MAX);
            let failure = Failure {
                hook: "on_send",
                arguments: vec![7, 3, 2, 0, 5, i64::from(payload)],
                raised,
            };
            assert_eq!(other.stopped(), Some(&Stopped::Failed(failure)));
            assert_eq!(table[0], 1.0);
        }
    }

    #[test]
    fn the_observer_ends_what_never_leaves_its_step() {
        let addresses = Addresses {
            release: release as *const () as usize,
            ..Addresses::default()
        };
        // SAFETY: a function of this module that needs no table.
        let mut calls = unsafe { Callbacks::at(addresses, Box::new(|now| now.as_ps() < 50_000)) };
        let mut now = 0;
        while calls.release(Time::from_ps(now), FLOW) != Time::MAX {
            now += 1;
        }
        assert_eq!(
            now % u64::from(CALLS_PER_OBSERVATION),
            CALLS_PER_OBSERVATION as u64 - 1
        );
        assert!((50_000..70_000).contains(&now));
        assert_eq!(calls.stopped(), Some(&Stopped::Interrupted));
    }

    #[test]
    fn the_largest_number_means_never() {
        assert_eq!(time(5), Time::from_ps(5));
        assert_eq!(time(i64::MAX), Time::MAX);
        assert_eq!(ps(Time::MAX), i64::MAX);
    }
}

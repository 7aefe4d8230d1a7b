//! A scheme of compiled functions, handed over by address, with [`SWITCH_HOOKS`], [`SOURCE_HOOKS`] and
//! [`foreign`](crate::hooks::foreign).
//!
//! A missing function does nothing. The first failed call is the run's [`Failure`]: no function is called and no flow
//! sends after it.

// Only calls of functions by address are unsafe here.
#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use crate::hooks::foreign::{Answer, Words};
use crate::hooks::{SOURCE_HOOKS, SWITCH_HOOKS, SettingChange, Settings, UnknownSetting};
use silvan_core::Time;

type State = *mut f64;
type Function = unsafe extern "C" fn(State, *mut i64) -> i64;

const HOOKS: usize = SWITCH_HOOKS.len() + SOURCE_HOOKS.len();

/// Addresses of the functions and of their table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    state: usize,
    functions: [usize; HOOKS],
}

impl Addresses {
    /// No functions, and the address of the table of `float64`.
    pub const fn new(state: usize) -> Self {
        Self {
            state,
            functions: [0; HOOKS],
        }
    }

    /// Adds the address of the function for a hook. Returns `false` if no hook has this name.
    #[must_use]
    pub fn add(&mut self, hook: &str, function: usize) -> bool {
        let mut names = SWITCH_HOOKS.iter().chain(SOURCE_HOOKS);
        match names.position(|known| known.name == hook) {
            Some(place) => self.functions[place] = function,
            None => return false,
        }
        true
    }
}

/// The first call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the failed hook.
    pub hook: &'static str,
    /// Arguments after the table; the first argument is the simulated time.
    pub arguments: Vec<i64>,
    /// True if the function raised an exception; false if its value is invalid.
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

/// Called at times with the simulated time; `false` ends the run, which a scheme may keep from advancing.
pub type Observer = Box<dyn Fn(Time) -> bool>;

const CALLS_PER_OBSERVATION: u32 = 1 << 14;

struct Watch {
    stopped: Cell<bool>,
    calls: Cell<u32>,
    reason: OnceCell<Stopped>,
    observer: Observer,
}

impl Watch {
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
        let _ = self.reason.set(reason);
        self.stopped.set(true);
    }
}

/// Functions at addresses, as both parts of a scheme.
#[derive(Clone)]
pub struct Callbacks {
    watch: Rc<Watch>,
    state: State,
    functions: [Option<Function>; HOOKS],
    words: Words,
}

impl Callbacks {
    /// Callbacks to the functions at these addresses.
    ///
    /// # Safety
    /// - Each address is a C function of the addresses of table and arguments, and accesses no more.
    /// - `state` is the table that the functions expect.
    /// - Functions and table stay in place while a copy is in use; no other code accesses the table.
    pub unsafe fn at(addresses: Addresses, observer: Observer) -> Self {
        use std::mem::transmute;
        Self {
            watch: Rc::new(Watch {
                stopped: Cell::new(false),
                calls: Cell::new(0),
                reason: OnceCell::new(),
                observer,
            }),
            state: addresses.state as State,
            // SAFETY: an `Option` of a function pointer is as large as an address and `None` at 0; the
            // caller vouches for all others.
            functions: addresses
                .functions
                .map(|address| unsafe { transmute::<usize, Option<Function>>(address) }),
            words: Words::default(),
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

impl Callbacks {
    /// Why no function is called any more; `None` while all is well.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.watch.reason.get()
    }

    #[inline]
    fn has(&self, hook: usize) -> bool {
        self.functions[hook].is_some()
    }

    #[inline]
    fn withholds<A: Answer>(&self) -> Option<A> {
        (A::WITHHELD && self.watch.stopped.get()).then(A::stopped)
    }

    #[inline]
    fn call<A: Answer>(&mut self, hook: usize, name: &'static str) -> A {
        let arguments = self.words.assemble();
        let (Some(function), false) = (self.functions[hook], self.watch.stops(arguments[0])) else {
            return A::stopped();
        };
        let value = unsafe { function(self.state, arguments.as_mut_ptr()) };
        if value < 0 {
            return A::from_value(!value);
        }
        self.watch.stop(Stopped::Failed(Failure {
            hook: name,
            arguments: arguments.to_vec(),
            raised: value == 0,
        }));
        A::stopped()
    }
}

callback_switches! { Callbacks, 0 }
callback_sources! { Callbacks, SWITCH_HOOKS.len() }

impl Settings for Callbacks {
    fn apply(&mut self, _: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        Err(UnknownSetting(change.clone()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use silvan_core::{HostId, PortId, Rate, Sl, Span, Vl};

    use super::*;
    use crate::hooks::{
        Ack, Arrival, Feedback, Flow, Grant, Grants, Hop, PacketView, PortVl, QueueView,
        SourceControl, SwitchControl,
    };

    fn words<const N: usize>(arguments: *mut i64) -> [i64; N] {
        // SAFETY: a hook has as many arguments as its test reads.
        std::array::from_fn(|at| unsafe { *arguments.add(at) })
    }

    fn note(state: State, seen: impl IntoIterator<Item = i64>) {
        for (at, value) in seen.into_iter().enumerate() {
            // SAFETY: the test's table has room for twelve numbers.
            unsafe { *state.add(at) = value as f64 };
        }
    }

    unsafe extern "C" fn departure(state: State, arguments: *mut i64) -> i64 {
        let seen = words::<7>(arguments);
        note(state, seen);
        !i64::from(seen[2] > 100)
    }

    unsafe extern "C" fn release(_: State, arguments: *mut i64) -> i64 {
        let [now, source, to, sl] = words(arguments);
        !(now + 1_000 * source + 100 * to + sl)
    }

    unsafe extern "C" fn never(_: State, _: *mut i64) -> i64 {
        !i64::MAX
    }

    unsafe extern "C" fn ack(state: State, arguments: *mut i64) -> i64 {
        note(state, words::<12>(arguments).into_iter().skip(4));
        !1
    }

    /// Grants what has arrived to the next host, twice.
    unsafe extern "C" fn receive(_: State, arguments: *mut i64) -> i64 {
        let [now, source, _, sl, payload, _, _, _, _, _, rows] = words(arguments);
        assert_eq!(rows, crate::hooks::foreign::OUTPUT_ROWS as i64);
        for row in [0, 2] {
            for (column, value) in [source + 1, sl, payload, now + 5].into_iter().enumerate() {
                // SAFETY: there are so many rows of four numbers.
                unsafe { *arguments.add(11 + 4 * row + column) = value };
            }
        }
        !0
    }

    /// Counts its calls; fails as its last argument says: 0 is an exception, 1 a value that is not valid.
    unsafe extern "C" fn failing(state: State, arguments: *mut i64) -> i64 {
        // SAFETY: the test's table has room for a number.
        unsafe { *state += 1.0 };
        words::<6>(arguments)[5]
    }

    fn addresses(table: &mut [f64], functions: &[(&str, Function)]) -> Addresses {
        let mut addresses = Addresses::new(table.as_mut_ptr() as usize);
        for (name, function) in functions {
            assert!(addresses.add(name, *function as usize));
        }
        addresses
    }

    const FLOW: Flow = Flow {
        source: HostId::new(3),
        destination: HostId::new(2),
        sl: Sl::ZERO,
        queue: 0,
    };

    #[test]
    fn arguments_and_results_arrive() {
        let mut table = [0.0; 12];
        let addresses = addresses(
            &mut table,
            &[
                ("on_departure", departure),
                ("release", release),
                ("host_release", never),
            ],
        );
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
            input: PortId::new(6),
            vl: Vl::ZERO,
        };
        assert!(calls.on_departure(now, PortVl(9), queue(101), packet));
        assert!(!calls.on_departure(now, PortVl(9), queue(100), packet));
        // A missing function is never called and has no effect.
        assert!(!calls.on_feedback(now, FLOW, Feedback::Cnp));
        assert!(!calls.needs_credit());
        calls.on_credit(now, FLOW.source, 1, 2);
        assert_eq!(table[..7], [7.0, 9.0, 100.0, 1.0, 64.0, 0.0, 6.0]);
        assert_eq!(calls.stopped(), None);
    }

    #[test]
    fn rows_go_in_and_out() {
        let mut table = [0.0; 12];
        let addresses = addresses(&mut table, &[("on_ack", ack), ("on_receive", receive)]);
        // SAFETY: functions of this module, and a table that outlives the calls.
        let mut calls = unsafe { Callbacks::at(addresses, Box::new(|_| true)) };
        let now = Time::from_ps(7);
        let hop = Hop {
            output: PortVl(11),
            at: Time::from_ps(12),
            queued_bytes: 13,
            xmit_bytes: 14,
            rate: Rate::from_bits_per_sec(15).unwrap(),
        };
        let hops = [
            hop,
            Hop {
                queued_bytes: 16,
                ..hop
            },
        ];
        let acknowledged = Ack {
            bytes: 100,
            becn: true,
            sent: Time::from_ps(3),
            endpoint: Span::from_ps(4),
            path: None,
            hops: &hops[..1],
        };
        assert!(calls.needs_ack() && calls.on_ack(now, FLOW, acknowledged));
        assert_eq!(table[..8], [100.0, 1.0, 3.0, 4.0, -1.0, 1.0, 11.0, 12.0]);
        let two = Ack {
            hops: &hops,
            ..acknowledged
        };
        assert!(calls.on_ack(now, FLOW, two));
        assert_eq!(table[5], 2.0);
        let arrival = Arrival {
            payload: 2_048,
            marked: false,
            last: true,
            sent: Time::ZERO,
            behind: 0,
            takes: Span::from_ns(1),
        };
        let mut grants = Grants::default();
        calls.on_receive(now, FLOW, arrival, &mut grants);
        let grant = Grant {
            source: HostId::new(4),
            sl: Sl::ZERO,
            bytes: 2_048,
            at: Time::from_ps(12),
        };
        assert_eq!(grants.drain().collect::<Vec<_>>(), [grant; 2]);
    }

    #[test]
    fn no_function_is_called_after_the_first_failure() {
        for (payload, raised) in [(0, true), (1, false)] {
            let mut table = [0.0; 12];
            let addresses = addresses(&mut table, &[("on_send", failing), ("release", release)]);
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
        let addresses = addresses(&mut [], &[("release", release)]);
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
    fn the_largest_number_means_never_and_no_choice() {
        assert_eq!(Time::from_value(5), Time::from_ps(5));
        assert_eq!(Time::from_value(i64::MAX), Time::MAX);
        assert_eq!(Option::<u32>::from_value(5), Some(5));
        assert_eq!(Option::<u32>::from_value(i64::MAX), None);
    }
}

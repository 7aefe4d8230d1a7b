//! A scheme that consists of compiled functions of another language, handed over by address.
//!
//! All numbers are `int64`, times in picoseconds; the first argument is a table of `float64` in which
//! the functions keep what they remember. A function that is left out does nothing.
//!
//! | function | arguments after the table | result |
//! |---|---|---|
//! | `on_queued` | now, port VL, bytes queued, credits left, bytes of the packet | |
//! | `on_departure` | now, port VL, bytes queued, credits left, bytes of the packet, marked before | not 0: mark it |
//! | `release` | now, source, destination, SL | when the flow may send |
//! | `host_release` | now, host | when the host may send |
//! | `on_flow_start` | now, source, destination, SL | |
//! | `on_send` | now, source, destination, SL, time on the link, payload | |
//! | `on_feedback` | now, source, destination, SL, payload acknowledged (0: a notification), marked | not 0: ask again |
//! | `on_credit` | now, host, credits taken, credits in all | |

// Calling what stands at an address is unsafe whatever one does; nothing else here is.
#![allow(unsafe_code)]

use silvan_control::seam::{
    Feedback, Flow, PacketView, PortVl, QueueView, SettingChange, Settings, SourceControl,
    SwitchControl, UnknownSetting,
};
use silvan_units::{HostId, Span, Time};

type State = *mut f64;
type OnQueued = unsafe extern "C" fn(State, i64, i64, i64, i64, i64);
type OnDeparture = unsafe extern "C" fn(State, i64, i64, i64, i64, i64, i64) -> i64;
type Release = unsafe extern "C" fn(State, i64, i64, i64, i64) -> i64;
type HostRelease = unsafe extern "C" fn(State, i64, i64) -> i64;
type OnFlowStart = unsafe extern "C" fn(State, i64, i64, i64, i64);
type OnSend = unsafe extern "C" fn(State, i64, i64, i64, i64, i64, i64);
type OnFeedback = unsafe extern "C" fn(State, i64, i64, i64, i64, i64, i64) -> i64;
type OnCredit = unsafe extern "C" fn(State, i64, i64, i64, i64);

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

/// Functions at addresses, as both parts of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Callbacks {
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
    pub unsafe fn at(addresses: Addresses) -> Self {
        use std::mem::transmute;
        // SAFETY: an `Option` of a function pointer is as large as an address and `None` at 0; the
        // caller vouches for all others.
        unsafe {
            Self {
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

/// Picoseconds as a function gets them.
#[inline]
fn ps(time: Time) -> i64 {
    i64::try_from(time.as_ps()).unwrap_or(i64::MAX)
}

/// A time that a function has given; the largest number means never.
#[inline]
fn time(ps: i64) -> Time {
    match u64::try_from(ps) {
        Err(_) => Time::ZERO,
        Ok(ps) if ps == i64::MAX as u64 => Time::MAX,
        Ok(ps) => Time::from_ps(ps),
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

// SAFETY of all calls below: `Callbacks::at` has the caller's word.

impl SwitchControl for Callbacks {
    #[inline]
    fn on_queued(&mut self, now: Time, output: PortVl, queue: QueueView, packet: PacketView) {
        if let Some(call) = self.on_queued {
            let (queued, credit) = (i64::from(queue.queued_bytes), i64::from(queue.has_credit));
            let wire = i64::from(packet.wire_bytes);
            unsafe {
                call(
                    self.state,
                    ps(now),
                    i64::from(output.0),
                    queued,
                    credit,
                    wire,
                )
            };
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
        let Some(call) = self.on_departure else {
            return false;
        };
        let (queued, credit) = (i64::from(queue.queued_bytes), i64::from(queue.has_credit));
        let (wire, marked) = (i64::from(packet.wire_bytes), i64::from(packet.marked));
        let output = i64::from(output.0);
        let mark = unsafe { call(self.state, ps(now), output, queued, credit, wire, marked) };
        mark != 0
    }
}

impl SourceControl for Callbacks {
    #[inline]
    fn needs_credit(&self) -> bool {
        true
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        let Some(call) = self.release else {
            return now;
        };
        let (source, destination, sl) = ends(flow);
        time(unsafe { call(self.state, ps(now), source, destination, sl) })
    }

    #[inline]
    fn host_release(&mut self, now: Time, host: HostId) -> Time {
        let Some(call) = self.host_release else {
            return now;
        };
        time(unsafe { call(self.state, ps(now), host.index() as i64) })
    }

    fn on_flow_start(&mut self, now: Time, flow: Flow) {
        if let Some(call) = self.on_flow_start {
            let (source, destination, sl) = ends(flow);
            unsafe { call(self.state, ps(now), source, destination, sl) };
        }
    }

    #[inline]
    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        if let Some(call) = self.on_send {
            let (source, destination, sl) = ends(flow);
            let (wire, payload) = (wire_time.as_ps() as i64, i64::from(payload));
            unsafe { call(self.state, ps(now), source, destination, sl, wire, payload) };
        }
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, flow: Flow, feedback: Feedback) -> bool {
        let Some(call) = self.on_feedback else {
            return false;
        };
        let (source, destination, sl) = ends(flow);
        let (bytes, becn) = match feedback {
            Feedback::Cnp => (0, 1),
            Feedback::Ack { bytes, becn } => (i64::from(bytes), i64::from(becn)),
        };
        let again = unsafe { call(self.state, ps(now), source, destination, sl, bytes, becn) };
        again != 0
    }

    fn on_credit(&mut self, now: Time, host: HostId, used: u32, capacity: u32) {
        if let Some(call) = self.on_credit {
            let (used, capacity) = (i64::from(used), i64::from(capacity));
            unsafe { call(self.state, ps(now), host.index() as i64, used, capacity) };
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
    use silvan_units::{PortId, Sl};

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
        i64::from(queued > 100)
    }

    unsafe extern "C" fn release(_: State, now: i64, source: i64, to: i64, sl: i64) -> i64 {
        now + 1_000 * source + 100 * to + sl
    }

    unsafe extern "C" fn never(_: State, _: i64, _: i64) -> i64 {
        i64::MAX
    }

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
        let mut calls = unsafe { Callbacks::at(addresses) };
        let now = Time::from_ps(7);
        let host = HostId::new(3);
        let flow = Flow {
            source: host,
            destination: HostId::new(2),
            sl: Sl::ZERO,
        };
        assert_eq!(calls.release(now, flow), Time::from_ps(3_207));
        assert_eq!(calls.host_release(now, host), Time::MAX);
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
        // What is left out does nothing.
        assert!(!calls.on_feedback(now, flow, Feedback::Cnp));
        calls.on_credit(now, host, 1, 2);
        assert_eq!(table, [7.0, 9.0, 100.0, 1.0, 64.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_time_before_the_start_is_the_start() {
        assert_eq!(time(-5), Time::ZERO);
        assert_eq!(time(5), Time::from_ps(5));
        assert_eq!(time(i64::MAX), Time::MAX);
        assert_eq!(ps(Time::MAX), i64::MAX);
    }
}

//! Two schemes at the same hosts.

use silvan_units::{HostId, Span, Time};

use crate::seam::{Feedback, Flow, SettingChange, Settings, SourceControl, UnknownSetting};

/// Two schemes at once: a packet goes when both let it go, and both hear of everything.
///
/// Sensible where they act on different signs, such as notifications and a host's own credits.
#[derive(Clone, Debug)]
pub struct Both<A, B>(pub A, pub B);

impl<A: SourceControl, B: SourceControl> SourceControl for Both<A, B> {
    const ACTIVE: bool = A::ACTIVE || B::ACTIVE;

    #[inline]
    fn needs_credit(&self) -> bool {
        self.0.needs_credit() || self.1.needs_credit()
    }

    #[inline]
    fn expect_release(&self, host: HostId) {
        self.0.expect_release(host);
        self.1.expect_release(host);
    }

    #[inline]
    fn expect_feedback(&self, flow: Flow) {
        self.0.expect_feedback(flow);
        self.1.expect_feedback(flow);
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        self.0.release(now, flow).max(self.1.release(now, flow))
    }

    #[inline]
    fn host_release(&mut self, now: Time, host: HostId) -> Time {
        let first = self.0.host_release(now, host);
        first.max(self.1.host_release(now, host))
    }

    fn on_flow_start(&mut self, now: Time, flow: Flow) {
        self.0.on_flow_start(now, flow);
        self.1.on_flow_start(now, flow);
    }

    #[inline]
    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        self.0.on_send(now, flow, wire_time, payload);
        self.1.on_send(now, flow, wire_time, payload);
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, flow: Flow, feedback: Feedback) -> bool {
        // Both must hear of it, whatever the first one answers.
        let first = self.0.on_feedback(now, flow, feedback);
        self.1.on_feedback(now, flow, feedback) || first
    }

    fn on_credit(&mut self, now: Time, host: HostId, used: u32, capacity: u32) {
        self.0.on_credit(now, host, used, capacity);
        self.1.on_credit(now, host, used, capacity);
    }
}

/// A setting belongs to the first that has it.
impl<A: Settings, B: Settings> Settings for Both<A, B> {
    fn apply(&mut self, now: Time, change: &SettingChange) -> Result<(), UnknownSetting> {
        self.0
            .apply(now, change)
            .or_else(|_| self.1.apply(now, change))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::cell::RefCell;

    use silvan_units::Sl;

    use super::*;

    /// Lets flows go at one time and hosts at another, and counts what it hears.
    #[derive(Clone, Debug, Default)]
    struct Probe {
        flow: Time,
        host: Time,
        moves: bool,
        heard: Vec<&'static str>,
        expected: RefCell<Vec<&'static str>>,
    }

    impl SourceControl for Probe {
        fn expect_release(&self, _: HostId) {
            self.expected.borrow_mut().push("release");
        }
        fn expect_feedback(&self, _: Flow) {
            self.expected.borrow_mut().push("feedback");
        }
        fn release(&mut self, _: Time, _: Flow) -> Time {
            self.flow
        }
        fn host_release(&mut self, _: Time, _: HostId) -> Time {
            self.host
        }
        fn on_flow_start(&mut self, _: Time, _: Flow) {
            self.heard.push("start");
        }
        fn on_send(&mut self, _: Time, _: Flow, _: Span, _: u32) {
            self.heard.push("send");
        }
        fn on_feedback(&mut self, _: Time, _: Flow, _: Feedback) -> bool {
            self.heard.push("feedback");
            self.moves
        }
        fn on_credit(&mut self, _: Time, _: HostId, _: u32, _: u32) {
            self.heard.push("credit");
        }
    }

    #[test]
    fn the_later_one_decides_and_both_hear() {
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        let host = HostId::new(0);
        let flow = Flow {
            source: host,
            destination: host,
            sl: Sl::ZERO,
        };
        for (first, second) in [(true, false), (false, true)] {
            let one = Probe {
                flow: at(5),
                host: at(1),
                moves: first,
                ..Probe::default()
            };
            let other = Probe {
                flow: at(3),
                host: at(4),
                moves: second,
                ..Probe::default()
            };
            let mut both = Both(one, other);
            assert_eq!(both.release(at(0), flow), at(5));
            assert_eq!(both.host_release(at(0), host), at(4));
            both.expect_release(host);
            both.expect_feedback(flow);
            both.on_flow_start(at(0), flow);
            both.on_send(at(0), flow, Span::ZERO, 0);
            assert!(both.on_feedback(at(0), flow, Feedback::Cnp));
            both.on_credit(at(0), host, 1, 2);
            for probe in [&both.0, &both.1] {
                assert_eq!(probe.heard, ["start", "send", "feedback", "credit"]);
                assert_eq!(*probe.expected.borrow(), ["release", "feedback"]);
            }
        }
    }
}

//! Two schemes at the same hosts or switches.

use silvan_core::Time;

use crate::seam::{SettingChange, Settings, UnknownSetting};

/// Two schemes at once: a packet goes when both let it go, and both hear of everything.
///
/// Sensible where they act on different signs, such as notifications and a host's own credits.
#[derive(Clone, Debug)]
pub struct Both<A, B>(pub A, pub B);

chain_switches! {
    impl [A: SwitchControl, B: SwitchControl] for Both<A, B> { 0: A, 1: B }
}

chain_sources! {
    impl [A: SourceControl, B: SourceControl] for Both<A, B> { 0: A, 1: B }
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

    use silvan_core::{HostId, Sl, Span};

    use super::*;
    use crate::seam::{Feedback, Flow, SourceControl};

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

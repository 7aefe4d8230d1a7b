use silvan_core::Time;

use super::{SettingChange, Settings, UnknownSetting};

/// Two schemes at once: a packet starts when both allow it, and both get all events.
#[derive(Clone, Debug)]
pub struct Chain<A, B>(pub A, pub B);

chain_switches! {
    impl [A: SwitchControl, B: SwitchControl] for Chain<A, B> { 0: A, 1: B }
}

chain_sources! {
    impl [A: SourceControl, B: SourceControl] for Chain<A, B> { 0: A, 1: B }
}

impl<A: Settings, B: Settings> Settings for Chain<A, B> {
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
    use crate::hooks::{Feedback, Flow, SourceControl};

    /// Releases flows at one time and hosts at another, and records its calls.
    #[derive(Clone, Debug, Default)]
    struct Probe {
        flow: Time,
        host: Time,
        moves: bool,
        calls: Vec<&'static str>,
        prefetched: RefCell<Vec<&'static str>>,
    }

    impl SourceControl for Probe {
        fn prefetch_release(&self, _: HostId) {
            self.prefetched.borrow_mut().push("release");
        }
        fn prefetch_feedback(&self, _: Flow) {
            self.prefetched.borrow_mut().push("feedback");
        }
        fn prefetch_feedback_data(&self, _: Flow) {
            self.prefetched.borrow_mut().push("data");
        }
        fn release(&mut self, _: Time, _: Flow) -> Time {
            self.flow
        }
        fn host_release(&mut self, _: Time, _: HostId) -> Time {
            self.host
        }
        fn on_flow_start(&mut self, _: Time, _: Flow) {
            self.calls.push("start");
        }
        fn on_send(&mut self, _: Time, _: Flow, _: Span, _: u32) {
            self.calls.push("send");
        }
        fn on_feedback(&mut self, _: Time, _: Flow, _: Feedback) -> bool {
            self.calls.push("feedback");
            self.moves
        }
        fn on_credit(&mut self, _: Time, _: HostId, _: u32, _: u32) {
            self.calls.push("credit");
        }
    }

    #[test]
    fn the_later_release_holds_and_both_schemes_are_notified() {
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        let host = HostId::new(0);
        let flow = Flow {
            source: host,
            destination: host,
            sl: Sl::ZERO,
            queue: 0,
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
            let mut chain = Chain(one, other);
            assert_eq!(chain.release(at(0), flow), at(5));
            assert_eq!(chain.host_release(at(0), host), at(4));
            chain.prefetch_release(host);
            chain.prefetch_feedback(flow);
            chain.prefetch_feedback_data(flow);
            chain.on_flow_start(at(0), flow);
            chain.on_send(at(0), flow, Span::ZERO, 0);
            assert!(chain.on_feedback(at(0), flow, Feedback::Cnp));
            chain.on_credit(at(0), host, 1, 2);
            for probe in [&chain.0, &chain.1] {
                assert_eq!(probe.calls, ["start", "send", "feedback", "credit"]);
                assert_eq!(*probe.prefetched.borrow(), ["release", "feedback", "data"]);
            }
        }
    }
}

//! Swift (G. Kumar et al., SIGCOMM 2020, algorithm 1): a window by the delay of the round trip.

use silvan_cc::hooks::{Ack, Flow, Settings, SourceControl};
use silvan_core::{Span, Time};

use super::{PerFlow, ps};

const TARGET: f64 = 10e6;

/// Window, bytes in flight, time of the last decrease.
#[derive(Clone)]
pub struct Swift(pub PerFlow<3>);

impl Settings for Swift {}
impl SourceControl for Swift {
    fn needs_ack(&self) -> bool {
        true
    }
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        let [window, in_flight, _] = self.0[flow];
        let open = in_flight == 0.0 || in_flight + 2048.0 <= window;
        if open { now } else { Time::MAX }
    }
    fn on_send(&mut self, _: Time, flow: Flow, _: Span, payload: u32) {
        self.0[flow][1] += f64::from(payload);
    }
    fn on_ack(&mut self, now: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let [window, in_flight, decreased] = &mut self.0[flow];
        *in_flight -= f64::from(ack.bytes);
        let delay = ps(now) - ps(ack.sent);
        if delay < TARGET {
            *window += 2048.0 * f64::from(ack.bytes) / *window;
        } else if ps(now) - *decreased >= delay {
            let kept = (1.0 - 0.8 * (delay - TARGET) / delay).max(1.0 - 0.5);
            *window = (*window * kept).max(256.0);
            *decreased = ps(now);
        }
        true
    }
}

//! Receiver-driven: a packet of each flow is free, every other one needs a grant of its receiver.

use silvan_cc::hooks::{Arrival, Flow, Grant, Grants, Settings, SourceControl};
use silvan_core::{HostId, Span, Time};

use super::{HOSTS, PerFlow};

pub const LIMIT: f64 = 20.0 * 2048.0;

#[derive(Clone)]
pub struct Granted {
    /// Credit, and whether the receiver has seen the flow.
    pub flows: PerFlow<2>,
    /// Bytes granted that have not arrived, and the last granted sender, by receiver.
    pub receivers: [(f64, usize); HOSTS],
}

impl Settings for Granted {}
impl SourceControl for Granted {
    fn needs_receive(&self) -> bool {
        true
    }
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        let open = self.flows[flow][0] >= 2048.0;
        if open { now } else { Time::MAX }
    }
    fn on_send(&mut self, _: Time, flow: Flow, _: Span, payload: u32) {
        self.flows[flow][0] -= f64::from(payload);
    }
    fn on_grant(&mut self, _: Time, flow: Flow, bytes: u32) -> bool {
        self.flows[flow][0] += f64::from(bytes);
        true
    }
    fn on_receive(&mut self, now: Time, flow: Flow, arrival: Arrival, grants: &mut Grants) {
        let (granted, turn) = &mut self.receivers[flow.destination.index()];
        if self.flows[flow][1] > 0.0 {
            *granted -= f64::from(arrival.payload);
        }
        self.flows[flow][1] = 1.0;
        for _ in 0..2 {
            if *granted + 2048.0 > LIMIT {
                return;
            }
            let seen = |source| self.flows[Flow { source, ..flow }][1] > 0.0;
            let next = (1..=HOSTS).map(|step| (*turn + step) % HOSTS);
            let Some(sender) = next.map(HostId::new).find(|&host| seen(host)) else {
                return;
            };
            *turn = sender.index();
            *granted += 2048.0;
            grants.send(Grant {
                source: sender,
                sl: flow.sl,
                bytes: 2048,
                at: now,
            });
        }
    }
}

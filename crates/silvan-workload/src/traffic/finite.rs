use silvan_cc::workload::Gate;
use silvan_core::{HostId, Sl, Time};

use crate::traffic::fixed::Fixed;

/// A flow that has a given number of bytes to send: one of a flow entry, or of a sender of an incast.
#[derive(Clone, Debug)]
pub struct FiniteFlow {
    pub(crate) source: HostId,
    pub(crate) fixed: Fixed,
}

struct Open;

impl Gate for Open {
    fn release(&mut self, _dst: HostId, _sl: Sl) -> Time {
        Time::ZERO
    }

    fn lane_open(&mut self, _sl: Sl, _bytes: u32) -> bool {
        true
    }
}

impl FiniteFlow {
    /// Statistics class; with the sender it names the flow.
    pub fn class(&self) -> u16 {
        self.fixed.class()
    }

    /// The sender.
    pub fn source(&self) -> HostId {
        self.source
    }

    /// The receiver.
    pub fn destination(&self) -> HostId {
        self.fixed.destination()
    }

    /// Bytes to send in all.
    pub fn bytes(&self) -> u64 {
        self.fixed.bytes_left()
    }

    /// The first instant at which it may send.
    pub fn start(&self) -> Time {
        self.fixed.start()
    }

    /// Sends all packets as if alone: `send` gets start and payload of each, and returns the next start.
    pub fn replay(&self, mut send: impl FnMut(Time, u32) -> Time) {
        let mut fixed = self.fixed.clone();
        let mut now = Time::ZERO;
        loop {
            match fixed.ready(now, &mut Open) {
                Ok(()) => now = send(now, fixed.emit().bytes),
                Err(Time::MAX) => return,
                Err(at) => now = at,
            }
        }
    }
}

//! State of a flow at its sender and at its receiver. Amounts are bytes of payload.

use silvan_core::{Span, Time};

use super::Rules;
use crate::hooks::Flow;
use crate::schemes::flows::ps;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    /// Credit; below zero by less than a packet.
    pub credit: i64,
    /// The instant of the last pulls, what they granted, and the time since those before.
    pub pulled: Time,
    pub granted: i64,
    pub gap: Span,
}

impl Sender {
    /// The rate of the last pulls, in bytes in a picosecond.
    pub fn rate(&self) -> f64 {
        self.granted as f64 / ps(self.gap).max(1.0)
    }
}

/// A flow at its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remote {
    /// Arrived bytes that have not been pulled again.
    pub owed: i64,
    /// Bytes sent or allowed without time on the receiver's schedule.
    pub unasked: i64,
    /// Backlog behind the packet that was sent last, and its send time.
    pub behind: i64,
    pub reported: Time,
    /// True if the flow waits in one of the queues.
    pub queued: bool,
    pub resting: bool,
}

impl Remote {
    /// Returns the credit of the flow, at the sender and on its way.
    pub fn outstanding(&self, rules: &Rules) -> i64 {
        rules.window - self.owed
    }

    /// Returns true if another packet will arrive: a packet with credit exists, or is on its way.
    pub fn will_arrive(&self, rules: &Rules) -> bool {
        self.behind > 0 && self.outstanding(rules) > 0
    }

    /// Returns true if the flow has credit for a packet, at the sender or on its way.
    pub fn has_credit(&self, rules: &Rules) -> bool {
        self.outstanding(rules) >= rules.mtu
    }

    /// Returns true if the backlog is larger than the credit. The next message counts as a packet,
    /// because its size is unknown.
    pub fn has_backlog(&self, rules: &Rules) -> bool {
        self.behind.max(rules.mtu) > self.outstanding(rules)
    }
}

pub(super) fn key_of(flow: Flow) -> u32 {
    (flow.source.index() as u32) << 4 | u32::from(flow.sl.as_u8())
}

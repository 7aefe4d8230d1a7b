//! Amounts are bytes of payload.

use silvan_core::{Span, Time};

use super::Rules;
use crate::hooks::Flow;
use crate::schemes::flows::ps;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    /// Below zero by less than a packet.
    pub credit: i64,
    /// Time and amount of the last pulls, and the time since those before.
    pub pulled: Time,
    pub granted: i64,
    pub gap: Span,
}

impl Sender {
    /// In bytes per picosecond.
    pub fn rate(&self) -> f64 {
        self.granted as f64 / ps(self.gap).max(1.0)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remote {
    /// Arrived bytes that have not been pulled again.
    pub owed: i64,
    /// Bytes without time on the receiver's schedule.
    pub unasked: i64,
    /// Backlog behind the packet that was sent last, and its send time.
    pub behind: i64,
    pub reported: Time,
    pub queued: bool,
    pub resting: bool,
}

impl Remote {
    /// Credit at the sender and on its way.
    pub fn outstanding(&self, rules: &Rules) -> i64 {
        rules.window - self.owed
    }

    /// Returns true if another packet will arrive: it has credit, or is on its way.
    pub fn will_arrive(&self, rules: &Rules) -> bool {
        self.behind > 0 && self.outstanding(rules) > 0
    }

    /// For a packet, at the sender or on its way.
    pub fn has_credit(&self, rules: &Rules) -> bool {
        self.outstanding(rules) >= rules.mtu
    }

    /// The next message counts as a packet, because its size is unknown.
    pub fn has_backlog(&self, rules: &Rules) -> bool {
        self.behind.max(rules.mtu) > self.outstanding(rules)
    }
}

pub(super) fn key_of(flow: Flow) -> u32 {
    (flow.source.index() as u32) << 4 | u32::from(flow.sl.as_u8())
}

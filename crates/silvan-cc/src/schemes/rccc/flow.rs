//! What is known of a flow at its sender and at its receiver. Amounts are bytes of payload.

use silvan_core::{Span, Time};

use super::Rules;
use crate::hooks::Flow;
use crate::schemes::flows::ps;

/// A flow at its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    /// What it may send; below zero by less than a packet.
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
    /// What has arrived and has not been pulled again.
    pub owed: i64,
    /// What it may send, or has sent, that has no time on the receiver's schedule.
    pub unasked: i64,
    /// What waited behind the packet that was sent last, and when that was.
    pub behind: i64,
    pub reported: Time,
    /// Whether it waits in one of the queues.
    pub queued: bool,
    pub resting: bool,
}

impl Remote {
    /// Its credit, wherever that is.
    pub fn outstanding(&self, rules: &Rules) -> i64 {
        rules.window - self.owed
    }

    /// Whether another packet will arrive: there is one, and credit for it, or it is on its way.
    pub fn will_arrive(&self, rules: &Rules) -> bool {
        self.behind > 0 && self.outstanding(rules) > 0
    }

    /// Whether it has credit for a packet, wherever that is.
    pub fn has_credit(&self, rules: &Rules) -> bool {
        self.outstanding(rules) >= rules.mtu
    }

    /// Whether more waits at the sender than it has credit for. Nothing is known of the next message, but that it
    /// needs a packet.
    pub fn has_backlog(&self, rules: &Rules) -> bool {
        self.behind.max(rules.mtu) > self.outstanding(rules)
    }
}

/// Key of a flow among those to its receiver.
pub(super) fn key_of(flow: Flow) -> u32 {
    (flow.source.index() as u32) << 4 | u32::from(flow.sl.as_u8())
}

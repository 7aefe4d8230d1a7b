//! Amounts are bytes of payload.

use silvan_core::{Span, Time};

use super::Rules;
use crate::hooks::Flow;
use crate::schemes::flows::ps;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    pub credit: i64,
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
    pub owed: i64,
    pub unasked: i64,
    pub behind: i64,
    pub reported: Time,
    pub queued: bool,
    pub resting: bool,
}

impl Remote {
    pub fn outstanding(&self, rules: &Rules) -> i64 {
        rules.window - self.owed
    }

    pub fn will_arrive(&self, rules: &Rules) -> bool {
        self.behind > 0 && self.outstanding(rules) > 0
    }

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

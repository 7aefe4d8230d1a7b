use silvan_core::{Span, Time};

use crate::schemes::ib_cc::list::CongestionEntry;
use silvan_core::stream::SplitMix64;

const TIMER_UNIT: Span = Span::from_ps(1_024_000);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowState {
    pub(super) release: Time,
    pub(super) expiries: u64,
    pub(super) ccti: u16,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceLevel {
    /// Zero stops the timer.
    pub(super) period: Span,
    pub(super) phase: Time,
    pub(super) entry: CongestionEntry,
    /// phase = `offset` * CCTI_Timer, for any period.
    pub(super) offset: u32,
}

impl ServiceLevel {
    pub(super) fn new(entry: CongestionEntry, stream: &mut SplitMix64) -> Self {
        let offset = (u128::from(stream.next()) * u128::from(TIMER_UNIT.as_ps())) >> 64;
        let mut level = Self {
            period: Span::ZERO,
            phase: Time::ZERO,
            entry,
            offset: offset as u32,
        };
        level.set(entry);
        level
    }

    pub(super) fn set(&mut self, entry: CongestionEntry) {
        let timer = u64::from(entry.ccti_timer);
        self.entry = entry;
        self.period = TIMER_UNIT * timer;
        self.phase = Time::from_ps(u64::from(self.offset) * timer);
    }

    #[inline]
    pub(super) fn expiries(&self, now: Time) -> u64 {
        if self.period.is_zero() {
            return 0;
        }
        let past = now.as_ps().saturating_sub(self.phase.as_ps());
        past.div_ceil(self.period.as_ps())
    }

    /// The last instant before the timer lowers the CCTI of a flow that has caught up.
    pub(super) fn next_expiry(&self, flow: &FlowState) -> Time {
        match self.period.is_zero() {
            true => Time::MAX,
            false => self.phase.saturating_add(self.period * flow.expiries),
        }
    }

    #[inline]
    pub(super) fn floor(&self) -> u16 {
        u16::from(self.entry.ccti_min)
    }

    #[inline]
    pub(super) fn fresh(&self, now: Time) -> FlowState {
        FlowState {
            release: Time::ZERO,
            expiries: self.expiries(now),
            ccti: self.floor(),
        }
    }

    #[inline]
    pub(super) fn catch_up(&self, flow: &mut FlowState, now: Time) {
        let expiries = self.expiries(now);
        let missed = expiries - flow.expiries;
        flow.expiries = expiries;
        let lowered = u64::from(flow.ccti).saturating_sub(missed);
        flow.ccti = (lowered as u16).max(self.floor());
    }

    #[inline]
    pub(super) fn is_over(&self, flow: &FlowState, now: Time) -> bool {
        flow.ccti == self.floor() && flow.release <= now
    }
}

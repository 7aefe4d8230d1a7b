//! The cap of a B node's class by its share of elapsed time (gran2012, Frame I: "a maximum of p% of the traffic").
//!
//! A token bucket earns the share of time and pays each message's time at the injection rate. A message may start in
//! debt up to the *run-ahead*, without which the order would be deterministic; it keeps what was earned within the
//! *catch-up*. Bytes sent <= share * t * rate + run-ahead * rate + one message.

use silvan_core::{Span, Time};

/// A share of 1. Shares are integers so that the two of a B node sum to 1 exactly.
pub(crate) const WHOLE: u64 = 1 << 32;

pub(crate) fn share_of(fraction: f64) -> u64 {
    (fraction * WHOLE as f64).round() as u64
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CapLimits {
    /// Debt with which a message may start [ps of injection time].
    pub(crate) run_ahead: Span,
    /// Age at which unused claims expire; `None`: never.
    pub(crate) catch_up: Option<Span>,
}

/// Amounts are ps of injection time, times [`WHOLE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShareCap {
    share: u64,
    spent: u128,
}

impl ShareCap {
    pub(crate) fn new(share: u64) -> Self {
        Self { share, spent: 0 }
    }

    #[inline]
    pub(crate) fn ready(&self, now: Time, limits: &CapLimits) -> bool {
        self.spent <= self.earned(now) + whole(limits.run_ahead)
    }

    pub(crate) fn due(&self, limits: &CapLimits) -> Time {
        let debt = self.spent.saturating_sub(whole(limits.run_ahead));
        let ps = debt.div_ceil(u128::from(self.share));
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    #[inline]
    pub(crate) fn charge(&mut self, now: Time, time: Span, limits: &CapLimits) {
        if let Some(catch_up) = limits.catch_up {
            self.spent = self.spent.max(self.earned(now.saturating_sub(catch_up)));
        }
        self.spent += whole(time);
    }

    #[inline]
    fn earned(&self, now: Time) -> u128 {
        u128::from(now.as_ps()) * u128::from(self.share)
    }
}

#[inline]
fn whole(span: Span) -> u128 {
    u128::from(span.as_ps()) * u128::from(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: Span = Span::from_ps(2_427_260);

    fn limits(catch_up: Option<Span>) -> CapLimits {
        CapLimits {
            run_ahead: MESSAGE * 2,
            catch_up,
        }
    }

    /// Messages that a class of a quarter share starts back to back at `now`.
    fn burst(cap: &mut ShareCap, now: Time, limits: &CapLimits) -> u64 {
        let mut count = 0;
        while cap.ready(now, limits) {
            cap.charge(now, MESSAGE, limits);
            count += 1;
        }
        count
    }

    #[test]
    fn unlimited_catch_up_gives_the_share_of_all_time() {
        let limits = limits(None);
        let mut cap = ShareCap::new(share_of(0.25));
        // 400 message times at a quarter, two of run-ahead, and the one that overdraws.
        assert_eq!(burst(&mut cap, Time::ZERO + MESSAGE * 400, &limits), 103);
    }

    #[test]
    fn bounded_catch_up_forgets_older_claims() {
        let limits = limits(Some(MESSAGE * 40));
        let mut cap = ShareCap::new(share_of(0.25));
        assert_eq!(burst(&mut cap, Time::ZERO + MESSAGE * 400, &limits), 13);
    }

    #[test]
    fn due_is_the_first_instant_that_is_ready() {
        let limits = limits(None);
        for fraction in [0.1, 1.0 / 3.0, 0.9] {
            let mut cap = ShareCap::new(share_of(fraction));
            burst(&mut cap, Time::ZERO, &limits);
            let due = cap.due(&limits);
            assert!(cap.ready(due, &limits));
            assert!(!cap.ready(due.saturating_sub(Span::from_ps(1)), &limits));
        }
    }
}

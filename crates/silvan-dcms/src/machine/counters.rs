//! From what a port answers to differences that can be trusted.

use silvan_core::{Instant, PortId, Span, Time};

/// How a counter behaves at the end of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Stops at 2^32 - 1 (PortCounters, PortXmitConCtrl; IBA 16.1.3.5, A10).
    Saturating32,
    /// Starts again at 0 after 2^64 - 1 (PortCountersExtended, IBA 16.1.4.11).
    Wrapping64,
}

/// One counter as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawCounter {
    /// The value.
    pub value: u64,
    /// How it ends.
    pub width: Width,
}

impl RawCounter {
    /// A 32-bit counter.
    pub const fn saturating(value: u32) -> Self {
        Self {
            value: value as u64,
            width: Width::Saturating32,
        }
    }

    /// A 64-bit counter.
    pub const fn wrapping(value: u64) -> Self {
        Self {
            value,
            width: Width::Wrapping64,
        }
    }

    fn is_saturated(self) -> bool {
        self.width == Width::Saturating32 && self.value >= u64::from(u32::MAX)
    }

    /// Growth since `earlier`. `None` if it is not known: a counter at its end, one that another tool
    /// has reset, or one that grew by more than `most`.
    fn growth(self, earlier: Self, most: u64) -> Option<u64> {
        if self.is_saturated() || self.width != earlier.width {
            return None;
        }
        let growth = match self.width {
            Width::Saturating32 => self.value.checked_sub(earlier.value)?,
            Width::Wrapping64 => self.value.wrapping_sub(earlier.value),
        };
        (growth <= most).then_some(growth)
    }
}

/// The counters of one port as they were read at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawReading<T = Time> {
    /// When, by the reader's clock.
    pub at: T,
    /// PortXmitWait, in ticks.
    pub xmit_wait: RawCounter,
    /// PortXmitData, in 4-byte words.
    pub xmit_data: RawCounter,
    /// PortXmitTimeCong, in ticks; `None` if it was not read.
    pub xmit_time_cong: Option<RawCounter>,
}

/// Growth of a port's counters from one sweep to the next. What is not known is `None`, and leads
/// to no action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortGrowth {
    /// Time between the two readings.
    pub span: Span,
    /// Growth of PortXmitWait, in ticks.
    pub xmit_wait: Option<u64>,
    /// Growth of PortXmitData, in 4-byte words.
    pub xmit_data: Option<u64>,
    /// Growth of PortXmitTimeCong, in ticks.
    pub xmit_time_cong: Option<u64>,
}

/// The last reading of every port.
#[derive(Debug, Clone)]
pub struct CounterTracker<T = Time> {
    tick: Span,
    last: Vec<Option<RawReading<T>>>,
}

impl<T: Instant> CounterTracker<T> {
    /// A tracker for counters of time with this tick.
    pub fn new(tick: Span) -> Self {
        Self {
            tick,
            last: Vec::new(),
        }
    }

    /// Takes a reading, and gives the growth since the one before.
    ///
    /// `words_per_second` is what the port's link can carry at most. `None` without an earlier
    /// reading, if time has not advanced, or if a counter was reset in between: then nothing of
    /// this interval is known, since whoever resets one counter resets its neighbours too.
    pub fn observe(
        &mut self,
        port: PortId,
        reading: RawReading<T>,
        words_per_second: u64,
    ) -> Option<PortGrowth> {
        if self.last.len() <= port.index() {
            self.last.resize(port.index() + 1, None);
        }
        let before = self.last[port.index()].replace(reading)?;
        let span = reading.at.checked_since(before.at)?;
        if span.is_zero() {
            return None;
        }
        // Readings of a device are not taken exactly when they are asked for.
        let slack = |most: u128| u64::try_from(most + most / 4 + 1).unwrap_or(u64::MAX);
        let ticks = slack(u128::from(span.as_ps() / self.tick.as_ps().max(1)));
        let words =
            slack(u128::from(words_per_second) * u128::from(span.as_ps()) / 1_000_000_000_000);
        let growth = PortGrowth {
            span,
            xmit_wait: reading.xmit_wait.growth(before.xmit_wait, ticks),
            xmit_data: reading.xmit_data.growth(before.xmit_data, words),
            xmit_time_cong: reading
                .xmit_time_cong
                .zip(before.xmit_time_cong)
                .and_then(|(now, before)| now.growth(before, ticks)),
        };
        let pairs = [
            Some((reading.xmit_wait, before.xmit_wait, growth.xmit_wait)),
            Some((reading.xmit_data, before.xmit_data, growth.xmit_data)),
            reading
                .xmit_time_cong
                .zip(before.xmit_time_cong)
                .map(|(now, before)| (now, before, growth.xmit_time_cong)),
        ];
        let was_reset = pairs.into_iter().flatten().any(|(now, before, growth)| {
            growth.is_none() && now.width == before.width && now.value < before.value
        });
        (!was_reset).then_some(growth)
    }

    /// Whether a counter of this port is beyond half of its range, so that whoever may reset it
    /// should, before it stops.
    pub fn is_filling(&self, port: PortId) -> bool {
        let half = u64::from(u32::MAX) / 2;
        self.last
            .get(port.index())
            .copied()
            .flatten()
            .is_some_and(|last| {
                [
                    Some(last.xmit_wait),
                    Some(last.xmit_data),
                    last.xmit_time_cong,
                ]
                .into_iter()
                .flatten()
                .any(|counter| counter.width == Width::Saturating32 && counter.value > half)
            })
    }

    /// Forgets a port: its counters were reset, it rebooted, or it is gone.
    pub fn forget(&mut self, port: PortId) {
        if let Some(last) = self.last.get_mut(port.index()) {
            *last = None;
        }
    }
}

//! Growth of port counters between readings. Counters stop at the end of their field or start again at 0, and tools
//! reset them; [`CounterValue::growth`] gives the true growth, or a reason why it is unknown.

use crate::counters::CounterUnit;
use crate::{Instant, PortCounters, PortId, Span, Time};

/// A counter as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterValue {
    /// The value.
    pub value: u64,
    /// Bits of the field, 1 to 64. Below 64 the counter stops at its largest value, with 64 it wraps (IBA volume 1,
    /// 16.1.3.5 and 16.1.4.11, A10).
    pub bits: u8,
}

/// The reason why the growth of a counter is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownGrowth {
    /// A reading lacks the counter, or has it in another width.
    Missing,
    /// The counter has stopped at the largest value of its field.
    Stopped,
    /// The counter is smaller than before: a tool has reset it.
    Reset,
    /// The counter has grown by more than the link can carry, or than time has passed.
    Impossible,
}

impl UnknownGrowth {
    /// Describes the event as a phrase.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Missing => "was not read in both sweeps",
            Self::Stopped => "has stopped at its largest value",
            Self::Reset => "was reset between the sweeps",
            Self::Impossible => "grew by more than is possible",
        }
    }
}

impl CounterValue {
    /// A counter of a field of this many bits.
    pub const fn new(value: u64, bits: u8) -> Self {
        Self { value, bits }
    }

    const fn end(self) -> Option<u64> {
        match self.bits {
            64.. => None,
            bits => Some((1 << bits) - 1),
        }
    }

    fn is_filling(self) -> bool {
        self.end().is_some_and(|end| self.value > end / 2)
    }

    /// Returns the growth from one reading to the next, at most `most`. Errors: [`UnknownGrowth`].
    pub fn growth(
        before: Option<Self>,
        now: Option<Self>,
        most: u64,
    ) -> Result<u64, UnknownGrowth> {
        let (Some(before), Some(now)) = (before, now) else {
            return Err(UnknownGrowth::Missing);
        };
        if now.end().is_some_and(|end| now.value >= end) {
            return Err(UnknownGrowth::Stopped);
        }
        if before.bits != now.bits {
            return Err(UnknownGrowth::Missing);
        }
        let growth = match now.end() {
            Some(_) => now.value.checked_sub(before.value),
            None => Some(now.value.wrapping_sub(before.value)),
        };
        match growth.ok_or(UnknownGrowth::Reset)? {
            growth if growth <= most => Ok(growth),
            _ if now.value < before.value => Err(UnknownGrowth::Reset),
            _ => Err(UnknownGrowth::Impossible),
        }
    }
}

/// The time between two readings of a port, and the most that its counters can grow in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingInterval {
    /// The time.
    pub span: Span,
    /// Growth of a counter of time, in ticks.
    pub ticks: u64,
    /// Growth of a counter of data, in words of four bytes. A packet has several words.
    pub words: u64,
}

impl ReadingInterval {
    /// The interval between two readings; `None` if time has not advanced. `words_per_second` is the link's capacity,
    /// `tick` that of time counters.
    pub fn between<T: Instant>(
        before: T,
        now: T,
        words_per_second: u64,
        tick: Span,
    ) -> Option<Self> {
        let span = now.checked_since(before)?;
        if span.is_zero() {
            return None;
        }
        // Devices read their counters some time after the request.
        let slack = |most: u128| u64::try_from(most + most / 4 + 1).unwrap_or(u64::MAX);
        let ps = u128::from(span.as_ps());
        Some(Self {
            span,
            ticks: slack(ps / u128::from(tick.as_ps().max(1))),
            words: slack(u128::from(words_per_second) * ps / 1_000_000_000_000),
        })
    }
}

/// The counters of one port as they were read at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterReading<T = Time> {
    /// The instant, by the reader's clock.
    pub at: T,
    /// Values in the order of [`PortCounters::ALL`]; `None` for counters that were not read.
    pub counters: [Option<CounterValue>; PortCounters::COUNT],
}

/// Growth of all of a port's counters from one reading to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterGrowth {
    /// Time between the two readings.
    pub span: Span,
    /// Growth in the order of [`PortCounters::ALL`] and the units of datagrams; `None` if unknown.
    pub counters: [Option<u64>; PortCounters::COUNT],
}

impl CounterGrowth {
    /// Converts growth of counters of time from ticks of this length to others.
    #[must_use]
    pub fn in_ticks(mut self, from: Span, to: Span) -> Self {
        let convert = |ticks: u64| {
            let ps = u128::from(ticks) * u128::from(from.as_ps());
            u64::try_from(ps / u128::from(to.as_ps().max(1))).unwrap_or(u64::MAX)
        };
        for (growth, counter) in self.counters.iter_mut().zip(PortCounters::ALL) {
            if matches!(counter.unit, CounterUnit::Time) {
                *growth = growth.map(convert);
            }
        }
        self
    }
}

/// Growth of the counters that tell of congestion, from one reading to the next; `None` where it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionGrowth {
    /// Time between the two readings.
    pub span: Span,
    /// Growth of PortXmitWait, in ticks.
    pub xmit_wait: Option<u64>,
    /// Growth of PortXmitData, in 4-byte words.
    pub xmit_data: Option<u64>,
    /// Growth of PortXmitTimeCong, in ticks.
    pub xmit_time_cong: Option<u64>,
}

impl From<CounterGrowth> for CongestionGrowth {
    fn from(growth: CounterGrowth) -> Self {
        Self {
            span: growth.span,
            xmit_wait: growth.counters[const { PortCounters::index("xmit_wait") }],
            xmit_data: growth.counters[const { PortCounters::index("xmit_bytes") }],
            xmit_time_cong: growth.counters[const { PortCounters::index("xmit_cong") }],
        }
    }
}

/// The last reading of every port.
#[derive(Debug, Clone)]
pub struct CounterTracker<T = Time> {
    last: Vec<Option<CounterReading<T>>>,
}

impl<T> Default for CounterTracker<T> {
    fn default() -> Self {
        Self { last: Vec::new() }
    }
}

impl<T: Instant> CounterTracker<T> {
    /// Takes a reading, and returns the growth since the one before; `None` without one, without time, or after a
    /// reset.
    ///
    /// A reset discards all counters' interval, because programs reset them together.
    pub fn observe(
        &mut self,
        port: PortId,
        reading: CounterReading<T>,
        words_per_second: u64,
        tick: Span,
    ) -> Option<CounterGrowth> {
        if self.last.len() <= port.index() {
            self.last.resize(port.index() + 1, None);
        }
        let before = self.last[port.index()].replace(reading)?;
        let interval = ReadingInterval::between(before.at, reading.at, words_per_second, tick)?;
        let mut growth = CounterGrowth {
            span: interval.span,
            counters: [None; PortCounters::COUNT],
        };
        for (index, counter) in PortCounters::ALL.iter().enumerate() {
            let most = match counter.unit {
                CounterUnit::Time => interval.ticks,
                CounterUnit::Bytes { .. } | CounterUnit::Packets | CounterUnit::Events => {
                    interval.words
                }
            };
            let (before, now) = (before.counters[index], reading.counters[index]);
            match CounterValue::growth(before, now, most) {
                Err(UnknownGrowth::Reset) => return None,
                known => growth.counters[index] = known.ok(),
            }
        }
        Some(growth)
    }

    /// True if a counter of this port is beyond half of its range and should be reset before it stops.
    pub fn is_filling(&self, port: PortId) -> bool {
        let last = self.last.get(port.index()).copied().flatten();
        last.is_some_and(|last| {
            let mut counters = last.counters.iter().flatten();
            counters.any(|counter| counter.is_filling())
        })
    }

    /// Forgets a port: its counters were reset, it rebooted, or it is gone.
    pub fn invalidate(&mut self, port: PortId) {
        if let Some(last) = self.last.get_mut(port.index()) {
            *last = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn narrow(value: u64) -> Option<CounterValue> {
        Some(CounterValue::new(value, 32))
    }

    fn wide(value: u64) -> Option<CounterValue> {
        Some(CounterValue::new(value, 64))
    }

    /// Oracle: the definitions of the reasons.
    #[test]
    fn counter_that_stopped_was_reset_or_is_missing_has_no_growth() {
        let growth = CounterValue::growth;
        assert_eq!(growth(narrow(5), narrow(9), 10), Ok(4));
        assert_eq!(growth(narrow(9), narrow(5), 10), Err(UnknownGrowth::Reset));
        let full = u64::from(u32::MAX);
        assert_eq!(
            growth(narrow(5), narrow(full), u64::MAX),
            Err(UnknownGrowth::Stopped)
        );
        assert_eq!(growth(None, narrow(5), 10), Err(UnknownGrowth::Missing));
        assert_eq!(growth(wide(5), narrow(6), 10), Err(UnknownGrowth::Missing));
        assert_eq!(
            growth(narrow(5), narrow(50), 10),
            Err(UnknownGrowth::Impossible)
        );
    }

    /// Oracle: arithmetic modulo 2^64.
    #[test]
    fn counter_of_64_bits_wraps_around() {
        let growth = CounterValue::growth;
        assert_eq!(growth(wide(u64::MAX - 1), wide(3), 10), Ok(5));
        // A reset in between makes a growth that no link has.
        assert_eq!(
            growth(wide(1 << 40), wide(3), 1 << 30),
            Err(UnknownGrowth::Reset)
        );
        assert_eq!(
            growth(wide(3), wide(1 << 40), 1 << 30),
            Err(UnknownGrowth::Impossible)
        );
    }

    fn reading(second: u64, wait: u32, data: u64) -> CounterReading {
        let mut counters = [None; PortCounters::COUNT];
        counters[PortCounters::index("xmit_wait")] = narrow(wait.into());
        counters[PortCounters::index("xmit_bytes")] = wide(data);
        counters[PortCounters::index("xmit_cong")] = narrow(0);
        CounterReading {
            at: Time::ZERO + Span::from_secs(second),
            counters,
        }
    }

    fn of_wait_and_data(growth: CounterGrowth) -> (Option<u64>, Option<u64>) {
        let of = |name| growth.counters[PortCounters::index(name)];
        (of("xmit_wait"), of("xmit_bytes"))
    }

    /// Words per second of a 4x QDR link.
    const QDR: u64 = 1_000_000_000;
    const TICK: Span = Span::from_ns(22);

    /// Oracle: the counters' definitions.
    #[test]
    fn counters_saturate_wrap_and_are_reset() {
        let port = PortId::new(3);
        let cases = [
            // Growth.
            ((1_000, 500), (1_700, 900), Some((Some(700), Some(400)))),
            // PortXmitWait has reached its end: not known how far beyond.
            (
                (u32::MAX - 9, 500),
                (u32::MAX, 900),
                Some((None, Some(400))),
            ),
            // PortXmitData has wrapped.
            ((10, u64::MAX - 99), (20, 100), Some((Some(10), Some(200)))),
            // Another tool has reset the counter: its value says nothing about the interval.
            ((1_000, 500), (3, 900), None),
            ((1_000, 500_000_000), (1_010, 20), None),
            // More than the link can carry, or than there was time for: no such growth.
            ((0, 0), (5, 9 * QDR), Some((Some(5), None))),
            ((0, 0), (4_000_000_000, 7), Some((None, Some(7)))),
        ];
        for (before, now, expected) in cases {
            let mut tracker = CounterTracker::default();
            assert_eq!(
                tracker.observe(port, reading(1, before.0, before.1), QDR, TICK),
                None
            );
            let growth = tracker.observe(port, reading(2, now.0, now.1), QDR, TICK);
            let growth = growth.map(of_wait_and_data);
            assert_eq!(growth, expected, "{before:?} to {now:?}");
        }
    }

    /// Oracle: 3,000 ticks of 0.32 ns are 43 of 22 ns; counters of data stay.
    #[test]
    fn counters_of_time_are_converted_to_other_ticks() {
        let port = PortId::new(0);
        let mut tracker = CounterTracker::default();
        let tick = Span::from_ps(320);
        tracker.observe(port, reading(1, 0, 0), QDR, tick);
        let growth = tracker.observe(port, reading(2, 3_000, 70), QDR, tick);
        let growth = growth.map(|growth| of_wait_and_data(growth.in_ticks(tick, TICK)));
        assert_eq!(growth, Some((Some(43), Some(70))));
    }

    /// Oracle: the definitions of the tracker's other questions.
    #[test]
    fn trackers_tell_of_full_counters_and_forget() {
        let port = PortId::new(0);
        let mut tracker = CounterTracker::default();
        tracker.observe(port, reading(1, 1 << 30, 0), QDR, TICK);
        assert!(!tracker.is_filling(port));
        tracker.observe(port, reading(2, (1 << 31) + 1, 0), QDR, TICK);
        assert!(tracker.is_filling(port));
        tracker.invalidate(port);
        assert!(!tracker.is_filling(port));
        assert_eq!(tracker.observe(port, reading(3, 5, 0), QDR, TICK), None);
        // The clock stands still.
        assert_eq!(tracker.observe(port, reading(3, 6, 0), QDR, TICK), None);
    }

    proptest! {
        /// Oracle: the true growth, counted in 128 bits in addition to counters of the real widths.
        #[test]
        fn known_growth_is_true_growth(
            start in any::<u64>(),
            steps in proptest::collection::vec((0..40_000_000u32, 0..1_000_000_000u64, any::<bool>()), 1..40),
        ) {
            let port = PortId::new(0);
            let mut tracker = CounterTracker::default();
            let (mut wait, mut data) = (0u32, start);
            tracker.observe(port, reading(0, wait, data), QDR, TICK);
            for (second, (ticks, words, reset)) in (1..).zip(steps) {
                // Another tool clears the counters just before the port is read.
                let was_reset = reset && wait > 0;
                (wait, data) = if was_reset {
                    (0, 0)
                } else {
                    (wait.saturating_add(ticks), data.wrapping_add(words))
                };
                let growth = tracker.observe(port, reading(second, wait, data), QDR, TICK);
                prop_assert!(!(was_reset && growth.is_some()));
                if let Some(growth) = growth.map(of_wait_and_data) {
                    prop_assert!(growth.0.is_none_or(|known| known == u64::from(ticks)));
                    prop_assert!(growth.1.is_none_or(|known| known == words));
                }
            }
        }
    }
}

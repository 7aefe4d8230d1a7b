//! From what a port answers to differences that can be trusted.

use silvan_core::counters::CounterUnit;
use silvan_core::{Instant, PortCounters, PortId, Span, Time};

/// How a counter behaves at the end of its range (IBA 16.1.3.5 and 16.1.4.11, A10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Stops at this value: the largest of its field.
    Saturating {
        /// The value.
        end: u64,
    },
    /// Starts again at 0 after 2^64 - 1.
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
    /// The counter of a field of that many bits, 1 to 64.
    pub const fn of_width(value: u64, bits: usize) -> Self {
        let width = match bits {
            64 => Width::Wrapping64,
            _ => Width::Saturating {
                end: (1 << bits) - 1,
            },
        };
        Self { value, width }
    }

    fn is_saturated(self) -> bool {
        matches!(self.width, Width::Saturating { end } if self.value >= end)
    }

    /// Whether it is beyond half of its range, and stops at its end.
    fn is_filling(self) -> bool {
        matches!(self.width, Width::Saturating { end } if self.value > end / 2)
    }

    /// Growth since `earlier`. `None` if it is not known: a counter at its end, one that another tool
    /// has reset, or one that grew by more than `most`.
    fn growth(self, earlier: Self, most: u64) -> Option<u64> {
        if self.is_saturated() || self.width != earlier.width {
            return None;
        }
        let growth = match self.width {
            Width::Saturating { .. } => self.value.checked_sub(earlier.value)?,
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
    /// In the order of [`PortCounters::ALL`]; `None` of those that were not read.
    pub counters: [Option<RawCounter>; PortCounters::COUNT],
}

/// Growth of all of a port's counters from one reading to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterGrowth {
    /// Time between the two readings.
    pub span: Span,
    /// In the order of [`PortCounters::ALL`] and the units of datagrams; `None` where it is not known.
    pub counters: [Option<u64>; PortCounters::COUNT],
}

/// Growth of the counters that the DCMS decides by, from one sweep to the next. What is not known is
/// `None`, and leads to no action.
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

impl From<CounterGrowth> for PortGrowth {
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
    /// this interval is known, since a program that resets one counter resets its neighbours too.
    pub fn observe(
        &mut self,
        port: PortId,
        reading: RawReading<T>,
        words_per_second: u64,
    ) -> Option<CounterGrowth> {
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
        let mut growth = CounterGrowth {
            span,
            counters: [None; PortCounters::COUNT],
        };
        for (index, counter) in PortCounters::ALL.iter().enumerate() {
            let pair = reading.counters[index].zip(before.counters[index]);
            let Some((now, before)) = pair else {
                continue;
            };
            let most = match counter.unit {
                CounterUnit::Time => ticks,
                // A packet has several words.
                CounterUnit::Bytes { .. } | CounterUnit::Packets => words,
            };
            growth.counters[index] = now.growth(before, most);
            let is_unknown = growth.counters[index].is_none();
            if is_unknown && now.width == before.width && now.value < before.value {
                return None;
            }
        }
        Some(growth)
    }

    /// Whether a counter of this port is beyond half of its range, so that a program that may reset it
    /// should, before it stops.
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

//! The growth of a port's counters between two sweeps.

use silvan_core::{MonotonicTime, Span};

/// A counter as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The value.
    pub value: u64,
    /// Bits of its field: below 64 it stops at its largest value, at 64 it starts again at 0
    /// (IBA volume 1, 16.1.3.5 and 16.1.4.11).
    pub bits: u8,
}

impl Counter {
    /// A counter of a field of this many bits.
    pub const fn new(value: u64, bits: u8) -> Self {
        Self { value, bits }
    }
}

/// Why the growth of a counter is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// One of the sweeps lacks it.
    Missing,
    /// It has stopped at the largest value of its field.
    Stopped,
    /// It is smaller than before: reset, or its field is full and started again.
    Reset,
    /// It has grown by more than the link can carry, or than time has passed.
    Impossible,
}

impl Unknown {
    /// What has happened, as a phrase.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Missing => "was not read in both sweeps",
            Self::Stopped => "has stopped at its largest value",
            Self::Reset => "was reset between the sweeps",
            Self::Impossible => "grew by more than is possible",
        }
    }
}

/// Growth of a counter, at most `most`.
///
/// # Errors
///
/// Why it is not known.
pub fn growth(before: Option<Counter>, now: Option<Counter>, most: u64) -> Result<u64, Unknown> {
    let (Some(before), Some(now)) = (before, now) else {
        return Err(Unknown::Missing);
    };
    if now.bits < 64 && now.value >= (1 << now.bits) - 1 {
        return Err(Unknown::Stopped);
    }
    if before.bits != now.bits {
        return Err(Unknown::Missing);
    }
    let grown = if now.bits >= 64 {
        now.value.wrapping_sub(before.value)
    } else {
        now.value.checked_sub(before.value).ok_or(Unknown::Reset)?
    };
    if grown <= most {
        return Ok(grown);
    }
    Err(match now.value < before.value {
        true => Unknown::Reset,
        false => Unknown::Impossible,
    })
}

/// What a port has answered in a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortReading {
    /// When, by any clock that is the same in both sweeps.
    pub at: Option<MonotonicTime>,
    /// PortXmitData, in words of four bytes.
    pub xmit_data: Option<Counter>,
    /// PortRcvData, in words of four bytes.
    pub rcv_data: Option<Counter>,
    /// PortXmitWait, in ticks.
    pub xmit_wait: Option<Counter>,
    /// PortXmitTimeCong, in ticks.
    pub xmit_cong: Option<Counter>,
    /// PortRcvFECN of all service levels, in packets.
    pub fecn: Option<Counter>,
    /// PortRcvBECN of all service levels, in packets.
    pub becn: Option<Counter>,
    /// LinkDownedCounter.
    pub link_downed: Option<Counter>,
}

/// Growth of a port's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortGrowth {
    /// Time between the readings; zero if one is missing.
    pub span: Span,
    /// PortXmitData, in words of four bytes.
    pub xmit_data: Result<u64, Unknown>,
    /// PortRcvData, in words of four bytes.
    pub rcv_data: Result<u64, Unknown>,
    /// PortXmitWait, in ticks.
    pub xmit_wait: Result<u64, Unknown>,
    /// PortXmitTimeCong, in ticks.
    pub xmit_cong: Result<u64, Unknown>,
    /// PortRcvFECN, in packets.
    pub fecn: Result<u64, Unknown>,
    /// PortRcvBECN, in packets.
    pub becn: Result<u64, Unknown>,
    /// Whether the link went down between the sweeps.
    pub flapped: bool,
}

impl PortGrowth {
    /// A port of which nothing is known.
    pub const UNREAD: Self = Self {
        span: Span::ZERO,
        xmit_data: Err(Unknown::Missing),
        rcv_data: Err(Unknown::Missing),
        xmit_wait: Err(Unknown::Missing),
        xmit_cong: Err(Unknown::Missing),
        fecn: Err(Unknown::Missing),
        becn: Err(Unknown::Missing),
        flapped: false,
    };

    /// Growth from one reading to the next. `words_per_second` is what the link can carry at most, `tick` that
    /// of PortXmitWait.
    pub fn between(
        before: &PortReading,
        now: &PortReading,
        words_per_second: u64,
        tick: Span,
    ) -> Self {
        let span = now.at.zip(before.at);
        let span = span.and_then(|(now, before)| now.checked_since(before));
        let Some(span) = span.filter(|span| !span.is_zero()) else {
            return Self::UNREAD;
        };
        // Readings of a device are not taken exactly when they are requested.
        let slack = |most: u128| u64::try_from(most + most / 4 + 1).unwrap_or(u64::MAX);
        let ps = u128::from(span.as_ps());
        let ticks = slack(ps / u128::from(tick.as_ps().max(1)));
        let words = slack(u128::from(words_per_second) * ps / 1_000_000_000_000);
        let mut grown = Self {
            span,
            xmit_data: growth(before.xmit_data, now.xmit_data, words),
            rcv_data: growth(before.rcv_data, now.rcv_data, words),
            xmit_wait: growth(before.xmit_wait, now.xmit_wait, ticks),
            xmit_cong: growth(before.xmit_cong, now.xmit_cong, ticks),
            fecn: growth(before.fecn, now.fecn, words),
            becn: growth(before.becn, now.becn, words),
            flapped: growth(before.link_downed, now.link_downed, u64::MAX).is_ok_and(|by| by > 0),
        };
        // A program that resets one counter of an attribute resets its neighbours, too, which may have
        // grown beyond their old values since.
        let data = [grown.xmit_data, grown.rcv_data];
        if data.contains(&Err(Unknown::Reset)) {
            (grown.xmit_data, grown.rcv_data) = (Err(Unknown::Reset), Err(Unknown::Reset));
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(value: u64) -> Option<Counter> {
        Some(Counter::new(value, 32))
    }

    #[test]
    fn a_counter_that_stopped_was_reset_or_is_missing_has_no_growth() {
        assert_eq!(growth(narrow(5), narrow(9), 10), Ok(4));
        assert_eq!(growth(narrow(9), narrow(5), 10), Err(Unknown::Reset));
        let full = u64::from(u32::MAX);
        assert_eq!(
            growth(narrow(5), narrow(full), u64::MAX),
            Err(Unknown::Stopped)
        );
        assert_eq!(growth(None, narrow(5), 10), Err(Unknown::Missing));
        assert_eq!(growth(narrow(5), narrow(50), 10), Err(Unknown::Impossible));
    }

    #[test]
    fn a_counter_of_64_bits_wraps_around() {
        let wide = |value| Some(Counter::new(value, 64));
        assert_eq!(growth(wide(u64::MAX - 1), wide(3), 10), Ok(5));
        // The same numbers with a reset in between make a growth that no link has.
        assert_eq!(growth(wide(1 << 40), wide(3), 1 << 30), Err(Unknown::Reset));
        assert_eq!(
            growth(wide(3), wide(1 << 40), 1 << 30),
            Err(Unknown::Impossible)
        );
    }

    #[test]
    fn readings_at_one_instant_say_nothing() {
        let reading = PortReading {
            at: Some(MonotonicTime::from_ns(7)),
            xmit_data: narrow(1),
            ..PortReading::default()
        };
        let grown = PortGrowth::between(&reading, &reading, 1, Span::from_ns(4));
        assert_eq!(grown, PortGrowth::UNREAD);
    }
}

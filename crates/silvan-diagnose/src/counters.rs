//! The growth of a port's counters between two sweeps.

use silvan_core::growth::{CounterValue, ReadingInterval, UnknownGrowth};
use silvan_core::{MonotonicTime, Span};

/// The counters of a port that the diagnosis uses, as a sweep or a file has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficReading {
    /// Time of the reading, by a clock that both sweeps share.
    pub at: Option<MonotonicTime>,
    /// PortXmitData, in words of four bytes.
    pub xmit_data: Option<CounterValue>,
    /// PortRcvData, in words of four bytes.
    pub rcv_data: Option<CounterValue>,
    /// PortXmitWait, in ticks.
    pub xmit_wait: Option<CounterValue>,
    /// PortXmitTimeCong, in ticks.
    pub xmit_cong: Option<CounterValue>,
    /// PortRcvFECN of all service levels, in packets.
    pub fecn: Option<CounterValue>,
    /// PortRcvBECN of all service levels, in packets.
    pub becn: Option<CounterValue>,
    /// LinkDownedCounter.
    pub link_downed: Option<CounterValue>,
    /// SymbolErrorCounter.
    pub symbol_errors: Option<CounterValue>,
    /// PortRcvErrors.
    pub rcv_errors: Option<CounterValue>,
    /// LinkErrorRecoveryCounter.
    pub link_error_recovery: Option<CounterValue>,
}

/// Growth of the counters that the diagnosis uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficGrowth {
    /// Time between the readings; zero if one is missing.
    pub span: Span,
    /// PortXmitData, in words of four bytes.
    pub xmit_data: Result<u64, UnknownGrowth>,
    /// PortRcvData, in words of four bytes.
    pub rcv_data: Result<u64, UnknownGrowth>,
    /// PortXmitWait, in ticks.
    pub xmit_wait: Result<u64, UnknownGrowth>,
    /// PortXmitTimeCong, in ticks.
    pub xmit_cong: Result<u64, UnknownGrowth>,
    /// PortRcvFECN, in packets.
    pub fecn: Result<u64, UnknownGrowth>,
    /// PortRcvBECN, in packets.
    pub becn: Result<u64, UnknownGrowth>,
    /// True if the link went down between the sweeps.
    pub flapped: bool,
    /// SymbolErrorCounter.
    pub symbol_errors: Result<u64, UnknownGrowth>,
    /// PortRcvErrors, in packets.
    pub rcv_errors: Result<u64, UnknownGrowth>,
    /// LinkErrorRecoveryCounter.
    pub link_error_recovery: Result<u64, UnknownGrowth>,
}

impl TrafficGrowth {
    /// A port of which nothing is known.
    pub const UNREAD: Self = Self {
        span: Span::ZERO,
        xmit_data: Err(UnknownGrowth::Missing),
        rcv_data: Err(UnknownGrowth::Missing),
        xmit_wait: Err(UnknownGrowth::Missing),
        xmit_cong: Err(UnknownGrowth::Missing),
        fecn: Err(UnknownGrowth::Missing),
        becn: Err(UnknownGrowth::Missing),
        flapped: false,
        symbol_errors: Err(UnknownGrowth::Missing),
        rcv_errors: Err(UnknownGrowth::Missing),
        link_error_recovery: Err(UnknownGrowth::Missing),
    };

    /// Growth between two readings of a link that carries at most `words_per_second`; `tick` is that of PortXmitWait.
    pub fn between(
        before: &TrafficReading,
        now: &TrafficReading,
        words_per_second: u64,
        tick: Span,
    ) -> Self {
        let interval = before.at.zip(now.at);
        let interval = interval.and_then(|(before, now)| {
            ReadingInterval::between(before, now, words_per_second, tick)
        });
        let Some(ReadingInterval { span, ticks, words }) = interval else {
            return Self::UNREAD;
        };
        let growth = CounterValue::growth;
        let link_downed = growth(before.link_downed, now.link_downed, u64::MAX);
        let mut grown = Self {
            span,
            xmit_data: growth(before.xmit_data, now.xmit_data, words),
            rcv_data: growth(before.rcv_data, now.rcv_data, words),
            xmit_wait: growth(before.xmit_wait, now.xmit_wait, ticks),
            xmit_cong: growth(before.xmit_cong, now.xmit_cong, ticks),
            fecn: growth(before.fecn, now.fecn, words),
            becn: growth(before.becn, now.becn, words),
            flapped: link_downed.is_ok_and(|by| by > 0),
            symbol_errors: growth(before.symbol_errors, now.symbol_errors, u64::MAX),
            rcv_errors: growth(before.rcv_errors, now.rcv_errors, words),
            link_error_recovery: growth(
                before.link_error_recovery,
                now.link_error_recovery,
                u64::MAX,
            ),
        };
        // A program that resets one counter resets its neighbours, which may have grown beyond their old values.
        let data = [grown.xmit_data, grown.rcv_data];
        if data.contains(&Err(UnknownGrowth::Reset)) {
            (grown.xmit_data, grown.rcv_data) =
                (Err(UnknownGrowth::Reset), Err(UnknownGrowth::Reset));
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_at_one_instant_say_nothing() {
        let reading = TrafficReading {
            at: Some(MonotonicTime::from_ns(7)),
            xmit_data: Some(CounterValue::new(1, 32)),
            ..TrafficReading::default()
        };
        let grown = TrafficGrowth::between(&reading, &reading, 1, Span::from_ns(4));
        assert_eq!(grown, TrafficGrowth::UNREAD);
    }
}

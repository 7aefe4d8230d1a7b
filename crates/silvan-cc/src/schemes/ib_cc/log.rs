use silvan_core::{HostId, Sl, Time};

/// A BECN that left its flow at or above Trigger_Threshold (CongestionLogEventCA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThresholdEvent {
    /// Arrival time of the BECN.
    pub at: Time,
    /// Destination of the flow.
    pub destination: HostId,
    /// The flow's service level.
    pub sl: Sl,
    /// The CCTI that the BECN led to.
    pub ccti: u16,
}

/// The cyclic log of an adapter: events, their SLs, and the last ones (annex A10, CongestionLog).
#[derive(Clone, Debug)]
pub struct CongestionLog {
    count: u64,
    sl_map: u16,
    ring: [ThresholdEvent; Self::CAPACITY],
}

impl CongestionLog {
    /// Events in the attribute.
    pub const CAPACITY: usize = 13;

    pub(super) const EMPTY: Self = Self {
        count: 0,
        sl_map: 0,
        ring: [ThresholdEvent {
            at: Time::ZERO,
            destination: HostId::new(0),
            sl: Sl::ZERO,
            ccti: 0,
        }; Self::CAPACITY],
    };

    pub(super) fn push(&mut self, event: ThresholdEvent) {
        self.ring[(self.count % Self::CAPACITY as u64) as usize] = event;
        self.sl_map |= 1 << event.sl.index();
        self.count += 1;
    }

    /// Returns the number of events so far.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// A bit for each SL on which there was an event.
    pub const fn sl_map(&self) -> u16 {
        self.sl_map
    }

    /// The events still in the log, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &ThresholdEvent> {
        let kept = self.count.min(Self::CAPACITY as u64);
        (1..=kept).map(|age| &self.ring[((self.count - age) % Self::CAPACITY as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the last 13 of all that were pushed.
    #[test]
    fn keeps_the_newest() {
        let mut log = CongestionLog::EMPTY;
        for n in 0..40u16 {
            let expected: Vec<u16> = (0..n).rev().take(CongestionLog::CAPACITY).collect();
            let kept: Vec<u16> = log.newest_first().map(|event| event.ccti).collect();
            assert_eq!(kept, expected);
            assert_eq!(log.count(), u64::from(n));
            log.push(ThresholdEvent {
                ccti: n,
                ..CongestionLog::EMPTY.ring[0]
            });
        }
        assert_eq!(log.sl_map(), 1);
    }
}

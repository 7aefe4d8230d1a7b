use silvan_core::{Span, Time};

use crate::schemes::ib_cc::cct::CctEntry;
use crate::schemes::ib_cc::list::EffectivePortSetting;
use crate::schemes::ib_cc::threshold::{NEVER, ThresholdMap};

const PACKET_SIZE_UNIT: u16 = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct PortVlRecord {
    pub(super) since: Time,
    pub(super) congested: Span,
    /// Queued bytes at which the congestion state begins or, minus the hysteresis, ends; [`NEVER`] without marking.
    pub(super) threshold_bytes: u32,
    /// Smallest marked packet, in bytes.
    pub(super) packet_bytes: u16,
    /// Packets before the next mark, unless marks are drawn.
    pub(super) gap: u32,
    victim: bool,
    pub(super) in_congestion: bool,
    pub(super) entries: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StarvationRecord {
    /// Bytes in the input buffer from which on credits are late; [`NEVER`] if they never are.
    pub(super) threshold_bytes: u32,
    pub(super) return_delay: CctEntry,
}

impl PortVlRecord {
    pub(super) const IDLE: Self = Self {
        since: Time::ZERO,
        congested: Span::ZERO,
        threshold_bytes: NEVER,
        packet_bytes: 0,
        gap: 0,
        victim: false,
        in_congestion: false,
        entries: 0,
    };

    #[inline]
    pub(super) fn is_congested(&self, queued_bytes: u32, has_credit: bool) -> bool {
        queued_bytes >= self.threshold_bytes && (self.victim || has_credit)
    }

    #[inline]
    pub(super) fn enter(&mut self, now: Time, in_congestion: bool, hysteresis: u32) {
        if in_congestion == self.in_congestion {
            return;
        }
        self.in_congestion = in_congestion;
        if in_congestion {
            self.threshold_bytes -= hysteresis;
            self.since = now;
            self.entries = self.entries.wrapping_add(1);
        } else {
            self.threshold_bytes += hysteresis;
            self.congested += now.since(self.since);
        }
    }

    pub(super) fn configure(
        &mut self,
        port: &EffectivePortSetting,
        map: &ThresholdMap,
        hysteresis: u32,
    ) {
        let marking = &port.marking;
        let lowered = if self.in_congestion { hysteresis } else { 0 };
        self.threshold_bytes = map.limit(marking.threshold) - lowered;
        self.packet_bytes = u16::from(marking.packet_size) * PACKET_SIZE_UNIT;
        self.victim = port.victim;
    }
}

impl StarvationRecord {
    pub(super) const NEVER: Self = Self {
        threshold_bytes: NEVER,
        return_delay: CctEntry::ZERO,
    };

    pub(super) fn acts(&self) -> bool {
        self.threshold_bytes != NEVER
    }

    pub(super) fn new(port: &EffectivePortSetting, map: &ThresholdMap) -> Self {
        let starvation = &port.starvation;
        if !port.credit || starvation.credit_return_delay.multiplier() == 0 {
            return Self::NEVER;
        }
        Self {
            threshold_bytes: map.limit(starvation.credit_threshold),
            return_delay: starvation.credit_return_delay,
        }
    }
}

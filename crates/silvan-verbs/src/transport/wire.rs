//! Numbers of the wire: sequence numbers, header lengths, timers (IBA volume 1, chapter 9).

use silvan_core::Span;

use crate::objects::queue_pair::PSN_MASK;

/// LRH, BTH, ICRC and VCRC: headers of each packet.
const EACH: u64 = 8 + 12 + 4 + 2;
const GRH: u64 = 40;
pub(crate) const IMMEDIATE: u64 = 4;
pub(crate) const RETH: u64 = 16;
pub(crate) const ATOMIC_ETH: u64 = 28;
pub(crate) const AETH: u64 = 4;
pub(crate) const ATOMIC_ACK_ETH: u64 = 8;
pub(crate) const DETH: u64 = 8;

pub(crate) fn packets(length: u64, mtu: u64) -> u32 {
    length.div_ceil(mtu).max(1) as u32
}

pub(crate) fn wire_bytes(payload: u64, packets: u32, has_route: bool, extension: u64) -> u64 {
    let each = EACH + if has_route { GRH } else { 0 };
    payload.next_multiple_of(4) + u64::from(packets) * each + extension
}

/// Distance from `expected` to `psn`, from -2^23 to 2^23 - 1.
pub(crate) fn distance(psn: u32, expected: u32) -> i32 {
    ((psn.wrapping_sub(expected) << 8) as i32) >> 8
}

pub(crate) fn advance(psn: u32, count: u32) -> u32 {
    psn.wrapping_add(count) & PSN_MASK
}

/// Time to wait for an acknowledgement, `None` without end (section 9.7.6.1.3: 4.096 us times 2^timeout).
pub(crate) fn acknowledge_timeout(timeout: u8) -> Option<Span> {
    (timeout != 0).then(|| Span::from_ps(4_096_000 << timeout.min(31)))
}

/// Delays of RNR NAKs in units of 10 us, by code (table 45).
const RNR_DELAYS: [u32; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

pub(crate) fn rnr_delay(code: u8) -> Span {
    Span::from_us(10 * u64::from(RNR_DELAYS[usize::from(code & 31)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_wrap_at_24_bits() {
        assert_eq!(distance(0, 0xff_ffff), 1);
        assert_eq!(distance(0xff_ffff, 0), -1);
        assert_eq!(distance(0x80_0000, 0), -(1 << 23));
        assert_eq!(advance(0xff_ffff, 2), 1);
    }

    #[test]
    fn timers_follow_the_specification() {
        assert_eq!(acknowledge_timeout(14), Some(Span::from_ps(67_108_864_000)));
        assert_eq!(acknowledge_timeout(0), None);
        assert_eq!(rnr_delay(0), Span::from_us(655_360));
        assert_eq!(rnr_delay(1), Span::from_us(10));
        assert_eq!(rnr_delay(12), Span::from_us(640));
        assert_eq!(rnr_delay(31), Span::from_us(491_520));
    }

    #[test]
    fn headers_of_a_full_packet_take_26_bytes() {
        assert_eq!(wire_bytes(4096, 1, false, 0), 4122);
        assert_eq!(wire_bytes(0, 1, false, AETH), 30);
        assert_eq!(wire_bytes(5, 1, true, DETH), 8 + 26 + 40 + 8);
        assert_eq!(
            (packets(0, 256), packets(256, 256), packets(257, 256)),
            (1, 1, 2)
        );
    }
}

//! The random numbers of the random interval: one for each clock cycle, the same whenever asked.

use silvan_core::stream::SplitMix64;

/// The random numbers of one host, by clock cycle. A number is a function of the run's seed, the host and the cycle, so
/// order and number of reads do not matter. The numbers of 64 cycles are drawn at once, bit by bit: word b of the 64
/// cycles holds bit b of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    start: u64,
}

impl Draws {
    pub(super) fn new(seed: u64, host: u64) -> Self {
        Self {
            start: SplitMix64::for_stream(seed, host).next(),
        }
    }

    /// Bit `bit` of the numbers of the cycles 64 x `group` on, the first in the lowest bit.
    #[inline]
    pub(super) fn word(&self, group: u64, bit: u32) -> u64 {
        SplitMix64::nth(
            self.start,
            group.wrapping_mul(32).wrapping_add(u64::from(bit)),
        )
    }

    /// Returns a bit for each of the cycles from 64 x `group` on: set if the cycle's number, of `bits` bits, is at
    /// least `bound`. The comparison goes from the highest bit down and ends when it is decided for all cycles, as a
    /// rule after a few bits.
    #[inline]
    pub(super) fn at_least(&self, group: u64, bits: u8, bound: u64) -> u64 {
        if bound >> bits != 0 {
            return 0;
        }
        let mut greater = 0;
        let mut equal = u64::MAX;
        for bit in (0..u32::from(bits)).rev() {
            let word = self.word(group, bit);
            if bound >> bit & 1 == 1 {
                equal &= word;
            } else {
                greater |= equal & word;
                equal &= !word;
            }
            if equal == 0 {
                break;
            }
        }
        greater | equal
    }
}

use silvan_core::stream::SplitMix64;

/// Random numbers of a host, each a function of seed, host and clock cycle. 64 cycles are drawn at once: word b holds
/// bit b of each number.
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

    #[inline]
    pub(super) fn word(&self, group: u64, bit: u32) -> u64 {
        SplitMix64::nth(
            self.start,
            group.wrapping_mul(32).wrapping_add(u64::from(bit)),
        )
    }

    /// Sets the bits of those of 64 cycles whose random number, of `bits` bits, is at least `bound`.
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

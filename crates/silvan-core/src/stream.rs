//! A seeded random stream with eight bytes of state, one per Port VL and adapter.

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

/// The odd increment of the Weyl sequence, 2^64 divided by the golden ratio.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// The generator in this state.
    pub const fn new(state: u64) -> Self {
        Self(state)
    }

    /// Stream number `stream` of the seed `seed`; both are mixed, so that neighbours start at unrelated points.
    pub fn for_stream(seed: u64, stream: u64) -> Self {
        let start = Self::new(seed).next();
        Self::new(start ^ Self::new(!stream).next())
    }

    /// The next 64 random bits.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "a generator never ends, so it is no iterator"
    )]
    pub fn next(&mut self) -> u64 {
        let number = Self::nth(self.0, 0);
        self.0 = self.0.wrapping_add(INCREMENT);
        number
    }

    /// Number `index` of the numbers that the generator in state `start` gives, the first being 0.
    #[inline]
    pub const fn nth(start: u64, index: u64) -> u64 {
        let mut z = start.wrapping_add(INCREMENT.wrapping_mul(index.wrapping_add(1)));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to but not including 1, one of 2^53 evenly spaced ones.
    #[inline]
    pub fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True once in `n` draws (`n` > 0), with probability 1/n to within 2^-64.
    #[inline]
    pub fn one_in(&mut self, n: u32) -> bool {
        (u128::from(self.next()) * u128::from(n)) >> 64 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        // The test vector that implementations of SplitMix64 share: state 1234567.
        let mut stream = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for value in expected {
            assert_eq!(stream.next(), value);
        }
    }

    #[test]
    fn parts_are_even() {
        let mut stream = SplitMix64::for_stream(5, 1);
        let draws = 100_000;
        let mut counts = [0; 10];
        for _ in 0..draws {
            counts[(stream.part() * 10.0) as usize] += 1;
        }
        // Five standard deviations of a binomial count.
        let bound = 5.0 * (f64::from(draws) * 0.09).sqrt();
        assert!(
            counts
                .iter()
                .all(|&count| f64::from(count - draws / 10).abs() < bound)
        );
    }

    #[test]
    fn one_in_one_is_always_true() {
        let mut stream = SplitMix64::for_stream(7, 3);
        assert!((0..1000).all(|_| stream.one_in(1)));
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream| SplitMix64::for_stream(seed, stream).next();
        let mut seen: Vec<u64> = (0..64)
            .flat_map(|seed| (0..64).map(move |stream| first(seed, stream)))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 64 * 64);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowLength {
    ps: u64,
    /// 2^(64 + shift) over the length, rounded up.
    reciprocal: u64,
    shift: u32,
}

impl WindowLength {
    pub fn new(ps: u64) -> Self {
        let shift = (ps - 1).ilog2();
        let reciprocal = ((1_u128 << (64 + shift)) / u128::from(ps) + 1) as u64;
        Self {
            ps,
            reciprocal,
            shift,
        }
    }

    /// The product with the reciprocal is too large by at most the instant, which is less than 2^63 (Granlund and
    /// Montgomery, "Division by invariant integers using multiplication", 1994, theorem 4.2).
    #[inline(always)]
    pub fn window_of(self, time: u64) -> u64 {
        ((u128::from(time) * u128::from(self.reciprocal)) >> 64) as u64 >> self.shift
    }

    #[inline(always)]
    pub fn start_of(self, window: u64) -> u64 {
        window * self.ps
    }
}

#[cfg(test)]
mod tests {
    use super::WindowLength;
    use proptest::prelude::*;

    proptest! {
        /// Oracle: a division.
        #[test]
        fn the_window_of_an_instant_is_its_quotient(
            ps in prop_oneof![2..1_u64 << 24, (1..40_u32).prop_map(|shift| 1 << shift), (1..40_u32).prop_map(|shift| (1 << shift) + 1)],
            window in 0..1_u64 << 22,
            time in 0..1_u64 << 63,
        ) {
            let length = WindowLength::new(ps);
            prop_assert_eq!(length.window_of(time), time / ps);
            let start = length.start_of(window);
            prop_assert_eq!(length.window_of(start), window);
            prop_assert_eq!(length.window_of(start + ps - 1), window);
            let last = (1 << 63) - 1 - ((1 << 63) - 1) % ps;
            prop_assert_eq!(length.window_of(last), last / ps);
            prop_assert_eq!(length.window_of(last - 1), last / ps - 1);
        }
    }
}

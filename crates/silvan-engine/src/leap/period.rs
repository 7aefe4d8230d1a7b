const MOST: usize = 1 << 11;

#[derive(Debug, Default)]
pub(crate) struct Starts(Vec<(u64, u32)>);

impl Starts {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub fn note(&mut self, now: u64, destination: u32) {
        if self.0.len() == MOST {
            self.0.drain(..MOST / 2);
        }
        self.0.push((now, destination));
    }

    /// The shortest time after which the last starts repeat, over one repetition and at least three starts.
    pub fn period(&self) -> Option<u64> {
        let starts = &self.0;
        let last = starts.len().checked_sub(1)?;
        let repeats = |count: usize| {
            let period = starts[last].0 - starts[last - count].0;
            let compared = count.max(3);
            let is_alike = |index: usize| {
                let (now, then) = (starts[last - index], starts[last - index - count]);
                now.1 == then.1 && now.0 - then.0 == period
            };
            (count + compared <= last && (0..=compared).all(is_alike)).then_some(period)
        };
        (1..=last / 2).find_map(repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::Starts;
    use proptest::prelude::*;

    proptest! {
        /// Oracle: gaps and destinations that are repeated, none of which is a repetition of shorter ones, as the first differs from
        /// all others.
        #[test]
        fn the_shortest_period_is_found(
            gaps in prop::collection::vec((1..1_000_u64, 0..4_u32), 0..40),
            rounds in 3..6_usize,
            cut in 0..40_usize,
        ) {
            let mut round = vec![(1_000, 9)];
            round.extend(gaps);
            let mut starts = Starts::default();
            let mut now = 0;
            let all = round.iter().cycle().take(round.len() * rounds.max(6) + cut % round.len());
            for &(gap, destination) in all {
                now += gap;
                starts.note(now, destination);
            }
            let length = round.iter().map(|&(gap, _)| gap).sum();
            prop_assert_eq!(starts.period(), Some(length));
        }
    }

    #[test]
    fn starts_that_do_not_repeat_have_no_period() {
        let mut starts = Starts::default();
        for number in 0..5_000 {
            starts.note(number * number, 1);
        }
        assert_eq!(starts.period(), None);
    }
}

use silvan_core::{Span, Time};

use crate::parsed::{ProbeSection, RunSection};

const FEWEST: u64 = 100;
const MOST: u64 = 1_000;

/// Shortest default interval of a run that may end early.
const SHORTEST: Span = Span::from_ns(1);

/// Instants at which a run samples its time series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Equal distances: `probe.interval`.
    Every(Span),
    /// By default, where `probe.interval` is not written.
    Spread(Spread),
}

impl Sampling {
    pub(crate) fn of(probe: &ProbeSection, run: &RunSection) -> Self {
        match probe.interval {
            Some(interval) => Self::Every(interval),
            None => Self::Spread(Spread::new(run.warm_up, run.duration)),
        }
    }

    /// Number of samples of a run of this duration that does not end early.
    pub fn count(&self, duration: Span) -> u64 {
        match self {
            Self::Every(interval) => duration.as_ps() / interval.as_ps().max(1),
            Self::Spread(spread) => spread.count,
        }
    }
}

/// Samples from the start of a run to its end: `count` intervals, one of which ends with the warm-up.
///
/// The intervals are equal if there is such a number from 100 to 1,000. Else there are 100, which are equal before
/// the end of the warm-up, and equal behind it.
///
/// A run that may end early starts with intervals that are shorter by a power of two, its level. It merges pairs of
/// intervals and halves the level whenever it has [`capacity`](Self::capacity) of them.
///
/// ```
/// use silvan_core::{Span, Time};
/// use silvan_scenario::Spread;
///
/// let spread = Spread::new(Span::from_ms(1), Span::from_ms(10));
/// assert_eq!(spread.count(), 100);
/// assert_eq!(spread.instant(1, 0), Time::ZERO + Span::from_us(100));
/// assert_eq!(spread.instant(2, 1), spread.instant(1, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    warm_up: Span,
    rest: Span,
    count: u64,
    before: u64,
}

impl Spread {
    /// The samples of a run with this warm-up, which is shorter than the duration.
    pub fn new(warm_up: Span, duration: Span) -> Self {
        let (warm, whole) = (
            u128::from(warm_up.as_ps()),
            u128::from(duration.as_ps().max(1)),
        );
        let in_warm_up = |count: u64| warm * u128::from(count) / whole;
        let is_equal = |count: &u64| {
            let count = u128::from(*count);
            whole % count == 0 && warm * count % whole == 0
        };
        let equal = (FEWEST..=MOST).find(is_equal);
        let count = equal.unwrap_or(FEWEST);
        let before = match (equal, warm) {
            (Some(count), _) => in_warm_up(count) as u64,
            (None, 0) => 0,
            (None, _) => (in_warm_up(2 * count) as u64)
                .div_ceil(2)
                .clamp(1, count - 1),
        };
        Self {
            warm_up,
            rest: Span::from_ps(duration.as_ps() - warm_up.as_ps()),
            count,
            before,
        }
    }

    /// Number of samples of a run that does not end early.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn interval(&self) -> Option<Span> {
        let behind = self.count - self.before;
        let interval = self.rest.as_ps() / behind;
        let is_equal = interval * behind == self.rest.as_ps()
            && interval * self.before == self.warm_up.as_ps();
        is_equal.then(|| Span::from_ps(interval))
    }

    /// Number of samples at which a run merges pairs of them; even.
    pub fn capacity(&self) -> u64 {
        self.count & !1
    }

    /// The level at which a run starts that may end early: intervals are at least a nanosecond.
    pub fn first_level(&self) -> u32 {
        let behind = self.rest.as_ps() / (self.count - self.before);
        let before = self.warm_up.as_ps().checked_div(self.before);
        let shortest = before.map_or(behind, |before| before.min(behind));
        (shortest / SHORTEST.as_ps()).checked_ilog2().unwrap_or(0)
    }

    /// The end of interval `number`, counted from 1, of a level.
    pub fn instant(&self, number: u64, level: u32) -> Time {
        let [number, before, count] =
            [number, self.before << level, self.count << level].map(u128::from);
        let part = |whole: Span, number: u128, count: u128| {
            Span::from_ps((u128::from(whole.as_ps()) * number / count) as u64)
        };
        let since = match number < before {
            true => part(self.warm_up, number, before),
            false => self.warm_up + part(self.rest, number - before, count - before),
        };
        Time::ZERO + since
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ends of the intervals of a whole run.
    fn instants(warm_up: u64, duration: u64) -> Vec<u64> {
        let spread = Spread::new(Span::from_ps(warm_up), Span::from_ps(duration));
        let numbers = 1..=spread.count();
        numbers
            .map(|number| spread.instant(number, 0).as_ps())
            .collect()
    }

    /// Oracle: the smallest numbers of equal intervals, by hand.
    #[test]
    fn intervals_are_equal_where_they_can_be() {
        let interval = |warm_up, duration| Spread::new(warm_up, duration).interval();
        let ms = Span::from_ms;
        assert_eq!(interval(Span::ZERO, ms(10)), Some(Span::from_us(100)));
        assert_eq!(interval(ms(2), ms(10)), Some(Span::from_us(100)));
        // A hundredth of 3 ms is not a part of 1 ms; 1/102 of it is no whole number of picoseconds.
        assert_eq!(interval(ms(1), ms(3)), Some(Span::from_us(25)));
        assert_eq!(interval(Span::from_ps(1), ms(3)), None);
        assert_eq!(interval(Span::ZERO, Span::from_ps(99_999_989)), None);
    }

    proptest! {
        /// Oracle: the properties that the documentation states.
        #[test]
        fn samples_hit_the_warm_up_and_the_end(
            duration in 100_000_u64..50 * 24 * 3_600 * 1_000_000_000_000,
            part in 0.0..1.0,
            is_round in any::<bool>(),
        ) {
            let unit = if is_round { 1 + duration / 1_000 } else { 1 };
            let duration = duration / unit * unit;
            let warm_up = (((duration as f64 * part) as u64) / unit * unit).min(duration - 1);
            let ends = instants(warm_up, duration);
            prop_assert!((100..=1_000).contains(&ends.len()));
            prop_assert!(ends.is_sorted());
            prop_assert_eq!(ends.last(), Some(&duration));
            prop_assert!(warm_up == 0 || ends.contains(&warm_up));
        }

        /// Oracle: two intervals of a level are one of the next lower.
        #[test]
        fn merged_pairs_are_the_intervals_of_the_lower_level(
            duration in 1_000_000_u64..50 * 24 * 3_600 * 1_000_000_000_000,
            part in 0.0..0.999,
            number in 1_u64..100,
        ) {
            let warm_up = (duration as f64 * part) as u64;
            let spread = Spread::new(Span::from_ps(warm_up), Span::from_ps(duration));
            for level in 1..=spread.first_level() {
                prop_assert_eq!(spread.instant(2 * number, level), spread.instant(number, level - 1));
                let shortest = spread.instant(number + 1, level).since(spread.instant(number, level));
                prop_assert!(shortest >= Span::from_ps(999));
            }
            prop_assert_eq!(spread.capacity() % 2, 0);
            prop_assert!(spread.capacity() / 2 >= 50);
        }
    }
}

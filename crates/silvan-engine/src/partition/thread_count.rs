//! Number of threads in use: on a busy machine one may be faster, so the run tries neighbouring numbers at times.

use std::time::Duration;

const SLICE: Duration = Duration::from_millis(10);
const TRIAL: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: u32 = 64;
const FEWEST_EVENTS: u64 = 100;
const GAIN: f64 = 0.05;

#[derive(Clone, Debug)]
pub(super) struct ThreadCount {
    most: usize,
    counts: Vec<usize>,
    current: usize,
    cost: Option<f64>,
    trial: Option<usize>,
    downwards: bool,
    left: u32,
    pause: u32,
}

impl ThreadCount {
    pub fn new(most: usize, processors: usize) -> Self {
        let highest = most.min(processors).max(1);
        let powers = (0..usize::BITS).map(|power| 1 << power);
        let mut counts: Vec<usize> = powers.take_while(|&count| count < highest).collect();
        counts.push(highest);
        Self {
            most,
            current: counts.len() - 1,
            counts,
            cost: None,
            trial: None,
            downwards: true,
            left: 1,
            pause: 1,
        }
    }

    pub fn most(&self) -> usize {
        self.most
    }

    pub fn next(&self) -> (usize, Duration) {
        match self.trial {
            Some(place) => (self.counts[place], TRIAL),
            None => (self.counts[self.current], SLICE),
        }
    }

    pub fn record(&mut self, events: u64, time: Duration) {
        if events < FEWEST_EVENTS {
            return;
        }
        let cost = time.as_secs_f64() / events as f64;
        let Some(trial) = self.trial.take() else {
            self.cost = Some(cost);
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                self.trial = self.neighbour();
            }
            return;
        };
        if self
            .cost
            .is_some_and(|current| cost < current * (1.0 - GAIN))
        {
            (self.current, self.cost, self.pause) = (trial, Some(cost), 1);
        } else {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.downwards = !self.downwards;
        }
        self.left = self.pause;
    }

    fn neighbour(&self) -> Option<usize> {
        let (lower, higher) = (self.current.checked_sub(1), self.current + 1);
        let higher = (higher < self.counts.len()).then_some(higher);
        match self.downwards {
            true => lower.or(higher),
            false => higher.or(lower),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the count that is chosen for a second; each count has its time per event.
    fn use_for_a_second(threads: &mut ThreadCount, cost: impl Fn(usize) -> f64) -> (usize, f64) {
        let (mut total, mut events) = (0.0, 0.0);
        while total < 1.0 {
            let (count, time) = threads.next();
            let done = time.as_secs_f64() / cost(count);
            threads.record(done as u64, time);
            total += time.as_secs_f64();
            events += done;
        }
        (threads.counts[threads.current], total / events)
    }

    #[test]
    fn the_fastest_number_of_threads_is_found_again_and_again() {
        let mut threads = ThreadCount::new(40, 16);
        assert_eq!(threads.most(), 40);
        // A quiet machine, a busy one, and one of four processors.
        let quiet = |count: usize| 1e-7 / count as f64;
        let busy = |count: usize| 1e-7 * (count * count) as f64;
        let four = |count: usize| 1e-7 * (count as f64 / 4.0 + 4.0 / count as f64);
        for (cost, fastest) in [
            (&quiet as &dyn Fn(usize) -> f64, 16),
            (&busy, 1),
            (&four, 4),
            (&quiet, 16),
        ] {
            // After a second that may begin with a long pause.
            use_for_a_second(&mut threads, cost);
            let (count, mean) = use_for_a_second(&mut threads, cost);
            assert_eq!(count, fastest);
            assert!(mean < 1.15 * cost(fastest), "{mean} with {fastest}");
        }
    }
}

use std::time::{Duration, Instant};

use silvan_model::Balance;

const WINDOWS_PER_SAMPLE: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    worked: Duration,
    waited: Duration,
}

/// Times of a thread in every sixteenth window, the same windows in all threads.
#[derive(Debug, Default)]
pub(super) struct Watch {
    samples: Vec<Sample>,
    began: Option<Instant>,
    waited: Duration,
}

impl Watch {
    #[inline]
    pub fn begin(&mut self, window: usize) {
        let measured = window % WINDOWS_PER_SAMPLE == 0;
        self.began = measured.then(Instant::now);
        self.waited = Duration::ZERO;
    }

    #[inline]
    pub fn wait<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        if self.began.is_none() {
            return wait();
        }
        let from = Instant::now();
        let result = wait();
        self.waited += from.elapsed();
        result
    }

    #[inline]
    pub fn end(&mut self) {
        if let Some(began) = self.began {
            let waited = self.waited;
            let worked = began.elapsed().saturating_sub(waited);
            self.samples.push(Sample { worked, waited });
        }
    }

    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    windows: u32,
    /// Shortest waiting time of each window: the cost of a meeting.
    meeting: Duration,
    longest: Duration,
    mean: Duration,
}

impl Sums {
    pub fn add(&mut self, threads: &[Vec<Sample>]) {
        let windows = threads.iter().map(Vec::len).min().unwrap_or(0);
        if threads.len() < 2 {
            return;
        }
        for window in 0..windows {
            let samples = || threads.iter().map(|samples| samples[window]);
            self.windows += 1;
            self.meeting += samples().map(|one| one.waited).min().unwrap_or_default();
            self.longest += samples().map(|one| one.worked).max().unwrap_or_default();
            self.mean += samples().map(|one| one.worked).sum::<Duration>() / threads.len() as u32;
        }
    }

    pub fn balance(&self) -> Option<Balance> {
        (self.windows > 0).then(|| Balance {
            barrier_s: self.meeting.as_secs_f64() / f64::from(self.windows),
            imbalance: self.longest.as_secs_f64() / self.mean.as_secs_f64().max(1e-12),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn imbalance_is_the_longest_work_over_the_mean() {
        let sample = |worked, waited| Sample {
            worked: Duration::from_micros(worked),
            waited: Duration::from_micros(waited),
        };
        let mut sums = Sums::default();
        assert_eq!(sums.balance(), None);
        sums.add(&[vec![sample(5, 0)]]);
        assert_eq!(sums.balance(), None);
        // In the first window the second thread works 3 us less than the first; a meeting takes 1 us.
        sums.add(&[
            vec![sample(4, 1), sample(2, 3)],
            vec![sample(1, 4), sample(4, 1)],
        ]);
        let balance = sums.balance().unwrap();
        assert!((balance.barrier_s - 1e-6).abs() < 1e-12);
        assert!((balance.imbalance - 8.0 / 5.5).abs() < 1e-9);
    }

    #[test]
    fn one_window_of_many_is_measured_with_all_its_waiting() {
        let mut watch = Watch::default();
        let pause = Duration::from_millis(1);
        for window in 0..WINDOWS_PER_SAMPLE + 1 {
            watch.begin(window);
            assert_eq!(watch.wait(|| 1) + watch.wait(|| 2), 3);
            if window == 0 {
                watch.wait(|| std::thread::sleep(pause));
            }
            watch.end();
        }
        let samples = watch.into_samples();
        assert_eq!(samples.len(), 2);
        assert!(samples[0].waited >= pause);
    }
}

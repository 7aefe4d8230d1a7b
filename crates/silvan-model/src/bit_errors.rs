//! Bit errors on a link: how often they come, and the instants at which they come.

use silvan_core::{PortId, Rate, Span, Time};
use silvan_workload::traffic::rng::{Purpose, Stream, exponential, normal, stream};

/// Largest rate of bit errors. Of packets of 8,000 bits, one in 3,000 has none.
pub const MOST_BIT_ERRORS: f64 = 1e-3;

/// Bit errors of all that a port receives: independent ones, and bursts (Gilbert 1960, Elliott 1963).
///
/// Errors come while the link is idle, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitErrors {
    /// Probability that a bit of data is wrong, outside bursts.
    pub rate: f64,
    /// Bursts, if there are any.
    pub bursts: Option<Bursts>,
    /// True if the link replays a bad packet. Otherwise the receiver discards it.
    pub retransmits: bool,
    /// Time from the end of a bad packet to the start of its replay. `None` for twice the propagation and the switches'
    /// credit delay.
    pub replay_latency: Option<Span>,
    /// Time that the link sends nothing when it is retrained.
    pub retraining: Span,
}

/// Bursts of bit errors: the bad state of the Gilbert-Elliott model. Both times are exponentially distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Probability that a bit of data is wrong, in a burst.
    pub rate: f64,
    /// Mean duration of a burst.
    pub length: Span,
    /// Mean time from the end of a burst to the next one.
    pub spacing: Span,
}

/// Bit errors of a run, with their times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedBitErrors {
    /// The receiving port.
    pub port: PortId,
    /// The errors.
    pub errors: BitErrors,
    /// Times with errors.
    pub times: ErrorTimes,
}

/// Times at which a link has errors: once, or again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorTimes {
    /// Start of the first occurrence.
    pub at: Time,
    /// Duration; `None` is without end.
    pub lasts: Option<Span>,
    /// Time from one beginning to the next, longer than `lasts`; `None` if it comes once.
    pub every: Option<Span>,
}

impl ErrorTimes {
    /// Returns the total time with errors before `now`, in ps.
    fn active(&self, now: u64) -> u64 {
        let since = now.saturating_sub(self.at.as_ps());
        let Some(lasts) = self.lasts.map(Span::as_ps) else {
            return since;
        };
        match self.every.map(Span::as_ps) {
            Some(every) if every > 0 => since / every * lasts + (since % every).min(lasts),
            _ => since.min(lasts),
        }
    }
}

/// Mean number of errors between two counts from which they are not drawn one by one.
const MANY: f64 = 4096.0;

/// The instants of a link's bit errors, drawn in the order of time.
///
/// Gaps between errors are exponentially distributed, so a packet of `n` bits is good with the probability
/// `(1 - rate)^n`, whatever came before. Draws depend on the seed, the port and time alone, unless [`MANY`] errors come
/// between two counts: their number is normally distributed, as Poisson's nearly is.
#[derive(Clone, Debug)]
pub struct ErrorProcess {
    stream: Stream,
    times: ErrorTimes,
    /// Mean gap in ps, outside and in bursts; infinite without errors.
    gaps: [f64; 2],
    /// Mean duration in ps of the time between bursts, and of a burst.
    durations: [f64; 2],
    in_burst: bool,
    /// Next error and next begin or end of a burst, in time with errors.
    error_at: u64,
    change_at: u64,
}

impl ErrorProcess {
    /// The process number `index` of a port whose link carries data at `rate`.
    pub fn new(
        errors: &BitErrors,
        times: ErrorTimes,
        rate: Rate,
        (seed, port, index): (u64, PortId, usize),
    ) -> Self {
        let bursts = errors.bursts;
        let ps = |span: Option<Span>| span.map_or(f64::INFINITY, |span| span.as_ps() as f64);
        let mut process = Self {
            stream: stream(
                seed,
                Purpose::Named("fault.bit-errors", index),
                port.index() as u64,
            ),
            times,
            gaps: [errors.rate, bursts.map_or(0.0, |bursts| bursts.rate)]
                .map(|errors| mean_gap(errors, rate)),
            durations: [
                ps(bursts.map(|bursts| bursts.spacing)),
                ps(bursts.map(|bursts| bursts.length)),
            ],
            in_burst: false,
            error_at: 0,
            change_at: 0,
        };
        process.enter(false, 0);
        process
    }

    fn enter(&mut self, in_burst: bool, at: u64) {
        let state = usize::from(in_burst);
        self.in_burst = in_burst;
        self.change_at = at.saturating_add(draw(&mut self.stream, self.durations[state]));
        self.error_at = at.saturating_add(draw(&mut self.stream, self.gaps[state]));
    }

    /// Counts the errors up to `now` that have not been counted.
    pub fn count_until(&mut self, now: u64) -> u64 {
        let until = self.times.active(now);
        let mut errors = 0;
        while self.error_at.min(self.change_at) <= until {
            let gap = self.gaps[usize::from(self.in_burst)];
            let end = until.min(self.change_at.saturating_sub(1));
            if self.change_at <= self.error_at {
                self.enter(!self.in_burst, self.change_at);
            } else if (end - self.error_at) as f64 > MANY * gap {
                let mean = (end - self.error_at) as f64 / gap;
                errors += 1 + (mean + normal(&mut self.stream) * mean.sqrt()).round() as u64;
                self.error_at = end.saturating_add(draw(&mut self.stream, gap));
            } else {
                errors += 1;
                self.error_at = self.error_at.saturating_add(draw(&mut self.stream, gap));
            }
        }
        errors
    }

    /// Changes the data rate of the link from `now` on; errors up to `now` have been counted.
    pub fn change_rate(&mut self, now: u64, from: Rate, to: Rate) {
        let factor = from.bits_per_sec() as f64 / to.bits_per_sec() as f64;
        self.gaps = self.gaps.map(|gap| gap * factor);
        let until = self.times.active(now);
        // Gaps have no memory, so the rest of this one takes as many bits as before.
        let rest = self.error_at.saturating_sub(until) as f64 * factor;
        self.error_at = until.saturating_add(rest as u64);
    }
}

/// An exponentially distributed time of this mean, rounded up to a picosecond.
fn draw(stream: &mut Stream, mean: f64) -> u64 {
    if mean == f64::INFINITY {
        return u64::MAX;
    }
    let time = exponential(stream) as f64 * mean / (1u64 << 32) as f64;
    (time.ceil() as u64).max(1)
}

/// Mean time between errors, in ps.
///
/// A bit is good with the probability `1 - errors`, so errors come at -ln(1 - `errors`) per bit. The series gives the same
/// number on every machine.
fn mean_gap(errors: f64, rate: Rate) -> f64 {
    let per_bit = errors * (1.0 + errors * (0.5 + errors * (1.0 / 3.0 + errors * 0.25)));
    1e12 / (per_bit * rate.bits_per_sec() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 16_000_000_000;
    const ALWAYS: ErrorTimes = ErrorTimes {
        at: Time::ZERO,
        lasts: None,
        every: None,
    };

    fn rate() -> Rate {
        Rate::from_bits_per_sec(RATE).expect("not zero")
    }

    fn process(errors: &BitErrors, times: ErrorTimes, seed: u64) -> ErrorProcess {
        ErrorProcess::new(errors, times, rate(), (seed, PortId::new(3), 0))
    }

    fn independent(rate: f64) -> BitErrors {
        BitErrors {
            rate,
            bursts: None,
            retransmits: false,
            replay_latency: None,
            retraining: Span::ZERO,
        }
    }

    /// Oracle: n p errors in n bits, with the standard deviation of their square root.
    #[test]
    fn errors_have_their_rate() {
        let second = 1_000_000_000_000;
        let count = process(&independent(1e-5), ALWAYS, 1).count_until(second);
        let expected = RATE as f64 * 1e-5;
        assert!(
            (count as f64 - expected).abs() < 4.0 * expected.sqrt(),
            "{count}"
        );
    }

    /// Oracle: mean and variance of Poisson's distribution. Later counts are never lower.
    #[test]
    fn many_errors_have_the_distribution_of_single_ones() {
        let (seeds, time) = (2000, 100_000_000_000);
        let errors = 1e-5;
        let counts = (0..seeds).map(|seed| {
            let all = process(&independent(errors), ALWAYS, seed);
            let counts = [1, 9, 10].map(|part| all.clone().count_until(time / 10 * part));
            assert!(counts.is_sorted(), "{counts:?}");
            counts[2] as f64
        });
        let counts: Vec<f64> = counts.collect();
        let number = seeds as f64;
        let expected = RATE as f64 * errors * time as f64 * 1e-12;
        assert!(expected > MANY);
        let mean = counts.iter().sum::<f64>() / number;
        assert!((mean - expected).abs() < 4.0 * (expected / number).sqrt());
        let squares = counts.iter().map(|count| (count - mean).powi(2));
        let variance = squares.sum::<f64>() / (number - 1.0);
        // The variance of a sample of this size has a standard deviation of 3 %.
        assert!((variance / expected - 1.0).abs() < 0.13, "{variance}");
    }

    /// Oracle: 1 - (1 - p)^n packets of n bits have an error.
    #[test]
    fn share_of_bad_packets_is_the_closed_form() {
        for (errors, bits) in [
            (1e-6, 33_184u64),
            (1e-5, 33_184),
            (1e-4, 2_288),
            (1e-3, 800),
        ] {
            let mut process = process(&independent(errors), ALWAYS, 2);
            let time = bits * 1_000_000_000_000 / RATE;
            let packets = 200_000u64;
            let bad = (1..=packets).filter(|packet| process.count_until(packet * time) > 0);
            let share = bad.count() as f64 / packets as f64;
            let expected = 1.0 - (1.0 - errors).powi(bits as i32);
            let deviation = (expected * (1.0 - expected) / packets as f64).sqrt();
            assert!(
                (share - expected).abs() < 4.0 * deviation,
                "{share} of {bits} bits, not {expected}"
            );
        }
    }

    /// Oracle: a burst of length L every L + S has the mean rate p S / (L + S) + b L / (L + S).
    #[test]
    fn bursts_take_their_share_of_time() {
        let bursts = Bursts {
            rate: 1e-3,
            length: Span::from_us(10),
            spacing: Span::from_us(90),
        };
        let errors = BitErrors {
            bursts: Some(bursts),
            ..independent(1e-6)
        };
        let mut process = process(&errors, ALWAYS, 3);
        let second = 1_000_000_000_000;
        let count = process.count_until(second) as f64;
        let expected = RATE as f64 * (0.9 * 1e-6 + 0.1 * 1e-3);
        // 10,000 bursts, each with as many errors as its exponential duration lasts.
        assert!((count / expected - 1.0).abs() < 0.06, "{count}");
    }

    #[test]
    fn errors_come_within_their_times_only() {
        let times = ErrorTimes {
            at: Time::from_ps(1_000_000),
            lasts: Some(Span::from_ns(100)),
            every: Some(Span::from_us(1)),
        };
        let mut process = process(&independent(1e-3), times, 4);
        let mut last = 0;
        for step in 1..=10_000u64 {
            // Windows of 100 ns; the first one of each microsecond has errors.
            let errors = process.count_until(step * 100_000);
            let may = step > 10 && (step - 1) % 10 == 0;
            assert!(may || errors == 0, "step {step}");
            last += errors;
        }
        // 999 windows of 100 ns.
        let expected = 999.0 * 1e-7 * RATE as f64 * 1e-3;
        assert!(
            (last as f64 - expected).abs() < 4.0 * expected.sqrt(),
            "{last}"
        );
    }

    #[test]
    fn count_does_not_depend_on_when_it_is_read() {
        let errors = BitErrors {
            bursts: Some(Bursts {
                rate: 1e-3,
                length: Span::from_us(1),
                spacing: Span::from_us(5),
            }),
            ..independent(1e-5)
        };
        let mut once = process(&errors, ALWAYS, 5);
        let mut often = process(&errors, ALWAYS, 5);
        let steps: u64 = (1..=1_000)
            .map(|step| often.count_until(step * 777_777))
            .sum();
        assert_eq!(steps, once.count_until(777_777_000));
    }

    #[test]
    fn rate_of_the_link_scales_the_errors() {
        let mut process = process(&independent(1e-4), ALWAYS, 6);
        let second = 1_000_000_000_000;
        let before = process.count_until(second / 10) as f64;
        let slow = Rate::from_bits_per_sec(RATE / 4).expect("not zero");
        process.change_rate(second / 10, rate(), slow);
        let after = process.count_until(second / 10 * 5) as f64;
        let expected = RATE as f64 * 1e-5;
        for count in [before, after] {
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{count}");
        }
    }
}

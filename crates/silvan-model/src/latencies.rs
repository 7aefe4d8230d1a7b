//! How long packets took.

use hdrhistogram::Histogram;

/// Bits below the leading one of a latency that its bucket distinguishes.
pub const LATENCY_MANTISSA: u32 = 7;

/// The smallest and the largest latency of a bucket, in whole nanoseconds: a bucket each up to 255, where those of
/// even latencies are empty, then 128 per power of two.
pub fn latency_bucket(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    let exponent = (bucket >> LATENCY_MANTISSA).saturating_sub(1);
    let lowest = (bucket - (exponent << LATENCY_MANTISSA)) << exponent;
    (lowest, lowest + ((1 << exponent) - 1))
}

/// Latencies of packets: mean, smallest and largest to the picosecond, percentiles from a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    sum_ps: u128,
    min_ps: u64,
    max_ps: u64,
    /// In whole nanoseconds, rounded down.
    histogram: Histogram<u64>,
}

impl Latencies {
    /// Largest relative error of a percentile; the nanosecond that it is rounded to comes on top.
    pub const PERCENTILE_RESOLUTION: f64 = 1.0 / 128.0;

    /// Joins a histogram in nanoseconds, which is not empty, with the exact sum and extremes of the
    /// same values.
    pub fn new(histogram: Histogram<u64>, sum_ps: u128, min_ps: u64, max_ps: u64) -> Self {
        Self {
            sum_ps,
            min_ps,
            max_ps,
            histogram,
        }
    }

    /// How many packets.
    pub fn packets(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean in nanoseconds: the exact sum divided once.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ps as f64 / (self.packets() as f64 * 1e3)
    }

    /// The smallest, in nanoseconds.
    pub fn min_ns(&self) -> f64 {
        self.min_ps as f64 / 1e3
    }

    /// The largest, in nanoseconds.
    pub fn max_ns(&self) -> f64 {
        self.max_ps as f64 / 1e3
    }

    /// How many packets had a latency from one number of whole nanoseconds to another, both included;
    /// intervals without any are left out.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| {
            let highest = step.value_iterated_to();
            let lowest = self.histogram.lowest_equivalent(highest);
            (lowest, highest, step.count_at_value())
        })
    }

    /// The value that the share `quantile` of the packets does not exceed, in whole nanoseconds; see
    /// [`PERCENTILE_RESOLUTION`](Self::PERCENTILE_RESOLUTION). Never outside of the exact extremes.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let value = self.histogram.value_at_quantile(quantile);
        value.clamp(self.min_ps / 1000, self.max_ps / 1000)
    }
}

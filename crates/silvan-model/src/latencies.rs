use std::collections::BTreeMap;

/// Bits below the leading one of a latency that its bucket distinguishes.
pub const LATENCY_MANTISSA: u32 = 7;

/// A bucket's smallest and largest latency [ns]: one each up to 255, then 128 per power of two.
pub fn latency_bucket(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    let exponent = (bucket >> LATENCY_MANTISSA).saturating_sub(1);
    let lowest = (bucket - (exponent << LATENCY_MANTISSA)) << exponent;
    (lowest, lowest + ((1 << exponent) - 1))
}

/// Latencies of packets: mean, smallest and largest to the picosecond, percentiles from counts by bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    sum_ps: u128,
    min_ps: u64,
    max_ps: u64,
    packets: u64,
    joined: u32,
    buckets: Vec<(u32, u64)>,
}

impl Latencies {
    /// Largest relative error of a percentile; the nanosecond that it is rounded to comes on top.
    pub const PERCENTILE_RESOLUTION: f64 = 1.0 / 128.0;

    /// Joins counts by groups of `2^joined` [buckets](latency_bucket) with exact sum and extremes; `None` if empty.
    pub fn new(
        counts: &[u64],
        joined: u32,
        sum_ps: u128,
        (min_ps, max_ps): (u64, u64),
    ) -> Option<Self> {
        let all = (0..).zip(counts.iter().copied());
        let buckets: Vec<(u32, u64)> = all.filter(|&(_, count)| count > 0).collect();
        (!buckets.is_empty()).then(|| Self {
            sum_ps,
            min_ps,
            max_ps,
            packets: buckets.iter().map(|&(_, count)| count).sum(),
            joined,
            buckets,
        })
    }

    /// The latencies of several groups of packets, which join equally many buckets; `None` without a group.
    pub fn of_groups<'a>(groups: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut groups = groups.into_iter();
        let mut all = groups.next()?.clone();
        let mut buckets: BTreeMap<u32, u64> = all.buckets.iter().copied().collect();
        for group in groups {
            debug_assert_eq!(group.joined, all.joined);
            all.sum_ps += group.sum_ps;
            all.min_ps = all.min_ps.min(group.min_ps);
            all.max_ps = all.max_ps.max(group.max_ps);
            all.packets += group.packets;
            for &(bucket, count) in &group.buckets {
                *buckets.entry(bucket).or_insert(0) += count;
            }
        }
        all.buckets = buckets.into_iter().collect();
        Some(all)
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
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

    /// Non-empty bins: lowest and highest latency [ns], both included, and packets.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets.iter().map(|&(group, count)| {
            let (lowest, highest) = self.bounds(group);
            (lowest, highest, count)
        })
    }

    fn bounds(&self, group: u32) -> (u64, u64) {
        let first = (group as usize) << self.joined;
        let last = first + (1 << self.joined) - 1;
        (latency_bucket(first).0, latency_bucket(last).1)
    }

    /// The upper bound of the bucket with the share `quantile` [ns], within the exact extremes; see
    /// [`PERCENTILE_RESOLUTION`](Self::PERCENTILE_RESOLUTION).
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = (quantile.min(1.0) * self.packets as f64).ceil() as u64;
        let mut up_to = 0;
        let reached = self.buckets.iter().find(|&&(_, count)| {
            up_to += count;
            up_to >= rank
        });
        // Rounding to a float can make the rank larger than the number of packets.
        let last = reached.or(self.buckets.last());
        let value = last.map_or(0, |&(bucket, _)| self.bounds(bucket).1);
        value.clamp(self.min_ps / 1000, self.max_ps / 1000)
    }
}

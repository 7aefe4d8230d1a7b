use silvan_core::prefetch::{prefetch, prefetch_item};
use silvan_model::{LATENCY_MANTISSA, Latencies};

#[derive(Clone, Debug)]
pub(super) struct Extent {
    /// Overflows after 2^64 packets, which no run delivers.
    sum: u128,
    pub min: u64,
    pub max: u64,
}

impl Default for Extent {
    fn default() -> Self {
        Self {
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Extent {
    #[inline(always)]
    fn record(&mut self, ps: u64) {
        self.record_times(ps, 1);
    }

    #[inline(always)]
    fn record_times(&mut self, ps: u64, times: u64) {
        self.sum += u128::from(ps) * u128::from(times);
        if ps < self.min {
            self.min = ps;
        }
        if ps > self.max {
            self.max = ps;
        }
    }

    fn latencies(&self, counts: &[u64], joined: u32) -> Option<Latencies> {
        Latencies::new(counts, joined, self.sum, (self.min, self.max))
    }
}

/// Latencies of a class; empty until the first value. The buckets are those of a `Histogram` of two significant digits,
/// without its bookkeeping per value.
#[derive(Clone, Debug, Default)]
pub(super) struct LatencyCounts {
    pub extent: Extent,
    counts: Vec<u64>,
}

impl LatencyCounts {
    /// Bucket of a value: itself below 2^7, then 128 per power of two.
    #[inline]
    pub fn bucket(value: u64) -> usize {
        let value = value | 1;
        let exponent = (63 - value.leading_zeros()).saturating_sub(LATENCY_MANTISSA);
        ((u64::from(exponent) << LATENCY_MANTISSA) + (value >> exponent)) as usize
    }

    #[inline(always)]
    pub fn record(&mut self, ps: u64) -> usize {
        self.record_times(ps, 1)
    }

    #[inline(always)]
    pub fn record_times(&mut self, ps: u64, times: u64) -> usize {
        let bucket = Self::bucket(ps / 1000);
        self.extent.record_times(ps, times);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        self.counts[bucket] += times;
        bucket
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket + 1).next_power_of_two(), 0);
    }

    pub fn add(&mut self, other: &Self) {
        let (extent, other_extent) = (&mut self.extent, &other.extent);
        extent.sum += other_extent.sum;
        extent.min = extent.min.min(other_extent.min);
        extent.max = extent.max.max(other_extent.max);
        other.add_to(&mut self.counts);
    }

    pub fn add_to(&self, counts: &mut Vec<u64>) {
        if self.counts.len() > counts.len() {
            counts.resize(self.counts.len(), 0);
        }
        for (count, own) in counts.iter_mut().zip(&self.counts) {
            *count += own;
        }
    }

    pub fn latencies(&self) -> Option<Latencies> {
        self.extent.latencies(&self.counts, 0)
    }
}

#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct HostLatencies {
    extent: Extent,
    /// By bucket of whole nanoseconds, modulo 2^16.
    counts: Vec<u16>,
}

impl HostLatencies {
    #[inline]
    pub fn prefetch(&self, ps: u64) {
        prefetch(&self.counts, LatencyCounts::bucket(ps / 1000));
    }

    #[inline(always)]
    pub fn record_in(&mut self, bucket: usize, ps: u64) -> Option<u32> {
        self.extent.record(ps);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        is_full(&mut self.counts[bucket]).then_some(bucket as u32)
    }

    pub fn record_times(&mut self, bucket: usize, ps: u64, times: u64) -> (u32, u64) {
        self.extent.record_times(ps, times);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        (bucket as u32, add_times(&mut self.counts[bucket], times))
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        let buckets = (bucket + 1).next_multiple_of(32).max(2 * self.counts.len());
        self.counts.reserve_exact(buckets - self.counts.len());
        self.counts.resize(buckets, 0);
    }

    pub fn latencies(&self, full: impl Iterator<Item = u32>) -> Option<Latencies> {
        self.extent.latencies(&widened(&self.counts, full), 0)
    }
}

/// Logarithm of the number of joined buckets for `LatencyStats::HostCoarse`.
const JOINED: u32 = LATENCY_MANTISSA - 2;

/// Groups of buckets: 64-bit buckets never share one.
const GROUPS: usize = 1 << u8::BITS;
const _: () = assert!(((64 - LATENCY_MANTISSA + 1) << LATENCY_MANTISSA) >> JOINED <= GROUPS as u32);

#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct CoarseLatencies {
    extent: Extent,
    /// By group of buckets, modulo 2^16. Used counts share two or three cache lines.
    counts: [u16; GROUPS],
}

impl Default for CoarseLatencies {
    fn default() -> Self {
        Self {
            extent: Extent::default(),
            counts: [0; GROUPS],
        }
    }
}

impl CoarseLatencies {
    #[inline]
    pub fn prefetch(&self, ps: u64) {
        prefetch_item(&self.extent);
        prefetch(&self.counts, LatencyCounts::bucket(ps / 1000) >> JOINED);
    }

    #[inline(always)]
    pub fn record_in(&mut self, bucket: usize, ps: u64) -> Option<u32> {
        self.extent.record(ps);
        let group = (bucket >> JOINED) as u8;
        is_full(&mut self.counts[usize::from(group)]).then_some(group.into())
    }

    pub fn record_times(&mut self, bucket: usize, ps: u64, times: u64) -> (u32, u64) {
        self.extent.record_times(ps, times);
        let group = (bucket >> JOINED) as u8;
        let count = &mut self.counts[usize::from(group)];
        (group.into(), add_times(count, times))
    }

    pub fn latencies(&self, full: impl Iterator<Item = u32>) -> Option<Latencies> {
        self.extent.latencies(&widened(&self.counts, full), JOINED)
    }
}

#[inline(always)]
fn is_full(count: &mut u16) -> bool {
    *count = count.wrapping_add(1);
    *count == 0
}

fn add_times(count: &mut u16, times: u64) -> u64 {
    let sum = u64::from(*count) + times;
    *count = sum as u16;
    sum >> u16::BITS
}

fn widened(counts: &[u16], full: impl Iterator<Item = u32>) -> Vec<u64> {
    let mut counts: Vec<u64> = counts.iter().map(|&count| count.into()).collect();
    for place in full {
        counts[place as usize] += 1 << u16::BITS;
    }
    counts
}

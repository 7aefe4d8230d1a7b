//! What was delivered: per host, per class, and how late.
//!
//! The engine knows a delivery before its time (the sink is computed at the last grant). A delivery
//! at or beyond the end of the running call is kept until the call that contains it, so that every
//! count is exact at every boundary.

use hdrhistogram::Histogram;

use crate::plane::Host;
use silvan_interface::LatencyStats;

/// A data packet taken in by its destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// When, in ps.
    pub done: u64,
    /// Where.
    pub host: u32,
    /// Payload bytes.
    pub payload: u32,
    /// From the start of its injection to `done`, in ps.
    pub latency: u64,
    /// Traffic class.
    pub class: u16,
    /// Links crossed.
    pub hops: u8,
    /// Whether it arrived with FECN.
    pub marked: bool,
}

/// Counts of one traffic class.
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// Payload bytes delivered.
    pub delivered_bytes: u64,
    /// Data packets delivered.
    pub delivered_packets: u64,
    /// Of these, with FECN.
    pub marked_packets: u64,
    latency: LatencyCounts,
}

impl ClassStats {
    /// Latencies in nanoseconds, exact to one part in 128; `None` if none were kept.
    pub fn latency(&self) -> Option<Histogram<u64>> {
        self.latency.histogram()
    }
}

/// Counts of latencies by leading bits: the same buckets as a `Histogram` of two significant
/// digits, without its bookkeeping for each value. Empty until the first value.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatencyCounts {
    counts: Vec<u64>,
}

/// Bits below the leading one that are told apart.
const MANTISSA: u32 = 7;

impl LatencyCounts {
    /// Bucket of a value: itself below 2^7, then 128 per power of two.
    #[inline]
    fn bucket(value: u64) -> usize {
        let value = value | 1;
        let exponent = (63 - value.leading_zeros()).saturating_sub(MANTISSA);
        ((u64::from(exponent) << MANTISSA) + (value >> exponent)) as usize
    }

    /// Smallest value of a bucket.
    fn lowest(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        let exponent = (bucket >> MANTISSA).saturating_sub(1);
        (bucket - (exponent << MANTISSA)) << exponent
    }

    #[inline]
    fn record(&mut self, value: u64) {
        let bucket = Self::bucket(value);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        self.counts[bucket] += 1;
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket + 1).next_power_of_two(), 0);
    }

    fn histogram(&self) -> Option<Histogram<u64>> {
        if self.counts.is_empty() {
            return None;
        }
        let mut histogram = Histogram::new(2).ok()?;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count > 0 {
                // The histogram grows to any value, so this cannot fail.
                histogram.record_n(Self::lowest(bucket), count).ok()?;
            }
        }
        Some(histogram)
    }
}

#[derive(Debug)]
pub(crate) struct Statistics {
    latency: LatencyStats,
    boundary: u64,
    late: Vec<Delivery>,
    classes: Vec<ClassStats>,
    hosts: Vec<LatencyCounts>,
    pub delivered_packets: u64,
    pub packet_hops: u64,
}

impl Statistics {
    pub fn new(latency: LatencyStats, hosts: usize) -> Self {
        let per_host = if latency == LatencyStats::Host {
            hosts
        } else {
            0
        };
        Self {
            latency,
            boundary: 0,
            late: Vec::new(),
            classes: Vec::new(),
            hosts: vec![LatencyCounts::default(); per_host],
            delivered_packets: 0,
            packet_hops: 0,
        }
    }

    /// Moves the boundary, and counts what has come before it.
    pub fn set_boundary(&mut self, boundary: u64, hosts: &mut [Host]) {
        self.boundary = boundary;
        let mut late = std::mem::take(&mut self.late);
        late.retain(|delivery| {
            let due = delivery.done < boundary;
            if due {
                self.count(delivery, &mut hosts[delivery.host as usize]);
            }
            !due
        });
        self.late = late;
    }

    #[inline(always)]
    pub fn record(&mut self, delivery: Delivery, host: &mut Host) {
        if delivery.done < self.boundary {
            self.count(&delivery, host);
        } else {
            self.late.push(delivery);
        }
    }

    #[inline(always)]
    fn count(&mut self, delivery: &Delivery, host: &mut Host) {
        host.delivered += u64::from(delivery.payload);
        host.delivered_packets += 1;
        self.delivered_packets += 1;
        self.packet_hops += u64::from(delivery.hops);
        let index = usize::from(delivery.class);
        if index >= self.classes.len() {
            self.add_class(index);
        }
        let class = &mut self.classes[index];
        class.delivered_bytes += u64::from(delivery.payload);
        class.delivered_packets += 1;
        class.marked_packets += u64::from(delivery.marked);
        if self.latency == LatencyStats::Off {
            return;
        }
        let nanoseconds = delivery.latency / 1000;
        class.latency.record(nanoseconds);
        if self.latency == LatencyStats::Host {
            self.hosts[delivery.host as usize].record(nanoseconds);
        }
    }

    #[cold]
    fn add_class(&mut self, index: usize) {
        self.classes.resize_with(index + 1, ClassStats::default);
    }

    pub fn class(&self, class: u16) -> Option<&ClassStats> {
        self.classes.get(usize::from(class))
    }

    pub fn host_latency(&self, host: usize) -> Option<Histogram<u64>> {
        self.hosts.get(host)?.histogram()
    }

    /// Deliveries beyond the boundary.
    pub fn late(&self) -> &[Delivery] {
        &self.late
    }

    /// Starts the latency histograms anew; the counters go on.
    pub fn reset_latency(&mut self) {
        for class in &mut self.classes {
            class.latency = LatencyCounts::default();
        }
        self.hosts.fill(LatencyCounts::default());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the library's own recording of the same values.
        #[test]
        fn quantiles_are_those_of_a_plain_histogram(
            values in prop::collection::vec((0u32..40, 0u64..1 << 40), 1..200),
        ) {
            let mut counts = LatencyCounts::default();
            let mut sorted = Vec::new();
            for (shift, value) in values {
                counts.record(value >> shift);
                sorted.push(value >> shift);
            }
            sorted.sort_unstable();
            let histogram = counts.histogram().unwrap();
            prop_assert_eq!(histogram.len(), sorted.len() as u64);
            for quantile in [0.0, 0.5, 0.99, 1.0] {
                let rank = ((quantile * sorted.len() as f64).ceil() as usize).max(1) - 1;
                let exact = sorted[rank] as f64;
                let found = histogram.value_at_quantile(quantile) as f64;
                prop_assert!((found - exact).abs() <= exact / 64.0 + 1.0, "{found} {exact}");
            }
        }

        #[test]
        fn a_bucket_holds_its_values(value in any::<u64>()) {
            let bucket = LatencyCounts::bucket(value);
            prop_assert!(LatencyCounts::lowest(bucket) <= value | 1);
            prop_assert!(bucket + 1 >= 58 << MANTISSA || LatencyCounts::lowest(bucket + 1) > value);
        }
    }
}

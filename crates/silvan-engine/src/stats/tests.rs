#![allow(clippy::unwrap_used, reason = "tests")]

use hdrhistogram::Histogram;
use proptest::prelude::*;
use silvan_model::latency_bucket;

use super::*;

proptest! {
    /// Against the sorted values themselves.
    #[test]
    fn mean_and_extremes_are_exact_and_quantiles_within_their_resolution(
        values in prop::collection::vec((0u32..50, 0u64..1 << 50), 1..200),
    ) {
        let mut counts = LatencyCounts::default();
        let mut sorted = Vec::new();
        for (shift, value) in values {
            counts.record(value >> shift);
            sorted.push(value >> shift);
        }
        sorted.sort_unstable();
        let latencies = counts.latencies().unwrap();
        prop_assert_eq!(latencies.packets(), sorted.len() as u64);
        let sum: u128 = sorted.iter().copied().map(u128::from).sum();
        let mean = sum as f64 / sorted.len() as f64 / 1e3;
        prop_assert!((latencies.mean_ns() - mean).abs() <= mean * 1e-15);
        prop_assert_eq!(latencies.min_ns(), sorted[0] as f64 / 1e3);
        prop_assert_eq!(latencies.max_ns(), sorted[sorted.len() - 1] as f64 / 1e3);
        for quantile in [0.0, 0.5, 0.99, 1.0] {
            let rank = ((quantile * sorted.len() as f64).ceil() as usize).max(1) - 1;
            let exact = sorted[rank] as f64 / 1e3;
            let found = latencies.quantile_ns(quantile) as f64;
            let error = exact * Latencies::PERCENTILE_RESOLUTION + 1.0;
            prop_assert!((found - exact).abs() <= error, "{} {}", found, exact);
        }
    }

    /// Oracle: a library's histogram of the same resolution, with the same values. Below 256 ns, this one distinguishes
    /// odd values only.
    #[test]
    fn bins_and_quantiles_are_those_of_a_histogram(
        values in prop::collection::vec((0u32..50, 0u64..1 << 50), 1..200),
    ) {
        let mut counts = LatencyCounts::default();
        let mut histogram = Histogram::<u64>::new(2).unwrap();
        for (shift, value) in values {
            counts.record(value >> shift);
            histogram.record(((value >> shift) / 1000) | 1).unwrap();
        }
        let latencies = counts.latencies().unwrap();
        let bins = histogram.iter_recorded().map(|step| {
            let highest = step.value_iterated_to();
            (histogram.lowest_equivalent(highest), highest, step.count_at_value())
        });
        prop_assert_eq!(latencies.bins().collect::<Vec<_>>(), bins.collect::<Vec<_>>());
        prop_assert_eq!(latencies.packets(), histogram.len());
        for quantile in [0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let value = histogram.value_at_quantile(quantile);
            let within = value.clamp(counts.extent.min / 1000, counts.extent.max / 1000);
            prop_assert_eq!(latencies.quantile_ns(quantile), within);
        }
    }

    /// Counts of 16 bits that are full many times, against counts of 64 bits.
    #[test]
    fn latencies_of_a_host_are_those_of_its_class(
        values in prop::collection::vec((0u32..50, 0u64..1 << 50), 1..4),
        repeated in 60_000usize..140_000,
    ) {
        for kept in [LatencyStats::Host, LatencyStats::HostCoarse] {
            let mut stats = Statistics::new(kept, 2);
            stats.set_boundary(u64::MAX, &mut []);
            stats.add_class(0);
            for &(shift, value) in values.iter().cycle().take(repeated) {
                let delivery = Delivery {
                    done: 0, host: 1, payload: 1, latency: value >> shift, source: 0,
                    class: 0, hops: 1, marked: false, behind: 0,
                };
                stats.add_to_batch(&delivery);
            }
            stats.count_batch();
            prop_assert_eq!(stats.host_latency(0), None);
            let host = stats.host_latency(1).unwrap();
            prop_assert_eq!(host.packets(), repeated as u64);
            if kept == LatencyStats::Host {
                prop_assert_eq!(Some(host), stats.class(0).unwrap().latency());
            }
        }
    }

    /// Coarse counts of a host hold the same packets as the counts of its class, with the same mean and extremes. Their
    /// bins are at most a quarter of the power of two below them.
    #[test]
    fn coarse_latencies_hold_the_fine_ones(
        values in prop::collection::vec((0u32..50, 0u64..1 << 50), 1..200),
    ) {
        let mut stats = Statistics::new(LatencyStats::HostCoarse, 1);
        stats.set_boundary(u64::MAX, &mut []);
        stats.add_class(0);
        for (shift, value) in values {
            let delivery = Delivery {
                done: 0, host: 0, payload: 1, latency: value >> shift, source: 0,
                class: 0, hops: 1, marked: false, behind: 0,
            };
            stats.count_more(delivery);
        }
        stats.count_batch();
        let coarse = stats.host_latency(0).unwrap();
        let fine = stats.class(0).unwrap().latency().unwrap();
        let exact = |one: &Latencies| (one.packets(), one.mean_ns(), one.min_ns(), one.max_ns());
        prop_assert_eq!(exact(&coarse), exact(&fine));
        for (from, to, packets) in coarse.bins() {
            prop_assert!(to - from < (from / 4).max(32), "{} {}", from, to);
            let inside = fine.bins().filter(|bin| (from..=to).contains(&bin.0));
            prop_assert_eq!(inside.map(|bin| bin.2).sum::<u64>(), packets);
        }
    }

    #[test]
    fn a_bucket_holds_its_values(value in any::<u64>()) {
        let bucket = LatencyCounts::bucket(value);
        prop_assert!(latency_bucket(bucket).0 <= value | 1);
        prop_assert!((value | 1) <= latency_bucket(bucket).1);
    }
}

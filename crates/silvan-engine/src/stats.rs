//! What was delivered: per host, per class, and how late.
//!
//! The engine knows a delivery before its time (the sink is computed at the last grant). A delivery
//! at or beyond the end of the running call is kept until the call that contains it, so that every
//! count is exact at every boundary.

use crate::plane::Host;
use silvan_core::Time;
use silvan_core::prefetch::prefetch;
use silvan_model::{FlowProgress, LATENCY_MANTISSA, Latencies, LatencyStats};

/// A data packet that its destination has received.
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
    /// Sending host.
    pub source: u32,
    /// Traffic class.
    pub class: u16,
    /// Links crossed.
    pub hops: u8,
    /// Whether it arrived with FECN.
    pub marked: bool,
    /// Payload that waited behind it when it was sent, for schemes that want to know.
    pub behind: u32,
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
    /// Adds the counts of the same class in another part of the fabric.
    pub(crate) fn add(&mut self, other: &Self) {
        self.delivered_bytes += other.delivered_bytes;
        self.delivered_packets += other.delivered_packets;
        self.marked_packets += other.marked_packets;
        self.latency.add(&other.latency);
    }

    /// Adds the packets to counts by bucket of latencies.
    pub fn add_latency_counts(&self, counts: &mut Vec<u64>) {
        self.latency.add_to(counts);
    }

    /// Latencies; `None` if none were kept.
    pub fn latency(&self) -> Option<Latencies> {
        self.latency.latencies()
    }
}

/// The exact sum and extremes of latencies, and their counts by leading bits: the same buckets as a
/// `Histogram` of two significant digits, without its bookkeeping for each value. Empty until the
/// first value.
#[derive(Clone, Debug)]
pub(crate) struct LatencyCounts {
    /// Of all values, in ps. No run delivers the 2^64 packets that it takes to overflow.
    sum: u128,
    min: u64,
    max: u64,
    /// By bucket of whole nanoseconds.
    counts: Vec<u64>,
}

impl Default for LatencyCounts {
    fn default() -> Self {
        Self {
            sum: 0,
            min: u64::MAX,
            max: 0,
            counts: Vec::new(),
        }
    }
}

impl LatencyCounts {
    /// Bucket of a value: itself below 2^7, then 128 per power of two.
    #[inline]
    fn bucket(value: u64) -> usize {
        let value = value | 1;
        let exponent = (63 - value.leading_zeros()).saturating_sub(LATENCY_MANTISSA);
        ((u64::from(exponent) << LATENCY_MANTISSA) + (value >> exponent)) as usize
    }

    #[inline]
    fn record(&mut self, ps: u64) {
        self.record_in(Self::bucket(ps / 1000), ps);
    }

    /// Records a value whose bucket is known.
    #[inline]
    fn record_in(&mut self, bucket: usize, ps: u64) {
        self.sum += u128::from(ps);
        self.min = self.min.min(ps);
        self.max = self.max.max(ps);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        self.counts[bucket] += 1;
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket + 1).next_power_of_two(), 0);
    }

    /// Adds other values.
    fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        other.add_to(&mut self.counts);
    }

    /// Adds the counts to others by bucket.
    fn add_to(&self, counts: &mut Vec<u64>) {
        if self.counts.len() > counts.len() {
            counts.resize(self.counts.len(), 0);
        }
        for (count, own) in counts.iter_mut().zip(&self.counts) {
            *count += own;
        }
    }

    fn latencies(&self) -> Option<Latencies> {
        Latencies::new(&self.counts, 0, self.sum, (self.min, self.max))
    }
}

/// Logarithm of the number of buckets that are counted together for `LatencyStats::HostCoarse`.
const JOINED: u32 = LATENCY_MANTISSA - 2;

/// The same of one of many hosts, in one line of the cache and few of counts: these lines push out those that the
/// engine works with.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct HostLatencies {
    sum: u128,
    min: u64,
    max: u64,
    /// By bucket of whole nanoseconds, modulo 2^16.
    counts: Vec<u16>,
}

impl Default for HostLatencies {
    fn default() -> Self {
        Self {
            sum: 0,
            min: u64::MAX,
            max: 0,
            counts: Vec::new(),
        }
    }
}

impl HostLatencies {
    /// Records a value, and returns whether the count of its bucket is full and starts from zero again.
    #[inline]
    fn record_in(&mut self, bucket: usize, ps: u64) -> bool {
        self.sum += u128::from(ps);
        self.min = self.min.min(ps);
        self.max = self.max.max(ps);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        let count = &mut self.counts[bucket];
        *count = count.wrapping_add(1);
        *count == 0
    }

    /// To twice as many counts at least, so that a host does so a few times.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        let buckets = (bucket + 1).next_multiple_of(32).max(2 * self.counts.len());
        self.counts.reserve_exact(buckets - self.counts.len());
        self.counts.resize(buckets, 0);
    }

    /// The latencies, with the buckets whose counts were full, each as often as they were.
    fn latencies(&self, joined: u32, full: impl Iterator<Item = u32>) -> Option<Latencies> {
        let mut counts: Vec<u64> = self.counts.iter().map(|&count| count.into()).collect();
        for bucket in full {
            counts[bucket as usize] += 1 << u16::BITS;
        }
        Latencies::new(&counts, joined, self.sum, (self.min, self.max))
    }
}

/// What is counted of a delivery in addition to the totals of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Nothing.
    Nothing,
    /// The latency by class.
    Class,
    /// The latency by class and by host.
    Host,
    /// More than that, or something else.
    More,
}

/// Deliveries whose latencies are counted together, where they are counted by host.
const BATCH: usize = 256;

/// The latency of a delivery that is not counted yet.
#[derive(Clone, Copy, Debug)]
struct Uncounted {
    latency_ps: u64,
    host: u32,
    class: u16,
}

/// Deliveries of flows, each known by class and sending host, in the order of these.
#[derive(Debug, Default)]
struct Flows {
    keys: Vec<(u16, u32)>,
    progress: Vec<FlowProgress>,
}

#[derive(Debug)]
pub(crate) struct Statistics {
    latency: LatencyStats,
    detail: Detail,
    flows: Flows,
    boundary: u64,
    beyond_boundary: Vec<Delivery>,
    classes: Vec<ClassStats>,
    hosts: Vec<HostLatencies>,
    /// Logarithm of the number of buckets that `hosts` counts together.
    joined: u32,
    /// Host and bucket of counts of `hosts` that were full, each as often as they were.
    full: Vec<(u32, u32)>,
    /// Deliveries whose latencies neither `classes` nor `hosts` count yet; none between two runs of the engine. The
    /// counts of many hosts do not fit into the cache; those of a batch are fetched from memory at the same time.
    batch: Vec<Uncounted>,
    pub delivered_packets: u64,
    pub packet_hops: u64,
}

impl Statistics {
    pub fn new(latency: LatencyStats, hosts: usize) -> Self {
        let per_host = if latency.by_host() { hosts } else { 0 };
        Self {
            latency,
            detail: match latency {
                LatencyStats::Off => Detail::Nothing,
                LatencyStats::Class => Detail::Class,
                LatencyStats::Host | LatencyStats::HostCoarse => Detail::Host,
            },
            batch: Vec::with_capacity(if per_host > 0 { BATCH } else { 0 }),
            flows: Flows::default(),
            boundary: 0,
            beyond_boundary: Vec::new(),
            classes: Vec::new(),
            hosts: vec![HostLatencies::default(); per_host],
            joined: match latency {
                LatencyStats::HostCoarse => JOINED,
                _ => 0,
            },
            full: Vec::new(),
            delivered_packets: 0,
            packet_hops: 0,
        }
    }

    /// Moves the boundary, and counts what has come before it.
    pub fn set_boundary(&mut self, boundary: u64, hosts: &mut [Host]) {
        self.boundary = boundary;
        let mut beyond_boundary = std::mem::take(&mut self.beyond_boundary);
        beyond_boundary.retain(|delivery| {
            let due = delivery.done < boundary;
            if due {
                self.count(delivery, &mut hosts[delivery.host as usize]);
            }
            !due
        });
        self.beyond_boundary = beyond_boundary;
    }

    #[inline(always)]
    pub fn record(&mut self, delivery: Delivery, host: &mut Host) {
        if delivery.done < self.boundary {
            self.count(&delivery, host);
        } else {
            self.beyond_boundary.push(delivery);
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
        match self.detail {
            Detail::Nothing => {}
            Detail::Class => class.latency.record(delivery.latency),
            Detail::Host => self.add_to_batch(delivery),
            Detail::More => self.count_more(*delivery),
        }
    }

    /// By value, so that a delivery is in memory only where it is called.
    #[cold]
    #[inline(never)]
    fn count_more(&mut self, delivery: Delivery) {
        match self.latency {
            LatencyStats::Off => {}
            LatencyStats::Class => {
                let class = &mut self.classes[usize::from(delivery.class)];
                class.latency.record(delivery.latency);
            }
            LatencyStats::Host | LatencyStats::HostCoarse => self.add_to_batch(&delivery),
        }
        let key = (delivery.class, delivery.source);
        if let Ok(flow) = self.flows.keys.binary_search(&key) {
            let progress = &mut self.flows.progress[flow];
            progress.delivered_bytes += u64::from(delivery.payload);
            let done = Time::from_ps(delivery.done);
            progress.last_delivery = progress.last_delivery.max(done);
            progress.marked_packets += u32::from(delivery.marked);
            progress.hops = progress.hops.max(delivery.hops);
        }
    }

    #[inline(always)]
    fn add_to_batch(&mut self, delivery: &Delivery) {
        self.batch.push(Uncounted {
            latency_ps: delivery.latency,
            host: delivery.host,
            class: delivery.class,
        });
        if self.batch.len() >= BATCH {
            self.count_batch();
        }
    }

    /// Counts the latencies of a batch by class and by host. To be called at the end of each run of the engine, so
    /// that its callers find all of them counted.
    #[inline(never)]
    pub fn count_batch(&mut self) {
        let joined = self.joined;
        let (classes, hosts) = (&mut self.classes[..], &mut self.hosts[..]);
        // Coarse counts stay in the cache.
        if joined == 0 {
            for one in &self.batch {
                let bucket = LatencyCounts::bucket(one.latency_ps / 1000);
                prefetch(&hosts[one.host as usize].counts, bucket);
            }
        }
        for one in &self.batch {
            let bucket = LatencyCounts::bucket(one.latency_ps / 1000);
            let class = &mut classes[usize::from(one.class)];
            class.latency.record_in(bucket, one.latency_ps);
            let of_host = bucket >> joined;
            if hosts[one.host as usize].record_in(of_host, one.latency_ps) {
                self.full.push((one.host, of_host as u32));
            }
        }
        self.batch.clear();
    }

    /// Counts the deliveries of these flows, known by class and sending host, from now on.
    pub fn track_flows(&mut self, mut keys: Vec<(u16, u32)>) {
        if keys.is_empty() {
            return;
        }
        keys.sort_unstable();
        self.flows.progress = vec![FlowProgress::default(); keys.len()];
        self.flows.keys = keys;
        self.detail = Detail::More;
    }

    /// What has been delivered of a flow that is tracked.
    pub fn flow(&self, class: u16, source: u32) -> FlowProgress {
        let flow = self.flows.keys.binary_search(&(class, source));
        flow.map_or_else(|_| FlowProgress::default(), |at| self.flows.progress[at])
    }

    #[cold]
    fn add_class(&mut self, index: usize) {
        self.classes.resize_with(index + 1, ClassStats::default);
    }

    pub fn class(&self, class: u16) -> Option<&ClassStats> {
        self.classes.get(usize::from(class))
    }

    pub fn host_latency(&self, host: usize) -> Option<Latencies> {
        let full = self.full.iter().filter(|full| full.0 as usize == host);
        self.hosts
            .get(host)?
            .latencies(self.joined, full.map(|full| full.1))
    }

    /// Payload of the deliveries beyond the boundary.
    pub fn payload_beyond_boundary(&self) -> u64 {
        let payload = |delivery: &Delivery| u64::from(delivery.payload);
        self.beyond_boundary.iter().map(payload).sum()
    }

    /// Discards the latencies so far; the counters go on.
    pub fn reset_latency(&mut self) {
        for class in &mut self.classes {
            class.latency = LatencyCounts::default();
        }
        self.hosts.fill(HostLatencies::default());
        self.full.clear();
    }
}

#[cfg(test)]
mod tests;

//! Deliveries per host and class, and latencies. Deliveries beyond the running call's end are stored, so that counts
//! are exact.

mod latencies;

use std::collections::BTreeSet;

use latencies::{CoarseLatencies, HostLatencies, LatencyCounts};

use crate::plane::Host;
use silvan_core::Time;
use silvan_model::{FlowProgress, Latencies, LatencyStats};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub done: u64,
    pub host: u32,
    pub payload: u32,
    /// From the start of the injection to `done`, in ps.
    pub latency: u64,
    pub source: u32,
    pub class: u16,
    pub hops: u8,
    pub marked: bool,
    pub behind: u32,
}

/// Counts of one traffic class.
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// Payload bytes delivered.
    pub delivered_bytes: u64,
    /// Data packets delivered.
    pub delivered_packets: u64,
    /// Delivered packets with FECN.
    pub marked_packets: u64,
    latency: LatencyCounts,
}

impl ClassStats {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Nothing,
    Class,
    Host,
    More,
}

impl Detail {
    fn of(latency: LatencyStats) -> Self {
        match latency {
            LatencyStats::Off => Self::Nothing,
            LatencyStats::Class => Self::Class,
            LatencyStats::Host | LatencyStats::HostCoarse => Self::Host,
        }
    }
}

const BATCH: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
struct Uncounted {
    latency_ps: u64,
    host: u32,
    class: u16,
}

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
    coarse_hosts: Vec<CoarseLatencies>,
    full: Vec<(u32, u32)>,
    /// The first `uncounted` deliveries wait for `classes` and `hosts`; none between two runs. Counts of many hosts
    /// exceed the cache; a batch fetches them at the same time.
    batch: Box<[Uncounted; BATCH]>,
    uncounted: usize,
    log: Option<Vec<Delivery>>,
    /// By source and host, all deliveries since the call of `record_between`.
    recorded: Vec<((u32, u32), Vec<Delivery>)>,
    pub leapt_packet_hops: u64,
    pub delivered_packets: u64,
    pub packet_hops: u64,
    /// True once congestion control has held a flow back, moved a packet to another lane or path, or discarded one.
    pub control_acted: bool,
}

impl Statistics {
    pub fn new(latency: LatencyStats, hosts: usize) -> Self {
        Self {
            latency,
            detail: Detail::of(latency),
            flows: Flows::default(),
            boundary: 0,
            beyond_boundary: Vec::new(),
            classes: Vec::new(),
            hosts: match latency {
                LatencyStats::Host => vec![HostLatencies::default(); hosts],
                _ => Vec::new(),
            },
            coarse_hosts: match latency {
                LatencyStats::HostCoarse => vec![CoarseLatencies::default(); hosts],
                _ => Vec::new(),
            },
            full: Vec::new(),
            batch: Box::new([Uncounted::default(); BATCH]),
            uncounted: 0,
            log: None,
            recorded: Vec::new(),
            leapt_packet_hops: 0,
            delivered_packets: 0,
            packet_hops: 0,
            control_acted: false,
        }
    }

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
            Detail::Class => {
                class.latency.record(delivery.latency);
            }
            Detail::Host => self.add_to_batch(delivery),
            Detail::More => self.count_more(*delivery),
        }
    }

    /// By value, so that a delivery is in memory only if this is called.
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
        if let Some(log) = &mut self.log {
            log.push(delivery);
        }
        let ends = (delivery.source, delivery.host);
        let mut recorded = self.recorded.iter_mut();
        if let Some((_, recorded)) = recorded.find(|recorded| recorded.0 == ends) {
            recorded.push(delivery);
        }
    }

    /// Records the deliveries of a host that come from `source`.
    pub fn record_between(&mut self, source: u32, host: u32) {
        self.recorded.push(((source, host), Vec::new()));
        self.detail = Detail::More;
    }

    pub fn take_recorded(&mut self, source: u32, host: u32) -> Vec<Delivery> {
        let ends = (source, host);
        let place = self.recorded.iter().position(|recorded| recorded.0 == ends);
        let recorded = place.map(|place| self.recorded.swap_remove(place).1);
        self.choose_detail();
        recorded.unwrap_or_default()
    }

    fn choose_detail(&mut self) {
        let more = self.log.is_some() || !self.flows.keys.is_empty() || !self.recorded.is_empty();
        self.detail = match more {
            true => Detail::More,
            false => Detail::of(self.latency),
        };
    }

    /// Adds deliveries to `log` from now on.
    pub fn resume_log(&mut self, log: Vec<Delivery>) {
        self.log = Some(log);
        self.detail = Detail::More;
    }

    pub fn take_log(&mut self) -> Vec<Delivery> {
        let log = self.log.take();
        self.choose_detail();
        log.unwrap_or_default()
    }

    pub fn boundary(&self) -> u64 {
        self.boundary
    }

    /// Counts the deliveries of a log `times` times again; the last of each flow is then `later`.
    pub fn count_again(&mut self, log: &[Delivery], times: u64, later: u64, hosts: &mut [Host]) {
        let flow_of = |delivery: &Delivery| {
            let key = (delivery.class, delivery.source);
            self.flows.keys.binary_search(&key).ok()
        };
        let flows: BTreeSet<usize> = log.iter().filter_map(flow_of).collect();
        for flow in flows {
            let last = &mut self.flows.progress[flow].last_delivery;
            *last = Time::from_ps(last.as_ps() + later);
        }
        for delivery in log {
            self.count_times(delivery, times, &mut hosts[delivery.host as usize]);
        }
    }

    /// Counts `times` deliveries that differ in the time at most.
    pub fn count_times(&mut self, delivery: &Delivery, times: u64, host: &mut Host) {
        let bytes = u64::from(delivery.payload) * times;
        let hops = u64::from(delivery.hops) * times;
        host.delivered += bytes;
        host.delivered_packets += times;
        self.delivered_packets += times;
        self.packet_hops += hops;
        self.leapt_packet_hops += hops;
        let index = usize::from(delivery.class);
        if index >= self.classes.len() {
            self.add_class(index);
        }
        let class = &mut self.classes[index];
        class.delivered_bytes += bytes;
        class.delivered_packets += times;
        class.marked_packets += u64::from(delivery.marked) * times;
        self.count_latency_again(delivery, times);
        let key = (delivery.class, delivery.source);
        if let Ok(flow) = self.flows.keys.binary_search(&key) {
            self.flows.progress[flow].delivered_bytes += bytes;
        }
    }

    /// The last delivery of a message on the flow.
    pub fn note_last(&mut self, last: &Delivery) {
        let key = (last.class, last.source);
        if let Ok(flow) = self.flows.keys.binary_search(&key) {
            let progress = &mut self.flows.progress[flow];
            progress.last_delivery = progress.last_delivery.max(Time::from_ps(last.done));
            progress.hops = progress.hops.max(last.hops);
        }
    }

    fn count_latency_again(&mut self, delivery: &Delivery, times: u64) {
        if self.latency == LatencyStats::Off {
            return;
        }
        let (ps, host) = (delivery.latency, delivery.host as usize);
        let class = &mut self.classes[usize::from(delivery.class)];
        let bucket = class.latency.record_times(ps, times);
        let (place, full) = match self.latency {
            LatencyStats::Off | LatencyStats::Class => return,
            LatencyStats::Host => self.hosts[host].record_times(bucket, ps, times),
            LatencyStats::HostCoarse => self.coarse_hosts[host].record_times(bucket, ps, times),
        };
        let full = (0..full).map(|_| (delivery.host, place));
        self.full.extend(full);
    }

    #[inline(always)]
    fn add_to_batch(&mut self, delivery: &Delivery) {
        let place = self.uncounted % BATCH;
        self.batch[place] = Uncounted {
            latency_ps: delivery.latency,
            host: delivery.host,
            class: delivery.class,
        };
        self.uncounted = place + 1;
        if place + 1 == BATCH {
            self.count_batch();
        }
    }

    #[inline(never)]
    pub fn count_batch(&mut self) {
        let batch = &self.batch[..self.uncounted];
        let is_coarse = !self.coarse_hosts.is_empty();
        for one in batch {
            match is_coarse {
                true => self.coarse_hosts[one.host as usize].prefetch(one.latency_ps),
                false => self.hosts[one.host as usize].prefetch(one.latency_ps),
            }
        }
        for one in batch {
            let class = &mut self.classes[usize::from(one.class)];
            let bucket = class.latency.record(one.latency_ps);
            let full = match is_coarse {
                true => self.coarse_hosts[one.host as usize].record_in(bucket, one.latency_ps),
                false => self.hosts[one.host as usize].record_in(bucket, one.latency_ps),
            };
            self.full.extend(full.map(|place| (one.host, place)));
        }
        self.uncounted = 0;
    }

    pub fn track_flows(&mut self, mut keys: Vec<(u16, u32)>) {
        if keys.is_empty() {
            return;
        }
        keys.sort_unstable();
        self.flows.progress = vec![FlowProgress::default(); keys.len()];
        self.flows.keys = keys;
        self.detail = Detail::More;
    }

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
        let full = full.map(|full| full.1);
        match self.latency {
            LatencyStats::Off | LatencyStats::Class => None,
            LatencyStats::Host => self.hosts.get(host)?.latencies(full),
            LatencyStats::HostCoarse => self.coarse_hosts.get(host)?.latencies(full),
        }
    }

    pub fn payload_beyond_boundary(&self) -> u64 {
        let payload = |delivery: &Delivery| u64::from(delivery.payload);
        self.beyond_boundary.iter().map(payload).sum()
    }

    pub fn reset_latency(&mut self) {
        for class in &mut self.classes {
            class.latency = LatencyCounts::default();
        }
        self.hosts.fill(HostLatencies::default());
        self.coarse_hosts.fill(CoarseLatencies::default());
        self.full.clear();
    }
}

#[cfg(test)]
mod tests;

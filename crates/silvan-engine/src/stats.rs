//! What was delivered: per host, per class, and how late.
//!
//! The engine knows a delivery before its time (the sink is computed at the last grant). A delivery
//! at or beyond the end of the running call is kept until the call that contains it, so that every
//! count is exact at every boundary.

use hdrhistogram::Histogram;

use crate::config::LatencyStats;
use crate::plane::Host;

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
    /// Latencies in nanoseconds, if kept.
    pub latency: Option<Histogram<u64>>,
}

#[derive(Debug)]
pub(crate) struct Statistics {
    latency: LatencyStats,
    boundary: u64,
    late: Vec<Delivery>,
    classes: Vec<ClassStats>,
    hosts: Vec<Option<Histogram<u64>>>,
    pub delivered_packets: u64,
    pub packet_hops: u64,
}

/// Two significant digits: one part in 100, a few kilobytes per histogram.
fn histogram() -> Option<Histogram<u64>> {
    Histogram::new(2).ok()
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
            hosts: vec![None; per_host],
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

    #[inline]
    pub fn record(&mut self, delivery: Delivery, host: &mut Host) {
        if delivery.done < self.boundary {
            self.count(&delivery, host);
        } else {
            self.late.push(delivery);
        }
    }

    #[inline]
    fn count(&mut self, delivery: &Delivery, host: &mut Host) {
        host.delivered += u64::from(delivery.payload);
        host.delivered_packets += 1;
        self.delivered_packets += 1;
        self.packet_hops += u64::from(delivery.hops);
        let index = usize::from(delivery.class);
        if index >= self.classes.len() {
            self.classes.resize_with(index + 1, ClassStats::default);
        }
        let class = &mut self.classes[index];
        class.delivered_bytes += u64::from(delivery.payload);
        class.delivered_packets += 1;
        class.marked_packets += u64::from(delivery.marked);
        if self.latency == LatencyStats::Off {
            return;
        }
        let nanoseconds = delivery.latency / 1000;
        if class.latency.is_none() {
            class.latency = histogram();
        }
        if let Some(histogram) = &mut class.latency {
            histogram.saturating_record(nanoseconds);
        }
        if self.latency == LatencyStats::Host {
            let slot = &mut self.hosts[delivery.host as usize];
            if slot.is_none() {
                *slot = histogram();
            }
            if let Some(histogram) = slot {
                histogram.saturating_record(nanoseconds);
            }
        }
    }

    pub fn class(&self, class: u16) -> Option<&ClassStats> {
        self.classes.get(usize::from(class))
    }

    pub fn host_latency(&self, host: usize) -> Option<&Histogram<u64>> {
        self.hosts.get(host)?.as_ref()
    }

    /// Deliveries beyond the boundary.
    pub fn late(&self) -> &[Delivery] {
        &self.late
    }

    /// Starts the latency histograms anew; the counters go on.
    pub fn reset_latency(&mut self) {
        for class in &mut self.classes {
            class.latency = None;
        }
        self.hosts.fill(None);
    }
}

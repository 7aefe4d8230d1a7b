//! Scripted traffic that notes when each packet starts and when it is delivered.

use silvan_core::{HostId, Sl, Span, Time};
use silvan_engine::workload::{Gate, Offer, Poll, Transit, Workload};

use crate::common::MTU;

/// Packets from one host to another.
#[derive(Clone, Debug)]
pub struct Flow {
    pub source: usize,
    pub destination: usize,
    pub sl: u8,
    pub start: Time,
    /// No packet starts at or after this instant.
    pub stop: Time,
    /// Most packets that are sent.
    pub packets: u64,
    /// Payloads, used in turn. A delivery out of order shows as a wrong size if they differ.
    pub sizes: Vec<u32>,
    /// Packets per message.
    pub message: u64,
    /// Least time from the start of a packet to that of the next.
    pub gap: Span,
}

impl Flow {
    /// Full packets without end and without pause, from time zero, on SL 0.
    pub fn saturating(source: usize, destination: usize) -> Self {
        Self {
            source,
            destination,
            sl: 0,
            start: Time::ZERO,
            stop: Time::MAX,
            packets: u64::MAX,
            sizes: vec![MTU],
            message: 1,
            gap: Span::ZERO,
        }
    }

    /// Makes a saturating flow that ends after `packets` packets.
    pub fn burst(source: usize, destination: usize, packets: u64) -> Self {
        Self {
            packets,
            ..Self::saturating(source, destination)
        }
    }

    pub fn size(&self, sequence: usize) -> u32 {
        self.sizes[sequence % self.sizes.len()]
    }
}

/// Progress of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Start time of each packet.
    pub injected: Vec<Time>,
    /// Delivery time of each packet.
    pub delivered: Vec<Time>,
}

impl Record {
    /// Packets delivered in `[from, to)`.
    pub fn delivered_in(&self, from: Time, to: Time) -> u64 {
        let inside = |&&done: &&Time| from <= done && done < to;
        self.delivered.iter().filter(inside).count() as u64
    }
}

/// Flows, each a separate traffic class; flows of one host take turns. With `TOLD` an engine with windows notifies
/// their hosts of deliveries, too.
#[derive(Clone, Debug)]
pub struct Script<const TOLD: bool = false> {
    pub flows: Vec<Flow>,
    pub records: Vec<Record>,
    /// The flow of each delivery, in the order of deliveries.
    pub order: Vec<usize>,
    /// True if packets of a flow are delivered in order; otherwise `arrived` has the sizes of delivered packets, by
    /// flow.
    pub in_order: bool,
    pub arrived: Vec<Vec<u32>>,
    /// True if the script needs deliveries.
    pub follows: bool,
    /// By host: when it was polled.
    pub polls: Vec<Vec<Time>>,
    /// By host: its flows, and the one that is first in turn.
    hosts: Vec<(Vec<usize>, usize)>,
}

impl Script {
    pub fn new(flows: &[Flow], hosts: usize) -> Self {
        let mut by_host = vec![(Vec::new(), 0); hosts];
        for (index, flow) in flows.iter().enumerate() {
            by_host[flow.source].0.push(index);
        }
        Self {
            flows: flows.to_vec(),
            records: vec![Record::default(); flows.len()],
            order: Vec::new(),
            in_order: true,
            arrived: vec![Vec::new(); flows.len()],
            follows: true,
            polls: vec![Vec::new(); hosts],
            hosts: by_host,
        }
    }

    /// Converts the script for an engine with windows, with deliveries if `TOLD`.
    pub fn by_windows<const TOLD: bool>(self) -> Script<TOLD> {
        let Self {
            flows,
            records,
            order,
            in_order,
            arrived,
            polls,
            hosts,
            follows: _,
        } = self;
        Script {
            flows,
            records,
            order,
            in_order,
            arrived,
            polls,
            hosts,
            follows: TOLD,
        }
    }
}

impl<const TOLD: bool> Script<TOLD> {
    /// Payload of the first `count` packets of a flow.
    pub fn payload(&self, flow: usize, count: usize) -> u64 {
        let sizes = (0..count).map(|sequence| self.flows[flow].size(sequence));
        sizes.map(u64::from).sum()
    }
}

impl<const TOLD: bool> Workload for Script<TOLD> {
    const LINKS_HOSTS: bool = TOLD;

    fn needs_delivery(&self) -> bool {
        self.follows
    }

    fn tells_only_sender_of(&self, _: u16) -> bool {
        true
    }

    fn poll<G: Gate>(&mut self, host: HostId, now: Time, gate: &mut G) -> Poll {
        self.polls[host.index()].push(now);
        let (flows, first) = &mut self.hosts[host.index()];
        let mut wait = Time::MAX;
        for place in (0..flows.len()).map(|step| (*first + step) % flows.len()) {
            let index = flows[place];
            let (flow, record) = (&self.flows[index], &mut self.records[index]);
            let sent = record.injected.len();
            if sent as u64 == flow.packets || now >= flow.stop {
                continue;
            }
            let paced = record.injected.last().map(|&last| last + flow.gap);
            let ready = paced.unwrap_or(flow.start).max(flow.start);
            let sl = Sl::try_from(flow.sl).unwrap();
            let destination = HostId::new(flow.destination);
            let ready = ready.max(gate.release(destination, sl));
            if ready > now {
                wait = wait.min(ready);
                continue;
            }
            let bytes = flow.size(sent);
            if !gate.lane_open(sl, bytes) {
                // The host is polled again when the packet is withdrawn.
                wait = wait.min(flow.stop);
                continue;
            }
            record.injected.push(now);
            *first = (place + 1) % flows.len();
            return Poll::Send(Offer {
                behind: 0,
                number: 0,
                queue: 0,
                dst: destination,
                bytes,
                sl,
                class: u16::try_from(index).unwrap(),
                last: (sent as u64 + 1) % flow.message == 0,
            });
        }
        if wait == Time::MAX {
            Poll::Idle
        } else {
            Poll::WaitUntil(wait)
        }
    }

    fn next_change(&self, _: Time) -> Option<Time> {
        None
    }

    fn apply_change(&mut self, _: Time, _: &mut Vec<HostId>) {}

    fn on_delivered(
        &mut self,
        src: HostId,
        offer: &Offer,
        _: Transit,
        now: Time,
        _: &mut Vec<HostId>,
    ) {
        let index = usize::from(offer.class);
        let (flow, record) = (&self.flows[index], &mut self.records[index]);
        let sequence = record.delivered.len();
        assert_eq!(src.index(), flow.source);
        assert_eq!(offer.dst.index(), flow.destination);
        assert_eq!(offer.sl.as_u8(), flow.sl);
        assert!(
            !self.in_order || offer.bytes == flow.size(sequence),
            "packet {sequence} of flow {index} has been overtaken"
        );
        self.arrived[index].push(offer.bytes);
        assert!(sequence < record.injected.len(), "made out of nothing");
        record.delivered.push(now);
        self.order.push(index);
    }
}

mod build;
mod heads;

use std::sync::Arc;

use silvan_core::{Bytes, HostId, PortId, Rate, Time, Vl};
use silvan_fabric::routing::ComputedRoutes;

use crate::bit_errors::BadLinks;
use crate::buffers::Buffers;
use crate::bypass::Bypass;
use crate::events::EventQueue;
use crate::extension::Extensions;
use crate::fifo::Fifos;
use crate::packet::{CONTROL, NONE, Packet, Pool, Queue};
use crate::partition::Remote;
use crate::pfc::Pauses;
use crate::prefetching::WorkingSet;
use crate::reconfiguration::Reconfiguration;
use crate::records::{Credits, Element, InPort, Next, OutLane, OutPort, Overflow};
use crate::reordering::Reordering;
use crate::routing::Routing;
use crate::table::Table;
use crate::transport::Transport;
use crate::variant::{EngineVariant, General};
use crate::vlarb::{VlState, VlTables};
use silvan_model::EngineConfig;

pub(crate) const LATEST: u64 = silvan_model::LATEST.as_ps();

pub(crate) const NO_ROUTE: u8 = 0xff;

/// Output of a head whose table entry has not been read: this and the entry's index.
pub(crate) const UNREAD: u32 = 1 << 31;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Host {
    pub port: u32,
    pub notifications: u32,
    /// Time of the scheduled event; `u64::MAX` for none.
    pub wake_at: u64,
    pub next_start: u64,
    pub sink_free: u64,
    pub delivered: u64,
    pub delivered_packets: u64,
    pub injected: u64,
    pub data_sent_last: bool,
    pub charges: u32,
    pub fecn_received: u64,
    pub becn_received: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkRate {
    pub rate: Rate,
    /// For a packet of MTU size, in ps.
    pub ser_mtu: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Reads {
    pub limit: u8,
    /// Rate of a read relative to the link, in per cent.
    pub speedup_percent: u32,
    pub active: Vec<u8>,
    pub pointer: Vec<u8>,
    pub blocked: Vec<[u64; 4]>,
    pub bypass: Option<Bypass>,
}

impl Reads {
    /// Returns true if packets of this input must wait for an arbitration.
    #[inline]
    pub fn must_queue(&self, element: u32, local: u32) -> bool {
        self.bypass.is_some()
            || self.blocked[element as usize][(local / 64) as usize] >> (local % 64) & 1 == 1
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Plane {
    pub outs: Table<OutPort>,
    pub lanes: Table<OutLane>,
    pub credits: Table<Credits>,
    pub pauses: Option<Box<Pauses>>,
    pub ins: Table<InPort>,
    pub elements: Table<Element>,
    /// From a tail leaving an input buffer to usable credit upstream, in ps, by class.
    pub credit_delays: Table<u64>,
    pub queues: Table<Queue>,
    pub tables: Table<u8>,
    pub rule: Option<Arc<ComputedRoutes>>,
    pub redirect: bool,
    pub routing: Routing,
    pub reordering: Option<Box<Reordering>>,
    /// Reliable connections, if hosts have retries.
    pub transport: Option<Box<Transport>>,
    /// True if packets carry the number of their message, because some may be lost.
    pub numbers: bool,
    pub remote: Remote,
    pub overflow: Overflow,
    pub buffers: Option<Box<Buffers>>,
    pub collected: u64,
    pub pool: Pool,
    pub extensions: Extensions,
    pub hosts: Table<Host>,
    pub events: EventQueue,
    pub rates: Table<LinkRate>,
    /// From a grant to the eligible head at the far end, by output port.
    pub head_delay: Table<u64>,
    pub queue_delay: Table<u64>,
    pub propagation: Table<u64>,
    pub capacities: Table<i32>,
    pub vl_tables: Vec<VlTables>,
    pub vl_states: Vec<VlState>,
    /// By output: bit `vl` is set if packets wait for that lane; empty with one lane.
    pub busy_lanes: Vec<u16>,
    pub mixed: bool,
    pub reads: Option<Reads>,
    pub fifos: Option<Fifos>,
    pub oldest_first: bool,
    pub vls: usize,
    pub mtu_wire: u32,
    pub mtu_blocks: i32,
    pub header: u32,
    /// Times of MTU payload at the injection and the sink rate.
    pub injection_mtu: u64,
    pub sink_mtu: u64,
    own_sink_rates: Vec<Option<Rate>>,
    /// Times that a CNP takes of injection and sink.
    pub injection_cnp: u64,
    pub sink_cnp: u64,
    /// True if sinks begin with the first flit of a packet.
    pub sink_cuts_through: bool,
    pub crossbar_cuts_through: bool,
    pub fabric_ports: usize,
    pub working_set: WorkingSet,
    pub config: EngineConfig,
    pub reconfiguration: Reconfiguration,
    pub bad_links: BadLinks,
}

impl Plane {
    #[inline(always)]
    pub fn serialisation(&self, out: &OutPort, wire: u16) -> u64 {
        let link = &self.rates[usize::from(out.rate)];
        if u32::from(wire) == self.mtu_wire {
            link.ser_mtu
        } else {
            link.rate
                .span_for(Bytes::from_bytes(u64::from(wire)))
                .as_ps()
        }
    }

    #[inline]
    pub fn known_port(&self, port: PortId) -> u32 {
        assert!(port.index() < self.fabric_ports, "no such port");
        port.index() as u32
    }

    #[inline]
    pub fn known_host(&self, host: HostId) -> u32 {
        assert!(host.index() < self.hosts.len(), "no such host");
        host.index() as u32
    }

    /// Panics if the fabric has no such port, or the run no such lane.
    pub fn known_lane(&self, port: PortId, vl: Vl) -> usize {
        assert!(vl.index() < self.vls, "no such virtual lane");
        self.lane(self.known_port(port), vl.index())
    }

    pub fn oldest_of(&self, lane: usize, blocked: Option<&[u64; 4]>) -> Option<u32> {
        let record = &self.lanes[lane];
        let mut best = None;
        for word in 0..usize::from(record.words) {
            let mut bits = record.inputs[word] & !blocked.map_or(0, |blocked| blocked[word]);
            while bits != 0 {
                let local = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let head = self
                    .pool
                    .first(self.queues[(record.queues + local) as usize]);
                let since = self.pool.eligible(head);
                if best.is_none_or(|(earliest, _)| since < earliest) {
                    best = Some((since, local));
                }
            }
        }
        best.map(|(_, local)| local)
    }

    pub fn pick_limited(&self, reads: &Reads, output: u32, lane: usize) -> Option<u32> {
        self.pick_of_others(lane, &self.limited_inputs(reads, output, lane))
    }

    pub fn limited_inputs(&self, reads: &Reads, output: u32, lane: usize) -> [u64; 4] {
        let mut blocked = reads.blocked[self.ins[output as usize].element as usize];
        if let Some(bypass) = &reads.bypass {
            self.block_overtaking(bypass, lane, &mut blocked);
        }
        blocked
    }

    pub fn pick_of_others(&self, lane: usize, blocked: &[u64; 4]) -> Option<u32> {
        if self.oldest_first {
            self.oldest_of(lane, Some(blocked))
        } else {
            self.lanes[lane].pick::<General>(self.credits[lane].pointer, Some(blocked))
        }
    }

    /// Credits that suffice for some waiting packet on a port with one lane.
    #[inline(always)]
    pub fn least_needed(&self, output: u32, lane: usize) -> i32 {
        let all_mtu = u64::from(self.outs[output as usize].waiting) * u64::from(self.mtu_wire);
        if u64::from(self.lanes[lane].queued_bytes) == all_mtu {
            self.mtu_blocks
        } else {
            1
        }
    }

    pub fn element_of(&self, port: u32) -> Element {
        self.elements[self.ins[port as usize].element as usize]
    }

    #[inline(always)]
    pub fn sink_time<F: EngineVariant>(&self, host: u32, payload: u32) -> u64 {
        let own = match F::PLAIN {
            true => None,
            false => self.own_sink_rate(host),
        };
        if own.is_none() && payload + self.header == self.mtu_wire {
            return self.sink_mtu;
        }
        let rate = own.or(self.config.host.sink_rate);
        rate.map_or(0, |rate| {
            rate.span_for(Bytes::from_bytes(u64::from(payload))).as_ps()
        })
    }

    pub fn own_sink_rate(&self, host: u32) -> Option<Rate> {
        self.own_sink_rates.get(host as usize).copied().flatten()
    }

    pub fn set_sink_rate(&mut self, host: HostId, rate: Option<Rate>) {
        self.own_sink_rates.resize(self.hosts.len(), None);
        self.own_sink_rates[host.index()] = rate;
    }

    pub fn cut_through<F: EngineVariant>(
        &self,
        host: u32,
        output: u32,
        packet: &Packet,
        (start, arrives): (u64, u64),
        service: u64,
    ) -> u64 {
        const FLIT: u32 = 64;
        let wire = u32::from(packet.wire());
        let first = FLIT.min(wire);
        let out = &self.outs[output as usize];
        let begins =
            start + self.serialisation(out, first as u16) + self.propagation[output as usize];
        let tail_bytes = wire - (wire - 1) / FLIT * FLIT;
        let tail = if packet.is(CONTROL) {
            0
        } else {
            self.sink_time::<F>(host, tail_bytes.min(wire - self.header))
        };
        let sink_free = self.hosts[host as usize].sink_free;
        (sink_free.max(begins) + service).max(arrives + tail)
    }

    /// If the crossbar forwards without waiting, this is the time of the link behind it.
    pub fn passing_time(&self, output: u32, wire: u16) -> u64 {
        let paced = if self.crossbar_cuts_through {
            self.link_port(PortId::new(output as usize))
        } else {
            output as usize
        };
        self.serialisation(&self.outs[paced], wire)
    }

    /// Of a packet eligible since `since`, in front of an output buffer.
    pub fn tail_through_crossbar(&self, output: u32, input: u32, since: u64, wire: u16) -> u64 {
        let upstream = self.ins[input as usize].upstream;
        let arriving = self.serialisation(&self.outs[upstream as usize], wire);
        // A packet that waited for a slower cable has been eligible for that much less.
        since + arriving.min(self.passing_time(output, wire))
    }

    #[inline(always)]
    pub fn lane(&self, port: u32, vl: usize) -> usize {
        port as usize * self.vls + vl
    }

    /// Equal to the port in plain fabrics, at compile time.
    #[inline(always)]
    pub fn lane_in<F: EngineVariant>(&self, port: u32, vl: usize) -> usize {
        if F::PLAIN {
            port as usize
        } else {
            self.lane(port, vl)
        }
    }

    #[inline(always)]
    pub fn vls_in<F: EngineVariant>(&self) -> usize {
        if F::PLAIN { 1 } else { self.vls }
    }

    #[inline(always)]
    pub fn read_limits<F: EngineVariant>(&self) -> Option<&Reads> {
        if F::PLAIN { None } else { self.reads.as_ref() }
    }

    /// The packet is on the link from `now` to `tail`.
    #[inline]
    pub fn read_end_of(&self, now: u64, tail: u64) -> u64 {
        let percent = self
            .reads
            .as_ref()
            .map_or(100, |reads| reads.speedup_percent);
        now + ((tail - now) * 100).div_ceil(u64::from(percent))
    }

    /// Appends a packet, eligible `since` then, to its virtual output queue.
    #[inline(always)]
    pub fn queue_packet<F: EngineVariant>(
        &mut self,
        output: u32,
        lane: usize,
        local: u32,
        packet: &Packet,
        since: u64,
    ) {
        if self.vls_in::<F>() > 1 {
            self.busy_lanes[output as usize] |= self.lane_bit(output, lane);
        }
        let record = &mut self.lanes[lane];
        let queue = &mut self.queues[(record.queues + local) as usize];
        let was_empty = !record.has_input(local);
        self.pool.push(queue, was_empty, *packet, since);
        record.set_input(local);
        record.queued_bytes += u32::from(packet.wire());
    }

    #[inline(always)]
    fn lane_bit(&self, output: u32, lane: usize) -> u16 {
        1 << (lane - self.lane(output, 0))
    }

    #[inline(always)]
    pub fn note_left<F: EngineVariant>(&mut self, output: u32, lane: usize) {
        if self.vls_in::<F>() > 1 && self.lanes[lane].queued_bytes == 0 {
            self.busy_lanes[output as usize] &= !self.lane_bit(output, lane);
        }
    }

    #[inline]
    pub fn link_port(&self, port: PortId) -> usize {
        let out = &self.outs[port.index()];
        if out.next != NONE && out.kind == Next::Input && out.next as usize >= self.fabric_ports {
            out.next as usize
        } else {
            port.index()
        }
    }

    #[inline]
    pub fn capacity(&self, output: u32) -> i32 {
        self.capacities[output as usize]
    }

    /// In blocks; 0 without a cable.
    #[inline]
    pub fn input_capacity(&self, input: u32) -> i32 {
        match self.ins[input as usize].upstream {
            NONE => 0,
            upstream => self.capacity(upstream),
        }
    }

    pub fn host_behind(&self, output: u32) -> u32 {
        let out = &self.outs[output as usize];
        match out.kind {
            Next::Input => self.outs[out.next as usize].next,
            _ => out.next,
        }
    }

    pub fn bytes(&self) -> usize {
        self.outs.capacity() * size_of::<OutPort>()
            + self.lanes.capacity() * size_of::<OutLane>()
            + self.ins.capacity() * size_of::<InPort>()
            + self.credits.capacity() * size_of::<Credits>()
            + self.elements.capacity() * size_of::<Element>()
            + self.queues.capacity() * size_of::<Queue>()
            + self.tables.capacity()
            + self.rule.as_ref().map_or(0, |rule| rule.bytes())
            + self.routing.bytes()
            + self.reordering.as_ref().map_or(0, |order| order.bytes())
            + self
                .transport
                .as_ref()
                .map_or(0, |transport| transport.bytes())
            + self.overflow.bytes()
            + self.buffers.as_ref().map_or(0, |buffers| buffers.bytes())
            + self.pauses.as_ref().map_or(0, |pauses| pauses.bytes())
            + self.pool.bytes()
            + self.extensions.bytes()
            + self.fifos.as_ref().map_or(0, Fifos::bytes)
            + self.bad_links.bytes()
            + self.hosts.capacity() * size_of::<Host>()
            + self.events.bytes()
            + (self.head_delay.capacity() + self.propagation.capacity()) * 8
            + self.capacities.capacity() * 4
            + self.vl_states.capacity() * size_of::<VlState>()
            + self.busy_lanes.capacity() * 2
    }
}

#[inline]
pub(crate) fn time(ps: u64) -> Time {
    Time::from_ps(ps)
}

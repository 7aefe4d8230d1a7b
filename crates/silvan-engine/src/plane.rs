//! The state of the data plane.

mod build;

use std::sync::Arc;

use silvan_core::prefetch::prefetch;
use silvan_core::{Bytes, HostId, PortId, Rate, Time, Vl};
use silvan_fabric::routing::ComputedRoutes;

use crate::bypass::Bypass;
use crate::events::{EventQueue, Head};
use crate::extension::Extensions;
use crate::fifo::Fifos;
use crate::packet::{CONTROL, NONE, Packet, Pool, Queue};
use crate::partition::{REMOTE, Remote};
use crate::pfc::Pauses;
use crate::prefetching::WorkingSet;
use crate::reconfiguration::Reconfiguration;
use crate::records::{COLLECTED_EVERY, Credits, Element, InPort, Next, OutLane, OutPort, Overflow};
use crate::reordering::Reordering;
use crate::routing::{CHOOSE, Routing};
use crate::table::Table;
use crate::variant::{EngineVariant, General};
use crate::vlarb::{VlState, VlTables};
use silvan_model::EngineConfig;

/// The latest instant that a run reaches.
pub(crate) const LATEST: u64 = silvan_model::LATEST.as_ps();

/// A table entry without a route.
pub(crate) const NO_ROUTE: u8 = 0xff;

/// The output of a head that has not been read from its table yet: this and the entry's index.
pub(crate) const UNREAD: u32 = 1 << 31;

/// One host. Its first cache line has what each packet needs.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Host {
    /// Its port.
    pub port: u32,
    /// Notifications that wait to be sent.
    pub notifications: u32,
    /// The event that is scheduled for it; `u64::MAX` for none.
    pub wake_at: u64,
    /// Earliest start of the next packet by the injection rate.
    pub next_start: u64,
    /// The sink is busy until then.
    pub sink_free: u64,
    /// Payload delivered here, and how many data packets.
    pub delivered: u64,
    pub delivered_packets: u64,
    /// Payload whose injection has started.
    pub injected: u64,
    /// Whether the last packet was data, so that a notification is next.
    pub data_sent_last: bool,
    /// CNPs whose share of the injection rate has not been accounted for yet.
    pub charges: u32,
    /// Data packets that arrived with FECN.
    pub fecn_received: u64,
    /// Notifications with BECN that arrived.
    pub becn_received: u64,
}

/// Rate of a link as the hot loop wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkRate {
    pub rate: Rate,
    /// Serialisation time of a packet of MTU size, in ps.
    pub ser_mtu: u64,
}

/// Limits on which inputs an output may read: simultaneous reads, and overtaking.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    /// Most reads of an input buffer at once; 255 is more than a switch has outputs.
    pub limit: u8,
    /// Rate of a read over that of the link, in per cent.
    pub speedup_percent: u32,
    /// Reads in progress, per input port.
    pub active: Vec<u8>,
    /// Round-robin pointer to the local output that is served first when a read ends, per input port.
    pub pointer: Vec<u8>,
    /// Inputs (local numbers) at their limit, per element.
    pub blocked: Vec<[u64; 4]>,
    /// How often the oldest packet of an input buffer may be overtaken.
    pub bypass: Option<Bypass>,
}

impl Reads {
    /// Whether a packet that arrives at this input cannot leave before any arbitration.
    #[inline]
    pub fn must_queue(&self, element: u32, local: u32) -> bool {
        self.bypass.is_some()
            || self.blocked[element as usize][(local / 64) as usize] >> (local % 64) & 1 == 1
    }
}

/// Everything but control and traffic.
#[derive(Clone, Debug)]
pub(crate) struct Plane {
    pub outs: Table<OutPort>,
    pub lanes: Table<OutLane>,
    pub credits: Table<Credits>,
    /// PFC of the links, if they have it instead of credits.
    pub pauses: Option<Box<Pauses>>,
    pub ins: Table<InPort>,
    pub elements: Table<Element>,
    /// From a tail leaving an input buffer to the credit being usable upstream, in ps; by class.
    pub credit_delays: Table<u64>,
    /// The virtual output queues.
    pub queues: Table<Queue>,
    pub tables: Table<u8>,
    /// How outputs are computed, instead of `tables`.
    pub rule: Option<Arc<ComputedRoutes>>,
    /// The tables, or heads in flight, have been reconfigured.
    pub redirect: bool,
    pub routing: Routing,
    /// The order of arrivals, where paths differ from packet to packet.
    pub reordering: Option<Box<Reordering>>,
    /// The other parts of a partitioned fabric.
    pub remote: Remote,
    pub overflow: Overflow,
    /// When the credits that had arrived in any lane were collected last.
    pub collected: u64,
    pub pool: Pool,
    pub extensions: Extensions,
    pub hosts: Table<Host>,
    pub events: EventQueue,
    pub rates: Table<LinkRate>,
    /// From grant to the head being eligible at the far end, per output port.
    pub head_delay: Table<u64>,
    /// The same by fixed-delay queue, for the most frequent delays.
    pub queue_delay: Table<u64>,
    /// Propagation to the far end, per output port.
    pub propagation: Table<u64>,
    /// Virtual-lane arbitration tables; ports share those that are alike.
    pub vl_tables: Vec<VlTables>,
    pub vl_states: Vec<VlState>,
    /// Whether any element has ports of different speeds.
    pub mixed: bool,
    pub reads: Option<Reads>,
    /// Input buffers that are single queues; else packets queue per output.
    pub fifos: Option<Fifos>,
    pub oldest_first: bool,
    /// Number of data virtual lanes.
    pub vls: usize,
    /// Wire bytes and credit blocks of a packet of MTU size.
    pub mtu_wire: u32,
    pub mtu_blocks: i32,
    pub header: u32,
    /// Buffer capacities in blocks: switch inputs, host receive buffers.
    pub input_blocks: i32,
    pub receive_blocks: i32,
    pub output_blocks: i32,
    /// Times of a packet with MTU payload at the injection and the sink rate.
    pub injection_mtu: u64,
    pub sink_mtu: u64,
    /// Rates of sinks that are not that of the configuration, by host; empty unless one was changed.
    own_sink_rates: Vec<Option<Rate>>,
    /// Times that a CNP takes of the injection and of the sink.
    pub injection_cnp: u64,
    pub sink_cnp: u64,
    /// Whether sinks begin with the first flit of a packet.
    pub sink_cuts_through: bool,
    /// Whether packets pass crossbars in front of output buffers as they arrive.
    pub crossbar_cuts_through: bool,
    /// Ports of the fabric; the ports of elements for output buffers follow them.
    pub fabric_ports: usize,
    /// Size of the records compared with the caches.
    pub working_set: WorkingSet,
    /// What the plane was built with.
    pub config: EngineConfig,
    /// State of runtime reconfiguration.
    pub reconfiguration: Reconfiguration,
}

impl Plane {
    /// Serialisation time of `wire` bytes at this output.
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

    /// Collects the credits that have arrived in any lane, if that was long ago. Returns when it has to be called again,
    /// at the latest.
    pub fn collect_credits(&mut self, now: u64) -> u64 {
        if now - self.collected >= COLLECTED_EVERY {
            for lane in &mut *self.credits {
                lane.collect_arrived(&mut self.overflow, now);
            }
            self.collected = now;
        }
        self.collected + COLLECTED_EVERY
    }

    /// The number of a port that a caller names.
    ///
    /// # Panics
    /// If the fabric has no such port.
    pub fn known_port(&self, port: PortId) -> u32 {
        assert!(port.index() < self.fabric_ports, "no such port");
        port.index() as u32
    }

    /// The number of a host that a caller names.
    ///
    /// # Panics
    /// If the fabric has no such host.
    #[inline]
    pub fn known_host(&self, host: HostId) -> u32 {
        assert!(host.index() < self.hosts.len(), "no such host");
        host.index() as u32
    }

    /// The lane of a port and a virtual lane that a caller names.
    ///
    /// # Panics
    /// If the fabric has no such port, or the run no such lane.
    pub fn known_lane(&self, port: PortId, vl: Vl) -> usize {
        assert!(vl.index() < self.vls, "no such virtual lane");
        self.lane(self.known_port(port), vl.index())
    }

    /// The input whose first packet has been eligible longest of those that wait for a lane and are
    /// not blocked; of several, the lowest.
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

    /// Which input of a lane is next where inputs may be read only so often, or overtaken.
    pub fn pick_limited(&self, reads: &Reads, output: u32, lane: usize) -> Option<u32> {
        self.pick_of_others(lane, &self.limited_inputs(reads, output, lane))
    }

    /// The inputs that a lane may not read now.
    pub fn limited_inputs(&self, reads: &Reads, output: u32, lane: usize) -> [u64; 4] {
        let mut blocked = reads.blocked[self.ins[output as usize].element as usize];
        if let Some(bypass) = &reads.bypass {
            self.block_overtaking(bypass, lane, &mut blocked);
        }
        blocked
    }

    /// Which input of a lane is next, of those that are not blocked.
    pub fn pick_of_others(&self, lane: usize, blocked: &[u64; 4]) -> Option<u32> {
        if self.oldest_first {
            self.oldest_of(lane, Some(blocked))
        } else {
            self.lanes[lane].pick::<General>(self.credits[lane].pointer, Some(blocked))
        }
    }

    /// Fewest credits with which any of the packets that wait for a lane could go: those of a
    /// packet of MTU size if all are of that size, else 1. For ports with one lane only.
    #[inline(always)]
    pub fn least_needed(&self, output: u32, lane: usize) -> i32 {
        let all_mtu = u64::from(self.outs[output as usize].waiting) * u64::from(self.mtu_wire);
        if u64::from(self.lanes[lane].queued_bytes) == all_mtu {
            self.mtu_blocks
        } else {
            1
        }
    }

    /// The element of a port.
    pub fn element_of(&self, port: u32) -> Element {
        self.elements[self.ins[port as usize].element as usize]
    }

    /// Time in which the sink of a host consumes `payload` bytes.
    #[inline(always)]
    pub fn sink_time<F: EngineVariant>(&self, host: u32, payload: u32) -> u64 {
        let own = match F::SPECIALISED {
            true => None,
            false => self.own_sink_rates.get(host as usize).copied().flatten(),
        };
        if own.is_none() && payload + self.header == self.mtu_wire {
            return self.sink_mtu;
        }
        let rate = own.or(self.config.host.sink_rate);
        rate.map_or(0, |rate| {
            rate.span_for(Bytes::from_bytes(u64::from(payload))).as_ps()
        })
    }

    /// Changes the rate at which a host's sink consumes payload; `None` for that of the configuration.
    pub fn set_sink_rate(&mut self, host: HostId, rate: Option<Rate>) {
        self.own_sink_rates.resize(self.hosts.len(), None);
        self.own_sink_rates[host.index()] = rate;
    }

    /// When the sink of a host is done with a packet that starts on the host's link at `start`, is over it
    /// at `arrives`, and takes `service`; the sink begins with the first flit.
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

    /// Time in which an output passes on a packet of `wire` bytes: that of the link behind it if the
    /// crossbar does not wait until it can go faster.
    pub fn passing_time(&self, output: u32, wire: u16) -> u64 {
        let paced = if self.crossbar_cuts_through {
            self.link_port(PortId::new(output as usize))
        } else {
            output as usize
        };
        self.serialisation(&self.outs[paced], wire)
    }

    /// The earliest that the tail of a packet can leave by a crossbar output in front of an output buffer,
    /// if it has been eligible at this input since `since`.
    pub fn tail_through_crossbar(&self, output: u32, input: u32, since: u64, wire: u16) -> u64 {
        let upstream = self.ins[input as usize].upstream;
        let arriving = self.serialisation(&self.outs[upstream as usize], wire);
        // A packet that had to wait for a slower cable has been eligible for as much less.
        since + arriving.min(self.passing_time(output, wire))
    }

    #[inline(always)]
    pub fn lane(&self, port: u32, vl: usize) -> usize {
        port as usize * self.vls + vl
    }

    /// The same for the hot loop.
    #[inline(always)]
    pub fn lane_in<F: EngineVariant>(&self, port: u32, vl: usize) -> usize {
        if F::SPECIALISED {
            port as usize
        } else {
            self.lane(port, vl)
        }
    }

    /// Number of data virtual lanes for the hot loop.
    #[inline(always)]
    pub fn vls_in<F: EngineVariant>(&self) -> usize {
        if F::SPECIALISED { 1 } else { self.vls }
    }

    /// Limits on reads, if there are any.
    #[inline(always)]
    pub fn read_limits<F: EngineVariant>(&self) -> Option<&Reads> {
        if F::SPECIALISED {
            None
        } else {
            self.reads.as_ref()
        }
    }

    /// When a read of an input buffer ends whose packet is on the link from `now` to `tail`.
    #[inline]
    pub fn read_end_of(&self, now: u64, tail: u64) -> u64 {
        let percent = self
            .reads
            .as_ref()
            .map_or(100, |reads| reads.speedup_percent);
        now + ((tail - now) * 100).div_ceil(u64::from(percent))
    }

    /// Appends a packet that is eligible `since` then to its virtual output queue.
    #[inline(always)]
    pub fn queue_packet(&mut self, lane: usize, local: u32, packet: Packet, since: u64) {
        let record = &mut self.lanes[lane];
        let queue = &mut self.queues[(record.queues + local) as usize];
        let was_empty = !record.has_input(local);
        self.pool.push(queue, was_empty, packet, since);
        record.set_input(local);
        record.queued_bytes += u32::from(packet.wire());
    }

    /// The output of an element for a packet; `NONE` if its switch is to choose or has no route.
    #[inline(always)]
    pub fn output_of(&self, element: u32, destination: u32) -> u32 {
        let record = self.elements[element as usize];
        match &self.rule {
            Some(rule) if record.table != NONE => {
                computed_output(rule, element, record, destination)
            }
            _ => table_output(&self.tables, record, destination),
        }
    }

    /// The same, or the index of the table entry if that may not be in a cache: [`resolve`](Self::resolve)
    /// reads it when it has been prefetched.
    #[inline(always)]
    fn noted_output(&self, element: u32, packet: &Packet) -> u32 {
        let record = self.elements[element as usize];
        if self.working_set == WorkingSet::ExceedsCaches && record.table != NONE {
            let entry = match &self.rule {
                Some(rule) => rule.entry(element as usize, packet.destination() as usize) as u32,
                None => record.table + packet.destination(),
            };
            return UNREAD | entry;
        }
        table_output(&self.tables, record, packet.destination())
    }

    /// The output of a head at an input port, from what [`push_head`](Self::push_head) has stored.
    #[inline(always)]
    pub fn resolve(&self, port: u32, noted: u32, packet: &Packet) -> u32 {
        if noted < UNREAD || noted == NONE {
            return noted;
        }
        let element = self.ins[port as usize].element as usize;
        let entry = (noted & !UNREAD) as usize;
        match &self.rule {
            Some(rule) => {
                let number = rule.read(entry, packet.destination() as usize);
                numbered(self.elements[element], number)
            }
            None => chosen(self.elements[element], self.tables[entry]),
        }
    }

    /// Prefetches the table entry of a head that has not been read.
    #[inline(always)]
    pub fn prefetch_entry(&self, noted: u32) {
        let entry = (noted & !UNREAD) as usize;
        match &self.rule {
            Some(rule) => prefetch(rule.entries(), entry),
            None => prefetch(&self.tables, entry),
        }
    }

    /// Writes tables where outputs have been computed so far, because entries are to change.
    pub fn tabulate(&mut self) {
        let Some(rule) = self.rule.take() else {
            return;
        };
        let hosts = self.hosts.len();
        for (switch, element) in self.elements.iter_mut().enumerate() {
            if element.table == NONE {
                continue;
            }
            element.table = self.tables.len() as u32;
            let port = |host| rule.read(rule.entry(switch, host), host);
            // Port 0, which is none, becomes `NO_ROUTE`.
            self.tables
                .extend((0..hosts).map(|host| port(host).wrapping_sub(1)));
            self.tables.push(NO_ROUTE);
        }
        self.redirect = true;
    }

    /// Redirects heads in flight to other outputs if the tables have changed since they left.
    pub fn redirect_heads(&mut self) {
        if !std::mem::take(&mut self.redirect) {
            return;
        }
        self.refresh_tables();
        let Self {
            tables,
            elements,
            ins,
            ..
        } = self;
        self.events.redirect_heads(|port, packet| {
            let element = ins[port as usize].element;
            table_output(tables, elements[element as usize], packet.destination())
        });
    }

    /// Sends a head to the next input. Its output there is read now, or at least the index of its table
    /// entry, so that the entry can be prefetched before the head arrives.
    #[inline(always)]
    pub fn push_head<F: EngineVariant>(&mut self, now: u64, port: u32, packet: Packet) {
        let out = &self.outs[port as usize];
        let next = out.next;
        if let Some(&delay) = self.queue_delay.get(usize::from(out.head_queue)) {
            let output = self.noted_output(out.next_element, &packet);
            let queue = usize::from(out.head_queue);
            let mut head = Head {
                time: now + delay,
                port: next,
                output,
                packet,
            };
            if F::LOOKAHEAD && !F::SPECIALISED && self.mixed {
                head.time += self.wait_for_tail(&head);
            }
            self.events.push_head::<F>(queue, head);
        } else if F::LOOKAHEAD && out.head_queue == REMOTE {
            self.send_remote_head(now, port, packet);
        } else {
            let output = self.noted_output(out.next_element, &packet);
            let time = now + self.head_delay[port as usize];
            let head = Head {
                time,
                port: next,
                output,
                packet,
            };
            if F::LOOKAHEAD {
                self.add_head::<F>(head);
            } else {
                self.events.push_head_at(head);
            }
        }
    }

    /// Adds a head to the calendar.
    fn add_head<F: EngineVariant>(&mut self, mut head: Head) {
        if !F::SPECIALISED && self.mixed {
            head.time += self.wait_for_tail(&head);
        }
        self.events.calendar.add_head(head);
    }

    /// How long a head waits at its input so that the packet's tail comes in time: an output, or the fastest
    /// among which its switch chooses, may be faster than the cable.
    fn wait_for_tail(&self, head: &Head) -> u64 {
        let element = self.element_of(head.port);
        if !element.mixed {
            return 0;
        }
        let output = self.resolve(head.port, head.output, &head.packet);
        if output == NONE {
            let entry = (element.table + head.packet.destination()) as usize;
            return match self.tables.get(entry) {
                None | Some(&NO_ROUTE) => 0,
                Some(_) => self.head_start(head),
            };
        }
        let upstream = self.ins[head.port as usize].upstream;
        let wire = head.packet.wire();
        let from = self.serialisation(&self.outs[upstream as usize], wire);
        from.saturating_sub(self.passing_time(output, wire))
    }

    /// The longest of these times, or a little more.
    pub fn longest_wait(&self) -> u64 {
        let cabled = |port: u32| self.outs[port as usize].kind != Next::Nowhere;
        let time = |port: u32| self.rates[usize::from(self.outs[port as usize].rate)].ser_mtu;
        let waits = self.elements.iter().filter(|element| element.mixed);
        let waits = waits.map(|element| {
            let ports = element.base..element.base + element.ports;
            let upstream = ports.clone().map(|port| self.ins[port as usize].upstream);
            let slowest = upstream.filter(|&port| port != NONE).map(time).max();
            let fastest = ports.filter(|&port| cabled(port)).map(time).min();
            slowest.unwrap_or(0) - fastest.unwrap_or(0)
        });
        waits.max().map_or(0, |wait| wait + 1)
    }

    /// Sends a head to an input of another part, which looks up its output there.
    #[inline(never)]
    fn send_remote_head(&mut self, now: u64, port: u32, packet: Packet) {
        self.remote.send_head(Head {
            time: now + self.head_delay[port as usize],
            port: self.outs[port as usize].next,
            output: NONE,
            packet,
        });
    }

    /// A head from another part.
    pub fn receive_head<F: EngineVariant>(&mut self, head: Head) {
        let element = self.ins[head.port as usize].element;
        let output = self.noted_output(element, &head.packet);
        self.add_head::<F>(Head { output, ..head });
    }

    /// The output port whose record holds the counters and link credits of a fabric port: itself, or
    /// its output-buffer stage.
    #[inline]
    pub fn link_port(&self, port: PortId) -> usize {
        let out = &self.outs[port.index()];
        if out.next != NONE && out.kind == Next::Input && out.next as usize >= self.fabric_ports {
            out.next as usize
        } else {
            port.index()
        }
    }

    /// Capacity in blocks of the buffer that this output sends into.
    pub fn capacity(&self, out: &OutPort) -> i32 {
        match out.kind {
            Next::Nowhere => 0,
            Next::Host => self.receive_blocks,
            Next::Input if out.next as usize >= self.fabric_ports => self.output_blocks,
            Next::Input => self.input_blocks,
        }
    }

    /// The host at this switch output or behind its output buffer.
    pub fn host_behind(&self, output: u32) -> u32 {
        let out = &self.outs[output as usize];
        match out.kind {
            Next::Input => self.outs[out.next as usize].next,
            _ => out.next,
        }
    }

    /// Heap bytes held by the data plane.
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
            + self.overflow.bytes()
            + self.pauses.as_ref().map_or(0, |pauses| pauses.bytes())
            + self.pool.bytes()
            + self.extensions.bytes()
            + self.fifos.as_ref().map_or(0, Fifos::bytes)
            + self.hosts.capacity() * size_of::<Host>()
            + self.events.bytes()
            + (self.head_delay.capacity() + self.propagation.capacity()) * 8
            + self.vl_states.capacity() * size_of::<VlState>()
    }
}

/// The output of an element for a packet, as [`Plane::output_of`] says.
#[inline(always)]
fn table_output(tables: &Table<u8>, element: Element, destination: u32) -> u32 {
    if element.table == NONE {
        return element.base;
    }
    chosen(element, tables[(element.table + destination) as usize])
}

/// The output of an element for a packet by a rule.
#[inline(always)]
fn computed_output(rule: &ComputedRoutes, element: u32, record: Element, destination: u32) -> u32 {
    let (switch, host) = (element as usize, destination as usize);
    numbered(record, rule.read(rule.entry(switch, host), host))
}

/// The output of an element's port of this number, 0 for none.
#[inline(always)]
fn numbered(element: Element, number: u8) -> u32 {
    chosen(element, number.wrapping_sub(1))
}

/// The output that a table entry of an element refers to.
#[inline(always)]
fn chosen(element: Element, local: u8) -> u32 {
    if local >= CHOOSE {
        NONE
    } else {
        element.base + u32::from(local)
    }
}

/// An instant from the engine's integer.
#[inline]
pub(crate) fn time(ps: u64) -> Time {
    Time::from_ps(ps)
}

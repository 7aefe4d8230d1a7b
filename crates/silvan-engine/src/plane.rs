//! The state of the data plane, and how a fabric is compiled into it.
//!
//! Ports keep the number that the fabric gives them. A switch with output buffers gets one more
//! element per port behind them: a one-by-one switch without latency, fed by the crossbar and feeding
//! the link, so that the hot loop needs no case for it.

use silvan_fabric::{Fabric, ForwardingTables, NodeKind};
use silvan_units::{Bytes, HostId, PortId, Rate, Time};

use crate::config::{Arbitration, BuildError, EngineConfig};
use crate::events::{EventQueue, Head, MAX_LANES, NO_LANE};
use crate::packet::{NONE, Packet, Pool};
use crate::prefetch::prefetch;
use crate::records::{Credits, Element, InPort, Next, OutLane, OutPort, Spill};
use crate::vlarb::{VlState, VlTables};

/// A table entry that leads nowhere.
pub(crate) const NO_ROUTE: u8 = 0xff;

/// One host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// Its port.
    pub port: u32,
    /// The event that is scheduled for it; `u64::MAX` for none.
    pub wake_at: u64,
    /// The injection pace lets the next packet start then.
    pub next_start: u64,
    /// The sink is busy until then.
    pub sink_free: u64,
    /// Payload delivered here, and how many data packets.
    pub delivered: u64,
    pub delivered_packets: u64,
    /// Payload whose injection has started.
    pub injected: u64,
    /// Data packets that arrived with FECN.
    pub fecn_received: u64,
    /// Notifications with BECN that arrived.
    pub becn_received: u64,
    /// Notifications that wait to be sent.
    pub notifications: u32,
    /// Whether the last packet was data, so that a notification is next in turn.
    pub data_sent_last: bool,
}

/// Rate of a link as the hot loop wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkRate {
    pub rate: Rate,
    /// Serialisation time of a packet of MTU size, in ps.
    pub ser_mtu: u64,
}

/// Limits on simultaneous reads.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    pub limit: u8,
    /// Reads under way, per input port.
    pub active: Vec<u8>,
    /// Local output that is first in turn when a read ends, per input port.
    pub turn: Vec<u8>,
    /// Inputs (local numbers) at their limit, per element.
    pub blocked: Vec<[u64; 4]>,
}

/// Everything but control and traffic.
#[derive(Debug)]
pub(crate) struct Plane {
    pub outs: Vec<OutPort>,
    pub lanes: Vec<OutLane>,
    pub credits: Vec<Credits>,
    pub ins: Vec<InPort>,
    pub elements: Vec<Element>,
    /// From a tail leaving an input buffer to the credit being usable upstream, in ps; by class.
    pub credit_delays: Vec<u64>,
    /// Last node of each virtual output queue.
    pub queues: Vec<u32>,
    pub tables: Vec<u8>,
    pub spill: Spill,
    pub pool: Pool,
    pub hosts: Vec<Host>,
    pub events: EventQueue,
    pub rates: Vec<LinkRate>,
    /// From grant to the head being eligible at the far end, per output port.
    pub head_delay: Vec<u64>,
    /// The same by lane of the event queue, for the commonest delays.
    pub lane_delay: Vec<u64>,
    /// Propagation to the far end, per output port.
    pub propagation: Vec<u64>,
    pub vl_tables: VlTables,
    pub vl_states: Vec<VlState>,
    pub reads: Option<Reads>,
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
    /// Ports of the fabric; elements for output buffers stand behind them.
    pub fabric_ports: usize,
    /// Most ports of an element, for the table of queues.
    pub config: EngineConfig,
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

    /// Asks for the records of the heads that follow in a lane: first for those that say where they
    /// go, some heads later for those of the way.
    #[inline(always)]
    pub fn prefetch_heads(&self, lane: usize) {
        if let Some(head) = self.events.coming_head(lane, 7) {
            let table = self.elements[head.element as usize].table;
            let entry = table.wrapping_add(head.packet.destination);
            prefetch(&self.tables, entry as usize);
            prefetch(&self.ins, head.port as usize);
        }
        if let Some(head) = self.events.coming_head(lane, 3) {
            let element = &self.elements[head.element as usize];
            let entry = element.table.wrapping_add(head.packet.destination);
            let local = self.tables.get(entry as usize).copied().unwrap_or(0);
            let output = element.base + u32::from(local);
            let vl = head.packet.vl();
            prefetch(&self.outs, output as usize);
            prefetch(&self.credits, self.lane(output, vl));
            prefetch(&self.lanes, self.lane(output, vl));
            let upstream = self.ins[head.port as usize].upstream;
            prefetch(&self.credits, self.lane(upstream, vl));
        }
    }

    /// Asks for the records of the outputs that will arbitrate soon, `coming` giving them by how
    /// many events they are away: first for the lane, then for the queue whose turn it is, then for
    /// its first packets.
    #[inline(always)]
    pub fn prefetch_outputs(&self, coming: impl Fn(&EventQueue, usize) -> Option<u32>) {
        if let Some(output) = coming(&self.events, 6) {
            let lane = self.lane(output, 0);
            prefetch(&self.outs, output as usize);
            prefetch(&self.credits, lane);
            prefetch(&self.lanes, lane);
        }
        if let Some(output) = coming(&self.events, 4) {
            if let Some(queue) = self.queue_in_turn(output) {
                prefetch(&self.queues, queue);
            }
        }
        if let Some(output) = coming(&self.events, 2) {
            if let Some(queue) = self.queue_in_turn(output) {
                self.pool.prefetch(self.queues[queue]);
            }
        }
    }

    /// The queue that a round-robin output is likely to serve next.
    #[inline(always)]
    fn queue_in_turn(&self, output: u32) -> Option<usize> {
        let lane = self.lane(output, 0);
        let record = &self.lanes[lane];
        let local = record.pick(self.credits[lane].turn, None)?;
        Some((record.queues + local) as usize)
    }

    /// Asks for the records of a host that will inject soon.
    #[inline(always)]
    pub fn prefetch_hosts(&self) {
        if let Some(host) = self.events.coming_host(4) {
            prefetch(&self.hosts, host as usize);
        }
        if let Some(host) = self.events.coming_host(1) {
            let port = self.hosts[host as usize].port;
            prefetch(&self.outs, port as usize);
            prefetch(&self.credits, self.lane(port, 0));
        }
    }

    /// The element of a port.
    pub fn element_of(&self, port: u32) -> Element {
        self.elements[self.ins[port as usize].element as usize]
    }

    #[inline(always)]
    pub fn lane(&self, port: u32, vl: usize) -> usize {
        port as usize * self.vls + vl
    }

    /// Sends a head on its way to the next input.
    #[inline(always)]
    pub fn push_head(&mut self, now: u64, port: u32, packet: Packet) {
        let out = &self.outs[port as usize];
        let (next, element) = (out.next, out.next_element);
        if let Some(&delay) = self.lane_delay.get(usize::from(out.lane)) {
            self.events.push_head(
                usize::from(out.lane),
                Head {
                    time: now + delay,
                    port: next,
                    element,
                    packet,
                },
            );
        } else {
            let time = now + self.head_delay[port as usize];
            self.events.push_head_at(Head {
                time,
                port: next,
                element,
                packet,
            });
        }
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

    /// Compiles a fabric.
    pub fn build(
        fabric: &Fabric,
        routes: &ForwardingTables,
        config: &EngineConfig,
    ) -> Result<Self, BuildError> {
        config.validate()?;
        let mtu_wire = config.packet.mtu.as_u64() + config.packet.header.as_u64();
        let mtu_blocks = mtu_wire.div_ceil(64) as i32;
        let blocks = |bytes: Bytes| (bytes.as_u64() / 64) as i32;
        let span_of_mtu =
            |rate: Option<Rate>| rate.map_or(0, |rate| rate.span_for(config.packet.mtu).as_ps());
        let mut plane = Self {
            outs: Vec::new(),
            lanes: Vec::new(),
            credits: Vec::new(),
            ins: Vec::new(),
            elements: Vec::new(),
            credit_delays: Vec::new(),
            queues: Vec::new(),
            tables: Vec::new(),
            spill: Spill::default(),
            pool: Pool::new(config.switch.arbitration == Arbitration::OldestFirst),
            hosts: Vec::new(),
            events: EventQueue::new(0),
            rates: Vec::new(),
            head_delay: Vec::new(),
            lane_delay: Vec::new(),
            propagation: Vec::new(),
            vl_tables: VlTables::new(&config.switch.vl_arbitration, config.data_vls),
            vl_states: Vec::new(),
            reads: None,
            oldest_first: config.switch.arbitration == Arbitration::OldestFirst,
            vls: usize::from(config.data_vls),
            mtu_wire: mtu_wire as u32,
            mtu_blocks,
            header: config.packet.header.as_u64() as u32,
            input_blocks: blocks(config.switch.buffer),
            receive_blocks: blocks(config.host.receive_buffer),
            output_blocks: config
                .switch
                .output_buffer
                .map_or(0, |buffer| blocks(buffer.size)),
            injection_mtu: span_of_mtu(config.host.injection_rate),
            sink_mtu: span_of_mtu(config.host.sink_rate),
            fabric_ports: fabric.ports.len(),
            config: config.clone(),
        };
        plane.add_ports(fabric);
        plane.add_hosts(fabric)?;
        plane.add_tables(fabric, routes);
        if config.switch.output_buffer.is_some() {
            plane.add_output_buffers(fabric);
        }
        plane.finish_ports();
        plane.choose_lanes();
        Ok(plane)
    }

    fn rate_index(&mut self, rate: Rate) -> u8 {
        if let Some(known) = self.rates.iter().position(|known| known.rate == rate) {
            return known as u8;
        }
        let mtu = Bytes::from_bytes(u64::from(self.mtu_wire));
        self.rates.push(LinkRate {
            rate,
            ser_mtu: rate.span_for(mtu).as_ps(),
        });
        (self.rates.len() - 1) as u8
    }

    fn credit_delay_class(&mut self, delay: u64) -> u16 {
        if let Some(known) = self.credit_delays.iter().position(|&known| known == delay) {
            return known as u16;
        }
        self.credit_delays.push(delay);
        (self.credit_delays.len() - 1) as u16
    }

    fn add_ports(&mut self, fabric: &Fabric) {
        let switch = &self.config.switch;
        let (latency, switch_credit) = (switch.latency.as_ps(), switch.credit_delay.as_ps());
        self.elements = fabric
            .nodes
            .iter()
            .map(|node| Element {
                base: node.first_port.index() as u32,
                ports: u32::from(node.port_count),
                table: NONE,
                mixed: false,
            })
            .collect();
        for (id, port) in fabric.ports.iter_enumerated() {
            let node = &fabric.nodes[port.node];
            let mut out = OutPort::unconnected();
            let (mut delay, mut propagation) = (0, 0);
            let mut from_host = false;
            if let (Some(link), Some(peer)) = (port.link, port.peer) {
                let link = &fabric.links[link];
                propagation = link.propagation().as_ps();
                out.rate = self.rate_index(link.data_rate());
                let peer_node = &fabric.nodes[fabric.ports[peer].node];
                from_host = peer_node.as_host().is_some();
                if let Some(host) = peer_node.as_host() {
                    out.kind = Next::Host;
                    out.next = host.index() as u32;
                } else {
                    out.kind = Next::Input;
                    out.next = peer.index() as u32;
                    out.next_element = fabric.ports[peer].node.index() as u32;
                    delay = propagation + latency;
                }
            }
            out.marks = matches!(node.kind, NodeKind::Switch(_)) && out.kind != Next::Nowhere;
            self.outs.push(out);
            self.head_delay.push(delay);
            self.propagation.push(propagation);
            let credit_delay = self.credit_delay_class(propagation + switch_credit);
            self.ins.push(InPort {
                upstream: port.peer.map_or(NONE, |peer| peer.index() as u32),
                element: port.node.index() as u32,
                credit_delay,
                local: (id.index() - node.first_port.index()) as u8,
                from_host,
            });
        }
    }

    fn add_hosts(&mut self, fabric: &Fabric) -> Result<(), BuildError> {
        for host in fabric.host_ids() {
            let node = fabric.host(host);
            let mut cabled = node
                .ports()
                .filter(|&port| fabric.ports[port].link.is_some());
            let (Some(port), None) = (cabled.next(), cabled.next()) else {
                return Err(BuildError::HostPorts(node.name.clone()));
            };
            self.hosts.push(Host {
                port: port.index() as u32,
                wake_at: u64::MAX,
                next_start: 0,
                sink_free: 0,
                delivered: 0,
                delivered_packets: 0,
                injected: 0,
                fecn_received: 0,
                becn_received: 0,
                notifications: 0,
                data_sent_last: true,
            });
        }
        Ok(())
    }

    /// One table of `hosts` entries per switch: local output by destination host.
    fn add_tables(&mut self, fabric: &Fabric, routes: &ForwardingTables) {
        let lids: Vec<_> = fabric
            .host_ids()
            .map(|host: HostId| fabric.host(host).lid)
            .collect();
        for switch in fabric.switch_ids() {
            let node = fabric.switch(switch);
            let table = self.tables.len() as u32;
            self.tables.extend(lids.iter().map(|&lid| {
                routes
                    .get(switch, lid)
                    .and_then(|number| node.port(number))
                    .map_or(NO_ROUTE, |port| {
                        (port.index() - node.first_port.index()) as u8
                    })
            }));
            self.elements[fabric.node_of_switch(switch).index()].table = table;
        }
    }

    /// Puts a one-by-one element behind every cabled switch output.
    fn add_output_buffers(&mut self, fabric: &Fabric) {
        let percent = self
            .config
            .switch
            .output_buffer
            .map_or(100, |buffer| buffer.speedup_percent);
        for port in fabric.ports.ids() {
            if !self.outs[port.index()].marks {
                continue;
            }
            let id = self.outs.len() as u32;
            let mut stage = self.outs[port.index()].clone();
            stage.marks = false;
            if stage.kind == Next::Input {
                self.ins[stage.next as usize].upstream = id;
            }
            let link = self.rates[usize::from(stage.rate)].rate;
            let crossbar = link
                .bits_per_sec()
                .saturating_mul(u64::from(percent))
                .div_ceil(100);
            let crossbar = Rate::from_bits_per_sec(crossbar).unwrap_or(link);
            let rate = self.rate_index(crossbar);
            let element = self.elements.len() as u32;
            let out = &mut self.outs[port.index()];
            out.kind = Next::Input;
            out.next = id;
            out.next_element = element;
            out.rate = rate;
            self.elements.push(Element {
                base: id,
                ports: 1,
                table: NONE,
                mixed: false,
            });
            let credit_delay = self.credit_delay_class(0);
            self.outs.push(stage);
            self.head_delay.push(self.head_delay[port.index()]);
            self.propagation.push(self.propagation[port.index()]);
            self.head_delay[port.index()] = 0;
            self.propagation[port.index()] = 0;
            self.ins.push(InPort {
                upstream: port.index() as u32,
                element,
                credit_delay,
                local: 0,
                from_host: false,
            });
        }
    }

    /// Fills in what follows from the links: lanes, queues, credits, serialisation times.
    fn finish_ports(&mut self) {
        for index in 0..self.outs.len() {
            let element = self.element_of(index as u32);
            // A host's own port queues nothing; its lanes hold credits only.
            let inputs = if element.table == NONE && index < self.fabric_ports {
                0
            } else {
                element.ports
            };
            let capacity = self.capacity(&self.outs[index]);
            for _ in 0..self.vls {
                self.lanes.push(OutLane {
                    inputs: [0; 4],
                    queued_bytes: 0,
                    queues: self.queues.len() as u32,
                    base: element.base,
                    words: inputs.div_ceil(64).max(1) as u8,
                });
                self.credits.push(Credits::new(capacity));
                self.queues
                    .resize(self.queues.len() + inputs as usize, NONE);
            }
            self.vl_states.push(self.vl_tables.start());
        }
        self.mark_mixed_elements();
        if let Some(limit) = self.config.switch.read_limit {
            self.reads = Some(Reads {
                limit,
                active: vec![0; self.ins.len()],
                turn: vec![0; self.ins.len()],
                blocked: vec![[0; 4]; self.elements.len()],
            });
        }
    }

    /// Finds the elements at which some output is faster than some input.
    fn mark_mixed_elements(&mut self) {
        for element in &mut self.elements {
            let ports = element.base as usize..(element.base + element.ports) as usize;
            let ser = |port: usize| self.rates[usize::from(self.outs[port].rate)].ser_mtu;
            let cabled = |port: &usize| self.outs[*port].kind != Next::Nowhere;
            let fastest = ports.clone().filter(cabled).map(ser).min();
            let slowest = ports
                .map(|port| self.ins[port].upstream)
                .filter(|&upstream| upstream != NONE)
                .map(|upstream| ser(upstream as usize))
                .max();
            element.mixed = fastest < slowest;
        }
    }

    /// Gives the commonest head delays a lane of the event queue each.
    fn choose_lanes(&mut self) {
        let mut delays: Vec<(u64, usize)> = Vec::new();
        for (out, &delay) in self.outs.iter().zip(&self.head_delay) {
            if out.kind == Next::Input {
                match delays.iter_mut().find(|(known, _)| *known == delay) {
                    Some((_, count)) => *count += 1,
                    None => delays.push((delay, 1)),
                }
            }
        }
        delays.sort_by_key(|&(delay, count)| (usize::MAX - count, delay));
        delays.truncate(MAX_LANES);
        for (out, &delay) in self.outs.iter_mut().zip(&self.head_delay) {
            let lane = delays.iter().position(|(known, _)| *known == delay);
            out.lane = lane.map_or(NO_LANE, |lane| lane as u8);
        }
        self.events = EventQueue::new(delays.len());
        self.lane_delay = delays.into_iter().map(|(delay, _)| delay).collect();
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
            + self.queues.capacity() * 4
            + self.tables.capacity()
            + self.spill.bytes()
            + self.pool.bytes()
            + self.hosts.capacity() * size_of::<Host>()
            + self.events.bytes()
            + (self.head_delay.capacity() + self.propagation.capacity()) * 8
            + self.vl_states.capacity() * size_of::<VlState>()
    }
}

/// An instant from the engine's plain integer.
#[inline]
pub(crate) fn time(ps: u64) -> Time {
    Time::from_ps(ps)
}

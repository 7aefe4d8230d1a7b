//! Compilation of a fabric into the plane. A port behind an output buffer gets a one-by-one switch without latency, so
//! that the hot loop needs no case for it.

use std::collections::HashMap;
use std::sync::Arc;

use silvan_core::{Bytes, PortId, Rate};
use silvan_fabric::routing::{ComputedRoutes, Routes};
use silvan_fabric::{Fabric, NodeKind};

use super::{Host, LinkRate, NO_ROUTE, Plane, Reads};
use crate::bit_errors::BadLinks;
use crate::bypass::Bypass;
use crate::events::{EventQueue, MAX_HEAD_QUEUES, NO_HEAD_QUEUE};
use crate::extension::Extensions;
use crate::fifo::Fifos;
use crate::packet::{NONE, Pool, Queue};
use crate::partition::Remote;
use crate::pfc::Pauses;
use crate::prefetching::WorkingSet;
use crate::reconfiguration::Reconfiguration;
use crate::records::{Credits, Element, InPort, Next, OutLane, OutPort, Overflow, Sender};
use crate::reordering::Reordering;
use crate::routing::Routing;
use crate::table::Table;
use crate::transport::Transport;
use crate::vlarb::VlTables;
use silvan_model::{Arbitration, BuildError, CrossbarFeed, EngineConfig, Queueing, Sink};

fn is_cut_through(config: &EngineConfig) -> bool {
    config
        .switch
        .output_buffer
        .is_some_and(|buffer| buffer.crossbar == CrossbarFeed::CutThrough)
}

/// The event queue has 28 bits for the number of a port or host.
const MOST_IDS: u64 = 1 << 28;
/// Row numbers have 32 bits, of which the highest means none.
const MOST_ROWS: u64 = (1 << 31) - 1;

/// Table entries that exceed second-level caches: beyond, a rule is faster.
const MOST_TABULATED: usize = 1 << 22;

/// The rule that computes outputs, if nothing but the tables decides and these are large. Results do not change: with
/// debug assertions, some small fabrics have no tables either.
fn rule_of<'a>(fabric: &Fabric, routes: Routes<'a>) -> Option<&'a Arc<ComputedRoutes>> {
    let entries = fabric.switch_count() * (fabric.host_count() + 1);
    let ports = fabric.ports.len();
    let is_wanted = match cfg!(debug_assertions) {
        true => ports % 3 != 0 && ports % 2 == 1,
        false => entries > MOST_TABULATED,
    };
    let decides = routes.alternatives.is_none() && routes.waypoints.is_none();
    routes.tables.rule().filter(|_| is_wanted && decides)
}

fn blocks(buffer: Bytes) -> i32 {
    (buffer.as_u64() / 64) as i32
}

fn check_counts(
    fabric: &Fabric,
    routes: Routes<'_>,
    config: &EngineConfig,
) -> Result<(), BuildError> {
    let vls = u64::from(config.data_vls);
    let ports = fabric.ports.len() as u64;
    let (mut queues, mut stages, mut most_ports) = (0, 0, 0);
    for switch in fabric.switch_ids() {
        let node = fabric.switch(switch);
        let radix = u64::from(node.port_count);
        queues += radix * radix;
        most_ports = most_ports.max(radix);
        if config.switch.output_buffer.is_some() {
            let cabled = node
                .ports()
                .filter(|&port| fabric.ports[port].peer.is_some());
            stages += cabled.count() as u64;
        }
    }
    let (hosts, switches) = (fabric.host_count() as u64, fabric.switch_count() as u64);
    let entries = match rule_of(fabric, routes) {
        Some(rule) => rule.entries().len() as u64,
        None => switches * (hosts + 1),
    };
    for (which, found, most) in [
        ("ports at a switch", most_ports, 254),
        ("ports and output buffers", ports + stages, MOST_IDS),
        ("hosts", hosts, MOST_IDS),
        ("Port VLs", (ports + stages) * vls, MOST_ROWS),
        ("queues of packets", (queues + stages) * vls, MOST_ROWS),
        ("forwarding entries", entries, MOST_ROWS),
    ] {
        if found > most {
            return Err(BuildError::TooMany { which, found, most });
        }
    }
    Ok(())
}

impl Plane {
    pub fn build(
        fabric: &Fabric,
        routes: Routes<'_>,
        config: &EngineConfig,
    ) -> Result<Self, BuildError> {
        config.validate()?;
        config.validate_routes(routes)?;
        check_counts(fabric, routes, config)?;
        let mtu_wire = config.packet.mtu.as_u64() + config.packet.header.as_u64();
        let mtu_blocks = mtu_wire.div_ceil(64) as i32;
        let time_at =
            |rate: Option<Rate>, bytes: Bytes| rate.map_or(0, |rate| rate.span_for(bytes).as_ps());
        let (mtu, charge) = (config.packet.mtu, config.feedback.charge);
        let mut plane = Self {
            outs: Table::default(),
            lanes: Table::default(),
            credits: Table::default(),
            pauses: None,
            ins: Table::default(),
            elements: Table::default(),
            credit_delays: Table::default(),
            queues: Table::default(),
            tables: Table::default(),
            rule: None,
            redirect: false,
            working_set: WorkingSet::FitsFirstCache,
            routing: Routing::default(),
            reordering: routes
                .choice
                .reorders()
                .then(|| Box::new(Reordering::new(fabric.host_count(), config.host.in_order))),
            transport: (config.host.retry)
                .map(|retry| Box::new(Transport::new(retry, fabric.host_count()))),
            numbers: false,
            remote: Remote::default(),
            overflow: Overflow::default(),
            buffers: None,
            collected: 0,
            extensions: Extensions::default(),
            pool: Pool::new(
                config.switch.arbitration == Arbitration::OldestFirst
                    || config.switch.bypass_limit.is_some()
                    || is_cut_through(config)
                    || config.switch.queueing == Queueing::Fifo,
            ),
            hosts: Table::default(),
            events: EventQueue::new(0),
            rates: Table::default(),
            head_delay: Table::default(),
            queue_delay: Table::default(),
            propagation: Table::default(),
            capacities: Table::default(),
            vl_tables: vec![VlTables::new(&config.vl_arbitration, config.data_vls)],
            vl_states: Vec::new(),
            busy_lanes: Vec::new(),
            mixed: false,
            reads: None,
            fifos: None,
            oldest_first: config.switch.arbitration == Arbitration::OldestFirst,
            vls: usize::from(config.data_vls),
            mtu_wire: mtu_wire as u32,
            mtu_blocks,
            header: config.packet.header.as_u64() as u32,
            injection_mtu: time_at(config.host.injection_rate, mtu),
            sink_mtu: time_at(config.host.sink_rate, mtu),
            injection_cnp: time_at(config.host.injection_rate, charge),
            own_sink_rates: Vec::new(),
            sink_cnp: time_at(config.host.sink_rate, charge),
            sink_cuts_through: config.host.sink == Sink::CutThrough,
            crossbar_cuts_through: is_cut_through(config),
            fabric_ports: fabric.ports.len(),
            config: config.clone(),
            reconfiguration: Reconfiguration::default(),
            bad_links: BadLinks::default(),
        };
        let mut delays = HashMap::new();
        plane.add_ports(fabric, &mut delays);
        plane.add_hosts(fabric)?;
        plane.add_tables(fabric, routes);
        if let Some(buffer) = config.switch.output_buffer {
            plane.add_output_buffers(fabric, buffer.size, &mut delays);
        }
        plane.add_routing(fabric, routes, config);
        plane.finish_ports();
        plane.pauses = Pauses::new(&plane, fabric, config)?;
        plane.choose_head_queues();
        plane.add_bit_errors(&config.bit_errors);
        plane.working_set = plane.classify_working_set();
        plane.check_classes()?;
        Ok(plane)
    }

    fn check_classes(&self) -> Result<(), BuildError> {
        for (which, found, most) in [
            ("different link rates", self.rates.len(), 1 << 8),
            ("different credit delays", self.credit_delays.len(), 1 << 16),
            (
                "entries of SL to VL tables",
                self.routing.table_entries(),
                MOST_ROWS as usize,
            ),
        ] {
            if found > most {
                let (found, most) = (found as u64, most as u64);
                return Err(BuildError::TooMany { which, found, most });
            }
        }
        Ok(())
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

    pub(crate) fn set_link_rate(&mut self, now: u64, port: PortId, rate: Rate) {
        let stage = self.link_port(port);
        let before = self.rates[usize::from(self.outs[stage].rate)].rate;
        self.change_error_rate(now, stage, before, rate);
        self.outs[stage].rate = self.rate_index(rate);
        if stage != port.index() {
            self.outs[port.index()].rate = self.rate_index(self.crossbar_rate(rate));
        }
        self.mark_mixed_elements();
    }

    fn crossbar_rate(&self, link: Rate) -> Rate {
        let buffer = self.config.switch.output_buffer.as_ref();
        let percent = buffer.map_or(100, |buffer| buffer.speedup_percent);
        let crossbar = link
            .bits_per_sec()
            .saturating_mul(u64::from(percent))
            .div_ceil(100);
        Rate::from_bits_per_sec(crossbar).unwrap_or(link)
    }

    fn credit_delay_class(&mut self, delay: u64, known: &mut HashMap<u64, u16>) -> u16 {
        *known.entry(delay).or_insert_with(|| {
            self.credit_delays.push(delay);
            (self.credit_delays.len() - 1) as u16
        })
    }

    fn add_ports(&mut self, fabric: &Fabric, delays: &mut HashMap<u64, u16>) {
        let switch = &self.config.switch;
        let (latency, switch_credit) = (switch.latency.as_ps(), switch.credit_delay.as_ps());
        let packet = self.config.packet;
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
            let (mut delay, mut propagation, mut capacity) = (0, 0, 0);
            let mut sender = Sender::Switch;
            if let (Some(link), Some(peer)) = (port.link, port.peer) {
                let link = &fabric.links[link];
                propagation = link.propagation().as_ps();
                out.rate = self.rate_index(link.data_rate());
                let peer_node = &fabric.nodes[fabric.ports[peer].node];
                if let Some(host) = peer_node.as_host() {
                    sender = Sender::Host;
                    out.kind = Next::Host;
                    out.next = host.index() as u32;
                    capacity = blocks(self.config.host.buffer_behind(link.kind, packet));
                } else {
                    out.kind = Next::Input;
                    out.next = peer.index() as u32;
                    out.next_element = fabric.ports[peer].node.index() as u32;
                    delay = propagation + latency;
                    capacity = blocks(self.config.switch.buffer_behind(link.kind, packet));
                }
            }
            out.marks = matches!(node.kind, NodeKind::Switch(_)) && out.kind != Next::Nowhere;
            self.outs.push(out);
            self.head_delay.push(delay);
            self.propagation.push(propagation);
            self.capacities.push(capacity);
            let credit_delay = self.credit_delay_class(propagation + switch_credit, delays);
            self.ins.push(InPort {
                upstream: port.peer.map_or(NONE, |peer| peer.index() as u32),
                element: port.node.index() as u32,
                credit_delay,
                local: (id.index() - node.first_port.index()) as u8,
                sender,
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
                charges: 0,
            });
        }
        Ok(())
    }

    /// Adds a table per switch: local output by destination host, and one more entry that leads nowhere. Large fabrics
    /// with a rule have none.
    fn add_tables(&mut self, fabric: &Fabric, routes: Routes<'_>) {
        let has_errors = !self.config.bit_errors.is_empty();
        let rule = rule_of(fabric, routes).filter(|_| !has_errors);
        self.rule = rule.cloned();
        for switch in fabric.switch_ids() {
            let node = fabric.switch(switch);
            let table = self.tables.len() as u32;
            self.elements[fabric.node_of_switch(switch).index()].table = table;
            if self.rule.is_some() {
                continue;
            }
            let ports = fabric.host_ids().map(|host| {
                let port = routes.tables.to_host(switch, host);
                port.and_then(|number| node.port(number))
                    .map_or(NO_ROUTE, |port| {
                        (port.index() - node.first_port.index()) as u8
                    })
            });
            self.tables.extend(ports);
            // Entry for packets on a cable when it is cut.
            self.tables.push(NO_ROUTE);
        }
    }

    fn add_output_buffers(&mut self, fabric: &Fabric, size: Bytes, delays: &mut HashMap<u64, u16>) {
        let size = blocks(size);
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
            let rate = self.rate_index(self.crossbar_rate(link));
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
            let credit_delay = self.credit_delay_class(0, delays);
            self.outs.push(stage);
            let head_delay = self.head_delay[port.index()];
            self.head_delay.push(head_delay);
            let propagation = self.propagation[port.index()];
            self.propagation.push(propagation);
            let capacity = self.capacities[port.index()];
            self.capacities.push(capacity);
            self.capacities[port.index()] = size;
            self.head_delay[port.index()] = 0;
            self.propagation[port.index()] = 0;
            self.ins.push(InPort {
                upstream: port.index() as u32,
                element,
                credit_delay,
                local: 0,
                sender: Sender::Switch,
            });
        }
    }

    fn finish_ports(&mut self) {
        for index in 0..self.outs.len() {
            let element = self.element_of(index as u32);
            // A host's port queues nothing; its lanes hold credits only.
            let inputs = if element.table == NONE && index < self.fabric_ports {
                0
            } else {
                element.ports
            };
            let capacity = self.capacity(index as u32);
            for _ in 0..self.vls {
                let queues = self.queues.len();
                self.lanes.push(OutLane {
                    inputs: [0; 4],
                    queued_bytes: 0,
                    queues: queues as u32,
                    base: element.base,
                    words: inputs.div_ceil(64).max(1) as u8,
                });
                self.credits.push(Credits::new(capacity));
                self.queues.resize(queues + inputs as usize, Queue::EMPTY);
            }
            self.vl_states.push(self.vl_tables[0].start(0));
        }
        if self.vls > 1 {
            self.busy_lanes = vec![0; self.outs.len()];
        }
        self.mark_mixed_elements();
        let switch = &self.config.switch;
        if switch.read_limit.is_some() || switch.bypass_limit.is_some() {
            let (elements, inputs, vls) = (self.elements.len(), self.ins.len(), self.vls);
            self.reads = Some(Reads {
                limit: switch.read_limit.unwrap_or(u8::MAX),
                speedup_percent: switch.read_speedup_percent,
                active: vec![0; self.ins.len()],
                pointer: vec![0; self.ins.len()],
                blocked: vec![[0; 4]; elements],
                bypass: switch
                    .bypass_limit
                    .map(|limit| Bypass::new(limit, elements, inputs, vls)),
            });
        }
        if switch.queueing == Queueing::Fifo {
            let (ports, lanes) = (self.fabric_ports, self.lanes.len());
            self.fifos = Some(Fifos::new(ports, lanes, self.vls));
        }
    }

    fn mark_mixed_elements(&mut self) {
        for element in self.elements.iter_mut() {
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
            self.mixed |= element.mixed;
        }
    }

    fn choose_head_queues(&mut self) {
        let mut delays: Vec<(u64, usize)> = Vec::new();
        for (out, &delay) in self.outs.iter().zip(self.head_delay.iter()) {
            if out.kind == Next::Input {
                match delays.iter_mut().find(|(known, _)| *known == delay) {
                    Some((_, count)) => *count += 1,
                    None => delays.push((delay, 1)),
                }
            }
        }
        delays.sort_by_key(|&(delay, count)| (usize::MAX - count, delay));
        delays.truncate(MAX_HEAD_QUEUES);
        for (out, &delay) in self.outs.iter_mut().zip(self.head_delay.iter()) {
            let queue = delays.iter().position(|(known, _)| *known == delay);
            out.head_queue = queue.map_or(NO_HEAD_QUEUE, |queue| queue as u8);
        }
        self.events = EventQueue::new(delays.len());
        self.queue_delay = delays.into_iter().map(|(delay, _)| delay).collect();
    }
}

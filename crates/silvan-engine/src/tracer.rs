use std::collections::{BTreeMap, VecDeque};

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::{Bytes, HostId, PortId, Span, Time, Vl};

use crate::engine::Engine;
use crate::packet::{ACK, BECN, CONTROL, GRANT, LAST, MARKED, NONE, Packet};
use crate::plane::{Plane, time};
use crate::records::OutPort;
use crate::variant::EngineVariant;
use crate::workload::Workload;
use silvan_model::{PacketFilter, PacketHop, PacketKind};

/// Hops that are recorded; later ones are not.
pub const MOST_HOPS: usize = 10_000_000;

/// Output, source, destination, injection and kind: packets of one key leave in the order of arrival.
type Key = (u32, u32, u32, u64, u8);

#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    at: u64,
    input: u32,
    waited: u64,
    sent: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tracer {
    ports: Vec<bool>,
    flows: Vec<(u32, u32)>,
    arrivals: BTreeMap<Key, VecDeque<Arrival>>,
    hosts: Vec<Arrival>,
    paced: Vec<u64>,
    /// Start of throttling by congestion control, by flow, or with `NONE` for the whole host.
    throttled: BTreeMap<(u32, u32), u64>,
    hops: Vec<PacketHop>,
    is_recorded: bool,
}

impl Tracer {
    fn new(filter: &PacketFilter, plane: &Plane) -> Self {
        let mut ports = vec![false; plane.fabric_ports];
        for port in &filter.ports {
            ports[port.index()] = true;
        }
        let number = |host: HostId| host.index() as u32;
        let flows = filter.flows.iter();
        Self {
            ports,
            flows: flows
                .map(|&(from, to)| (number(from), number(to)))
                .collect(),
            hosts: vec![Arrival::default(); plane.hosts.len()],
            paced: vec![0; plane.hosts.len()],
            ..Self::default()
        }
    }

    fn wants(&self, port: u32, packet: &Packet) -> bool {
        let flow = (packet.source(), packet.destination());
        self.ports[port as usize] || self.flows.contains(&flow)
    }
}

fn key(plane: &Plane, now: u64, port: u32, packet: &Packet) -> Key {
    let kind = kind_of(packet) as u8;
    let (source, destination) = (packet.source(), packet.destination());
    (
        port,
        source,
        destination,
        plane.extensions.sent(now, packet),
        kind,
    )
}

fn kind_of(packet: &Packet) -> PacketKind {
    match (packet.is(CONTROL), packet.is(ACK), packet.is(GRANT)) {
        (false, ..) => PacketKind::Data,
        (true, _, true) => PacketKind::Grant,
        (true, true, _) => PacketKind::Ack,
        (true, ..) => PacketKind::Cnp,
    }
}

fn waited(out: &OutPort, now: u64) -> u64 {
    out.wait_total + now.saturating_sub(out.wait_since)
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Records these packets from now on, if the variant is compiled for it.
    pub fn trace(&mut self, filter: &PacketFilter) {
        self.tracer = Some(Box::new(Tracer::new(filter, &self.plane)));
    }

    /// The hops that were recorded, in the order of their times.
    pub fn take_hops(&mut self) -> Vec<PacketHop> {
        let tracer = self.tracer.as_mut();
        tracer.map_or_else(Vec::new, |tracer| std::mem::take(&mut tracer.hops))
    }

    pub(crate) fn trace_arrival(&mut self, now: u64, input: u32, output: u32, packet: &Packet) {
        let plane = &self.plane;
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        let port = plane.fabric_port(output);
        if input as usize >= plane.fabric_ports || !tracer.wants(port, packet) {
            return;
        }
        let out = &plane.outs[plane.link_port(PortId::new(port as usize))];
        let arrivals = tracer
            .arrivals
            .entry(key(plane, now, port, packet))
            .or_default();
        arrivals.push_back(Arrival {
            at: now,
            input,
            waited: waited(out, now),
            sent: out.xmit_packets,
        });
    }

    /// Congestion control allows no packet of these flows now; with `NONE`, none of the host.
    pub(crate) fn trace_throttled(&mut self, now: u64, host: u32, to: &[u32]) {
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        for &destination in to {
            tracer.throttled.entry((host, destination)).or_insert(now);
        }
    }

    pub(crate) fn trace_departure(
        &mut self,
        now: u64,
        output: u32,
        input: Option<u32>,
        packet: &Packet,
    ) {
        let plane = &self.plane;
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        tracer.is_recorded = false;
        let port = plane.fabric_port(output);
        if plane.link_port(PortId::new(port as usize)) != output as usize {
            return;
        }
        let out = &plane.outs[output as usize];
        let host = packet.source();
        let (arrival, paced, throttled) = if input.is_some() {
            let key = key(plane, now, port, packet);
            let Some(arrivals) = tracer.arrivals.get_mut(&key) else {
                return;
            };
            let arrival = arrivals.pop_front().unwrap_or_default();
            if arrivals.is_empty() {
                tracer.arrivals.remove(&key);
            }
            (arrival, 0, None)
        } else {
            let last = Arrival {
                at: out.free_at,
                input: NONE,
                waited: waited(out, now),
                sent: out.xmit_packets,
            };
            let arrival = std::mem::replace(&mut tracer.hosts[host as usize], last);
            let next_start = plane.hosts[host as usize].next_start;
            let paced = std::mem::replace(&mut tracer.paced[host as usize], next_start);
            let of_flow = tracer.throttled.remove(&(host, packet.destination()));
            let of_host = tracer.throttled.remove(&(host, NONE));
            (arrival, paced, of_flow.into_iter().chain(of_host).min())
        };
        if !tracer.wants(port, packet) || tracer.hops.len() >= MOST_HOPS {
            return;
        }
        let span = |from: u64, to: u64| Span::from_ps(to.saturating_sub(from));
        let kind = kind_of(packet);
        let born = match kind {
            PacketKind::Data => plane.extensions.sent(now, packet),
            _ => now,
        };
        tracer.is_recorded = true;
        tracer.hops.push(PacketHop {
            at: time(now),
            arrived: time(arrival.at),
            port: PortId::new(port as usize),
            input: input.map(|_| PortId::new(arrival.input as usize)),
            vl: Vl::try_new(packet.vl() as u8).unwrap_or(Vl::MAX),
            sl: packet.service_level(),
            source: HostId::new(host as usize),
            destination: HostId::new(packet.destination() as usize),
            class: packet.class(),
            born: time(born),
            wire: Bytes::from_bytes(u64::from(packet.wire())),
            kind,
            last: packet.is(LAST),
            fecn: packet.is(MARKED),
            becn: packet.is(BECN),
            sent_before: (out.xmit_packets - 1).saturating_sub(arrival.sent),
            credit_wait: span(arrival.waited, waited(out, now)),
            pacing: span(arrival.at, paced.min(now)),
            throttling: throttled.map_or(Span::ZERO, |since| span(since, now)),
            delivered: None,
        });
    }

    pub(crate) fn trace_delivery(&mut self, done: u64) {
        let Some(tracer) = &mut self.tracer else {
            return;
        };
        if let (true, Some(hop)) = (tracer.is_recorded, tracer.hops.last_mut()) {
            hop.delivered = Some(Time::from_ps(done));
        }
    }
}

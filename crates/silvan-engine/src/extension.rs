//! Extensions of packets, for schemes that choose paths or need reports: a record in place of the injection time, with
//! that time, the rest of the path and the switches' entries.

use silvan_cc::hooks::{Ack, Hop, PortVl, SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::packet::{BECN, CONTROL, EXTENDED, Packet};
use crate::plane::{Plane, time};
use crate::variant::EngineVariant;
use crate::workload::{Offer, Workload};
use silvan_core::{HostId, PortId, Span};

const MOST_HOPS: usize = 255;

#[derive(Clone, Debug, Default)]
pub(crate) struct Extension {
    sent: u64,
    path: Option<u32>,
    chosen: Option<u32>,
    endpoint: u64,
    behind: u32,
    acknowledged: u32,
    hops: Vec<Hop>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Extensions {
    records: Vec<Extension>,
    free: Vec<u32>,
    spare: Vec<Vec<Hop>>,
    detached: Option<u32>,
    /// Payload behind packets that are about to be delivered, by their slot among the events' packets.
    behind: Vec<u32>,
}

impl Extensions {
    fn claim(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.records.push(Extension::default());
            (self.records.len() - 1) as u32
        })
    }

    pub fn send(&mut self, packet: &mut Packet, sent: &mut Vec<Extension>) {
        if packet.is(EXTENDED) {
            let number = packet.born as u32;
            let empty = Extension {
                hops: self.spare.pop().unwrap_or_default(),
                ..Extension::default()
            };
            packet.set_sent(sent.len() as u64);
            sent.push(std::mem::replace(&mut self.records[number as usize], empty));
            self.release(number);
        }
    }

    pub fn receive(&mut self, packet: &mut Packet, sent: &mut [Extension]) {
        if packet.is(EXTENDED) {
            let extension = std::mem::take(&mut sent[packet.born as u32 as usize]);
            let number = self.claim();
            packet.set_sent(u64::from(number));
            let record = &mut self.records[number as usize];
            let Extension { mut hops, .. } = std::mem::replace(record, extension);
            hops.clear();
            self.spare.push(hops);
        }
    }

    fn attach(&mut self, now: u64, packet: &mut Packet, path: Option<u32>, behind: u32) {
        let number = self.claim();
        let record = &mut self.records[number as usize];
        record.sent = now;
        record.path = path;
        record.chosen = path;
        record.behind = behind;
        record.hops.clear();
        packet.born = u64::from(number);
        packet.set(EXTENDED);
    }

    pub fn detached(&mut self, mut packet: Packet) -> Packet {
        if packet.is(EXTENDED) {
            let number = packet.born as u32;
            packet.set_sent(self.records[number as usize].sent);
            packet.clear(EXTENDED);
            self.detached = Some(number);
        }
        packet
    }

    pub fn behind_detached(&self) -> u32 {
        self.detached
            .map_or(0, |number| self.records[number as usize].behind)
    }

    pub fn note_endpoint(&mut self, endpoint: u64) {
        if let Some(number) = self.detached {
            self.records[number as usize].endpoint = endpoint;
        }
    }

    pub fn keep_behind(&mut self, slot: u32, behind: u32) {
        let slot = slot as usize;
        if self.behind.len() <= slot {
            self.behind.resize(slot + 1, 0);
        }
        self.behind[slot] = behind;
    }

    pub fn behind(&self, slot: u32) -> u32 {
        self.behind[slot as usize]
    }

    pub fn pass_on(&mut self, acknowledgement: &mut Packet) {
        if let Some(number) = self.detached.take() {
            self.records[number as usize].acknowledged = acknowledgement.born as u32;
            acknowledgement.born = u64::from(number);
            acknowledgement.set(EXTENDED);
        }
    }

    pub fn release_detached(&mut self) {
        if let Some(number) = self.detached.take() {
            self.release(number);
        }
    }

    fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// In ps, as seen from `now`.
    pub fn sent(&self, now: u64, packet: &Packet) -> u64 {
        match packet.is(EXTENDED) {
            true => self.records[packet.born as u32 as usize].sent,
            false => now - packet.age(now),
        }
    }

    pub fn discard(&mut self, packet: &Packet) {
        if packet.is(EXTENDED) {
            self.release(packet.born as u32);
        }
    }

    pub fn next_on_path(&mut self, packet: &Packet, count: u32) -> Option<u32> {
        if !packet.is(EXTENDED) || packet.is(CONTROL) {
            return None;
        }
        let path = self.records[packet.born as u32 as usize].path.as_mut()?;
        let next = *path % count;
        *path /= count;
        Some(next)
    }

    pub fn in_use(&self) -> usize {
        self.records.len() - self.free.len()
    }

    pub fn bytes(&self) -> usize {
        let hops = self.records.iter().map(|record| record.hops.capacity());
        let spare = self.spare.iter().map(Vec::capacity);
        self.records.capacity() * size_of::<Extension>()
            + (self.free.capacity() + self.behind.capacity()) * 4
            + hops.chain(spare).sum::<usize>() * size_of::<Hop>()
    }
}

impl Plane {
    /// The record that a switch writes into a departing packet. `queued_bytes` wait for the lane, this packet included.
    fn hop(&self, now: u64, output: u32, lane: usize, packet: &Packet, queued_bytes: u32) -> Hop {
        let port = self.link_port(PortId::new(output as usize));
        let link = &self.outs[port];
        let mut behind = queued_bytes.saturating_sub(u32::from(packet.wire()));
        if port != output as usize {
            behind += self.waiting_bytes(lane + (port - output as usize) * self.vls);
        }
        Hop {
            output: PortVl(lane as u32),
            at: time(now),
            queued_bytes: behind,
            xmit_bytes: link.xmit_bytes,
            rate: self.rates[usize::from(link.rate)].rate,
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(always)]
    pub(crate) fn extends_packets(&self) -> bool {
        C::ACTIVE && (self.needs.ack || self.needs.receive || self.needs.select_path)
    }

    pub(crate) fn extended(
        &mut self,
        now: u64,
        host: u32,
        offer: &Offer,
        mut packet: Packet,
    ) -> Packet {
        let flow = silvan_cc::hooks::Flow {
            source: HostId::new(host as usize),
            destination: offer.dst,
            sl: packet.service_level(),
            queue: 0,
        };
        let path = if C::ACTIVE && self.needs.select_path {
            self.source.select_path(time(now), flow)
        } else {
            None
        };
        self.stats.control_acted |= path.is_some();
        self.plane
            .extensions
            .attach(now, &mut packet, path, offer.behind);
        packet
    }

    #[inline(never)]
    pub(crate) fn stamp(
        &mut self,
        now: u64,
        output: u32,
        lane: usize,
        packet: &Packet,
        queued_bytes: u32,
    ) {
        if !packet.is(EXTENDED)
            || packet.is(CONTROL)
            || !self.switch.stamps(time(now), PortVl(lane as u32))
        {
            return;
        }
        let hop = self.plane.hop(now, output, lane, packet, queued_bytes);
        let hops = &mut self.plane.extensions.records[packet.born as u32 as usize].hops;
        if hops.len() < MOST_HOPS {
            hops.push(hop);
        }
    }

    /// Passes an acknowledgement's report to the scheme; returns its bytes, and true if the host may send earlier.
    pub(crate) fn acknowledge(
        &mut self,
        now: u64,
        flow: silvan_cc::hooks::Flow,
        packet: &Packet,
    ) -> (u32, bool) {
        let number = packet.born as u32;
        let record = &self.plane.extensions.records[number as usize];
        let ack = Ack {
            bytes: record.acknowledged,
            becn: packet.is(BECN),
            sent: time(record.sent),
            endpoint: Span::from_ps(record.endpoint),
            path: record.chosen,
            hops: &record.hops,
        };
        let again = self.source.on_ack(time(now), flow, ack);
        let bytes = ack.bytes;
        self.plane.extensions.release(number);
        (bytes, again)
    }
}

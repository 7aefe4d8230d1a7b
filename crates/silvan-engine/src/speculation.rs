//! Packets that switches discard for the scheme, and sources send again. The destination sends the negative
//! acknowledgement, because no switch of the model sends packets.

use silvan_cc::hooks::{Flow, PortVl, QueueView, SourceControl, SwitchControl};
use silvan_core::{HostId, Sl};

use crate::engine::Engine;
use crate::feedback::flow_of;
use crate::packet::{ACK, CONTROL, GRANT, LAST, Packet, service_level};
use crate::plane::time;
use crate::variant::EngineVariant;
use crate::workload::{Offer, Workload};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Discarded {
    offer: Offer,
    sl: Sl,
    notice: u32,
    nacked: u64,
}

const PAYLOAD_SHIFT: u32 = 32;
const LEVEL_SHIFT: u32 = 48;

/// Content of a negative acknowledgement: from the low end the scheme's number (32 bits), payload (16) and service
/// level (4).
fn bits_of(notice: u32, payload: u16, level: u8) -> u64 {
    u64::from(level) << LEVEL_SHIFT | u64::from(payload) << PAYLOAD_SHIFT | u64::from(notice)
}

pub(crate) fn level_of(bits: u64) -> Sl {
    service_level((bits >> LEVEL_SHIFT) as u8)
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Queries the scheme for a packet that is about to wait or leave; returns true if it has been discarded.
    #[inline(never)]
    pub(crate) fn discard(
        &mut self,
        now: u64,
        input: u32,
        lane: usize,
        packet: &Packet,
        waited: bool,
    ) -> bool {
        let output = lane / self.plane.vls;
        let may_discard = !packet.is(CONTROL) && self.plane.outs[output].marks;
        if !may_discard || !self.switch.discards(PortVl(lane as u32)) {
            return false;
        }
        let has_credit = self.has_credit(now, output as u32, lane);
        let plane = &self.plane;
        let first = output * plane.vls;
        let bytes = |lane: usize| plane.lanes[lane].queued_bytes + plane.held_back_bytes::<F>(lane);
        let queue = QueueView {
            queued_bytes: (first..first + plane.vls).map(bytes).sum(),
            has_credit,
        };
        let flow = flow_of(packet);
        let wire = u32::from(packet.wire());
        let sent = time(plane.extensions.sent(now, packet));
        let output_vl = PortVl(lane as u32);
        let chosen =
            self.switch
                .select_discard(time(now), output_vl, queue, flow, wire, sent, waited);
        let Some(notice) = chosen else {
            return false;
        };
        self.stats.control_acted = true;
        let payload = (wire - self.plane.header) as u16;
        self.plane
            .count(now, output as u32, packet, |counts| counts.xmit += 1);
        self.return_discarded(now, input, packet);
        let destination = packet.destination();
        let about = (packet.source(), packet.sl_bits());
        let flags = CONTROL | GRANT | ACK;
        if let Some(nack) = self.notification(destination, about, flags, 0) {
            let nack = nack.with_nack(bits_of(notice, payload, packet.sl_bits()), packet);
            self.send_notification(now, now, destination, nack);
        }
        true
    }

    #[inline(never)]
    pub(crate) fn notify_nack(&mut self, now: u64, flow: Flow, bits: u64, nack: &Packet) -> bool {
        let (notice, payload) = (bits as u32, (bits >> PAYLOAD_SHIFT) as u16);
        let (source, destination) = (nack.destination(), nack.source());
        let class = self
            .plane
            .routing
            .class_of(source, destination, flow.sl.as_u8());
        self.discarded[source as usize].push(Discarded {
            offer: Offer {
                dst: flow.destination,
                bytes: payload.into(),
                sl: service_level(class),
                class: nack.class(),
                last: nack.is(LAST),
                behind: 0,
                number: 0,
                queue: 0,
            },
            sl: flow.sl,
            notice,
            nacked: now,
        });
        let mut grants = std::mem::take(&mut self.grants);
        self.source
            .on_nack(time(now), flow, payload.into(), notice, &mut grants);
        self.post_grants(now, source, grants);
        true
    }

    #[inline(never)]
    pub(crate) fn notify_granted(&mut self, now: u64, flow: Flow, granted: u32) -> bool {
        self.notifications.count_grant(flow.source);
        let mut grants = std::mem::take(&mut self.grants);
        let may_send = self
            .source
            .answer_grant(time(now), flow, granted, &mut grants);
        self.post_grants(now, flow.source.index() as u32, grants);
        may_send
    }

    #[inline(never)]
    pub(crate) fn notify_started(&mut self, now: u64, flow: Flow, offer: &Offer) {
        let mut grants = std::mem::take(&mut self.grants);
        self.source
            .on_started(time(now), flow, offer.bytes, offer.behind, &mut grants);
        self.post_grants(now, flow.source.index() as u32, grants);
    }

    pub(crate) fn next_discarded(&mut self, now: u64, host: u32) -> Option<Offer> {
        let source = HostId::new(host as usize);
        let mut earliest = u64::MAX;
        for place in 0..self.discarded.get(host as usize)?.len() {
            let packet = self.discarded[host as usize][place];
            let flow = Flow {
                source,
                destination: packet.offer.dst,
                sl: packet.sl,
                queue: 0,
            };
            let bytes = packet.offer.bytes;
            let at = self
                .source
                .resend_time(time(now), flow, bytes, packet.notice, time(packet.nacked))
                .as_ps();
            if at <= now {
                return Some(self.discarded[host as usize].remove(place).offer);
            }
            earliest = earliest.min(at);
        }
        if earliest != u64::MAX {
            self.wake_host(host, earliest);
        }
        None
    }
}

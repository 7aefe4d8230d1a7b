//! Notifications from a FECN at the destination to a BECN at the source: [`Packet`]s with `CONTROL`, past or through
//! the fabric.

use std::collections::{BTreeMap, VecDeque};

use silvan_cc::hooks::{Arrival, Feedback, Flow, Grants, SourceControl, SwitchControl};
use silvan_cc::notification::Coalescer;
use silvan_core::{HostId, Span};

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::packet::{
    ACK, BECN, CONTROL, EXTENDED, GRANT, Kind, LAST, MARKED, Packet, RESPONSE, service_level,
};
use crate::plane::LATEST;
use crate::plane::{Plane, time};
use crate::speculation;
use crate::variant::EngineVariant;
use crate::workload::Workload;
use silvan_model::{BecnCarrier, FeedbackParams, FeedbackPath, InvariantError};

const ARRIVES: u32 = 0;
const TO_SEND: u32 = 1;

#[derive(Debug)]
pub(crate) struct Notifications {
    params: FeedbackParams,
    carrier: BecnCarrier,
    coalescer: Option<Coalescer>,
    queues: Vec<VecDeque<(u64, Packet)>>,
    charges: Vec<VecDeque<u64>>,
    /// With windows: arrival times of CNPs past the fabric that the sink has not been charged for yet, in order.
    sink_charges: Vec<VecDeque<u64>>,
    sink_charges_open: usize,
    grants_received: Vec<u64>,
    /// CNPs that have not reached their sources.
    outstanding: u64,
    /// By source: its outstanding CNPs.
    outstanding_to: Vec<u32>,
    /// With one ACK per message: payload and marks by destination, source and service level.
    messages: BTreeMap<(u32, u32, u8), (u64, bool)>,
}

impl Notifications {
    pub fn new(params: FeedbackParams, hosts: usize, grants: bool) -> Self {
        let in_band = params.path == FeedbackPath::InBand;
        Self {
            params,
            carrier: params.carrier(),
            coalescer: params.coalesce().map(|span| Coalescer::new(hosts, span)),
            queues: vec![VecDeque::new(); if in_band { hosts } else { 0 }],
            charges: vec![VecDeque::new(); if in_band { 0 } else { hosts }],
            sink_charges: vec![VecDeque::new(); if in_band { 0 } else { hosts }],
            sink_charges_open: 0,
            grants_received: vec![0; if grants { hosts } else { 0 }],
            outstanding: 0,
            outstanding_to: vec![0; hosts],
            messages: BTreeMap::new(),
        }
    }

    pub fn grants_received(&self, host: HostId) -> Option<u64> {
        self.grants_received.get(host.index()).copied()
    }

    pub fn count_grant(&mut self, host: HostId) {
        self.grants_received[host.index()] += 1;
    }

    #[inline]
    pub fn wants(&self, packet: &Packet) -> bool {
        packet.is(MARKED) || self.carrier != BecnCarrier::Cnp
    }

    /// Returns true if no CNP is under way, and none waits to be charged.
    pub fn are_all_received(&self) -> bool {
        self.outstanding == 0 && self.sink_charges_open == 0
    }

    /// Returns true if no CNP is on its way to these hosts.
    pub fn are_received_by(&self, hosts: &[u32]) -> bool {
        hosts
            .iter()
            .all(|&host| self.outstanding_to[host as usize] == 0)
    }

    /// Returns true if notifications leave each packet or message, marked or not.
    pub fn has_acknowledgements(&self) -> bool {
        !matches!(self.carrier, BecnCarrier::None | BecnCarrier::Cnp)
    }

    /// Returns true if a notification takes a part of a link or of an adapter's rate.
    pub fn take_time(&self, plane: &Plane) -> bool {
        let in_band = self.params.path == FeedbackPath::InBand;
        in_band || plane.sink_cnp > 0 || plane.injection_cnp > 0
    }

    pub fn for_each_waiting(&self, each: impl FnMut(&Packet)) {
        let waiting = self.queues.iter().flatten();
        waiting.map(|(_, packet)| packet).for_each(each);
    }

    /// Notifications of one instant are ordered by content, because their events have no order.
    fn queue(&mut self, now: u64, host: u32, notification: Packet) {
        let queue = &mut self.queues[host as usize];
        let order = notification.order();
        let later = queue.iter().rev();
        let later = later.take_while(|(since, other)| *since == now && other.order() > order);
        let place = queue.len() - later.count();
        queue.insert(place, (now, notification));
    }

    fn decide(&mut self, done: u64, packet: &Packet, payload: u32) -> Option<(u8, u64)> {
        let marked = packet.is(MARKED);
        let becn = |marked: bool| if marked { BECN } else { 0 };
        match self.carrier {
            BecnCarrier::None => None,
            BecnCarrier::Cnp => {
                if let Some(coalescer) = &mut self.coalescer {
                    if !coalescer.permit(time(done), flow_of(packet)) {
                        return None;
                    }
                }
                Some((CONTROL | BECN, 0))
            }
            BecnCarrier::AckPerPacket => Some((CONTROL | ACK | becn(marked), u64::from(payload))),
            BecnCarrier::AckPerMessage => {
                let key = (packet.destination(), packet.source(), packet.sl_bits());
                let message = self.messages.entry(key).or_default();
                message.0 += u64::from(payload);
                message.1 |= marked;
                if !packet.is(LAST) {
                    return None;
                }
                let (bytes, marked) = self.messages.remove(&key)?;
                Some((CONTROL | ACK | becn(marked), bytes))
            }
        }
    }
}

pub(crate) fn flow_of(packet: &Packet) -> Flow {
    Flow {
        source: HostId::new(packet.source() as usize),
        destination: HostId::new(packet.destination() as usize),
        sl: packet.service_level(),
        queue: 0,
    }
}

/// The flow that a notification is about; of a negative acknowledgement, [`level_of`](speculation::level_of) knows its service level.
#[inline]
pub(crate) fn notified_flow(packet: &Packet) -> Flow {
    Flow {
        source: HostId::new(packet.destination() as usize),
        destination: HostId::new(packet.source() as usize),
        sl: service_level(packet.class() as u8),
        queue: match packet.is(BECN) && !packet.is(ACK) {
            true => packet.born as u16,
            false => 0,
        },
    }
}

impl Plane {
    pub fn order_feedback(&self, events: &mut [Event]) {
        if events.len() > 1 {
            events.sort_unstable_by_key(|event| {
                let packet = self.events.stored_packet(event.argument() >> 1);
                (event.argument() & 1, packet.order())
            });
        }
    }

    pub fn schedule_arrival(&mut self, at: u64, notification: Packet) {
        let host = notification.destination();
        let slot = self.events.store_packet(notification);
        let event = Event::new(at, phase::FEEDBACK, host, slot << 1 | ARRIVES);
        self.events.push(event);
    }

    pub fn schedule_sending(&mut self, at: u64, host: u32, notification: Packet) {
        let slot = self.events.store_packet(notification);
        let event = Event::new(at, phase::FEEDBACK, host, slot << 1 | TO_SEND);
        self.events.push(event);
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    pub(crate) fn answer(&mut self, now: u64, done: u64, host: u32, packet: &Packet, payload: u32) {
        if packet.is(MARKED) {
            self.plane.hosts[host as usize].fecn_received += 1;
        }
        let Some((flags, acknowledged)) = self.notifications.decide(done, packet, payload) else {
            return;
        };
        let about = (packet.source(), packet.sl_bits());
        let bits = match self.plane.numbers && flags == CONTROL | BECN {
            true => self.queue_of(packet),
            false => acknowledged,
        };
        let Some(mut notification) = self.notification(host, about, flags, bits) else {
            return;
        };
        if C::ACTIVE && self.needs.ack && notification.is(ACK) {
            self.plane.extensions.pass_on(&mut notification);
        }
        self.send_notification(now, done, host, notification);
    }

    #[cold]
    fn queue_of(&self, packet: &Packet) -> u64 {
        let source = HostId::new(packet.source() as usize);
        let offer = self.plane.offer_of(packet);
        u64::from(self.workload.queue_of(source, &offer))
    }

    pub(crate) fn notification(
        &self,
        host: u32,
        (source, data_sl): (u32, u8),
        flags: u8,
        bytes: u64,
    ) -> Option<Packet> {
        let data_class = self.plane.routing.class_of(source, host, data_sl);
        let params = &self.notifications.params;
        let (wire, class) = match params.path {
            FeedbackPath::OutOfBand => (0, data_class),
            FeedbackPath::InBand => (
                params.bytes.as_u64() as u16,
                params.sl.map_or(data_class, |sl| sl.as_u8()),
            ),
        };
        let vl = self.plane.host_lanes(host)[usize::from(class)];
        if wire > 0 && usize::from(vl) >= self.plane.vls {
            return None;
        }
        let sl = self.plane.routing.service_level(host, source, class);
        let kind = Kind {
            wire,
            class: u16::from(data_sl),
            lane: vl << 4 | sl,
            flags,
        };
        Some(Packet::new(bytes, host, source, kind))
    }

    pub(crate) fn send_notification(
        &mut self,
        now: u64,
        done: u64,
        host: u32,
        notification: Packet,
    ) {
        if !notification.is(ACK) {
            self.notifications.outstanding += 1;
            self.notifications.outstanding_to[notification.destination() as usize] += 1;
        }
        match self.notifications.params.path {
            FeedbackPath::OutOfBand => {
                if !notification.is(ACK) && self.plane.injection_cnp > 0 {
                    // Also for hosts that never send data, so that the list stays short. With windows, injections
                    // before `now` may be left.
                    let collected_at = if F::LOOKAHEAD { self.now } else { now };
                    self.charge_injection(collected_at, host);
                    let charges = &mut self.notifications.charges[host as usize];
                    let place = charges.partition_point(|&sent| sent <= done);
                    charges.insert(place, done);
                    self.plane.hosts[host as usize].charges += 1;
                }
                let at = done + self.notifications.params.delay.as_ps();
                if F::LOOKAHEAD && self.plane.remote.has_host(notification.destination()) {
                    let plane = &mut self.plane;
                    let extensions = &mut plane.extensions;
                    plane.remote.send_notification(at, notification, extensions);
                } else {
                    self.plane.schedule_arrival(at, notification);
                }
            }
            FeedbackPath::InBand if F::LOOKAHEAD && self.plane.remote.has_host(host) => {
                // A switch has discarded a packet to a host of another part.
                self.plane.remote.send_from(host, done, notification);
            }
            FeedbackPath::InBand => self.plane.schedule_sending(done, host, notification),
        }
    }

    pub(crate) fn receive(&mut self, now: u64, host: u32, slot: u32, packet: &Packet) {
        let plane = &self.plane;
        let link = &plane.outs[plane.hosts[host as usize].port as usize];
        let payload = u32::from(packet.wire()) - plane.header;
        let on_link = plane.serialisation(link, packet.wire());
        let takes = on_link.max(plane.sink_time::<F>(host, payload));
        let arrival = Arrival {
            payload,
            marked: packet.is(MARKED),
            last: packet.is(LAST),
            sent: time(now - packet.age(now)),
            behind: plane.extensions.behind(slot),
            takes: Span::from_ps(takes),
        };
        let mut grants = std::mem::take(&mut self.grants);
        let flow = flow_of(packet);
        self.source
            .on_receive(time(now), flow, arrival, &mut grants);
        self.post_grants(now, host, grants);
    }

    pub(crate) fn post_grants(&mut self, now: u64, host: u32, mut grants: Grants) {
        for grant in grants.drain() {
            let source = grant.source.index();
            if source >= self.plane.hosts.len() || source == host as usize {
                let (host, to) = (host as usize, source);
                self.broken(now, InvariantError::GrantTo { host, to });
                break;
            }
            let about = (source as u32, grant.sl.as_u8());
            let bytes = u64::from(grant.bytes);
            if let Some(notification) = self.notification(host, about, CONTROL | GRANT, bytes) {
                let at = grant.at.as_ps().clamp(now, LATEST - 1);
                self.send_notification(now, at, host, notification);
            }
        }
        self.grants = grants;
    }

    pub(crate) fn notification_arrives(&mut self, done: u64, host: u32, packet: Packet) {
        let slot = self.plane.events.store_packet(packet);
        self.plane
            .events
            .push(Event::new(done, phase::FEEDBACK, host, slot << 1 | ARRIVES));
    }

    pub(crate) fn feedback(&mut self, now: u64, host: u32, event: Event) {
        let next = match self.orders_feedback() {
            true => self.plane.events.pop_like(event),
            false => None,
        };
        let Some(next) = next else {
            self.feedback_event(now, host, event.argument());
            return;
        };
        let mut events = vec![event, next];
        while let Some(other) = self.plane.events.pop_like(event) {
            events.push(other);
        }
        self.plane.order_feedback(&mut events);
        self.events += events.len() as u64 - 1;
        for event in events {
            self.feedback_event(now, host, event.argument());
        }
    }

    #[inline]
    pub(crate) fn orders_feedback(&self) -> bool {
        self.needs_answer_grant() || self.needs_select_discard()
    }

    /// `argument` is a slot of the slab, and in the lowest bit the action.
    pub(crate) fn feedback_event(&mut self, now: u64, host: u32, argument: u32) {
        let packet = self.plane.events.remove_packet(argument >> 1);
        if argument & 1 == TO_SEND {
            self.notifications.queue(now, host, packet);
            self.plane.hosts[host as usize].notifications += 1;
            self.wake_host(host, now);
            return;
        }
        if !F::PLAIN && packet.is(RESPONSE) {
            self.responded(now, host, &packet);
            return;
        }
        if !packet.is(ACK) {
            let outstanding = &mut self.notifications.outstanding;
            *outstanding = outstanding.saturating_sub(1);
            let to_host = &mut self.notifications.outstanding_to[host as usize];
            *to_host = to_host.saturating_sub(1);
        }
        if !F::LOOKAHEAD && self.charges_sink(&packet) {
            let sink_free = &mut self.plane.hosts[host as usize].sink_free;
            *sink_free = (*sink_free).max(now) + self.plane.sink_cnp;
        }
        let becn = packet.is(BECN);
        if becn {
            self.plane.hosts[host as usize].becn_received += 1;
        }
        let flow = notified_flow(&packet);
        if C::ACTIVE && self.notify_source(now, flow, &packet) {
            self.release_moved(flow.source, flow.destination);
            self.wake_host(host, now);
        }
    }

    #[inline]
    pub(crate) fn release_moved(&mut self, host: HostId, dst: HostId) {
        match self.needs.separates_flows {
            true => self.workload.on_flow_release_moved(host, dst),
            false => self.workload.on_release_moved(host),
        }
    }

    #[inline]
    fn charges_sink(&self, notification: &Packet) -> bool {
        let in_band = self.notifications.params.path == FeedbackPath::InBand;
        !in_band && !notification.is(ACK) && self.plane.sink_cnp > 0
    }

    pub(crate) fn note_sink_charges(&mut self, feedback: &[Event]) {
        let feedback = feedback.iter();
        for event in feedback.filter(|event| event.phase() == phase::FEEDBACK) {
            let argument = event.argument();
            let arrives = argument & 1 == ARRIVES;
            let packet = self.plane.events.stored_packet(argument >> 1);
            if arrives && self.charges_sink(packet) {
                self.notifications.sink_charges[event.id() as usize].push_back(event.time);
                self.notifications.sink_charges_open += 1;
            }
        }
    }

    #[inline]
    pub(crate) fn charge_sink(&mut self, now: u64, host: u32) {
        if self.notifications.sink_charges_open == 0 {
            return;
        }
        let sink_free = &mut self.plane.hosts[host as usize].sink_free;
        let charges = &mut self.notifications.sink_charges[host as usize];
        while let Some(&arrived) = charges.front().filter(|&&arrived| arrived < now) {
            charges.pop_front();
            self.notifications.sink_charges_open -= 1;
            *sink_free = (*sink_free).max(arrived) + self.plane.sink_cnp;
        }
    }

    #[inline]
    fn notify_source(&mut self, now: u64, flow: Flow, packet: &Packet) -> bool {
        let becn = packet.is(BECN);
        let (mut bytes, mut again) = (packet.born as u32, false);
        if self.needs_select_discard() {
            if let Some(bits) = packet.nack() {
                let sl = speculation::level_of(bits);
                return self.notify_nack(now, Flow { sl, ..flow }, bits, packet);
            }
        }
        if self.needs_answer_grant() && packet.is(GRANT) {
            return self.notify_granted(now, flow, bytes);
        }
        if C::ACTIVE && self.needs.receive && packet.is(GRANT) {
            self.notifications.count_grant(flow.source);
            return self.source.on_grant(time(now), flow, bytes);
        }
        if C::ACTIVE && self.needs.ack && packet.is(EXTENDED) {
            (bytes, again) = self.acknowledge(now, flow, packet);
        }
        let feedback = if packet.is(ACK) {
            Feedback::Ack { bytes, becn }
        } else {
            Feedback::Cnp
        };
        self.source.on_feedback(time(now), flow, feedback) | again
    }

    pub(crate) fn charge_injection(&mut self, now: u64, host: u32) {
        let record = &mut self.plane.hosts[host as usize];
        let charges = &mut self.notifications.charges[host as usize];
        while let Some(&sent) = charges.front().filter(|&&sent| sent <= now) {
            charges.pop_front();
            record.charges -= 1;
            record.next_start = record.next_start.max(sent) + self.plane.injection_cnp;
        }
    }

    /// Sends the first waiting notification of a host whose link is free. Without priority it alternates with data,
    /// unless `data_waits`. Returns true if it was sent.
    pub(crate) fn inject_notification(&mut self, now: u64, host: u32, data_waits: bool) -> bool {
        let params = &self.notifications.params;
        let priority = params.path == FeedbackPath::InBand && params.priority;
        if !priority && !data_waits && !self.plane.hosts[host as usize].data_sent_last {
            return false;
        }
        let Some(&(_, packet)) = self.notifications.queues[host as usize].front() else {
            return false;
        };
        let port = self.plane.hosts[host as usize].port;
        let vl = packet.vl();
        let lane = self.plane.lane(port, vl);
        if self.plane.credits[lane].in_hand < packet.blocks() {
            self.plane.credits[lane].starved = true;
            if let Some(at) = self.plane.when_may_send::<F>(now, lane, packet.blocks()) {
                self.wake_host(host, at.max(now));
            }
            return false;
        }
        self.notifications.queues[host as usize].pop_front();
        let record = &mut self.plane.hosts[host as usize];
        record.notifications -= 1;
        record.data_sent_last = false;
        if !packet.is(ACK) {
            record.next_start = record.next_start.max(now) + self.plane.injection_cnp;
        }
        self.transmit(now, port, lane, None, packet, 0);
        let free_at = self.plane.outs[port as usize].free_at;
        self.wake_host(host, free_at);
        true
    }
}

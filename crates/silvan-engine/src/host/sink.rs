use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::HostId;

use crate::bit_errors::BAD_LINK;
use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::packet::{ACK, CONTROL, LAST, MARKED, Packet, service_level};
use crate::plane::{Plane, time};
use crate::records::FARTHEST;
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::{Offer, Transit, Workload};

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Delivery time is known when the last link is granted, so arrival needs no event. `tail` leaves the switch.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        now: u64,
        mut tail: u64,
        output: u32,
        lane: usize,
        packet: Packet,
    ) {
        let extends = self.extends_packets();
        let out = &self.plane.outs[output as usize];
        let to = out.next;
        let mut starts = now;
        if out.head_queue == BAD_LINK {
            let Some(delay) = self.pass_last_link((now, tail), output, lane, &packet) else {
                return;
            };
            starts += delay;
            tail += delay;
        }
        if F::LOOKAHEAD && S::ACTIVE {
            self.charge_sink(now, to);
        }
        let plane = &mut self.plane;
        let propagation = plane.propagation[output as usize];
        // A notification has no payload; a CNP takes its charge, an ACK no time.
        let (payload, service) = if packet.is(CONTROL) {
            (0, if packet.is(ACK) { 0 } else { plane.sink_cnp })
        } else {
            let payload = u32::from(packet.wire()) - plane.header;
            (payload, plane.sink_time::<F>(to, payload))
        };
        let arrives = tail + propagation;
        let sink_free = plane.hosts[to as usize].sink_free;
        let mut done = if plane.sink_cuts_through {
            plane.cut_through::<F>(to, output, &packet, (starts, arrives), service)
        } else {
            sink_free.max(arrives) + service
        };
        if done == sink_free {
            // ACKs and empty messages take no time. Behind a busy sink they would end with the packet before, and
            // events of one instant have no order.
            done += 1;
        }
        plane.hosts[to as usize].sink_free = done;
        if F::TRACES {
            self.trace_delivery(done);
        }
        let plane = &mut self.plane;
        let due = done + propagation + plane.config.host.credit_delay.as_ps();
        // Limit of the credits' clock: if a sink takes hours, credits return earlier.
        let due = due.min(now + FARTHEST);
        if F::PFC && plane.is_under_pfc(lane) {
            plane.record_departure(done, lane, packet.wire());
        } else {
            plane.credits[lane].post(&mut plane.overflow, now, due, packet.blocks());
        }
        if packet.is(CONTROL) {
            self.notification_arrives(done, to, packet);
            return;
        }
        let packet = if extends {
            let packet = plane.extensions.detached(packet);
            plane.extensions.note_endpoint(done.saturating_sub(arrives));
            packet
        } else {
            packet
        };
        let delivery = Delivery {
            done,
            host: to,
            payload,
            latency: packet.age(done),
            source: packet.source(),
            class: packet.class(),
            hops: packet.hops(),
            marked: packet.is(MARKED),
            behind: if extends {
                plane.extensions.behind_detached()
            } else {
                0
            },
        };
        if !F::PLAIN && plane.reordering.is_some() {
            self.arrive(delivery, packet);
        } else if !F::PLAIN && !F::LOOKAHEAD && plane.transport.is_some() {
            self.arrive_in_order(delivery, packet);
        } else {
            self.hand_over(delivery, packet);
        }
        if self.notifications.wants(&packet) {
            self.answer(now, done, to, &packet, payload);
        }
        if extends {
            self.plane.extensions.release_detached();
        }
    }

    #[inline(always)]
    pub(crate) fn hand_over(&mut self, delivery: Delivery, packet: Packet) {
        let (done, to) = (delivery.done, delivery.host);
        let host = &mut self.plane.hosts[to as usize];
        self.stats.record(delivery, host);
        let mut receives = C::ACTIVE && self.needs.receive;
        if F::LOOKAHEAD && receives {
            // Programs are notified of received packets before the host continues.
            self.schedule_receipt(done, phase::RECEIVED, to, packet, Some(delivery.behind));
            receives = false;
        }
        let tells = !F::LOOKAHEAD || W::LINKS_HOSTS;
        if !tells || !receives && !self.notifies(packet.class(), packet.is(LAST)) {
            return;
        }
        if F::LOOKAHEAD && self.workload.tells_only_sender_of(packet.class()) {
            if self.plane.remote.has_host(packet.source()) {
                self.plane.remote.send_delivery(done, packet);
            } else {
                self.plane.schedule_arrived(done, packet);
            }
        } else {
            let behind = receives.then_some(delivery.behind);
            self.schedule_receipt(done, phase::DELIVERED, to, packet, behind);
        }
    }

    /// Schedules the events of a delivery at `done`; the receiver's scheme reads the payload `behind` the packet.
    #[inline(always)]
    fn schedule_receipt(
        &mut self,
        done: u64,
        phase: u32,
        host: u32,
        packet: Packet,
        behind: Option<u32>,
    ) {
        let plane = &mut self.plane;
        let slot = plane.events.store_packet(packet);
        if let Some(behind) = behind {
            plane.extensions.keep_behind(slot, behind);
        }
        plane.events.push(Event::new(done, phase, host, slot));
    }

    /// `last` marks the last packet of its message.
    #[inline]
    pub(super) fn notifies(&self, class: u16, last: bool) -> bool {
        self.workload.needs_delivery_of(class) && (last || !self.whole_messages)
    }

    pub(crate) fn delivered(&mut self, now: u64, host: u32, slot: u32) {
        let packet = self.plane.events.remove_packet(slot);
        if C::ACTIVE && self.needs.receive && packet.source() != host {
            self.receive(now, host, slot, &packet);
        }
        if self.notifies(packet.class(), packet.is(LAST)) {
            self.notify_workload(now, &packet);
            self.wake_all(now);
            self.check_pause();
        }
    }

    pub(crate) fn arrived(&mut self, now: u64, slot: u32) {
        let packet = self.plane.events.remove_packet(slot);
        self.notify_workload(now, &packet);
        while let Some(host) = self.woken.pop() {
            let host = self.plane.known_host(host);
            self.wake_host(host, now);
        }
    }

    /// `woken` collects hosts that have something to send.
    pub(crate) fn notify_workload(&mut self, now: u64, packet: &Packet) {
        self.note_delivered_message(now, packet);
        if self.plane.reconfiguration.has_losses() {
            self.tell_losses(now);
        }
        let offer = self.plane.offer_of(packet);
        let transit = self.transit_of(now, packet);
        self.workload.on_delivered(
            HostId::new(packet.source() as usize),
            &offer,
            transit,
            time(now),
            &mut self.woken,
        );
    }

    #[inline]
    pub(crate) fn transit_of(&self, now: u64, packet: &Packet) -> Transit {
        Transit {
            hops: packet.hops(),
            marked: packet.is(MARKED),
            sent: time(now - packet.age(now)),
            completes: self.whole_messages,
            number: self.plane.numbers.then(|| packet.waypoint()),
        }
    }
}

impl Plane {
    /// The workload's offer, without the payload behind it.
    pub(crate) fn offer_of(&self, packet: &Packet) -> Offer {
        let host = packet.destination();
        let class = self
            .routing
            .class_of(packet.source(), host, packet.sl_bits());
        Offer {
            dst: HostId::new(host as usize),
            bytes: u32::from(packet.wire()) - self.header,
            sl: service_level(class),
            class: packet.class(),
            last: packet.is(LAST),
            behind: 0,
            number: if self.numbers { packet.waypoint() } else { 0 },
            queue: 0,
        }
    }

    pub fn schedule_arrived(&mut self, done: u64, packet: Packet) {
        let source = packet.source();
        let slot = self.events.store_packet(packet);
        self.events
            .push(Event::new(done, phase::ARRIVED, source, slot));
    }
}

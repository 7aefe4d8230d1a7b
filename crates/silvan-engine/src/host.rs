//! The hosts: injection and sink.

use std::marker::PhantomData;

use silvan_cc::hooks::{Flow, SourceControl, SwitchControl};
use silvan_core::{Bytes, HostId, PortId, Sl, Span, Time, Vl};

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::packet::{ACK, CONTROL, Kind, LAST, MARKED, NONE, Packet, service_level};
use crate::plane::time;
use crate::records::{Credits, FARTHEST};
use crate::routing::Routing;
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::{Gate, Offer, Poll, Transit, Workload};
use silvan_model::InvariantError;

/// The view of one host that a workload has.
struct HostGate<'a, S, C, F> {
    switch: &'a mut S,
    source: &'a mut C,
    credits: &'a [Credits],
    sl_to_vl: &'a [u8; 16],
    routing: &'a Routing,
    header: u32,
    mtu_blocks: i32,
    host: HostId,
    now: Time,
    /// Lanes that had too few credits for a request, one bit each.
    starved: u16,
    /// Fewest blocks that were requested without effect.
    wanted: i32,
    /// Whether the scheme chooses the virtual lane of a packet.
    chooses_vl: bool,
    /// The host's port, if the scheme's switches choose this lane for a flow and not for a packet.
    port_of_flows: Option<PortId>,
    /// Destinations to which congestion control lets nothing start now, in the variant that records packets.
    throttled: Vec<u32>,
    variant: PhantomData<F>,
}

/// The service level that congestion control sees: that of the packet's header.
#[inline(always)]
fn header_level(routing: &Routing, source: HostId, destination: HostId, sl: Sl) -> Sl {
    let (source, destination) = (source.index() as u32, destination.index() as u32);
    service_level(routing.service_level(source, destination, sl.as_u8()))
}

impl<S: SwitchControl, C: SourceControl, F: EngineVariant> Gate for HostGate<'_, S, C, F> {
    #[inline]
    fn release(&mut self, dst: HostId, sl: Sl) -> Time {
        if !C::ACTIVE {
            return self.now;
        }
        let flow = Flow {
            source: self.host,
            destination: dst,
            sl: header_level(self.routing, self.host, dst, sl),
        };
        let release = self.source.release(self.now, flow);
        if F::TRACES && release > self.now {
            self.throttled.push(dst.index() as u32);
        }
        if self.chooses_vl && release <= self.now && !self.has_lane(flow, sl) {
            return Time::MAX;
        }
        release
    }

    fn begin(&mut self, dst: HostId, sl: Sl) {
        if C::ACTIVE {
            let flow = Flow {
                source: self.host,
                destination: dst,
                sl,
            };
            self.source.on_flow_start(self.now, flow);
        }
    }

    #[inline]
    fn lane_open(&mut self, sl: Sl, bytes: u32) -> bool {
        let blocks = (bytes + self.header).div_ceil(64) as i32;
        if C::ACTIVE && self.chooses_vl {
            // The scheme chooses the lane when the packet is known.
            let open = self.credits.iter().any(|lane| lane.in_hand >= blocks);
            if !open {
                self.starved |= (1 << self.credits.len()) - 1;
                self.wanted = self.wanted.min(blocks);
            }
            return open;
        }
        let vl = self.sl_to_vl[sl.index()];
        // A service level that is mapped to no data lane waits for another table, not for credits.
        let Some(credits) = self.credits.get(usize::from(vl)) else {
            return false;
        };
        let open = credits.in_hand >= blocks;
        if !open {
            self.starved |= 1 << vl;
            self.wanted = self.wanted.min(blocks);
        }
        open
    }
}

impl<S: SwitchControl, C: SourceControl, F: EngineVariant> HostGate<'_, S, C, F> {
    /// Whether the lane that the scheme chooses for a flow has credits for any packet. Without, the flow waits
    /// while others of the host may go.
    fn has_lane(&mut self, flow: Flow, sl: Sl) -> bool {
        if self.routing.scheme_chooses_lanes() && self.port_of_flows.is_none() {
            // The lane of each hop is chosen when the packet starts.
            return true;
        }
        let by_level = self.sl_to_vl[sl.index()];
        let chosen = Vl::try_new(by_level)
            .ok()
            .and_then(|by_level| match self.port_of_flows {
                Some(port) => self.switch.host_vl(self.now, port, flow, by_level),
                None => self.source.select_vl(self.now, flow, by_level),
            });
        let vl = chosen.map_or(by_level, Vl::as_u8);
        // A lane that does not exist is refused when the packet starts.
        let has = |credits: &Credits| credits.in_hand >= self.mtu_blocks;
        let open = self.credits.get(usize::from(vl)).is_none_or(has);
        if !open {
            self.starved |= 1 << vl;
            self.wanted = self.wanted.min(self.mtu_blocks);
        }
        open
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// A host may be able to start a packet.
    #[inline]
    pub(crate) fn inject(&mut self, now: u64, host: u32) {
        let record = &self.plane.hosts[host as usize];
        let port = record.port;
        let free_at = self.plane.outs[port as usize].free_at;
        if free_at > now {
            self.wake_host(host, free_at);
            return;
        }
        let plane = &mut self.plane;
        let first = plane.lane_in::<F>(port, 0);
        let vls = plane.vls_in::<F>();
        for lane in first..first + vls {
            plane.may_send::<F>(now, lane, plane.mtu_blocks);
        }
        if self.plane.hosts[host as usize].charges > 0 {
            self.charge_injection(now, host);
        }
        let paced = self.plane.hosts[host as usize].next_start;
        if self.plane.hosts[host as usize].notifications > 0
            && self.inject_notification(now, host, paced > now)
        {
            return;
        }
        if paced > now {
            self.wake_host(host, paced);
            return;
        }
        let host_id = HostId::new(host as usize);
        if C::ACTIVE {
            let release = self.source.host_release(time(now), host_id);
            if release > time(now) {
                if F::TRACES {
                    self.trace_throttled(now, host, &[NONE]);
                }
                if release != Time::MAX {
                    self.wake_host(host, release.as_ps());
                }
                self.fill_gap(now, host);
                return;
            }
        }
        if (S::ACTIVE || C::ACTIVE)
            && self.needs.select_vl
            && self.start_kept(now, host, port, first)
        {
            return;
        }
        let plane = &self.plane;
        let mut gate = HostGate {
            switch: &mut self.switch,
            source: &mut self.source,
            credits: &plane.credits[first..first + plane.vls_in::<F>()],
            sl_to_vl: plane.host_lanes(host),
            routing: &plane.routing,
            header: plane.header,
            mtu_blocks: if C::ACTIVE { plane.mtu_blocks } else { 0 },
            host: host_id,
            now: time(now),
            starved: 0,
            wanted: i32::MAX,
            chooses_vl: self.needs.select_vl,
            port_of_flows: (S::ACTIVE && self.needs.host_vl).then(|| PortId::new(port as usize)),
            throttled: Vec::new(),
            variant: PhantomData::<F>,
        };
        let answer = self.workload.poll(host_id, time(now), &mut gate);
        let (starved, wanted) = (gate.starved, gate.wanted);
        if F::TRACES {
            let throttled = std::mem::take(&mut gate.throttled);
            self.trace_throttled(now, host, &throttled);
        }
        // By reference: copying what has just been written in smaller parts stalls.
        match &answer {
            Poll::Send(offer) => {
                self.start(now, host, port, first, offer);
                return;
            }
            &Poll::WaitUntil(at) => {
                if at <= time(now) {
                    let (host, until) = (host as usize, at);
                    self.broken(now, InvariantError::WaitsForThePast { host, until });
                    return;
                }
                self.wake_host(host, at.as_ps());
            }
            Poll::Idle => {}
        }
        self.fill_gap(now, host);
        let out = &mut self.plane.outs[port as usize];
        if starved != 0 {
            out.wait_since = out.wait_since.min(now);
            self.await_host_credits(now, host, starved, wanted);
        } else if out.wait_since != u64::MAX {
            // The packet that waited for credits has been withdrawn.
            out.wait_total += now.saturating_sub(out.wait_since);
            out.wait_since = u64::MAX;
        }
    }

    /// Data cannot be sent now, so a notification may, whichever was sent last.
    #[inline]
    fn fill_gap(&mut self, now: u64, host: u32) {
        if self.plane.hosts[host as usize].notifications > 0 {
            self.inject_notification(now, host, true);
        }
    }

    /// Starts the packet of an offer.
    #[inline]
    fn start(&mut self, now: u64, host: u32, port: u32, first: usize, offer: &Offer) {
        if offer.dst.index() == host as usize {
            self.loop_back(now, host, port, *offer);
            return;
        }
        let mtu = self.plane.mtu_wire - self.plane.header;
        if offer.bytes.wrapping_sub(1) >= mtu {
            let (host, bytes) = (host as usize, offer.bytes);
            self.broken(now, InvariantError::PacketSize { host, bytes, mtu });
            return;
        }
        let plane = &mut self.plane;
        let mut vl = plane.host_lanes(host)[offer.sl.index()];
        if (S::ACTIVE || C::ACTIVE) && self.needs.select_vl {
            let Some(chosen) = self.lane_of(now, host, first, vl, offer) else {
                return;
            };
            vl = chosen;
        }
        let plane = &mut self.plane;
        assert!(
            usize::from(vl) < plane.vls_in::<F>(),
            "a packet for no lane"
        );
        let destination = plane.known_host(offer.dst);
        let sl = plane
            .routing
            .service_level(host, destination, offer.sl.as_u8());
        let kind = Kind {
            wire: (offer.bytes + plane.header) as u16,
            class: offer.class,
            lane: vl << 4 | sl,
            flags: if offer.last { LAST } else { 0 },
        };
        let packet = Packet::new(now, host, destination, kind);
        if !F::ONE_PATH {
            if let Some(reordering) = &mut self.plane.reordering {
                reordering.sent(now, &packet);
            }
        }
        let packet = if self.extends_packets() {
            self.extended(now, host, offer, packet)
        } else {
            packet
        };
        let plane = &mut self.plane;
        let full_size = u32::from(packet.wire()) == plane.mtu_wire;
        let gap = match plane.config.host.injection_rate {
            Some(_) if full_size => plane.injection_mtu,
            Some(rate) => rate
                .span_for(Bytes::from_bytes(u64::from(offer.bytes)))
                .as_ps(),
            None => 0,
        };
        let record = &mut plane.hosts[host as usize];
        record.next_start = now + gap;
        record.injected += u64::from(offer.bytes);
        record.data_sent_last = true;
        self.transmit(now, port, first + usize::from(vl), None, packet, 0);
        let free_at = self.plane.outs[port as usize].free_at;
        if C::ACTIVE {
            let flow = Flow {
                source: HostId::new(host as usize),
                destination: offer.dst,
                sl: service_level(sl),
            };
            self.source
                .on_send(time(now), flow, Span::from_ps(free_at - now), offer.bytes);
            if !F::SPECIALISED && !F::LOOKAHEAD && self.needs.started {
                self.notify_started(now, flow, offer);
            }
        }
        let next = free_at.max(now + gap);
        let record = &mut self.plane.hosts[host as usize];
        if record.notifications > 0 {
            self.wake_host(host, free_at);
        } else if full_size {
            record.wake_at = next;
            self.plane.events.push_host::<F>(next, host);
        } else {
            self.wake_host(host, next);
        }
    }

    /// The lane of a packet that is about to start, `vl` by its service level. `None` if the scheme's lane has
    /// no credits: the host keeps the packet until some come.
    fn lane_of(&mut self, now: u64, host: u32, first: usize, vl: u8, offer: &Offer) -> Option<u8> {
        let host_id = HostId::new(host as usize);
        let flow = Flow {
            source: host_id,
            destination: offer.dst,
            sl: header_level(&self.plane.routing, host_id, offer.dst, offer.sl),
        };
        let by_level = Vl::try_new(vl).ok()?;
        let chosen = self.source.select_vl(time(now), flow, by_level);
        let mut vl = chosen.map_or(vl, Vl::as_u8);
        if self.plane.routing.scheme_chooses_lanes() {
            let port = self.plane.hosts[host as usize].port;
            vl = self.query_next_vl(now, None, port, flow, vl)?;
        }
        let vls = self.plane.vls_in::<F>();
        if usize::from(vl) >= vls {
            let host = host as usize;
            self.broken(now, InvariantError::ChosenLane { host, vl, vls });
            return None;
        }
        let blocks = (offer.bytes + self.plane.header).div_ceil(64) as i32;
        let plane = &mut self.plane;
        if plane.may_send::<F>(now, first + usize::from(vl), blocks) {
            return Some(vl);
        }
        self.held[host as usize] = Some(*offer);
        let port = plane.hosts[host as usize].port;
        let out = &mut plane.outs[port as usize];
        out.wait_since = out.wait_since.min(now);
        self.await_host_credits(now, host, 1 << vl, blocks);
        self.fill_gap(now, host);
        None
    }

    /// Starts the packet that a host keeps until its lane has credits, or one that a switch has discarded. Returns whether
    /// there is one.
    #[inline(never)]
    fn start_kept(&mut self, now: u64, host: u32, port: u32, first: usize) -> bool {
        let kept = self.held[host as usize].take();
        if let Some(offer) = kept.or_else(|| self.next_discarded(now, host)) {
            self.start(now, host, port, first, &offer);
            return true;
        }
        // Lanes may have got credits for flows that waited for them.
        self.workload.on_release_moved(HostId::new(host as usize));
        false
    }

    /// Delivers a packet that a host sends to itself: it takes its share of the injection rate, or the time
    /// that the link would take if there is none, and neither link, credits nor sink.
    #[cold]
    fn loop_back(&mut self, now: u64, host: u32, port: u32, offer: Offer) {
        let notifies = !F::LOOKAHEAD && self.notifies(offer.class, offer.last);
        let plane = &mut self.plane;
        let wire = (offer.bytes + plane.header) as u16;
        let takes = plane.config.host.injection_rate.map_or_else(
            || plane.serialisation(&plane.outs[port as usize], wire),
            |rate| {
                let bytes = Bytes::from_bytes(u64::from(offer.bytes));
                rate.span_for(bytes).as_ps()
            },
        );
        let done = now + takes;
        let record = &mut plane.hosts[host as usize];
        record.next_start = done;
        record.injected += u64::from(offer.bytes);
        record.data_sent_last = true;
        self.stats.record(
            Delivery {
                done,
                host,
                payload: offer.bytes,
                latency: takes,
                source: host,
                class: offer.class,
                hops: 0,
                marked: false,
                behind: 0,
            },
            record,
        );
        if notifies {
            let kind = Kind {
                wire,
                class: offer.class,
                lane: offer.sl.as_u8(),
                flags: if offer.last { LAST } else { 0 },
            };
            let slot = plane
                .events
                .store_packet(Packet::new(now, host, host, kind));
            plane
                .events
                .push(Event::new(done, phase::DELIVERED, host, slot));
        }
        let next = if self.plane.hosts[host as usize].notifications > 0 {
            now
        } else {
            done
        };
        self.wake_host(host, next);
    }

    /// Schedules an injection, unless an earlier one is scheduled.
    #[inline]
    pub(crate) fn wake_host(&mut self, host: u32, at: u64) {
        let record = &mut self.plane.hosts[host as usize];
        if at < record.wake_at {
            record.wake_at = at;
            self.plane.events.wake_host::<F>(at, host);
        }
    }

    /// Schedules an injection of the host behind this output port.
    pub(crate) fn wake_host_of(&mut self, port: u32, at: u64) {
        // The switch port at the other end knows the host by number.
        let peer = self.plane.ins[port as usize].upstream;
        let host = self.plane.host_behind(peer);
        self.wake_host(host, at);
    }

    /// Makes sure that the host is woken when one of these lanes has `blocks` credits.
    fn await_host_credits(&mut self, now: u64, host: u32, starved: u16, blocks: i32) {
        let first = self
            .plane
            .lane_in::<F>(self.plane.hosts[host as usize].port, 0);
        for vl in 0..self.plane.vls_in::<F>() {
            if starved >> vl & 1 == 0 {
                continue;
            }
            let plane = &mut self.plane;
            plane.credits[first + vl].starved = true;
            if let Some(at) = plane.when_may_send::<F>(now, first + vl, blocks) {
                self.wake_host(host, at.max(now));
            }
        }
    }

    /// The last link: the sink's whole future for this packet is known at its grant, so no event is
    /// needed for its arrival. `tail` is when it leaves the switch.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        now: u64,
        tail: u64,
        output: u32,
        lane: usize,
        packet: Packet,
    ) {
        let extends = self.extends_packets();
        let to = self.plane.outs[output as usize].next;
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
        let done = if plane.sink_cuts_through {
            plane.cut_through::<F>(to, output, &packet, (now, arrives), service)
        } else {
            plane.hosts[to as usize].sink_free.max(arrives) + service
        };
        plane.hosts[to as usize].sink_free = done;
        if F::TRACES {
            self.trace_delivery(done);
        }
        let plane = &mut self.plane;
        let due = done + propagation + plane.config.host.credit_delay.as_ps();
        // The clock of credits sees so far ahead: of packets that a sink takes hours for, the credits return earlier.
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
        if !F::ONE_PATH && plane.reordering.is_some() {
            self.arrive(delivery, packet);
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

    /// Counts a delivery, and schedules its event where there is one.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, delivery: Delivery, packet: Packet) {
        let (done, to) = (delivery.done, delivery.host);
        let host = &mut self.plane.hosts[to as usize];
        self.stats.record(delivery, host);
        let receives = C::ACTIVE && self.needs.receive;
        let tells = !F::LOOKAHEAD || W::LINKS_HOSTS;
        if tells && (receives || self.notifies(packet.class(), packet.is(LAST))) {
            let slot = self.plane.events.store_packet(packet);
            if receives {
                self.plane.extensions.keep_behind(slot, delivery.behind);
            }
            self.plane
                .events
                .push(Event::new(done, phase::DELIVERED, to, slot));
        }
    }

    /// Whether the workload is notified of the delivery of a packet of this class, which is the last of its message or not.
    #[inline]
    fn notifies(&self, class: u16, last: bool) -> bool {
        self.workload.needs_delivery_of(class) && (last || !self.whole_messages)
    }

    /// Notifies the scheme and the workload of a delivery.
    pub(crate) fn delivered(&mut self, now: u64, host: u32, slot: u32) {
        let packet = self.plane.events.remove_packet(slot);
        if C::ACTIVE && self.needs.receive && packet.source() != host {
            self.receive(now, host, slot, &packet);
        }
        if self.notifies(packet.class(), packet.is(LAST)) {
            self.notify_workload(now, host, &packet);
            self.wake_all(now);
            self.check_pause();
        }
    }

    /// Notifies the workload of a delivery. The hosts that have something to send because of it are in `woken`.
    pub(crate) fn notify_workload(&mut self, now: u64, host: u32, packet: &Packet) {
        let routing = &self.plane.routing;
        let class = routing.class_of(packet.source(), host, packet.sl_bits());
        let offer = Offer {
            dst: HostId::new(host as usize),
            bytes: u32::from(packet.wire()) - self.plane.header,
            sl: service_level(class),
            class: packet.class(),
            last: packet.is(LAST),
            behind: 0,
        };
        self.workload.on_delivered(
            HostId::new(packet.source() as usize),
            &offer,
            Transit {
                hops: packet.hops(),
                marked: packet.is(MARKED),
                completes: self.whole_messages,
            },
            time(now),
            &mut self.woken,
        );
    }

    /// The traffic changes by itself, or a timer goes off. An event that is no longer waited for is stale.
    pub(crate) fn traffic_change(&mut self, now: u64) {
        let (changes, fires) = (self.change_at == now, self.timer_at == now);
        if changes {
            self.change_at = u64::MAX;
            self.workload.apply_change(time(now), &mut self.woken);
        }
        if fires && !F::LOOKAHEAD {
            self.timer_at = u64::MAX;
            self.workload.on_timer(time(now), &mut self.woken);
        }
        if changes || fires {
            self.wake_all(now);
            self.check_pause();
        }
    }

    /// Wakes the hosts of this part that a change of the workload wakes, and schedules its next change.
    pub(crate) fn wake_all(&mut self, now: u64) {
        let mut woken = std::mem::take(&mut self.woken);
        for host in woken.drain(..) {
            let number = self.plane.known_host(host);
            if !F::LOOKAHEAD || !self.plane.remote.has_host(number) {
                self.workload.on_woken(host, time(now));
                self.wake_host(number, now);
            }
        }
        self.woken = woken;
        self.schedule_change();
    }

    /// Notes when the workload changes next, and when its next timer goes off.
    pub(crate) fn schedule_change(&mut self) {
        let at = |next: Option<Time>| next.map_or(u64::MAX, Time::as_ps);
        let change = at(self.workload.next_change(time(self.now)));
        let timer = at(self.workload.next_timer());
        for (next, known) in [(change, &mut self.change_at), (timer, &mut self.timer_at)] {
            if next < *known {
                *known = next;
                if !F::LOOKAHEAD {
                    self.plane
                        .events
                        .push(Event::new(next, phase::CHANGE, 0, 0));
                }
            }
        }
    }

    /// A credit has come back to a host whose scheme watches them.
    pub(crate) fn host_credit(&mut self, now: u64, port: u32) {
        self.notify_credits(now, port);
        self.wake_host_of(port, now);
    }

    /// Notifies the scheme how many credits of a host's port are taken.
    pub(crate) fn notify_credits(&mut self, now: u64, port: u32) {
        let plane = &self.plane;
        let host = plane.host_behind(plane.ins[port as usize].upstream);
        let first = plane.lane_in::<F>(port, 0);
        let mut used = 0;
        for vl in 0..plane.vls_in::<F>() {
            used += plane.input_blocks - plane.credits_at(now, first + vl);
        }
        let capacity = plane.input_blocks * plane.vls as i32;
        self.source.on_credit(
            time(now),
            HostId::new(host as usize),
            used.max(0) as u32,
            capacity as u32,
        );
    }
}

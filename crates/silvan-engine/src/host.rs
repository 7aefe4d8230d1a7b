mod changes;
mod gate;
mod sink;

use std::marker::PhantomData;

use silvan_cc::hooks::{Flow, SourceControl, SwitchControl};
use silvan_core::{Bytes, HostId, PortId, Span, Time, Vl};

use gate::{HostGate, header_level};

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::packet::{Kind, LAST, NONE, Packet, service_level};
use crate::plane::time;
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::{Offer, Poll, Workload};
use silvan_model::{HostArbitration, InvariantError};

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
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
                self.stats.control_acted = true;
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
        let chooses_vl = self.needs_select_vl();
        if chooses_vl && self.start_kept(now, host, port, first) {
            return;
        }
        let has_connections = !F::PLAIN && !F::LOOKAHEAD && self.plane.transport.is_some();
        if has_connections && self.send_again(now, host, port, first) {
            return;
        }
        let asks_for_flows = self.needs_host_vl();
        let plane = &self.plane;
        let mut gate = HostGate {
            switch: &mut self.switch,
            source: &mut self.source,
            credits: &plane.credits[first..first + plane.vls_in::<F>()],
            sl_to_vl: plane.host_lanes(host),
            routing: &plane.routing,
            transport: plane.transport.as_deref(),
            header: plane.header,
            mtu_blocks: if C::ACTIVE { plane.mtu_blocks } else { 0 },
            host: host_id,
            now: time(now),
            starved: 0,
            wanted: i32::MAX,
            chooses_vl,
            port_of_flows: asks_for_flows.then(|| PortId::new(port as usize)),
            keeps_lanes: self.needs.keeps_lanes,
            holds_lanes: !chooses_vl
                && plane.config.host.arbitration == HostArbitration::HeadOfLine,
            awaited: None,
            holds_back: false,
            throttled: Vec::new(),
            variant: PhantomData::<F>,
        };
        let answer = self.workload.poll(host_id, time(now), &mut gate);
        let (starved, wanted) = (gate.starved, gate.wanted);
        if C::ACTIVE {
            self.stats.control_acted |= gate.holds_back;
        }
        if F::TRACES {
            let throttled = std::mem::take(&mut gate.throttled);
            self.trace_throttled(now, host, &throttled);
        }
        // By reference: a copy of recently written smaller parts stalls.
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

    /// Sends a notification when data cannot be sent, even if one was sent last.
    #[inline]
    pub(crate) fn fill_gap(&mut self, now: u64, host: u32) {
        if self.plane.hosts[host as usize].notifications > 0 {
            self.inject_notification(now, host, true);
        }
    }

    #[inline]
    pub(crate) fn start(&mut self, now: u64, host: u32, port: u32, first: usize, offer: &Offer) {
        if offer.dst.index() == host as usize {
            self.loop_back(now, host, port, *offer);
            return;
        }
        let (mtu_wire, header) = (self.plane.mtu_wire, self.plane.header);
        let wire = offer.bytes.saturating_add(header);
        if wire.wrapping_sub(1) >= mtu_wire {
            let (host, bytes, mtu) = (host as usize, offer.bytes, mtu_wire - header);
            self.broken(now, InvariantError::PacketSize { host, bytes, mtu });
            return;
        }
        let plane = &mut self.plane;
        let mut vl = plane.host_lanes(host)[offer.sl.index()];
        if self.needs_select_vl() {
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
            wire: wire as u16,
            class: offer.class,
            lane: vl << 4 | sl,
            flags: if offer.last { LAST } else { 0 },
        };
        let packet = Packet::new(now, host, destination, kind);
        self.note_start(now, host, destination);
        if !F::PLAIN {
            if let Some(reordering) = &mut self.plane.reordering {
                reordering.sent(now, &packet);
            }
        }
        let mut packet = if self.extends_packets() {
            self.extended(now, host, offer, packet)
        } else {
            packet
        };
        if self.plane.numbers {
            packet.set_waypoint(offer.number);
        }
        if !F::PLAIN && !F::LOOKAHEAD && self.plane.transport.is_some() {
            self.connect(now, offer, &mut packet);
        }
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
                queue: offer.queue,
            };
            self.source
                .on_send(time(now), flow, Span::from_ps(free_at - now), offer.bytes);
            if self.needs_started() {
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

    /// `vl` is the lane by the service level. `None` if the scheme's lane has no credits: the host keeps the packet.
    fn lane_of(&mut self, now: u64, host: u32, first: usize, vl: u8, offer: &Offer) -> Option<u8> {
        let host_id = HostId::new(host as usize);
        let flow = Flow {
            source: host_id,
            destination: offer.dst,
            sl: header_level(&self.plane.routing, host_id, offer.dst, offer.sl),
            queue: offer.queue,
        };
        let by_level = Vl::try_new(vl).ok()?;
        let chosen = self.source.select_vl(time(now), flow, by_level);
        self.stats.control_acted |= chosen.is_some_and(|chosen| chosen != by_level);
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

    /// Starts a packet that waited for credits of its lane, or was discarded by a switch. Returns true if there is one.
    #[inline(never)]
    fn start_kept(&mut self, now: u64, host: u32, port: u32, first: usize) -> bool {
        let kept = self.held[host as usize].take();
        if let Some(offer) = kept.or_else(|| self.next_discarded(now, host)) {
            self.start(now, host, port, first, &offer);
            self.release_moved(HostId::new(host as usize), offer.dst);
            return true;
        }
        let keeps_lanes = self.needs.separates_flows && !self.host_vls_may_change(now, host, port);
        let host = HostId::new(host as usize);
        match keeps_lanes {
            true => self.workload.on_lanes_opened(host),
            false => self.workload.on_release_moved(host),
        }
        false
    }

    /// Returns true if switches may choose other lanes for a host's flows than at the last call.
    fn host_vls_may_change(&mut self, now: u64, host: u32, port: u32) -> bool {
        if !self.needs_host_vl() {
            return false;
        }
        let version = self
            .switch
            .host_vl_version(time(now), PortId::new(port as usize));
        let before = std::mem::replace(&mut self.host_vl_versions[host as usize], version);
        version.is_none() || version != before
    }

    /// Delivers a packet that a host sends to itself. It takes injection rate, or link time without such a rate, but no
    /// link, credits or sink.
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

    #[inline]
    pub(crate) fn wake_host(&mut self, host: u32, at: u64) {
        let record = &mut self.plane.hosts[host as usize];
        if at < record.wake_at {
            record.wake_at = at;
            self.plane.events.wake_host::<F>(at, host);
        }
    }

    pub(crate) fn wake_host_of(&mut self, port: u32, at: u64) {
        // The switch port at the other end knows the host by number.
        let peer = self.plane.ins[port as usize].upstream;
        let host = self.plane.host_behind(peer);
        self.wake_host(host, at);
    }

    pub(crate) fn await_host_credits(&mut self, now: u64, host: u32, starved: u16, blocks: i32) {
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

    /// Only for schemes that watch credits.
    pub(crate) fn host_credit(&mut self, now: u64, host: u32) {
        self.notify_credits(now, host);
        self.wake_host(host, now);
    }

    pub(crate) fn notify_credits(&mut self, now: u64, host: u32) {
        let plane = &self.plane;
        let port = plane.hosts[host as usize].port;
        let first = plane.lane_in::<F>(port, 0);
        let of_lane = plane.capacity(port);
        let mut used = 0;
        for vl in 0..plane.vls_in::<F>() {
            used += of_lane - plane.credits_at(now, first + vl);
        }
        let capacity = of_lane * plane.vls as i32;
        self.source.on_credit(
            time(now),
            HostId::new(host as usize),
            used.max(0) as u32,
            capacity as u32,
        );
    }
}

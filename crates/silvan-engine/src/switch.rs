//! The switches: from a head at an input to its packet on the next link.

use silvan_cc::hooks::{PacketView, PortVl, QueueView, SourceControl, SwitchControl};
use silvan_core::{PortId, Span, Vl};

use crate::engine::Engine;
use crate::events::{Event, Head, Posted, phase};
use crate::feedback::flow_of;
use crate::packet::{MARKED, NONE, Packet};
use crate::plane::time;
use crate::records::{Element, FARTHEST, InPort, Next, Sender};
use crate::resident::ResidentView;
use crate::variant::EngineVariant;
use crate::workload::Workload;
use silvan_model::InvariantError;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// A head is eligible at input `port`: straight on if nothing is in the way, else into its
    /// virtual output queue.
    #[inline(always)]
    pub(crate) fn head(&mut self, head: Head) {
        // Its fields are separate from here on: passed as one value, the head would be kept in memory.
        let (now, port) = (head.time, head.port);
        let mut output = self.plane.resolve(port, head.output, &head.packet);
        let mut packet = head.packet;
        let whole = |output, packet| Head {
            time: now,
            port,
            output,
            packet,
        };
        if output == NONE {
            let mut head = whole(output, packet);
            let Some(chosen) = self.special_output(&mut head, DEFERRED) else {
                return;
            };
            output = chosen;
            packet = head.packet;
            if F::LOOKAHEAD {
                self.catch_up(now, output);
            }
        }
        let plane = &mut self.plane;
        // With windows its time takes this into account already.
        let defers = !F::SPECIALISED && !F::LOOKAHEAD && plane.mixed;
        if defers && !packet.is(DEFERRED) && plane.element_of(port).mixed {
            let upstream = plane.ins[port as usize].upstream;
            let from = plane.serialisation(&plane.outs[upstream as usize], packet.wire());
            let to = plane.passing_time(output, packet.wire());
            if to < from {
                // Starting earlier would run dry before the tail has arrived.
                packet.set(DEFERRED);
                plane.events.push_head_at(Head {
                    time: now + from - to,
                    ..whole(output, packet)
                });
                return;
            }
        }
        packet.clear(DEFERRED);
        if F::TRACES {
            self.trace_arrival(now, port, output, &packet);
        }
        let plane = &mut self.plane;
        let vl = packet.vl();
        let local = u32::from(plane.ins[port as usize].local);
        let lane = if plane.vls_in::<F>() == 1 {
            output as usize
        } else if plane.routing.changes_lanes {
            let element = plane.ins[port as usize].element;
            let Element { base, ports, .. } = plane.elements[element as usize];
            let to = output - base;
            let mut next = plane.routing.next_vl(element, ports, local, to, &packet);
            if next >= plane.vls {
                let Some(chosen) = self.lane_of_scheme(whole(output, packet), next) else {
                    return;
                };
                next = chosen;
            }
            self.plane.lane_in::<F>(output, next)
        } else {
            plane.lane_in::<F>(output, vl)
        };
        let plane = &mut self.plane;
        let out = &plane.outs[output as usize];
        // With several lanes even a packet that need not wait is charged by their arbitration.
        if out.waiting == 0 && out.free_at < now && plane.vls_in::<F>() == 1 {
            let blocked = plane
                .read_limits::<F>()
                .is_some_and(|reads| reads.must_queue(plane.ins[port as usize].element, local))
                || plane.is_behind::<F>(port, vl);
            if !blocked && plane.may_send::<F>(now, lane, packet.blocks()) {
                plane.credits[lane].pointer = advance_pointer(local);
                let wire = u32::from(packet.wire());
                self.transmit(now, output, lane, Some((port, now)), packet, wire);
                if S::ACTIVE && self.needs.buffer_full {
                    self.check_full(now, port, vl);
                }
                return;
            }
        }
        self.enqueue(now, port, local, output, lane, packet);
        if S::ACTIVE && self.needs.buffer_full {
            // Only now, so that the packet that fills the buffer counts among those that wait, but
            // not if it leaves at once.
            self.check_full(now, port, vl);
        }
    }

    #[inline(always)]
    fn enqueue(
        &mut self,
        now: u64,
        port: u32,
        local: u32,
        output: u32,
        lane: usize,
        packet: Packet,
    ) {
        let may_discard = !F::SPECIALISED && !F::LOOKAHEAD && S::ACTIVE;
        if may_discard && self.needs.select_discard && self.discard(now, port, lane, &packet, false)
        {
            return;
        }
        if self.hold_back(now, port, lane, packet) {
            self.notify_queued(now, output, lane, port, &packet);
            return;
        }
        let plane = &mut self.plane;
        plane.queue_packet(lane, local, packet, now);
        let out = &mut plane.outs[output as usize];
        out.waiting += 1;
        let free_at = out.free_at;
        let least = plane.least_needed(output, lane);
        let one_lane = plane.vls_in::<F>() == 1;
        let dry = one_lane && !plane.may_send::<F>(now, lane, least);
        let enough = if dry {
            plane.when_may_send::<F>(now, lane, least)
        } else {
            None
        };
        self.notify_queued(now, output, lane, port, &packet);
        if dry {
            // With too few credits in hand for any that wait, the next ones wake the port.
            self.plane.credits[lane].starved = true;
            self.start_waiting(free_at.max(now), output);
            if let Some(at) = enough {
                self.wake_output(output, at.max(free_at));
            }
        } else if free_at >= now {
            self.wake_output(output, free_at);
        } else {
            // The port is idle because it lacks credits or a free input; this packet may be able
            // to leave.
            self.arbitrate(now, output);
        }
    }

    /// Notifies the scheme of a packet that waits for an output that marks.
    #[inline(always)]
    fn notify_queued(&mut self, now: u64, output: u32, lane: usize, port: u32, packet: &Packet) {
        if !S::ACTIVE || !self.plane.outs[output as usize].marks {
            return;
        }
        let has_credit = self.has_credit(now, output, lane);
        let queued_bytes = self.plane.lanes[lane].queued_bytes;
        self.switch.on_queued(
            time(now),
            PortVl(lane as u32),
            QueueView {
                queued_bytes: queued_bytes + self.plane.held_back_bytes::<F>(lane),
                has_credit,
            },
            view(packet, port),
        );
    }

    /// Schedules an arbitration.
    #[inline]
    pub(crate) fn wake_output(&mut self, output: u32, at: u64) {
        let out = &mut self.plane.outs[output as usize];
        if at < out.wake_at {
            out.wake_at = at;
            self.plane.events.wake_output::<F>(at, output);
        }
    }

    /// Makes an output choose among the packets that wait for it.
    #[inline]
    pub(crate) fn arbitrate(&mut self, now: u64, output: u32) {
        let out = &self.plane.outs[output as usize];
        if out.waiting == 0 {
            return;
        }
        if out.free_at > now {
            let at = out.free_at;
            self.wake_output(output, at);
            return;
        }
        if self.plane.vls_in::<F>() == 1 {
            self.arbitrate_lane(now, output);
        } else {
            self.arbitrate_lanes(now, output);
        }
    }

    /// Arbitration with a single lane.
    #[inline(always)]
    fn arbitrate_lane(&mut self, now: u64, output: u32) {
        let lane = output as usize;
        match self.candidate(now, output, lane) {
            Candidate::Ready { local } => self.grant(now, output, lane, local),
            Candidate::NoCredit { blocks } => {
                self.start_waiting(now, output);
                self.await_credits(now, output, lane, blocks);
            }
            Candidate::Empty => self.start_waiting(now, output),
        }
    }

    /// Virtual-lane arbitration among the lanes whose next packet has its credits.
    fn arbitrate_lanes(&mut self, now: u64, output: u32) {
        let first = self.plane.lane_in::<F>(output, 0);
        let mut ready = 0u16;
        let mut locals = [0u32; 16];
        let mut blocks_wanted = [0i32; 16];
        for vl in 0..self.plane.vls {
            let candidate = if S::ACTIVE && self.needs.holds_head {
                self.candidate_not_held(now, output, first + vl)
            } else {
                self.candidate(now, output, first + vl)
            };
            match candidate {
                Candidate::Ready { local } => {
                    ready |= 1 << vl;
                    locals[vl] = local;
                }
                Candidate::NoCredit { blocks } => blocks_wanted[vl] = blocks,
                Candidate::Empty => {}
            }
        }
        let plane = &mut self.plane;
        let state = &mut plane.vl_states[output as usize];
        if let Some(choice) = plane.vl_tables[usize::from(state.table)].choose(state, ready) {
            let vl = usize::from(choice.vl);
            let record = &plane.lanes[first + vl];
            let head = plane
                .pool
                .first(plane.queues[(record.queues + locals[vl]) as usize]);
            let wire = plane.pool.packet(head).wire();
            plane.vl_tables[usize::from(state.table)].charge(state, choice, wire);
            self.grant(now, output, first + vl, locals[vl]);
            return;
        }
        self.start_waiting(now, output);
        for (vl, &blocks) in blocks_wanted[..self.plane.vls].iter().enumerate() {
            if blocks > 0 {
                self.await_credits(now, output, first + vl, blocks);
            }
        }
    }

    /// Which input of a lane is next, and whether its packet may go.
    #[inline(always)]
    fn candidate(&mut self, now: u64, output: u32, lane: usize) -> Candidate {
        let plane = &mut self.plane;
        let record = &plane.lanes[lane];
        let picked = if let Some(reads) = plane.read_limits::<F>() {
            plane.pick_limited(reads, output, lane)
        } else if !F::SPECIALISED && plane.oldest_first {
            plane.oldest_of(lane, None)
        } else {
            record.pick::<F>(plane.credits[lane].pointer, None)
        };
        match picked {
            Some(local) => self.with_credits(now, lane, local),
            None => Candidate::Empty,
        }
    }

    /// The same without inputs whose first packet the scheme holds.
    #[inline(never)]
    fn candidate_not_held(&mut self, now: u64, output: u32, lane: usize) -> Candidate {
        let plane = &self.plane;
        if plane.lanes[lane].queued_bytes == 0 || !plane.outs[output as usize].marks {
            return self.candidate(now, output, lane);
        }
        let limited = plane.read_limits::<F>();
        let mut blocked = limited.map_or([0; 4], |reads| plane.limited_inputs(reads, output, lane));
        while let Some(local) = self.plane.pick_of_others(lane, &blocked) {
            let plane = &self.plane;
            let record = &plane.lanes[lane];
            let first = plane.queues[(record.queues + local) as usize];
            let flow = flow_of(plane.pool.packet(plane.pool.first(first)));
            let input = PortId::new((record.base + local) as usize);
            let held = self
                .switch
                .holds_head(time(now), PortVl(lane as u32), input, flow);
            if !held {
                return self.with_credits(now, lane, local);
            }
            blocked[(local / 64) as usize] |= 1 << (local % 64);
        }
        Candidate::Empty
    }

    /// Whether the first packet of an input has credits.
    #[inline(always)]
    fn with_credits(&mut self, now: u64, lane: usize, local: u32) -> Candidate {
        let plane = &mut self.plane;
        // Any packet fits into the credits of one of MTU size; only below that does the size of
        // the packet matter.
        if plane.may_send::<F>(now, lane, plane.mtu_blocks) {
            return Candidate::Ready { local };
        }
        let head = plane
            .pool
            .first(plane.queues[(plane.lanes[lane].queues + local) as usize]);
        let blocks = plane.pool.packet(head).blocks();
        if plane.credits[lane].in_hand >= blocks {
            Candidate::Ready { local }
        } else {
            Candidate::NoCredit { blocks }
        }
    }

    #[inline]
    fn start_waiting(&mut self, now: u64, output: u32) {
        let out = &mut self.plane.outs[output as usize];
        out.wait_since = out.wait_since.min(now);
    }

    /// Makes sure that the port is woken when a lane has `blocks` credits.
    fn await_credits(&mut self, now: u64, output: u32, lane: usize, blocks: i32) {
        // Also when enough is on its way: a shorter read that starts later may bring credits sooner.
        self.plane.credits[lane].starved = true;
        if let Some(at) = self.plane.when_may_send::<F>(now, lane, blocks) {
            self.wake_output(output, at.max(now));
        }
    }

    /// Takes the first packet of a queue and sends it.
    #[inline(always)]
    fn grant(&mut self, now: u64, output: u32, lane: usize, local: u32) {
        if self
            .plane
            .read_limits::<F>()
            .is_some_and(|reads| reads.bypass.is_some())
        {
            self.overtake(now, output, lane, local);
        }
        let plane = &mut self.plane;
        let record = &mut plane.lanes[lane];
        plane.credits[lane].pointer = advance_pointer(local);
        let queue = &mut plane.queues[(record.queues + local) as usize];
        let since = if !F::SPECIALISED && plane.crossbar_cuts_through {
            plane.pool.eligible(plane.pool.first(*queue))
        } else {
            now
        };
        let (packet, empty) = plane.pool.pop(queue);
        if empty {
            record.clear_input(local);
        }
        let (queued_bytes, base) = (record.queued_bytes, record.base);
        record.queued_bytes -= u32::from(packet.wire());
        let queued_bytes = queued_bytes + plane.held_back_bytes::<F>(lane);
        let out = &mut plane.outs[output as usize];
        out.waiting -= 1;
        let more = out.waiting > 0;
        let port = base + local;
        let may_discard = !F::SPECIALISED && !F::LOOKAHEAD && S::ACTIVE;
        if may_discard && self.needs.select_discard && self.discard(now, port, lane, &packet, true)
        {
            self.move_up(now, port, packet.vl());
            if more {
                self.wake_output(output, now);
            }
            return;
        }
        self.transmit(now, output, lane, Some((port, since)), packet, queued_bytes);
        self.move_up(now, port, packet.vl());
        if more {
            self.schedule_next(now, output, lane);
        }
    }

    /// Schedules the arbitration after the packet that was just started. With one lane and too few
    /// credits in hand for any that wait it is put off to those that suffice, which saves an
    /// arbitration without effect.
    #[inline(always)]
    fn schedule_next(&mut self, now: u64, output: u32, lane: usize) {
        let plane = &mut self.plane;
        let least = plane.least_needed(output, lane);
        let one_lane = plane.vls_in::<F>() == 1;
        let free_at = plane.outs[output as usize].free_at;
        if !one_lane || plane.may_send::<F>(now, lane, least) {
            let out = &mut plane.outs[output as usize];
            if free_at < out.wake_at {
                out.wake_at = free_at;
                plane.events.push_output::<F>(free_at, output);
            }
            return;
        }
        let enough = plane.when_may_send::<F>(now, lane, least);
        let out = &mut plane.outs[output as usize];
        let credits = &mut plane.credits[lane];
        match enough {
            Some(at) if at > free_at => {
                out.wait_since = free_at;
                credits.starved = true;
                self.wake_output(output, at);
            }
            Some(_) => self.wake_output(output, free_at),
            None => {
                out.wait_since = free_at;
                credits.starved = true;
            }
        }
    }

    /// Starts a packet on an output. `from` is the input where it comes from, and since when it has been
    /// eligible there (`None` at a host), `queued_bytes` what waited for this Port VL with it.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        now: u64,
        output: u32,
        lane: usize,
        from: Option<(u32, u64)>,
        mut packet: Packet,
        queued_bytes: u32,
    ) {
        let plane = &mut self.plane;
        let ser = plane.serialisation(&plane.outs[output as usize], packet.wire());
        let mut tail = now + ser;
        if !F::SPECIALISED && plane.crossbar_cuts_through {
            let of_crossbar = |&(input, _): &(u32, u64)| (input as usize) < plane.fabric_ports;
            if let Some((input, since)) = from.filter(of_crossbar) {
                tail = tail.max(plane.tail_through_crossbar(output, input, since, packet.wire()));
            }
        }
        let blocks = packet.blocks();
        let credits = &mut plane.credits[lane];
        credits.starved = false;
        credits.in_hand -= blocks;
        if credits.in_hand < 0 {
            self.without_credits(now, lane);
        }
        let plane = &mut self.plane;
        if F::PFC && plane.pauses.is_some() && plane.record_start(now, lane, packet.wire()) {
            self.check_losses(now);
        }
        let plane = &mut self.plane;
        let out = &mut plane.outs[output as usize];
        debug_assert!(out.free_at <= now, "two packets at once on one link");
        out.free_at = tail;
        out.xmit_bytes += u64::from(packet.wire());
        out.xmit_packets += 1;
        let mut waited = 0;
        if out.wait_since != u64::MAX {
            waited = now.saturating_sub(out.wait_since);
            out.wait_total += waited;
            out.wait_since = u64::MAX;
        }
        let (kind, marks) = (out.kind, out.marks);
        packet.count_hop();
        let arrived_marked = packet.is(MARKED);
        if let Some((input, _)) = from {
            if self.plane.read_limits::<F>().is_some() {
                self.read_start(now, tail, input);
            }
            self.return_credits(now, tail, input, &packet);
            if S::ACTIVE && marks {
                let has_credit = self.has_credit(now, output, lane);
                let mark = self.switch.on_departure(
                    time(now),
                    PortVl(lane as u32),
                    QueueView {
                        queued_bytes,
                        has_credit,
                    },
                    view(&packet, input),
                );
                if mark {
                    packet.set(MARKED);
                }
                if S::ACTIVE && self.needs.stamps {
                    self.stamp(now, output, lane, &packet, queued_bytes);
                }
            }
            if self.plane.vls_in::<F>() > 1 {
                let first = self.plane.lane_in::<F>(output, 0);
                packet.set_vl(lane - first);
            }
        } else if C::ACTIVE && self.needs.credit {
            self.notify_credits(now, output);
        }
        if S::ACTIVE && self.needs.link {
            self.notify_link(now, output, packet, arrived_marked, waited);
        }
        if F::TRACES {
            self.trace_departure(now, output, from.map(|(input, _)| input), &packet);
        }
        if kind == Next::Host {
            self.deliver(now, tail, output, lane, packet);
        } else {
            self.plane.push_head::<F>(now, output, packet);
        }
    }

    /// A packet has been started without the credits for it.
    #[cold]
    #[inline(never)]
    fn without_credits(&mut self, now: u64, lane: usize) {
        let in_hand = self.plane.credits[lane].in_hand;
        self.broken(now, InvariantError::NegativeCredits { lane, in_hand });
    }

    /// The buffer space that a packet leaves at `tail` goes back to the sender upstream.
    #[inline(always)]
    pub(crate) fn return_credits(&mut self, now: u64, tail: u64, input: u32, packet: &Packet) {
        let plane = &mut self.plane;
        let InPort {
            upstream,
            credit_delay,
            sender,
            ..
        } = plane.ins[input as usize];
        let mut due = tail + plane.credit_delays[usize::from(credit_delay)];
        let lane = plane.lane_in::<F>(upstream, packet.vl());
        if F::PFC && plane.is_under_pfc(lane) {
            self.post_departure(tail, upstream, sender, packet);
            return;
        }
        let blocks = packet.blocks();
        if S::ACTIVE && self.switch.delays_credits() {
            due += self.starvation(now, input, lane, packet.wire());
            due = due.min(now + FARTHEST);
        }
        let plane = &mut self.plane;
        if F::LOOKAHEAD && sender == Sender::Remote {
            plane
                .remote
                .send_credits(lane as u32, upstream, due, blocks);
            return;
        }
        let from_host = sender == Sender::Host;
        let credits = &mut plane.credits[lane];
        // Within a window the sender upstream may still have to do what comes before now.
        let collected_at = if F::LOOKAHEAD { self.now } else { now };
        credits.post(&mut plane.overflow, collected_at, due, blocks);
        if F::LOOKAHEAD && (S::ACTIVE || C::ACTIVE) && from_host {
            // The host may still have to send, or begin to wait for credits, before now.
            let host = plane.host_behind(plane.ins[upstream as usize].upstream);
            plane.events.calendar.posted().push(Posted {
                at: now,
                due,
                host,
                lane: lane as u32,
            });
        } else if credits.starved {
            if from_host {
                self.wake_host_of(upstream, due);
            } else {
                let free_at = plane.outs[upstream as usize].free_at;
                self.wake_output(upstream, due.max(free_at));
            }
        }
        if from_host && C::ACTIVE && self.needs.credit {
            self.plane
                .events
                .push(Event::new(due, phase::CREDIT, upstream, 0));
        }
    }

    /// How much later a switch returns the credits of a packet because its input buffer is filling.
    #[cold]
    fn starvation(&self, now: u64, input: u32, lane: usize, wire: u16) -> u64 {
        let plane = &self.plane;
        if input as usize >= plane.fabric_ports {
            return 0;
        }
        let upstream = &plane.outs[lane / plane.vls];
        let (capacity, free) = plane.room_behind(now, lane);
        let occupied = (capacity - free) as u32 * 64;
        let packet_time = Span::from_ps(plane.serialisation(upstream, wire));
        self.switch
            .credit_return_delay(PortId::new(input as usize), occupied, packet_time)
            .as_ps()
    }

    /// Whether the link behind a lane of this output has credits for one more packet of MTU size.
    #[inline]
    pub(crate) fn has_credit(&mut self, now: u64, output: u32, lane: usize) -> bool {
        let plane = &mut self.plane;
        let port = plane.link_port(PortId::new(output as usize));
        let link_lane = lane + (port - output as usize) * plane.vls;
        plane.may_send::<F>(now, link_lane, plane.mtu_blocks)
    }

    /// Notifies the scheme when an input buffer has no room for another packet of MTU size.
    fn check_full(&mut self, now: u64, port: u32, vl: usize) {
        let plane = &mut self.plane;
        if port as usize >= plane.fabric_ports {
            return;
        }
        let lane = plane.lane_in::<F>(plane.ins[port as usize].upstream, vl);
        let is_full = match plane.is_under_pfc(lane) {
            true => plane.pauses_sender(now, lane),
            false => !plane.credits[lane].has(&mut plane.overflow, now, plane.mtu_blocks),
        };
        if is_full {
            if let Ok(vl) = Vl::try_new(vl as u8) {
                self.switch.on_buffer_full(
                    time(now),
                    PortId::new(port as usize),
                    vl,
                    &mut ResidentView { plane, now },
                );
            }
        }
    }

    /// Counts a read of an input buffer that ends at `tail`.
    fn read_start(&mut self, now: u64, tail: u64, input: u32) {
        let plane = &mut self.plane;
        let Some(reads) = &mut plane.reads else {
            return;
        };
        reads.active[input as usize] += 1;
        if reads.active[input as usize] == reads.limit {
            let port = &plane.ins[input as usize];
            reads.blocked[port.element as usize][usize::from(port.local / 64)] |=
                1 << (port.local % 64);
            // An idle output that waits for credits for a packet of this input may pick another now.
            let Element { base, ports, .. } = plane.elements[port.element as usize];
            for output in base..base + ports {
                let out = &self.plane.outs[output as usize];
                if out.waiting > 0 && out.free_at < now {
                    self.wake_output(output, now);
                }
            }
        }
        let plane = &mut self.plane;
        let end = plane.read_end_of(now, tail);
        plane
            .events
            .push(Event::new(end, phase::READ_END, input, 0));
    }

    /// A read ends: the outputs that wait for this input arbitrate in round-robin order.
    pub(crate) fn read_end(&mut self, now: u64, input: u32) {
        let plane = &mut self.plane;
        let Some(reads) = &mut plane.reads else {
            return;
        };
        reads.active[input as usize] -= 1;
        let port = &plane.ins[input as usize];
        let local = u32::from(port.local);
        reads.blocked[port.element as usize][(local / 64) as usize] &= !(1 << (local % 64));
        let Element {
            base, ports: radix, ..
        } = plane.elements[port.element as usize];
        let pointer = u32::from(reads.pointer[input as usize]);
        let limit = reads.limit;
        for step in 0..radix {
            let output = base + (pointer + step) % radix;
            let plane = &self.plane;
            let waits = (0..plane.vls).any(|vl| {
                let record = &plane.lanes[plane.lane_in::<F>(output, vl)];
                record.has_input(local)
            });
            if !waits || plane.outs[output as usize].free_at > now {
                continue;
            }
            self.arbitrate(now, output);
            if let Some(reads) = &mut self.plane.reads {
                if reads.active[input as usize] == limit {
                    reads.pointer[input as usize] = ((pointer + step + 1) % radix) as u8;
                    return;
                }
            }
        }
    }
}

/// The head has been delayed already because the output is faster than the input.
const DEFERRED: u8 = 128;

enum Candidate {
    Ready { local: u32 },
    NoCredit { blocks: i32 },
    Empty,
}

#[inline]
fn advance_pointer(local: u32) -> u8 {
    // A switch has at most 254 ports, so the pointer after the last one fits into a byte; pointers beyond
    // the last input wrap in `OutLane::pick`.
    (local + 1) as u8
}

#[inline]
fn view(packet: &Packet, input: u32) -> PacketView {
    PacketView {
        wire_bytes: u32::from(packet.wire()),
        marked: packet.is(MARKED),
        input: PortId::new(input as usize),
    }
}

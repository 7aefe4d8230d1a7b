mod arbitration;
mod credits;
mod reads;

use silvan_cc::hooks::{PacketView, PortVl, QueueView, SourceControl, SwitchControl};
use silvan_core::PortId;

use crate::engine::Engine;
use crate::events::Head;
use crate::packet::{MARKED, NONE, Packet};
use crate::plane::time;
use crate::records::{Element, Next};
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(always)]
    pub(crate) fn head(&mut self, head: Head) {
        // Separate fields from here on: as one value, the head would be stored in memory.
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
        // With windows the head's time includes this wait.
        let defers = !F::LOOKAHEAD && plane.mixed;
        if defers && !packet.is(DEFERRED) && plane.element_of(port).mixed {
            let upstream = plane.ins[port as usize].upstream;
            let from = plane.serialisation(&plane.outs[upstream as usize], packet.wire());
            let to = plane.passing_time(output, packet.wire());
            if to < from {
                // An earlier start would run dry before the tail has arrived.
                packet.set(DEFERRED);
                plane.events.push_head_at(Head {
                    time: now + from - to,
                    ..whole(output, packet)
                });
                return;
            }
        }
        packet.clear(DEFERRED);
        if S::ACTIVE {
            self.plane.take_room::<F>(port, &packet);
        }
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
        if out.waiting == 0 && out.free_at < now {
            let blocked = plane
                .read_limits::<F>()
                .is_some_and(|reads| reads.must_queue(plane.ins[port as usize].element, local))
                || plane.is_behind::<F>(port, vl);
            let starts = if blocked {
                false
            } else if plane.vls_in::<F>() == 1 {
                plane.may_send::<F>(now, lane, packet.blocks())
            } else {
                F::LOOKAHEAD
                    && !self.needs_select_discard()
                    && self.plane.charge_alone::<F>(now, output, lane, &packet)
            };
            if starts {
                let wire = u32::from(packet.wire());
                if self.plane.vls_in::<F>() > 1 {
                    self.notify_queued(now, output, lane, port, &packet, wire);
                }
                let queued_bytes = wire + self.plane.held_back_bytes::<F>(lane);
                self.plane.credits[lane].pointer = advance_pointer(local);
                self.transmit(now, output, lane, Some((port, now)), packet, queued_bytes);
                if self.needs_buffer_full() {
                    self.check_full(now, port, vl);
                }
                return;
            }
        }
        self.enqueue(now, port, local, output, lane, &packet);
        if self.needs_buffer_full() {
            // Only now, so that the packet counts if it waits, but not if it leaves at once.
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
        packet: &Packet,
    ) {
        if self.needs_select_discard() && self.discard(now, port, lane, packet, false) {
            return;
        }
        if self.hold_back(now, port, lane, packet) {
            self.notify_queued(now, output, lane, port, packet, 0);
            return;
        }
        let plane = &mut self.plane;
        plane.queue_packet::<F>(output, lane, local, packet, now);
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
        self.notify_queued(now, output, lane, port, packet, 0);
        if dry {
            // If no waiting packet has enough credits, the next credits wake the port.
            self.plane.credits[lane].starved = true;
            self.start_waiting(free_at.max(now), output);
            if let Some(at) = enough {
                self.wake_output(output, at.max(free_at));
            }
        } else if free_at >= now {
            self.wake_output(output, free_at);
        } else {
            self.arbitrate(now, output);
        }
    }

    #[inline(always)]
    fn notify_queued(
        &mut self,
        now: u64,
        output: u32,
        lane: usize,
        port: u32,
        packet: &Packet,
        starting: u32,
    ) {
        if !self.watches_queues() || !self.plane.outs[output as usize].marks {
            return;
        }
        let has_credit = self.has_credit(now, output, lane);
        let queued_bytes = self.plane.lanes[lane].queued_bytes + starting;
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

    #[inline]
    pub(crate) fn wake_output(&mut self, output: u32, at: u64) {
        let out = &mut self.plane.outs[output as usize];
        if at < out.wake_at {
            out.wake_at = at;
            self.plane.events.wake_output::<F>(at, output);
        }
    }

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
        let since = if !F::PLAIN && plane.crossbar_cuts_through {
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
        plane.note_left::<F>(output, lane);
        let queued_bytes = queued_bytes + plane.held_back_bytes::<F>(lane);
        let out = &mut plane.outs[output as usize];
        out.waiting -= 1;
        let more = out.waiting > 0;
        let port = base + local;
        if self.needs_select_discard() && self.discard(now, port, lane, &packet, true) {
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

    /// Schedules the arbitration after a started packet. With one lane and too few credits, it is put off until they
    /// suffice, which saves an arbitration without effect.
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

    /// Starts a packet on an output. `from` is its input, and the time since when it is eligible there (`None` at a
    /// host). `queued_bytes` waited for this Port VL, this packet included.
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
        if !F::PLAIN && plane.crossbar_cuts_through {
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
            self.end_by_loss();
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
                if self.watches_queues() {
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
                }
                if self.needs_stamps() {
                    self.stamp(now, output, lane, &packet, queued_bytes);
                }
            }
            if self.plane.vls_in::<F>() > 1 {
                let first = self.plane.lane_in::<F>(output, 0);
                packet.set_vl(lane - first);
            }
        } else if C::ACTIVE && self.needs.credit {
            let plane = &self.plane;
            let host = plane.host_behind(plane.ins[output as usize].upstream);
            self.notify_credits(now, host);
        }
        if self.needs_link() {
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
}

/// The head has been delayed because the output is faster than the input.
const DEFERRED: u8 = 128;

#[inline]
pub(crate) fn advance_pointer(local: u32) -> u8 {
    // A switch has at most 254 ports, so the pointer fits into a byte; `OutLane::pick` wraps it.
    (local + 1) as u8
}

#[inline]
fn view(packet: &Packet, input: u32) -> PacketView {
    PacketView {
        wire_bytes: u32::from(packet.wire()),
        marked: packet.is(MARKED),
        input: PortId::new(input as usize),
        vl: packet.data_vl(),
    }
}

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::{PortId, Span, Vl};
use silvan_model::InvariantError;

use crate::engine::Engine;
use crate::events::{Event, Posted, phase};
use crate::packet::Packet;
use crate::plane::{Plane, time};
use crate::records::{COLLECTED_EVERY, FARTHEST, InPort, Sender};
use crate::resident::ResidentView;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl Plane {
    /// Collects arrived credits and freed buffer space from time to time; returns the time of the next call.
    pub fn collect_credits(&mut self, now: u64) -> u64 {
        if now - self.collected >= COLLECTED_EVERY {
            for lane in &mut *self.credits {
                lane.collect_arrived(&mut self.overflow, now);
            }
            self.collect_freed(now);
            self.collected = now;
        }
        self.collected + COLLECTED_EVERY
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[cold]
    #[inline(never)]
    pub(super) fn without_credits(&mut self, now: u64, lane: usize) {
        let in_hand = self.plane.credits[lane].in_hand;
        self.broken(now, InvariantError::NegativeCredits { lane, in_hand });
    }

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
        if S::ACTIVE {
            plane.free_room::<F>(now, tail, input, packet);
        }
        if F::PFC && plane.is_under_pfc(lane) {
            self.post_departure((now, tail), upstream, sender, packet);
            return;
        }
        let blocks = packet.blocks();
        if S::ACTIVE && self.switch.delays_credits() {
            due += self.starvation(now, input, lane, packet);
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
        // Within a window, events of the sender before now may be left.
        let collected_at = if F::LOOKAHEAD { self.now } else { now };
        credits.post(&mut plane.overflow, collected_at, due, blocks);
        if F::LOOKAHEAD && (S::ACTIVE || C::ACTIVE) && from_host {
            // Within a window, the host may still send or begin to wait before now.
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
            let plane = &mut self.plane;
            let host = plane.host_behind(plane.ins[upstream as usize].upstream);
            plane.events.push(Event::new(due, phase::CREDIT, host, 0));
        }
    }

    #[cold]
    pub(super) fn starvation(&self, now: u64, input: u32, lane: usize, packet: &Packet) -> u64 {
        let plane = &self.plane;
        if input as usize >= plane.fabric_ports {
            return 0;
        }
        let upstream = &plane.outs[lane / plane.vls];
        let (capacity, free) = plane.room(now, input, packet.vl());
        let occupied = (capacity - free) as u32 * 64;
        let packet_time = Span::from_ps(plane.serialisation(upstream, packet.wire()));
        self.switch
            .credit_return_delay(PortId::new(input as usize), occupied, packet_time)
            .as_ps()
    }

    #[inline]
    pub(crate) fn has_credit(&mut self, now: u64, output: u32, lane: usize) -> bool {
        let plane = &mut self.plane;
        let port = plane.link_port(PortId::new(output as usize));
        let link_lane = lane + (port - output as usize) * plane.vls;
        plane.may_send::<F>(now, link_lane, plane.mtu_blocks)
    }

    pub(super) fn check_full(&mut self, now: u64, port: u32, vl: usize) {
        let plane = &mut self.plane;
        if port as usize >= plane.fabric_ports {
            return;
        }
        if plane.is_full::<F>(now, port, vl) {
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
}

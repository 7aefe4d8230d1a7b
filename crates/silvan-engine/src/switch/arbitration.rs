use silvan_cc::hooks::{PortVl, SourceControl, SwitchControl};
use silvan_core::PortId;

use crate::engine::Engine;
use crate::feedback::flow_of;
use crate::packet::Packet;
use crate::plane::{Plane, time};
use crate::variant::EngineVariant;
use crate::workload::Workload;

pub(super) enum Candidate {
    Ready { local: u32 },
    NoCredit { blocks: i32 },
    Empty,
}

impl Plane {
    #[inline]
    pub(super) fn charge_alone<F: EngineVariant>(
        &mut self,
        now: u64,
        output: u32,
        lane: usize,
        packet: &Packet,
    ) -> bool {
        if !self.may_send::<F>(now, lane, packet.blocks()) {
            return false;
        }
        let ready = 1 << (lane - self.lane_in::<F>(output, 0));
        let state = &mut self.vl_states[output as usize];
        let tables = &self.vl_tables[usize::from(state.table)];
        let choice = tables.choose(state, ready);
        if let Some(choice) = choice {
            tables.charge(state, choice, packet.wire());
        }
        choice.is_some()
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
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

    #[inline(always)]
    pub(super) fn arbitrate_lane(&mut self, now: u64, output: u32) {
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

    pub(super) fn arbitrate_lanes(&mut self, now: u64, output: u32) {
        let first = self.plane.lane_in::<F>(output, 0);
        let mut ready = 0u16;
        let mut locals = [0u32; 16];
        let mut blocks_wanted = [0i32; 16];
        let busy = self.plane.busy_lanes[output as usize];
        for vl in lanes_of(busy) {
            let candidate = if self.needs_holds_head() {
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
        for vl in lanes_of(busy) {
            let blocks = blocks_wanted[vl];
            if blocks > 0 {
                self.await_credits(now, output, first + vl, blocks);
            }
        }
    }

    #[inline(always)]
    pub(super) fn candidate(&mut self, now: u64, output: u32, lane: usize) -> Candidate {
        let plane = &mut self.plane;
        let record = &plane.lanes[lane];
        let picked = if let Some(reads) = plane.read_limits::<F>() {
            plane.pick_limited(reads, output, lane)
        } else if !F::PLAIN && plane.oldest_first {
            plane.oldest_of(lane, None)
        } else {
            record.pick::<F>(plane.credits[lane].pointer, None)
        };
        match picked {
            Some(local) => self.with_credits(now, lane, local),
            None => Candidate::Empty,
        }
    }

    #[inline(never)]
    pub(super) fn candidate_not_held(&mut self, now: u64, output: u32, lane: usize) -> Candidate {
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

    #[inline(always)]
    pub(super) fn with_credits(&mut self, now: u64, lane: usize, local: u32) -> Candidate {
        let plane = &mut self.plane;
        // The packet's size matters only below the credits of MTU size.
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
    pub(super) fn start_waiting(&mut self, now: u64, output: u32) {
        let out = &mut self.plane.outs[output as usize];
        out.wait_since = out.wait_since.min(now);
    }

    pub(super) fn await_credits(&mut self, now: u64, output: u32, lane: usize, blocks: i32) {
        // Also if enough credits are on their way: a shorter read that starts later may bring credits sooner.
        self.plane.credits[lane].starved = true;
        if let Some(at) = self.plane.when_may_send::<F>(now, lane, blocks) {
            self.wake_output(output, at.max(now));
        }
    }
}

#[inline(always)]
fn lanes_of(mut bits: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let vl = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (vl < 16).then_some(vl)
    })
}

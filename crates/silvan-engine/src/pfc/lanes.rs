use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::{PortId, Vl};
use silvan_model::{EngineError, Loss};

use super::{Change, OPEN, PauseCounts};
use crate::engine::Engine;
use crate::events::Posted;
use crate::packet::Packet;
use crate::partition::RemoteDeparture;
use crate::plane::{Plane, time};
use crate::records::{Next, Sender};
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl Plane {
    #[inline]
    pub fn is_under_pfc(&self, lane: usize) -> bool {
        let pauses = self.pauses.as_ref();
        pauses.is_some_and(|pauses| pauses.link(lane).is_some())
    }

    #[inline(always)]
    pub fn may_send<F: EngineVariant>(&mut self, now: u64, lane: usize, blocks: i32) -> bool {
        if F::PFC && self.pauses.is_some() {
            self.update_pause(now, lane);
        }
        self.credits[lane].has(&mut self.overflow, now, blocks)
    }

    #[inline(always)]
    pub fn when_may_send<F: EngineVariant>(
        &self,
        now: u64,
        lane: usize,
        blocks: i32,
    ) -> Option<u64> {
        if F::PFC && self.is_under_pfc(lane) {
            return self.when_resumes(lane).map(|at| at.max(now));
        }
        self.credits[lane].when(&self.overflow, now, blocks)
    }

    fn update_pause(&mut self, now: u64, lane: usize) {
        let withheld = self.withheld_credits(lane);
        let Some(pauses) = &mut self.pauses else {
            return;
        };
        let Some(link) = &pauses.links[lane / pauses.vls] else {
            return;
        };
        let (paused, lost) = pauses.lanes[lane].update(link, now);
        if lost {
            pauses.note_loss(lane);
        }
        self.credits[lane].in_hand = if paused { 0 } else { OPEN } - withheld;
    }

    fn when_resumes(&self, lane: usize) -> Option<u64> {
        let (link, state) = self.pauses.as_ref()?.lane(lane)?;
        state.resumes(link)
    }

    /// An earlier resume has woken the packets already, or they wait for another condition.
    pub fn when_resumes_by(&self, lane: usize, due: u64) -> Option<u64> {
        if !self.credits[lane].starved {
            return None;
        }
        self.when_resumes(lane).filter(|&resumes| resumes >= due)
    }

    pub fn record_start(&mut self, now: u64, lane: usize, wire: u16) -> bool {
        let Some(pauses) = &mut self.pauses else {
            return false;
        };
        if let Some(link) = &pauses.links[lane / pauses.vls] {
            pauses.lanes[lane].enter(Change {
                due: now + link.round_trip,
                bytes: u32::from(wire),
            });
        }
        pauses.lost.is_some()
    }

    pub fn record_departure(&mut self, tail: u64, lane: usize, wire: u16) -> u64 {
        let Some(pauses) = &mut self.pauses else {
            return tail;
        };
        let Some(link) = &pauses.links[lane / pauses.vls] else {
            return tail;
        };
        let due = tail + link.delay;
        pauses.lanes[lane].leave(Change {
            due,
            bytes: u32::from(wire),
        });
        due
    }

    pub fn credits_at(&self, now: u64, lane: usize) -> i32 {
        let pauses = self.pauses.as_ref().and_then(|pauses| pauses.lane(lane));
        let Some((link, state)) = pauses else {
            return self.credits[lane].at(&self.overflow, now);
        };
        let blocks = match state.is_paused(link, now) {
            true => 0,
            false => (link.buffer / 64) as i32,
        };
        blocks - self.withheld_credits(lane)
    }

    /// Capacity in blocks of the buffer behind a lane, and free blocks as its switch sees them.
    pub fn room_behind(&self, now: u64, lane: usize) -> (i32, i32) {
        let pauses = self.pauses.as_ref().and_then(|pauses| pauses.lane(lane));
        let Some((link, state)) = pauses else {
            let capacity = self.capacity((lane / self.vls) as u32);
            return (capacity, self.credits[lane].at(&self.overflow, now));
        };
        let bytes = state.replayed_until(link, now + link.delay).bytes;
        let free = (link.buffer - bytes).max(0);
        ((link.buffer / 64) as i32, (free / 64) as i32)
    }

    pub fn pauses_sender(&self, now: u64, lane: usize) -> bool {
        let pauses = self.pauses.as_ref().and_then(|pauses| pauses.lane(lane));
        pauses.is_some_and(|(link, state)| state.replayed_until(link, now + link.delay).paused)
    }

    pub fn stays_paused(&self, lane: usize) -> bool {
        let pauses = self.pauses.as_ref().and_then(|pauses| pauses.lane(lane));
        pauses.is_some_and(|(link, state)| state.replayed_until(link, u64::MAX).paused)
    }

    pub fn outstanding(&self, lane: usize) -> Option<i64> {
        let (_, state) = self.pauses.as_ref()?.lane(lane)?;
        Some(state.outstanding())
    }

    pub fn pause_counts(&self, now: u64, output: usize) -> PauseCounts {
        let mut sum = PauseCounts::default();
        let Some(pauses) = &self.pauses else {
            return sum;
        };
        for lane in output * self.vls..(output + 1) * self.vls {
            if let Some((link, state)) = pauses.lane(lane) {
                let counts = state.counts(link, now);
                sum.frames += counts.frames;
                sum.paused += counts.paused;
            }
        }
        sum
    }

    pub fn pause_delay(&self, output: usize) -> Option<u64> {
        let link = self.pauses.as_ref()?.links[output].as_ref()?;
        Some(link.delay)
    }

    fn found_loss(&self) -> Option<u64> {
        let pauses = self.pauses.as_ref()?;
        let (effect, lane) = pauses.lost?;
        Some(effect - pauses.link(lane)?.delay)
    }

    /// The earliest loss by `until`, and its lane. All events up to it must have been processed.
    pub fn first_loss(&self, until: u64) -> Option<(Loss, usize)> {
        let pauses = self.pauses.as_ref()?;
        let losses = (0..pauses.lanes.len()).filter_map(|lane| {
            let (link, state) = pauses.lane(lane)?;
            let (effect, over) = state.lost_until(link, until + link.delay)?;
            Some((effect - link.delay, lane, over, link.limits))
        });
        let (at, lane, over, limits) = losses.min_by_key(|&(at, lane, ..)| (at, lane))?;
        let out = &self.outs[lane / self.vls];
        let input = match out.kind {
            Next::Host => self.hosts[out.next as usize].port,
            _ => out.next,
        };
        let loss = Loss {
            at: time(at),
            port: PortId::new(input as usize),
            priority: Vl::try_new((lane % self.vls) as u8).ok()?,
            over,
            limits,
        };
        Some((loss, lane))
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    pub(crate) fn check_losses(&mut self, end: u64) {
        self.note_loss(end.saturating_sub(1));
    }

    /// Ends the run by a loss, when it takes effect at the sender.
    #[cold]
    pub(crate) fn end_by_loss(&mut self) {
        if let Some(until) = self.plane.found_loss() {
            self.note_loss(until);
        }
    }

    fn note_loss(&mut self, until: u64) {
        if let Some((loss, _)) = self.plane.first_loss(until) {
            self.note_fault(EngineError::Loss(loss));
        }
    }

    #[inline(never)]
    pub(crate) fn post_departure(
        &mut self,
        (now, tail): (u64, u64),
        upstream: u32,
        sender: Sender,
        packet: &Packet,
    ) {
        let plane = &mut self.plane;
        let lane = plane.lane(upstream, packet.vl());
        if F::LOOKAHEAD && sender == Sender::Remote {
            plane.remote.send_departure(RemoteDeparture {
                tail,
                lane: lane as u32,
                output: upstream,
                bytes: packet.wire(),
            });
            return;
        }
        let due = plane.record_departure(tail, lane, packet.wire());
        if F::LOOKAHEAD && (S::ACTIVE || C::ACTIVE) && sender == Sender::Host {
            // The host may still send, or begin to wait, before now.
            let host = plane.host_behind(plane.ins[upstream as usize].upstream);
            plane.events.calendar.posted().push(Posted {
                at: now,
                due,
                host,
                lane: lane as u32,
            });
        } else if sender == Sender::Host {
            if let Some(resumes) = plane.when_resumes_by(lane, due) {
                self.wake_host_of(upstream, resumes);
            }
        } else {
            self.resume_output(upstream, lane, due);
        }
    }

    pub(crate) fn receive_departure(&mut self, departure: RemoteDeparture) {
        let lane = departure.lane as usize;
        let due = self
            .plane
            .record_departure(departure.tail, lane, departure.bytes);
        self.resume_output(departure.output, lane, due);
    }

    fn resume_output(&mut self, output: u32, lane: usize, due: u64) {
        if let Some(resumes) = self.plane.when_resumes_by(lane, due) {
            let free_at = self.plane.outs[output as usize].free_at;
            self.wake_output(output, resumes.max(free_at));
        }
    }
}

//! Input buffers that are single queues: only a lane's first packet is in a virtual output queue, others are held back
//! (head-of-line blocking). Dependencies are those of virtual output queues.

use std::collections::VecDeque;

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::packet::Packet;
use crate::plane::Plane;
use crate::variant::EngineVariant;
use crate::workload::Workload;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldBack {
    pub packet: Packet,
    pub lane: u32,
    since: u64,
}

#[derive(Clone, Debug, Default)]
struct Buffer {
    has_first: bool,
    behind: VecDeque<HeldBack>,
}

#[derive(Clone, Debug)]
pub(crate) struct Fifos {
    buffers: Vec<Buffer>,
    bytes: Vec<u32>,
    vls: usize,
}

impl Fifos {
    pub fn new(ports: usize, lanes: usize, vls: usize) -> Self {
        Self {
            buffers: vec![Buffer::default(); ports * vls],
            bytes: vec![0; lanes],
            vls,
        }
    }

    /// `None` for the stage of an output buffer, which has a single output.
    fn buffer(&self, input: u32, vl: usize) -> Option<&Buffer> {
        self.buffers.get(input as usize * self.vls + vl)
    }

    fn buffer_mut(&mut self, input: u32, vl: usize) -> Option<&mut Buffer> {
        self.buffers.get_mut(input as usize * self.vls + vl)
    }

    pub fn is_occupied(&self, input: u32, vl: usize) -> bool {
        self.buffer(input, vl)
            .is_some_and(|buffer| buffer.has_first)
    }

    fn join(&mut self, input: u32, lane: usize, packet: &Packet, now: u64) -> bool {
        let Some(buffer) = self.buffer_mut(input, packet.vl()) else {
            return false;
        };
        if !buffer.has_first {
            buffer.has_first = true;
            return false;
        }
        buffer.behind.push_back(HeldBack {
            packet: *packet,
            lane: lane as u32,
            since: now,
        });
        self.bytes[lane] += u32::from(packet.wire());
        true
    }

    fn move_up(&mut self, input: u32, vl: usize) -> Option<HeldBack> {
        let buffer = self.buffer_mut(input, vl)?;
        let next = buffer.behind.pop_front();
        buffer.has_first = next.is_some();
        if let Some(next) = &next {
            self.bytes[next.lane as usize] -= u32::from(next.packet.wire());
        }
        next
    }

    fn pop_blocked(
        &mut self,
        input: u32,
        vl: usize,
        lanes: &std::ops::Range<usize>,
    ) -> Option<Packet> {
        let buffer = self.buffer_mut(input, vl)?;
        let mut behind = buffer.behind.iter();
        let place = behind.position(|held| lanes.contains(&(held.lane as usize)))?;
        let popped = buffer.behind.remove(place)?;
        self.bytes[popped.lane as usize] -= u32::from(popped.packet.wire());
        Some(popped.packet)
    }

    pub fn behind(&self, input: u32, vl: usize) -> impl Iterator<Item = &HeldBack> {
        let buffer = self.buffer(input, vl);
        buffer.into_iter().flat_map(|buffer| &buffer.behind)
    }

    pub fn behind_mut(&mut self, input: u32, vl: usize) -> impl Iterator<Item = &mut HeldBack> {
        let buffer = self.buffer_mut(input, vl);
        buffer.into_iter().flat_map(|buffer| &mut buffer.behind)
    }

    pub fn all_behind(&self) -> impl Iterator<Item = (u32, &HeldBack)> {
        let buffers = self.buffers.iter().enumerate();
        buffers.flat_map(|(index, buffer)| {
            let input = (index / self.vls) as u32;
            buffer.behind.iter().map(move |held| (input, held))
        })
    }

    pub fn bytes(&self) -> usize {
        let held = |buffer: &Buffer| buffer.behind.capacity() * size_of::<HeldBack>();
        self.buffers.capacity() * size_of::<Buffer>()
            + self.buffers.iter().map(held).sum::<usize>()
            + self.bytes.capacity() * 4
    }
}

impl Plane {
    #[inline]
    pub fn waiting_bytes(&self, lane: usize) -> u32 {
        let held_back = self.fifos.as_ref().map_or(0, |fifos| fifos.bytes[lane]);
        self.lanes[lane].queued_bytes + held_back
    }

    /// Zero at compile time in plain fabrics.
    #[inline(always)]
    pub fn held_back_bytes<F: EngineVariant>(&self, lane: usize) -> u32 {
        match &self.fifos {
            Some(fifos) if !F::PLAIN => fifos.bytes[lane],
            _ => 0,
        }
    }

    #[inline(always)]
    pub fn is_behind<F: EngineVariant>(&self, input: u32, vl: usize) -> bool {
        !F::PLAIN && (self.fifos.as_ref()).is_some_and(|fifos| fifos.is_occupied(input, vl))
    }

    pub fn for_each_blocked_by(&self, lane: usize, mut each: impl FnMut(u32, usize, &Packet)) {
        self.for_each_in_lane(lane, |input, packet| {
            each(input, lane, packet);
            if let Some(fifos) = &self.fifos {
                for held in fifos.behind(input, packet.vl()) {
                    each(input, held.lane as usize, &held.packet);
                }
            }
        });
    }

    /// Visits the packets blocked by a lane, with the inputs in turn, so that the next packet of each is prefetched.
    ///
    /// `start` makes a state for packets of an input, `each` may change it, `done` takes it.
    pub fn for_each_blocked_by_in_turns<T>(
        &self,
        lane: usize,
        start: impl Fn(u32) -> T,
        mut each: impl FnMut(&mut T, usize, &Packet),
        mut done: impl FnMut(T),
    ) {
        if self.fifos.is_some() {
            self.for_each_blocked_by(lane, |input, lane, packet| {
                let mut state = start(input);
                each(&mut state, lane, packet);
                done(state);
            });
            return;
        }
        let record = &self.lanes[lane];
        let mut queues = Vec::new();
        for word in 0..usize::from(record.words) {
            let mut bits = record.inputs[word];
            while bits != 0 {
                let local = 64 * word as u32 + bits.trailing_zeros();
                bits &= bits - 1;
                let queue = self.queues[(record.queues + local) as usize];
                queues.push((queue, start(record.base + local)));
            }
        }
        let each = |state: &mut T, packet: &Packet| each(state, lane, packet);
        self.pool.for_each_in_turns(queues, each, done);
    }

    pub fn for_each_held_back(&self, mut each: impl FnMut(usize, u32, &Packet)) {
        if let Some(fifos) = &self.fifos {
            for (input, held) in fifos.all_behind() {
                each(held.lane as usize, input, &held.packet);
            }
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(always)]
    pub(crate) fn hold_back(&mut self, now: u64, port: u32, lane: usize, packet: &Packet) -> bool {
        match &mut self.plane.fifos {
            Some(fifos) if !F::PLAIN => fifos.join(port, lane, packet, now),
            _ => false,
        }
    }

    #[inline(always)]
    pub(crate) fn move_up(&mut self, now: u64, input: u32, vl: usize) {
        if !F::PLAIN && self.plane.fifos.is_some() {
            self.move_up_next(now, input, vl);
        }
    }

    #[inline(never)]
    fn move_up_next(&mut self, now: u64, input: u32, vl: usize) {
        let plane = &mut self.plane;
        let next = plane
            .fifos
            .as_mut()
            .and_then(|fifos| fifos.move_up(input, vl));
        let Some(HeldBack {
            packet,
            lane,
            since,
        }) = next
        else {
            return;
        };
        let local = u32::from(plane.ins[input as usize].local);
        let output = lane / plane.vls as u32;
        let record = &mut plane.lanes[lane as usize];
        if record.has_input(local) {
            let queue = &mut plane.queues[(record.queues + local) as usize];
            plane.pool.insert(queue, packet, since);
            record.queued_bytes += u32::from(packet.wire());
        } else {
            plane.queue_packet::<F>(output, lane as usize, local, &packet, since);
        }
        plane.outs[output as usize].waiting += 1;
        let at = plane.outs[output as usize].free_at.max(now);
        self.wake_output(output, at);
    }

    pub(crate) fn pop_held_back(&mut self, output: u32) -> Vec<(u32, Packet)> {
        let plane = &mut self.plane;
        let element = plane.element_of(output);
        let lanes = plane.lane(output, 0)..plane.lane(output, plane.vls);
        let mut popped = Vec::new();
        if let Some(fifos) = &mut plane.fifos {
            for input in element.base..element.base + element.ports {
                for vl in 0..plane.vls {
                    while let Some(packet) = fifos.pop_blocked(input, vl, &lanes) {
                        popped.push((input, packet));
                    }
                }
            }
        }
        popped
    }
}

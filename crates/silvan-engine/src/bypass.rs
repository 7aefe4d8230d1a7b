//! Limits on overtaking in input buffers: younger packets pass one whose output is busy, at most
//! `limit` times (santos2003, footnote 6).

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::packet::NONE;
use crate::plane::Plane;
use crate::records::Element;
use crate::variant::EngineVariant;
use crate::workload::Workload;

#[derive(Clone, Copy, Debug)]
struct Passed {
    count: u8,
    /// The dense lane that the oldest packet waits for, if nothing may overtake it any more; else `NONE`.
    held: u32,
}

impl Passed {
    const FREE: Self = Self {
        count: 0,
        held: NONE,
    };
}

#[derive(Clone, Debug)]
pub(crate) struct Bypass {
    limit: u8,
    passed: Vec<Passed>,
    held: Vec<[u64; 4]>,
}

impl Bypass {
    pub fn new(limit: u8, elements: usize, inputs: usize, vls: usize) -> Self {
        Self {
            limit,
            passed: vec![Passed::FREE; inputs * vls],
            held: vec![[0; 4]; elements * vls],
        }
    }

    fn set(&mut self, element: usize, local: u32, held: bool) {
        let word = &mut self.held[element][(local / 64) as usize];
        let bit = 1 << (local % 64);
        *word = if held { *word | bit } else { *word & !bit };
    }
}

impl Plane {
    /// Adds to the inputs that a lane may not read those whose oldest packet waits for another lane.
    pub fn block_overtaking(&self, bypass: &Bypass, lane: usize, blocked: &mut [u64; 4]) {
        let (output, vl) = (lane / self.vls, lane % self.vls);
        let element = self.ins[output].element as usize;
        let base = self.elements[element].base as usize;
        let held = &bypass.held[element * self.vls + vl];
        for (word, &bits) in held.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let local = word * 64 + bits.trailing_zeros() as usize;
                if bypass.passed[(base + local) * self.vls + vl].held as usize != lane {
                    blocked[word] |= 1 << (local % 64);
                }
                bits &= bits - 1;
            }
        }
    }

    pub fn waits_behind(&self, lane: usize) -> bool {
        let Some(bypass) = self.reads.as_ref().and_then(|reads| reads.bypass.as_ref()) else {
            return false;
        };
        let mut blocked = [0; 4];
        self.block_overtaking(bypass, lane, &mut blocked);
        let inputs = &self.lanes[lane].inputs;
        inputs
            .iter()
            .zip(blocked)
            .any(|(inputs, blocked)| inputs & blocked != 0)
    }

    fn oldest_in(&self, element: Element, local: u32, vl: usize) -> Option<usize> {
        let lanes = (element.base..element.base + element.ports)
            .filter(|&output| self.outs[output as usize].waiting > 0)
            .map(|output| self.lane(output, vl))
            .filter(|&lane| self.lanes[lane].has_input(local));
        lanes.min_by_key(|&lane| {
            let queue = self.queues[(self.lanes[lane].queues + local) as usize];
            (self.pool.eligible(self.pool.first(queue)), lane)
        })
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[cold]
    pub(crate) fn overtake(&mut self, now: u64, output: u32, lane: usize, local: u32) {
        let plane = &mut self.plane;
        let element = plane.element_of(output);
        let (vls, vl) = (plane.vls, lane % plane.vls);
        let oldest = plane.oldest_in(element, local, vl);
        let index = plane.ins[output as usize].element as usize * vls + vl;
        let Some(bypass) = plane.reads.as_mut().and_then(|reads| reads.bypass.as_mut()) else {
            return;
        };
        let passed = &mut bypass.passed[(element.base + local) as usize * vls + vl];
        let was_held = passed.held != NONE;
        match oldest {
            Some(oldest) if oldest != lane => {
                passed.count += 1;
                if passed.count == bypass.limit {
                    passed.held = oldest as u32;
                }
            }
            _ => *passed = Passed::FREE,
        }
        let is_held = passed.held != NONE;
        if is_held != was_held {
            bypass.set(index, local, is_held);
            self.wake_others(now, element, output);
        }
    }

    pub(crate) fn invalidate_overtaken(&mut self, now: u64, output: u32) {
        let plane = &mut self.plane;
        let element = plane.element_of(output);
        let vls = plane.vls;
        let first = plane.ins[output as usize].element as usize * vls;
        let Some(bypass) = plane.reads.as_mut().and_then(|reads| reads.bypass.as_mut()) else {
            return;
        };
        for local in 0..element.ports {
            for vl in 0..vls {
                let passed = &mut bypass.passed[(element.base + local) as usize * vls + vl];
                if passed.held as usize == output as usize * vls + vl {
                    *passed = Passed::FREE;
                    bypass.set(first + vl, local, false);
                }
            }
        }
        self.wake_others(now, element, output);
    }

    fn wake_others(&mut self, now: u64, element: Element, output: u32) {
        for other in element.base..element.base + element.ports {
            let out = &self.plane.outs[other as usize];
            if other != output && out.waiting > 0 {
                let at = out.free_at.max(now);
                self.wake_output(other, at);
            }
        }
    }
}

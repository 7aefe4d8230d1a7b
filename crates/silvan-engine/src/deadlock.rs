//! Deadlock: a lane is stuck if its packets have no credits, in hand or on their way, and all packets that could free
//! some wait for stuck lanes (Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection
//! networks", 1987). Lanes that can move are dropped from those without credits.

use silvan_core::{PortId, Vl};
use silvan_model::Deadlock;

use crate::packet::NONE;
use crate::partition::Whole;
use crate::plane::{Plane, time};
use crate::records::{Element, Next};
use crate::variant::General;

/// Simulated time between two checks, in ps.
const INTERVAL: u64 = 1_000_000_000;
/// Share of the simulated time between two checks of calls that lag.
const RARER: u64 = 16;

#[derive(Clone, Debug)]
pub(crate) struct DeadlockChecks {
    pub next: u64,
    events: u64,
}

impl Default for DeadlockChecks {
    fn default() -> Self {
        Self {
            next: INTERVAL,
            events: 0,
        }
    }
}

impl DeadlockChecks {
    /// In a call that `lags`, each check costs as much as a sample: they grow rarer.
    pub fn is_due(&mut self, now: u64, at_end: bool, lags: bool, events: u64) -> bool {
        if now != self.next && !at_end {
            return false;
        }
        let rarer = if lags { now / RARER } else { 0 };
        self.next = now + INTERVAL.max(rarer);
        events != self.events
    }

    pub fn found_none(&mut self, events: u64) {
        self.events = events;
    }
}

impl Whole<'_> {
    pub(crate) fn find_deadlock(&self, now: u64) -> Option<Deadlock> {
        let plane = self.any();
        if self.parts().all(|plane| plane.pool.is_unused()) {
            return None;
        }
        let mut stuck = vec![false; plane.lanes.len()];
        for plane in self.parts() {
            plane.find_lanes_without_credits(&mut stuck);
        }
        if !stuck.iter().any(|&is| is) {
            return None;
        }
        let mut arriving = vec![false; plane.lanes.len()];
        self.for_each_head(|port, packet| {
            arriving[plane.lane(port, packet.vl())] = true;
        });
        loop {
            let mut changed = false;
            for lane in 0..stuck.len() {
                if stuck[lane] && self.buffer_behind_moves(lane, &stuck, &arriving) {
                    stuck[lane] = false;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let first = stuck.iter().position(|&is| is)?;
        Some(Deadlock {
            at: time(now),
            cycle: self.cycle_from(first, &stuck),
            stuck: stuck.iter().filter(|&&is| is).count(),
            paused: plane.is_under_pfc(first),
        })
    }

    fn lanes_of_buffer_behind(&self, lane: usize) -> impl Iterator<Item = usize> + '_ {
        let plane = self.any();
        let next = plane.outs[lane / plane.vls].next;
        self.of_port(next as usize).lanes_of_buffer_behind(lane)
    }

    fn buffer_behind_moves(&self, lane: usize, stuck: &[bool], arriving: &[bool]) -> bool {
        let plane = self.any();
        let next = plane.outs[lane / plane.vls].next;
        next == NONE
            || arriving[plane.lane(next, lane % plane.vls)]
            || self.lanes_of_buffer_behind(lane).any(|other| !stuck[other])
    }

    fn cycle_from(&self, first: usize, stuck: &[bool]) -> Vec<(PortId, Vl)> {
        let plane = self.any();
        let mut path = Vec::new();
        let mut lane = first;
        while !path.contains(&lane) {
            path.push(lane);
            let Some(next) = self
                .lanes_of_buffer_behind(lane)
                .find(|&other| stuck[other])
            else {
                break;
            };
            lane = next;
        }
        let start = path.iter().position(|&seen| seen == lane).unwrap_or(0);
        path[start..]
            .iter()
            .filter_map(|&lane| {
                let port = lane / plane.vls;
                let vl = Vl::try_new((lane % plane.vls) as u8).ok()?;
                // Output-buffer stages have no port of their own; the crossbar before them does.
                (port < plane.fabric_ports).then_some((PortId::new(port), vl))
            })
            .collect()
    }
}

impl Plane {
    fn find_lanes_without_credits(&self, without: &mut [bool]) {
        for (index, lane) in self.lanes.iter().enumerate() {
            if lane.queued_bytes == 0 {
                continue;
            }
            let out = &self.outs[index / self.vls];
            if out.kind != Next::Input || self.withheld_credits(index) != 0 {
                continue;
            }
            if self.is_under_pfc(index) {
                without[index] = self.stays_paused(index);
                continue;
            }
            let credits = &self.credits[index];
            let credits = credits.in_hand + credits.pending(&self.overflow);
            if credits >= self.mtu_blocks {
                continue;
            }
            // No packet is smaller than a block.
            if credits < 1 {
                without[index] = true;
                continue;
            }
            let first = |input: u32| {
                let queue = self.queues[(lane.queues + input) as usize];
                self.pool.packet(self.pool.first(queue)).blocks()
            };
            // The choice of an input does not depend on credits, so a small packet waits behind a large one. With
            // limits on reads any packet may be next.
            let next = match self.next_input(index) {
                Some(input) => Some(first(input)),
                None => self.waiting_inputs(index).map(first).min(),
            };
            without[index] = next.is_some_and(|blocks| credits < blocks);
        }
    }

    fn next_input(&self, lane: usize) -> Option<u32> {
        let output = lane / self.vls;
        match &self.reads {
            Some(reads) => {
                let element = self.ins[output].element as usize;
                let free = reads.blocked[element].iter().all(|&word| word == 0);
                free.then(|| self.pick_limited(reads, output as u32, lane))?
            }
            None if self.oldest_first => self.oldest_of(lane, None),
            None => self.lanes[lane].pick::<General>(self.credits[lane].pointer, None),
        }
    }

    fn waiting_inputs(&self, lane: usize) -> impl Iterator<Item = u32> + '_ {
        let record = &self.lanes[lane];
        (0..u32::from(record.words) * 64).filter(|&input| record.has_input(input))
    }

    fn lanes_of_buffer_behind(&self, lane: usize) -> impl Iterator<Item = usize> + '_ {
        let (out, vl) = (&self.outs[lane / self.vls], lane % self.vls);
        let local = u32::from(self.ins[out.next as usize].local);
        let Element { base, ports, .. } = self.element_of(out.next);
        let vls = if self.routing.changes_lanes {
            0..self.vls
        } else {
            vl..vl + 1
        };
        (base..base + ports)
            .flat_map(move |output| vls.clone().map(move |vl| self.lane(output, vl)))
            .filter(move |&next| {
                let record = &self.lanes[next];
                if !record.has_input(local) {
                    return false;
                }
                if !self.routing.changes_lanes {
                    return true;
                }
                let queue = self.queues[(record.queues + local) as usize];
                let mut from_lane = false;
                self.pool
                    .for_each(queue, |packet| from_lane |= packet.vl() == vl);
                from_lane
            })
    }
}

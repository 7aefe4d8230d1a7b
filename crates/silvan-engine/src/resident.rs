use silvan_cc::hooks::Resident;
use silvan_core::{PortId, Vl};

use crate::packet::MARKED;
use crate::plane::Plane;
use crate::records::Element;

pub(crate) struct ResidentView<'a> {
    pub plane: &'a mut Plane,
    pub now: u64,
}

impl ResidentView<'_> {
    fn element(&self, port: PortId) -> std::ops::Range<u32> {
        let Element { base, ports, .. } = self.plane.element_of(self.plane.known_port(port));
        base..base + ports
    }

    fn mark(&mut self, output: u32, vl: Vl, local: u32) {
        let lane = self.plane.lane(output, vl.index());
        let record = &self.plane.lanes[lane];
        if record.has_input(local) {
            let queue = self.plane.queues[(record.queues + local) as usize];
            self.plane
                .pool
                .for_each_mut(queue, |packet| packet.set(MARKED));
        }
        if let Some(fifos) = &mut self.plane.fifos {
            let input = self.plane.lanes[lane].base + local;
            for held in fifos.behind_mut(input, vl.index()) {
                if held.lane as usize == lane {
                    held.packet.set(MARKED);
                }
            }
        }
    }

    fn held_back(&self, lane: usize, local: u32) -> usize {
        let plane = &self.plane;
        let input = plane.lanes[lane].base + local;
        plane.fifos.as_ref().map_or(0, |fifos| {
            let behind = fifos.behind(input, lane % plane.vls);
            behind.filter(|held| held.lane as usize == lane).count()
        })
    }
}

impl Resident for ResidentView<'_> {
    fn occupied_blocks(&self, input: PortId, vl: Vl) -> u32 {
        self.plane.known_lane(input, vl);
        let (capacity, free) = self.plane.room(self.now, input.index() as u32, vl.index());
        (capacity as u32).saturating_sub(free as u32)
    }

    fn capacity_blocks(&self, input: PortId, vl: Vl) -> u32 {
        self.plane.known_lane(input, vl);
        let (capacity, _) = self.plane.room(self.now, input.index() as u32, vl.index());
        capacity as u32
    }

    fn queued_packets(&self, output: PortId, vl: Vl) -> u32 {
        let lane = self.plane.known_lane(output, vl);
        let record = &self.plane.lanes[lane];
        let mut count = 0;
        for local in 0..self.element(output).len() as u32 {
            if record.has_input(local) {
                let queue = self.plane.queues[(record.queues + local) as usize];
                self.plane.pool.for_each(queue, |_| count += 1);
            }
            count += self.held_back(lane, local) as u32;
        }
        count
    }

    fn outputs_of(&self, input: PortId, vl: Vl, each: &mut dyn FnMut(PortId)) {
        self.plane.known_lane(input, vl);
        let local = u32::from(self.plane.ins[input.index()].local);
        for output in self.element(input) {
            let lane = self.plane.lane(output, vl.index());
            if self.plane.lanes[lane].has_input(local) || self.held_back(lane, local) > 0 {
                each(PortId::new(output as usize));
            }
        }
    }

    fn sending_outputs(&self, input: PortId, each: &mut dyn FnMut(PortId)) {
        self.plane.known_port(input);
        for output in self.element(input) {
            if self.plane.outs[output as usize].free_at >= self.now {
                each(PortId::new(output as usize));
            }
        }
    }

    fn mark_input(&mut self, input: PortId, vl: Vl) {
        self.plane.known_lane(input, vl);
        let local = u32::from(self.plane.ins[input.index()].local);
        for output in self.element(input) {
            self.mark(output, vl, local);
        }
    }

    fn mark_output(&mut self, output: PortId, vl: Vl) {
        self.plane.known_lane(output, vl);
        for local in 0..self.element(output).len() as u32 {
            self.mark(output.index() as u32, vl, local);
        }
    }
}

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::events::{Event, phase};
use crate::records::Element;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    pub(super) fn read_start(&mut self, now: u64, tail: u64, input: u32) {
        let plane = &mut self.plane;
        let Some(reads) = &mut plane.reads else {
            return;
        };
        reads.active[input as usize] += 1;
        if reads.active[input as usize] == reads.limit {
            let port = &plane.ins[input as usize];
            reads.blocked[port.element as usize][usize::from(port.local / 64)] |=
                1 << (port.local % 64);
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
        let event = Event::new(end, phase::READ_END, input, 0);
        if !F::LOOKAHEAD || !plane.events.calendar.add_read_end(event) {
            plane.events.push(event);
        }
    }

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

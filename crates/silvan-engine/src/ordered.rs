//! Lookahead windows with a switch's ports in the order of time: outputs affect each other at one instant through
//! FIFOs, limited reads or overtaking, fill levels, or output buffers without delay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::events::{Event, Head, phase};
use crate::plane::Plane;
use crate::variant::EngineVariant;
use crate::workload::Workload;

impl Plane {
    #[inline]
    pub fn orders_ports(&self) -> bool {
        self.reads.is_some()
            || self.fifos.is_some()
            || self.buffers.is_some()
            || self.outs.len() > self.fabric_ports
    }

    #[inline]
    pub fn switch_of(&self, port: u32) -> u32 {
        self.ins[self.fabric_port(port) as usize].element
    }
}

#[derive(Debug, Default)]
pub(crate) struct SwitchEvents {
    found: Vec<Event>,
    known: Vec<(u32, Event)>,
    added: BinaryHeap<Reverse<Event>>,
    heads: Vec<Head>,
    later_heads: Vec<Head>,
    later_outputs: Vec<u32>,
    later_reads: Vec<Event>,
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(never)]
    pub(crate) fn window_of_switches(&mut self, limit: u64, window_end: u64) {
        let mut heads = std::mem::take(self.plane.events.calendar.heads());
        self.resolve_window_heads(&mut heads);
        *self.plane.events.calendar.heads() = heads;
        let mut work = std::mem::take(&mut self.switch_events);
        self.find_switch_events(&mut work, limit, window_end);
        let of_switch = |event: Event| (self.plane.switch_of(event.id()), event);
        work.known.extend(work.found.drain(..).map(of_switch));
        let (mut known, mut added) = (
            std::mem::take(&mut work.known),
            std::mem::take(&mut work.added),
        );
        known.sort_unstable();
        for known in known.chunk_by(|one, other| one.0 == other.0) {
            let mut known = known.iter().map(|&(_, event)| event).peekable();
            loop {
                let first = added.peek().map(|&Reverse(event)| event);
                let next = known.next_if(|event| first.is_none_or(|first| *event < first));
                let popped = || added.pop().map(|Reverse(event)| event);
                let Some(event) = next.or_else(popped) else {
                    break;
                };
                self.switch_event(event, &work.heads);
                if self.plane.events.calendar.has_switch_events() {
                    self.find_switch_events(&mut work, limit, window_end);
                    added.extend(work.found.drain(..).map(Reverse));
                }
            }
        }
        known.clear();
        work.heads.clear();
        (work.known, work.added) = (known, added);
        let calendar = &mut self.plane.events.calendar;
        calendar.heads().append(&mut work.later_heads);
        calendar.outputs().append(&mut work.later_outputs);
        calendar.read_ends().append(&mut work.later_reads);
        self.switch_events = work;
    }

    fn find_switch_events(&mut self, work: &mut SwitchEvents, limit: u64, window_end: u64) {
        let plane = &mut self.plane;
        let calendar = &mut plane.events.calendar;
        while let Some(head) = calendar.heads().pop() {
            if head.time < limit {
                let place = work.heads.len() as u32;
                work.found
                    .push(Event::new(head.time, phase::HEAD, head.port, place));
                work.heads.push(head);
            } else {
                work.later_heads.push(head);
            }
        }
        while let Some(output) = calendar.outputs().pop() {
            let at = plane.outs[output as usize].wake_at;
            if at < limit {
                work.found.push(Event::new(at, phase::ARBITRATE, output, 0));
            } else if at < window_end {
                work.later_outputs.push(output);
            }
        }
        while let Some(event) = calendar.read_ends().pop() {
            if event.time < limit {
                work.found.push(event);
            } else {
                work.later_reads.push(event);
            }
        }
    }

    #[inline]
    fn switch_event(&mut self, event: Event, heads: &[Head]) {
        self.events += 1;
        match event.phase() {
            phase::HEAD => self.head(heads[event.argument() as usize]),
            phase::READ_END => self.read_end(event.time, event.id()),
            _ => self.output_event(event.time, event.id()),
        }
    }
}

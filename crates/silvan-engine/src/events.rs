//! The event queue, ordered by (time, phase, id) and never by insertion.
//!
//! Heads travel for one of a few constant times: a FIFO per delay has them in sequential memory, as injections and ends
//! of packets. Other events go into a timing wheel.

mod calendar;
mod event;
mod ring;
mod slab;
mod wheel;
mod window_length;

use crate::packet::Packet;
use crate::table::Table;
use crate::variant::EngineVariant;
pub(crate) use calendar::{Calendar, HEAD_WINDOWS, Posted};
use event::PHASE_SHIFT;
pub(crate) use event::{Event, phase};
use ring::{Keyed, Ring};
use slab::PacketSlab;
use wheel::{BUCKET_SHIFT, Wheel};
pub(crate) use window_length::WindowLength;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub time: u64,
    pub port: u32,
    /// Output by the tables; `NONE` if they have none; `UNREAD` and the index of the table entry if it has not been
    /// read yet.
    pub output: u32,
    pub packet: Packet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextEvent {
    Head(usize),
    Outputs,
    Hosts,
    Wheel,
    None,
}

pub(crate) const MAX_HEAD_QUEUES: usize = 6;
pub(crate) const NO_HEAD_QUEUE: u8 = u8::MAX;

#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    heads: Table<Ring<Head>>,
    outputs: Ring<(u64, u32)>,
    hosts: Ring<(u64, u32)>,
    wheel: Wheel,
    /// Replaces all these queues in an engine with lookahead windows; the wheel has what is beyond its horizon.
    pub calendar: Calendar,
    slab: PacketSlab,
    /// Time of the first event of each queue, `u64::MAX` if it is empty.
    head_fronts: [u64; MAX_HEAD_QUEUES],
    output_front: u64,
    host_front: u64,
}

impl EventQueue {
    pub fn new(queues: usize) -> Self {
        debug_assert!(queues <= MAX_HEAD_QUEUES);
        let filler = Head {
            time: 0,
            port: 0,
            output: 0,
            packet: Packet::default(),
        };
        Self {
            heads: (0..queues).map(|_| Ring::new(filler)).collect(),
            outputs: Ring::new((0, 0)),
            hosts: Ring::new((0, 0)),
            wheel: Wheel::new(),
            calendar: Calendar::default(),
            slab: PacketSlab::default(),
            head_fronts: [u64::MAX; MAX_HEAD_QUEUES],
            output_front: u64::MAX,
            host_front: u64::MAX,
        }
    }

    /// Appends a head to a fixed-delay queue. Times appended to one queue must not decrease.
    #[inline(always)]
    pub fn push_head<F: EngineVariant>(&mut self, queue: usize, head: Head) {
        if F::LOOKAHEAD {
            self.calendar.add_head(head);
            return;
        }
        let front = &mut self.head_fronts[queue];
        *front = (*front).min(head.time);
        self.heads[queue].push(head);
    }

    pub fn push_head_at(&mut self, head: Head) {
        let slot = self.slab.insert(head.packet);
        self.push(Event::new(head.time, phase::HEAD, head.port, slot));
    }

    /// If all hosts are alike, times come in order and go into a queue; a time out of order goes into the wheel.
    #[inline]
    pub fn push_host<F: EngineVariant>(&mut self, time: u64, host: u32) {
        if F::LOOKAHEAD {
            self.wake_host::<F>(time, host);
        } else if !self.hosts.accepts(time) {
            self.push(Event::new(time, phase::HOST, host, 0));
        } else {
            self.host_front = self.host_front.min(time);
            self.hosts.push((time, host));
        }
    }

    #[inline]
    pub fn push_output<F: EngineVariant>(&mut self, time: u64, output: u32) {
        if F::LOOKAHEAD {
            self.wake_output::<F>(time, output);
        } else if !self.outputs.accepts(time) {
            self.push(Event::new(time, phase::ARBITRATE, output, 0));
        } else {
            self.output_front = self.output_front.min(time);
            self.outputs.push((time, output));
        }
    }

    #[inline]
    pub fn wake_output<F: EngineVariant>(&mut self, time: u64, output: u32) {
        if F::LOOKAHEAD {
            self.note_output(time, output);
        } else {
            self.push(Event::new(time, phase::ARBITRATE, output, 0));
        }
    }

    #[inline]
    pub fn wake_host<F: EngineVariant>(&mut self, time: u64, host: u32) {
        if F::LOOKAHEAD {
            self.note_host(time, host);
        } else {
            self.push(Event::new(time, phase::HOST, host, 0));
        }
    }

    #[inline]
    pub fn fill_window(&mut self, end: u64) {
        if self.wheel.front >= end {
            return;
        }
        while self.next(end) == NextEvent::Wheel {
            let Some(event) = self.pop_event() else {
                return;
            };
            match event.phase() {
                phase::ARBITRATE => self.calendar.outputs().push(event.id()),
                phase::HOST => self.calendar.hosts().push(event.id()),
                phase::RECEIVED | phase::ARRIVED | phase::FEEDBACK | phase::CREDIT => {
                    self.calendar.for_hosts().push(event);
                }
                phase::DELIVERED => self.calendar.deliveries().push(event),
                phase::READ_END => self.calendar.read_ends().push(event),
                other => unreachable!("an event that windows do not know: phase {other}"),
            }
        }
    }

    /// The start of the next window with events, at most `end`. The open window must be empty.
    #[inline(never)]
    pub fn next_window(&mut self, end: u64) -> u64 {
        let noted = self.calendar.next_noted();
        let end = noted.map_or(end, |noted| noted.min(end));
        if self.wheel.front < end && self.next(end) == NextEvent::Wheel {
            self.wheel.front
        } else {
            end
        }
    }

    #[inline]
    pub fn push(&mut self, event: Event) {
        self.wheel.push(event);
    }

    pub fn store_packet(&mut self, packet: Packet) -> u32 {
        self.slab.insert(packet)
    }

    pub fn remove_packet(&mut self, slot: u32) -> Packet {
        self.slab.remove(slot)
    }

    #[inline(always)]
    pub fn next(&mut self, end: u64) -> NextEvent {
        loop {
            let mut head = self.head_fronts[0];
            let mut queue = 0;
            for other in 1..self.heads.len() {
                if self.head_fronts[other] <= head && self.comes_first(other, queue) {
                    head = self.head_fronts[other];
                    queue = other;
                }
            }
            // At one instant, heads come first and hosts last. The first event is unpredictable, so it is found without
            // branches.
            let (mut earliest, mut first) = (head, 0);
            if self.output_front < earliest {
                (earliest, first) = (self.output_front, 1);
            }
            if self.host_front < earliest {
                (earliest, first) = (self.host_front, 2);
            }
            let queues_first = earliest;
            if self.wheel.front <= earliest {
                (earliest, first) = (self.wheel.front, 3);
            }
            if earliest >= end {
                return NextEvent::None;
            }
            match first {
                0 => return NextEvent::Head(queue),
                1 => return NextEvent::Outputs,
                2 => return NextEvent::Hosts,
                _ => {}
            }
            let earliest = queues_first;
            if let Some(&event) = self.wheel.current.last() {
                if event.time < earliest {
                    return if event.time < end {
                        NextEvent::Wheel
                    } else {
                        NextEvent::None
                    };
                }
                return self.break_tie(event, queue, end);
            }
            self.wheel.advance(earliest.min(end) >> BUCKET_SHIFT);
        }
    }

    #[inline]
    fn comes_first(&self, other: usize, queue: usize) -> bool {
        match (self.heads[other].front(), self.heads[queue].front()) {
            (Some(a), Some(b)) => a.key() < b.key(),
            (a, _) => a.is_some(),
        }
    }

    #[cold]
    fn break_tie(&self, event: Event, queue: usize, end: u64) -> NextEvent {
        if event.time >= end {
            return NextEvent::None;
        }
        let key = (event.time, event.tag());
        if let Some(head) = self.heads.get(queue).and_then(Ring::front) {
            if head.key() < key {
                return NextEvent::Head(queue);
            }
        }
        if let Some(&(time, output)) = self.outputs.front() {
            if (time, phase::ARBITRATE << PHASE_SHIFT | output) < key {
                return NextEvent::Outputs;
            }
        }
        if let Some(&(time, host)) = self.hosts.front() {
            if (time, phase::HOST << PHASE_SHIFT | host) < key {
                return NextEvent::Hosts;
            }
        }
        NextEvent::Wheel
    }

    #[inline(always)]
    pub fn pop_head(&mut self, queue: usize) -> Head {
        let ring = &mut self.heads[queue];
        let head = ring.pop_front();
        self.head_fronts[queue] = ring.front().map_or(u64::MAX, |next| next.time);
        head
    }

    #[inline(always)]
    pub fn upcoming_head(&self, queue: usize, distance: usize) -> Option<&Head> {
        self.heads[queue].peek(distance)
    }

    /// Sets the output of a head that will be first in a queue soon; it must exist.
    #[inline(always)]
    pub fn set_upcoming_output(&mut self, queue: usize, distance: usize, output: u32) {
        self.heads[queue].peek_mut(distance).output = output;
    }

    #[inline(always)]
    pub fn upcoming_output(&self, distance: usize) -> Option<u32> {
        self.outputs.peek(distance).map(|event| event.1)
    }

    #[inline(always)]
    pub fn upcoming_in_wheel(&self, distance: usize) -> Option<&Event> {
        let opened = &self.wheel.current;
        opened.get(opened.len().checked_sub(distance + 1)?)
    }

    #[inline(always)]
    pub fn prefetch_stored(&self, slot: u32) {
        self.slab.prefetch(slot);
    }

    #[inline(always)]
    pub fn stored_packet(&self, slot: u32) -> &Packet {
        self.slab.get(slot)
    }

    #[inline(always)]
    pub fn upcoming_host(&self, distance: usize) -> Option<u32> {
        self.hosts.peek(distance).map(|event| event.1)
    }

    #[inline(always)]
    pub fn pop_host(&mut self) -> (u64, u32) {
        let event = self.hosts.pop_front();
        self.host_front = self.hosts.front().map_or(u64::MAX, |next| next.0);
        event
    }

    #[inline(always)]
    pub fn pop_output(&mut self) -> (u64, u32) {
        let event = self.outputs.pop_front();
        self.output_front = self.outputs.front().map_or(u64::MAX, |next| next.0);
        event
    }

    #[inline]
    pub fn pop_event(&mut self) -> Option<Event> {
        let event = self.wheel.current.pop();
        self.wheel.set_front();
        event
    }

    pub fn pop_like(&mut self, event: Event) -> Option<Event> {
        let next = self.wheel.current.last()?;
        let is_like = (next.time, next.tag()) == (event.time, event.tag());
        is_like.then(|| self.pop_event()).flatten()
    }

    pub fn for_each_head(&self, mut each: impl FnMut(u32, &Packet)) {
        let queues = self.heads.iter().flat_map(Ring::iter);
        for head in queues.chain(self.calendar.heads_in_flight()) {
            each(head.port, &head.packet);
        }
        self.wheel.for_each(|event| {
            if event.phase() == phase::HEAD {
                each(event.id(), self.slab.get(event.argument()));
            }
        });
    }

    /// Includes notifications that are about to be sent.
    pub fn for_each_notification(&self, mut each: impl FnMut(&Packet)) {
        let mut see = |event: &Event| {
            if event.phase() == phase::FEEDBACK {
                each(self.slab.get(event.argument() >> 1));
            }
        };
        self.wheel.for_each(&mut see);
        self.calendar.events_for_hosts().for_each(see);
    }

    pub fn for_each_head_mut(&mut self, mut each: impl FnMut(u32, &mut Packet)) {
        for head in self.heads.iter_mut().flat_map(Ring::iter_mut) {
            each(head.port, &mut head.packet);
        }
        let slab = &mut self.slab;
        self.wheel.for_each(|event| {
            if event.phase() == phase::HEAD {
                each(event.id(), slab.get_mut(event.argument()));
            }
        });
    }

    pub fn redirect_heads(&mut self, output: impl Fn(u32, &Packet) -> u32) {
        for head in self.heads.iter_mut().flat_map(Ring::iter_mut) {
            head.output = output(head.port, &head.packet);
        }
    }

    /// With windows: takes over the notifications of another queue.
    pub fn take_notifications(&mut self, other: &mut Self) {
        let open = std::mem::take(other.calendar.for_hosts());
        let mut later = Vec::new();
        other.wheel.for_each(|&event| later.push(event));
        let mut own = |event: Event| {
            let (slot, action) = (event.argument() >> 1, event.argument() & 1);
            let slot = self.slab.insert(other.slab.remove(slot));
            Event::new(event.time, event.phase(), event.id(), slot << 1 | action)
        };
        let is_one = |event: &Event| event.phase() == phase::FEEDBACK;
        let open: Vec<Event> = open.into_iter().filter(is_one).map(&mut own).collect();
        let later: Vec<Event> = later.into_iter().filter(is_one).map(own).collect();
        self.calendar.for_hosts().extend(open);
        later.into_iter().for_each(|event| self.push(event));
    }

    /// With windows: takes over the deliveries of another queue.
    pub fn take_deliveries(&mut self, other: &mut Self) {
        let mut deliveries = std::mem::take(other.calendar.deliveries());
        other.wheel.for_each(|&event| deliveries.push(event));
        for event in deliveries {
            if event.phase() == phase::DELIVERED {
                let slot = self.slab.insert(other.slab.remove(event.argument()));
                self.push(Event::new(event.time, phase::DELIVERED, event.id(), slot));
            }
        }
    }

    /// With windows: begins again at `now`, without events.
    pub fn restart(&mut self, now: u64) {
        self.wheel.restart(now);
        self.calendar.restart(now);
    }

    /// With windows and no events for hosts: moves all heads from `now` on by `by`. Note arbitrations and injections
    /// again.
    pub fn shift(&mut self, now: u64, by: u64) {
        self.wheel.restart(now + by);
        self.calendar.shift(now, by);
    }

    #[inline]
    pub fn note_output(&mut self, time: u64, output: u32) {
        if !self.calendar.add_output(time, output) {
            self.push(Event::new(time, phase::ARBITRATE, output, 0));
        }
    }

    #[inline]
    pub fn note_host(&mut self, time: u64, host: u32) {
        if !self.calendar.add_host(time, host) {
            self.push(Event::new(time, phase::HOST, host, 0));
        }
    }

    pub fn bytes(&self) -> usize {
        let heads: usize = self.heads.iter().map(|ring| ring.slots.capacity()).sum();
        let small = self.hosts.slots.capacity() + self.outputs.slots.capacity();
        heads * size_of::<Head>() + small * 16 + self.wheel.bytes() + self.calendar.bytes()
    }
}

#[cfg(test)]
mod tests;

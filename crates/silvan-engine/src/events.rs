//! The event queue: constant-delay lanes beside a timing wheel, in one total order.
//!
//! Events are ordered by (time, phase, id). The order never depends on when an event was pushed, so
//! a wake-up that is pushed early, late or twice cannot change a result.
//!
//! Packet heads travel for one of a few constant times (propagation plus switch latency). Pushed in
//! the order of the clock they arrive in the order of the clock, so a FIFO per distinct delay
//! holds them, sequential in memory. The same goes for a host's next injection and for the end of a
//! packet on a link that others wait for. Everything else goes into a timing wheel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::packet::Packet;

/// What happens at an instant, in the order in which it happens.
pub(crate) mod phase {
    /// A packet head becomes eligible at an input.
    pub const HEAD: u32 = 0;
    /// A read of an input buffer ends.
    pub const READ_END: u32 = 1;
    /// An output arbitrates: it fell free or has new credits.
    pub const ARBITRATE: u32 = 2;
    /// A packet has been taken in by its destination.
    pub const DELIVERED: u32 = 3;
    /// A notification reaches its source, or is to be sent by the destination.
    pub const FEEDBACK: u32 = 4;
    /// A credit reaches a host that watches its credits.
    pub const CREDIT: u32 = 5;
    /// The traffic changes by itself.
    pub const CHANGE: u32 = 6;
    /// A host may inject.
    pub const HOST: u32 = 7;
}

const PHASE_SHIFT: u32 = 28;

/// An event that is not a packet head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    /// When, in ps.
    pub time: u64,
    tag: u32,
    /// First argument; meaning by phase.
    pub a: u32,
    /// Second argument.
    pub b: u32,
}

impl Event {
    #[inline]
    pub fn new(time: u64, phase: u32, id: u32, a: u32, b: u32) -> Self {
        debug_assert!(id < 1 << PHASE_SHIFT);
        Self {
            time,
            tag: phase << PHASE_SHIFT | id,
            a,
            b,
        }
    }

    #[inline]
    pub fn phase(&self) -> u32 {
        self.tag >> PHASE_SHIFT
    }

    /// Port or host, by phase.
    #[inline]
    pub fn id(&self) -> u32 {
        self.tag & ((1 << PHASE_SHIFT) - 1)
    }
}

/// A packet head on its way to an input port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// When it becomes eligible, in ps.
    pub time: u64,
    /// At which input port.
    pub port: u32,
    /// Element of that port.
    pub element: u32,
    pub packet: Packet,
}

/// Where the next event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// First of this head lane.
    Lane(usize),
    /// First of the output lane.
    Outputs,
    /// First of the host lane.
    Hosts,
    /// First of the wheel.
    Wheel,
    /// Nothing before the given end.
    Nothing,
}

/// Most distinct head delays that get a lane; further ones use the wheel.
pub(crate) const MAX_LANES: usize = 6;
/// Lane number of a head delay without a lane.
pub(crate) const NO_LANE: u8 = u8::MAX;

/// A growing first-in first-out ring of events, kept in the order of (time, id).
#[derive(Debug)]
struct Ring<T> {
    /// A power of two, never empty.
    slots: Vec<T>,
    head: usize,
    len: usize,
}

/// What a ring orders by.
trait Keyed: Copy {
    fn key(&self) -> (u64, u32);
}

impl Keyed for Head {
    #[inline]
    fn key(&self) -> (u64, u32) {
        (self.time, self.port)
    }
}

impl Keyed for (u64, u32) {
    #[inline]
    fn key(&self) -> (u64, u32) {
        *self
    }
}

impl<T: Keyed> Ring<T> {
    const START: usize = 256;

    fn new(filler: T) -> Self {
        Self {
            slots: vec![filler; Self::START],
            head: 0,
            len: 0,
        }
    }

    #[inline(always)]
    fn at(&self, position: usize) -> usize {
        (self.head + position) & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn front(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.slots[self.head & (self.slots.len() - 1)])
    }

    #[inline(always)]
    fn back_time(&self) -> Option<u64> {
        (self.len > 0).then(|| self.slots[self.at(self.len - 1)].key().0)
    }

    /// Appends an event whose time is not before that of the last one.
    #[inline(always)]
    fn push(&mut self, event: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let at = self.at(self.len);
        self.slots[at] = event;
        self.len += 1;
        if self.len > 1 {
            let before = self.slots[self.at(self.len - 2)].key();
            debug_assert!(before.0 <= event.key().0, "a lane runs backwards");
            if before > event.key() {
                self.sort_in();
            }
        }
    }

    /// Moves the last event before those of the same instant with a higher id.
    #[cold]
    fn sort_in(&mut self) {
        let mut position = self.len - 1;
        while position > 0 {
            let (before, at) = (self.at(position - 1), self.at(position));
            if self.slots[before].key() <= self.slots[at].key() {
                break;
            }
            self.slots.swap(before, at);
            position -= 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let filler = self.slots[0];
        let mut slots = Vec::with_capacity(self.slots.len() * 2);
        slots.extend((0..self.len).map(|position| self.slots[self.at(position)]));
        slots.resize(self.slots.len() * 2, filler);
        self.slots = slots;
        self.head = 0;
    }

    /// Drops the first event.
    #[inline(always)]
    fn drop_front(&mut self) {
        self.head = (self.head + 1) & (self.slots.len() - 1);
        self.len -= 1;
    }

    /// The event this many places behind the first.
    #[inline(always)]
    fn ahead(&self, places: usize) -> Option<&T> {
        (places < self.len).then(|| &self.slots[self.at(places)])
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|position| &self.slots[self.at(position)])
    }
}

#[derive(Debug)]
pub(crate) struct EventQueue {
    heads: Vec<Ring<Head>>,
    outputs: Ring<(u64, u32)>,
    hosts: Ring<(u64, u32)>,
    wheel: Wheel,
    stash: Stash,
    /// Time of the first event of each head lane, `u64::MAX` if it has none; the same for the
    /// outputs and the hosts.
    lane_fronts: [u64; MAX_LANES],
    output_front: u64,
    host_front: u64,
}

impl EventQueue {
    /// A queue with this many head lanes.
    pub fn new(lanes: usize) -> Self {
        debug_assert!(lanes <= MAX_LANES);
        let filler = Head {
            time: 0,
            port: 0,
            element: 0,
            packet: Packet::default(),
        };
        Self {
            heads: (0..lanes).map(|_| Ring::new(filler)).collect(),
            outputs: Ring::new((0, 0)),
            hosts: Ring::new((0, 0)),
            wheel: Wheel::new(),
            stash: Stash::default(),
            lane_fronts: [u64::MAX; MAX_LANES],
            output_front: u64::MAX,
            host_front: u64::MAX,
        }
    }

    /// Sends a head down a lane. Times pushed to one lane must not decrease.
    #[inline(always)]
    pub fn push_head(&mut self, lane: usize, head: Head) {
        let front = &mut self.lane_fronts[lane];
        *front = (*front).min(head.time);
        self.heads[lane].push(head);
    }

    /// Sends a head at any later time.
    pub fn push_head_at(&mut self, head: Head) {
        let slot = self.stash.put(head.packet);
        self.push(Event::new(
            head.time,
            phase::HEAD,
            head.port,
            slot,
            head.element,
        ));
    }

    /// Schedules a host's next injection. Where all hosts are alike, times come in order and go
    /// through a lane; one that does not goes through the wheel.
    #[inline]
    pub fn push_host(&mut self, time: u64, host: u32) {
        if self.hosts.back_time().is_some_and(|last| last > time) {
            self.push(Event::new(time, phase::HOST, host, 0, 0));
        } else {
            self.host_front = self.host_front.min(time);
            self.hosts.push((time, host));
        }
    }

    /// Schedules an arbitration when a packet that starts now is over: in order where links are
    /// alike, as for hosts.
    #[inline]
    pub fn push_output(&mut self, time: u64, output: u32) {
        if self.outputs.back_time().is_some_and(|last| last > time) {
            self.push(Event::new(time, phase::ARBITRATE, output, 0, 0));
        } else {
            self.output_front = self.output_front.min(time);
            self.outputs.push((time, output));
        }
    }

    /// Schedules any other event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.wheel.push(event);
    }

    /// Keeps a packet for a later event.
    pub fn stash(&mut self, packet: Packet) -> u32 {
        self.stash.put(packet)
    }

    /// Takes a kept packet back.
    pub fn unstash(&mut self, slot: u32) -> Packet {
        self.stash.take(slot)
    }

    /// Finds the next event before `end`; one of the `pop_*` functions then takes it.
    #[inline(always)]
    pub fn next(&mut self, end: u64) -> Source {
        loop {
            let mut head = self.lane_fronts[0];
            let mut lane = 0;
            for other in 1..self.heads.len() {
                if self.lane_fronts[other] <= head && self.comes_first(other, lane) {
                    head = self.lane_fronts[other];
                    lane = other;
                }
            }
            // Heads come before everything else of the same instant, hosts behind.
            let small = self.output_front.min(self.host_front);
            if head < self.wheel.front && head <= small {
                return if head < end {
                    Source::Lane(lane)
                } else {
                    Source::Nothing
                };
            }
            let earliest = head.min(small);
            if self.wheel.front > earliest {
                return if earliest >= end {
                    Source::Nothing
                } else if self.output_front <= self.host_front {
                    Source::Outputs
                } else {
                    Source::Hosts
                };
            }
            // The wheel's front is only a bound while its next bucket has not been opened.
            if let Some(&event) = self.wheel.current.last() {
                return self.break_tie(event, lane, end);
            }
            if self.wheel.front >= end {
                return Source::Nothing;
            }
            self.wheel.advance(earliest.min(end) >> BUCKET_SHIFT);
        }
    }

    /// Whether the first head of lane `other` comes before that of `lane`, at the same time or
    /// earlier.
    #[inline]
    fn comes_first(&self, other: usize, lane: usize) -> bool {
        match (self.heads[other].front(), self.heads[lane].front()) {
            (Some(a), Some(b)) => a.key() < b.key(),
            (a, _) => a.is_some(),
        }
    }

    /// The wheel's first event is at least as early as those of the lanes.
    #[inline]
    fn break_tie(&self, event: Event, lane: usize, end: u64) -> Source {
        if event.time >= end {
            return Source::Nothing;
        }
        let key = (event.time, event.tag);
        if let Some(head) = self.heads.get(lane).and_then(Ring::front) {
            if head.key() < key {
                return Source::Lane(lane);
            }
        }
        if let Some(&(time, output)) = self.outputs.front() {
            if (time, phase::ARBITRATE << PHASE_SHIFT | output) < key {
                return Source::Outputs;
            }
        }
        if let Some(&(time, host)) = self.hosts.front() {
            if (time, phase::HOST << PHASE_SHIFT | host) < key {
                return Source::Hosts;
            }
        }
        Source::Wheel
    }

    /// The head that `next` found in a lane.
    #[inline(always)]
    pub fn pop_head(&mut self, lane: usize) -> Head {
        let ring = &mut self.heads[lane];
        let head = ring.slots[ring.head & (ring.slots.len() - 1)];
        ring.drop_front();
        self.lane_fronts[lane] = ring.front().map_or(u64::MAX, |next| next.time);
        head
    }

    /// A head that will come up soon in a lane.
    #[inline(always)]
    pub fn coming_head(&self, lane: usize, places: usize) -> Option<&Head> {
        self.heads[lane].ahead(places)
    }

    /// An output whose event will come up soon.
    #[inline(always)]
    pub fn coming_output(&self, places: usize) -> Option<u32> {
        self.outputs.ahead(places).map(|event| event.1)
    }

    /// An output whose arbitration will come up soon in the wheel.
    #[inline(always)]
    pub fn coming_wheel_output(&self, places: usize) -> Option<u32> {
        let opened = &self.wheel.current;
        let event = opened.get(opened.len().checked_sub(places + 1)?)?;
        (event.phase() == phase::ARBITRATE).then(|| event.id())
    }

    /// A host whose event will come up soon.
    #[inline(always)]
    pub fn coming_host(&self, places: usize) -> Option<u32> {
        self.hosts.ahead(places).map(|event| event.1)
    }

    /// The host event that `next` found.
    #[inline(always)]
    pub fn pop_host(&mut self) -> (u64, u32) {
        let event = self.hosts.slots[self.hosts.head & (self.hosts.slots.len() - 1)];
        self.hosts.drop_front();
        self.host_front = self.hosts.front().map_or(u64::MAX, |next| next.0);
        event
    }

    /// The output event that `next` found.
    #[inline(always)]
    pub fn pop_output(&mut self) -> (u64, u32) {
        let event = self.outputs.slots[self.outputs.head & (self.outputs.slots.len() - 1)];
        self.outputs.drop_front();
        self.output_front = self.outputs.front().map_or(u64::MAX, |next| next.0);
        event
    }

    /// The event that `next` found in the wheel.
    #[inline]
    pub fn pop_event(&mut self) -> Option<Event> {
        let event = self.wheel.current.pop();
        self.wheel.set_front();
        event
    }

    /// Calls `each` with every packet head that is under way, and its input port.
    pub fn for_each_head(&self, mut each: impl FnMut(u32, &Packet)) {
        for head in self.heads.iter().flat_map(Ring::iter) {
            each(head.port, &head.packet);
        }
        self.wheel.for_each(|event| {
            if event.phase() == phase::HEAD {
                each(event.id(), self.stash.get(event.a));
            }
        });
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let heads: usize = self.heads.iter().map(|ring| ring.slots.capacity()).sum();
        let small = self.hosts.slots.capacity() + self.outputs.slots.capacity();
        heads * size_of::<Head>() + small * 16 + self.wheel.bytes()
    }
}

/// Packets that wait outside a lane.
#[derive(Debug, Default)]
struct Stash {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Stash {
    fn put(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = packet;
            return slot;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    fn take(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.packets[slot as usize]
    }

    fn get(&self, slot: u32) -> &Packet {
        &self.packets[slot as usize]
    }
}

/// Width of a wheel bucket: 2^13 ps, about 8 ns.
const BUCKET_SHIFT: u32 = 13;
/// Buckets of the wheel: a horizon of 134 us. Later events wait in a heap.
const BUCKETS: u64 = 1 << 14;
const END: u32 = u32::MAX;

#[derive(Debug)]
struct Wheel {
    /// First node of each bucket.
    buckets: Vec<u32>,
    /// One bit per bucket that is not empty.
    occupied: Vec<u64>,
    nodes: Vec<(Event, u32)>,
    free: u32,
    /// Bucket number (not wrapped) up to which events stand in `current`.
    cursor: u64,
    /// Events up to and including bucket `cursor`, last first.
    current: Vec<Event>,
    /// No event is earlier: the time of the first of `current`, or where the bucket after the
    /// cursor begins if there is none; `u64::MAX` if the wheel is empty.
    front: u64,
    /// Events beyond the horizon.
    far: BinaryHeap<Reverse<Event>>,
    /// Events in buckets.
    in_buckets: usize,
}

impl Wheel {
    fn new() -> Self {
        Self {
            buckets: vec![END; BUCKETS as usize],
            occupied: vec![0; (BUCKETS / 64) as usize],
            nodes: Vec::with_capacity(4096),
            free: END,
            cursor: 0,
            current: Vec::with_capacity(64),
            front: u64::MAX,
            far: BinaryHeap::new(),
            in_buckets: 0,
        }
    }

    #[inline]
    fn push(&mut self, event: Event) {
        let bucket = event.time >> BUCKET_SHIFT;
        if bucket <= self.cursor {
            let at = self.current.partition_point(|other| *other > event);
            self.current.insert(at, event);
            self.front = self.front.min(event.time);
        } else {
            // The bucket may begin before the event, but not before the one after the cursor.
            self.front = self.front.min(bucket << BUCKET_SHIFT);
            if bucket - self.cursor < BUCKETS {
                self.push_bucket(bucket, event);
            } else {
                self.far.push(Reverse(event));
            }
        }
    }

    #[inline]
    fn set_front(&mut self) {
        self.front = match self.current.last() {
            Some(event) => event.time,
            None if self.in_buckets == 0 && self.far.is_empty() => u64::MAX,
            None => (self.cursor + 1) << BUCKET_SHIFT,
        };
    }

    #[inline]
    fn push_bucket(&mut self, bucket: u64, event: Event) {
        let slot = (bucket % BUCKETS) as usize;
        let entry = (event, self.buckets[slot]);
        let node = if self.free == END {
            self.nodes.push(entry);
            (self.nodes.len() - 1) as u32
        } else {
            let node = self.free;
            self.free = self.nodes[node as usize].1;
            self.nodes[node as usize] = entry;
            node
        };
        self.buckets[slot] = node;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.in_buckets += 1;
    }

    /// Opens the next bucket that is not empty, if it is not later than `limit`; else moves the
    /// cursor to `limit`, and no further, so that events pushed meanwhile still find their
    /// bucket. To be called when `current` is empty and some event is in the wheel.
    #[inline(never)]
    fn advance(&mut self, limit: u64) {
        let far = self.far.peek().map(|event| event.0.time >> BUCKET_SHIFT);
        let next = self.next_bucket().into_iter().chain(far).min();
        self.cursor = next.map_or(limit, |next| next.min(limit));
        self.fetch_far();
        if next == Some(self.cursor) {
            let slot = (self.cursor % BUCKETS) as usize;
            let mut node = std::mem::replace(&mut self.buckets[slot], END);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            while node != END {
                let (event, following) = self.nodes[node as usize];
                self.nodes[node as usize].1 = self.free;
                self.free = node;
                self.current.push(event);
                self.in_buckets -= 1;
                node = following;
            }
            if self.current.len() > 1 {
                self.current.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        self.set_front();
    }

    /// Moves events that the horizon has reached into their buckets.
    fn fetch_far(&mut self) {
        while let Some(Reverse(event)) = self.far.peek() {
            let bucket = event.time >> BUCKET_SHIFT;
            if bucket >= self.cursor + BUCKETS {
                break;
            }
            let event = *event;
            self.far.pop();
            if bucket <= self.cursor {
                self.current.push(event);
            } else {
                self.push_bucket(bucket, event);
            }
        }
    }

    /// Number of the first bucket after the cursor that is not empty.
    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        if self.in_buckets == 0 {
            return None;
        }
        let start = ((self.cursor + 1) % BUCKETS) as usize;
        let words = self.occupied.len();
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (start % 64));
        for _ in 0..=words {
            if bits != 0 {
                let slot = (word * 64) as u64 + u64::from(bits.trailing_zeros());
                let distance = (slot + BUCKETS - start as u64) % BUCKETS;
                return Some(self.cursor + 1 + distance);
            }
            word = (word + 1) % words;
            bits = self.occupied[word];
        }
        None
    }

    fn for_each(&self, mut each: impl FnMut(&Event)) {
        self.current.iter().for_each(&mut each);
        self.far.iter().for_each(|event| each(&event.0));
        for &first in &self.buckets {
            let mut node = first;
            while node != END {
                each(&self.nodes[node as usize].0);
                node = self.nodes[node as usize].1;
            }
        }
    }

    fn bytes(&self) -> usize {
        self.buckets.capacity() * 4
            + self.nodes.capacity() * size_of::<(Event, u32)>()
            + (self.current.capacity() + self.far.capacity()) * size_of::<Event>()
    }
}

#[cfg(test)]
mod tests;

//! The event queue: constant-delay lanes beside a timing wheel, in one total order.
//!
//! Events are ordered by (time, phase, id). The order never depends on when an event was pushed, so
//! a wake-up that is pushed early, late or twice cannot change a result.
//!
//! Packet heads travel for one of a few constant times (propagation plus switch latency). Pushed in
//! the order of the clock they arrive in the order of the clock, so a FIFO per distinct delay
//! holds them, sequential in memory. The same goes for a host's next injection. Everything else
//! goes into a timing wheel.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
struct Head {
    time: u64,
    port: u32,
    packet: Packet,
}

/// The next thing to do.
pub(crate) enum Next {
    /// A head becomes eligible at this input port.
    Head {
        time: u64,
        port: u32,
        packet: Packet,
    },
    /// Anything else.
    Event(Event),
    /// Nothing before the given end.
    Nothing,
}

/// Most distinct head delays that get a lane; further ones use the wheel.
pub(crate) const MAX_LANES: usize = 6;
/// Lane number of a head delay without a lane.
pub(crate) const NO_LANE: u8 = u8::MAX;

#[derive(Debug)]
pub(crate) struct EventQueue {
    heads: Vec<VecDeque<Head>>,
    hosts: VecDeque<(u64, u32)>,
    /// Time of the first entry of each head lane, then of the host lane.
    fronts: [u64; MAX_LANES + 1],
    lanes: usize,
    wheel: Wheel,
    stash: Stash,
}

impl EventQueue {
    /// A queue with this many head lanes.
    pub fn new(lanes: usize) -> Self {
        debug_assert!(lanes <= MAX_LANES);
        Self {
            heads: (0..lanes).map(|_| VecDeque::with_capacity(1024)).collect(),
            hosts: VecDeque::with_capacity(1024),
            fronts: [u64::MAX; MAX_LANES + 1],
            lanes,
            wheel: Wheel::new(),
            stash: Stash::default(),
        }
    }

    /// Sends a head down a lane. Times pushed to one lane must not decrease.
    #[inline]
    pub fn push_head(&mut self, lane: usize, time: u64, port: u32, packet: Packet) {
        let queue = &mut self.heads[lane];
        queue.push_back(Head { time, port, packet });
        // Heads of the same instant stand in the order of their ports.
        let mut at = queue.len() - 1;
        while at > 0 && queue[at - 1].time == time && queue[at - 1].port > port {
            queue.swap(at - 1, at);
            at -= 1;
        }
        debug_assert!(at == 0 || queue[at - 1].time <= time);
        if at == 0 {
            self.fronts[lane] = time;
        }
    }

    /// Sends a head at any later time.
    pub fn push_head_at(&mut self, time: u64, port: u32, packet: Packet) {
        let slot = self.stash.put(packet);
        self.push(Event::new(time, phase::HEAD, port, slot, 0));
    }

    /// Schedules a host's next injection. Where all hosts are alike, times come in order and go
    /// through a lane; one that does not goes through the wheel.
    #[inline]
    pub fn push_host(&mut self, time: u64, host: u32) {
        if self.hosts.back().is_some_and(|last| last.0 > time) {
            self.push(Event::new(time, phase::HOST, host, 0, 0));
            return;
        }
        self.hosts.push_back((time, host));
        let mut at = self.hosts.len() - 1;
        while at > 0 && self.hosts[at - 1].0 == time && self.hosts[at - 1].1 > host {
            self.hosts.swap(at - 1, at);
            at -= 1;
        }
        if at == 0 {
            self.fronts[MAX_LANES] = time;
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

    /// Takes the next event before `end`.
    #[inline]
    pub fn pop(&mut self, end: u64) -> Next {
        let mut best = self.fronts[MAX_LANES];
        let mut lane = MAX_LANES;
        for (index, &front) in self.fronts[..self.lanes].iter().enumerate() {
            // Heads come before hosts of the same instant; between two lanes the port decides.
            if front < best
                || (front == best
                    && front != u64::MAX
                    && (lane == MAX_LANES || self.heads[index][0].port < self.heads[lane][0].port))
            {
                best = front;
                lane = index;
            }
        }
        if let Some(event) = self.wheel.peek(best.min(end)) {
            let wins = event.time < best
                || (event.time == best && {
                    let tag = if lane == MAX_LANES {
                        phase::HOST << PHASE_SHIFT | self.hosts[0].1
                    } else {
                        self.heads[lane][0].port
                    };
                    event.tag < tag
                });
            if wins {
                if event.time >= end {
                    return Next::Nothing;
                }
                self.wheel.pop();
                if event.phase() == phase::HEAD {
                    let packet = self.stash.take(event.a);
                    return Next::Head {
                        time: event.time,
                        port: event.id(),
                        packet,
                    };
                }
                return Next::Event(event);
            }
        }
        if best >= end {
            return Next::Nothing;
        }
        if lane == MAX_LANES {
            return self.pop_host();
        }
        let queue = &mut self.heads[lane];
        let Some(head) = queue.pop_front() else {
            return Next::Nothing;
        };
        self.fronts[lane] = queue.front().map_or(u64::MAX, |next| next.time);
        Next::Head {
            time: head.time,
            port: head.port,
            packet: head.packet,
        }
    }

    #[inline]
    fn pop_host(&mut self) -> Next {
        let Some((time, host)) = self.hosts.pop_front() else {
            return Next::Nothing;
        };
        self.fronts[MAX_LANES] = self.hosts.front().map_or(u64::MAX, |next| next.0);
        Next::Event(Event::new(time, phase::HOST, host, 0, 0))
    }

    /// Calls `each` with every packet head that is under way, and its input port.
    pub fn for_each_head(&self, mut each: impl FnMut(u32, &Packet)) {
        for head in self.heads.iter().flatten() {
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
        let heads: usize = self.heads.iter().map(VecDeque::capacity).sum();
        heads * size_of::<Head>() + self.hosts.capacity() * 16 + self.wheel.bytes()
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
        } else if bucket - self.cursor < BUCKETS {
            self.push_bucket(bucket, event);
        } else {
            self.far.push(Reverse(event));
        }
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

    /// The first event, if it is not later than the bucket of `limit`. The cursor never runs ahead
    /// of `limit`, so that events pushed meanwhile still find their bucket.
    #[inline]
    fn peek(&mut self, limit: u64) -> Option<Event> {
        if let Some(event) = self.current.last() {
            return Some(*event);
        }
        self.advance(limit >> BUCKET_SHIFT)
    }

    #[inline]
    fn pop(&mut self) {
        self.current.pop();
    }

    fn advance(&mut self, limit: u64) -> Option<Event> {
        if limit <= self.cursor {
            return None;
        }
        let far = self.far.peek().map(|event| event.0.time >> BUCKET_SHIFT);
        let Some(next) = self.next_bucket().into_iter().chain(far).min() else {
            if limit != u64::MAX >> BUCKET_SHIFT {
                self.cursor = limit;
            }
            return None;
        };
        if next > limit {
            self.cursor = limit;
            self.fetch_far();
            return None;
        }
        self.cursor = next;
        self.fetch_far();
        let slot = (next % BUCKETS) as usize;
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
        self.current.last().copied()
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

//! A timing wheel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Event;

/// Width of a wheel bucket: 2^13 ps, about 8 ns.
pub(super) const BUCKET_SHIFT: u32 = 13;
/// Buckets of the wheel: a horizon of 134 us. Later events wait in a heap.
const BUCKETS: u64 = 1 << 14;
const END: u32 = u32::MAX;

/// Events in buckets of a few nanoseconds, and those far ahead in a heap.
#[derive(Debug)]
pub(super) struct Wheel {
    /// First node of each bucket.
    buckets: crate::table::Table<u32>,
    /// One bit per bucket that is not empty.
    occupied: crate::table::Table<u64>,
    nodes: crate::table::Table<(Event, u32)>,
    free: u32,
    /// Bucket number (not wrapped) up to which events stand in `current`.
    cursor: u64,
    /// Events up to and including bucket `cursor`, last first.
    pub(super) current: Vec<Event>,
    /// No event is earlier: the time of the first of `current`, or where the bucket after the
    /// cursor begins if there is none; `u64::MAX` if the wheel is empty.
    pub(super) front: u64,
    /// Events beyond the horizon.
    far: BinaryHeap<Reverse<Event>>,
    /// Events in buckets.
    in_buckets: usize,
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            buckets: vec![END; BUCKETS as usize].into(),
            occupied: vec![0; (BUCKETS / 64) as usize].into(),
            nodes: Vec::with_capacity(4096).into(),
            free: END,
            cursor: 0,
            current: Vec::with_capacity(64),
            front: u64::MAX,
            far: BinaryHeap::new(),
            in_buckets: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
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
    pub(super) fn set_front(&mut self) {
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
    pub(super) fn advance(&mut self, limit: u64) {
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

    pub(super) fn for_each(&self, mut each: impl FnMut(&Event)) {
        self.current.iter().for_each(&mut each);
        self.far.iter().for_each(|event| each(&event.0));
        for &first in self.buckets.iter() {
            let mut node = first;
            while node != END {
                each(&self.nodes[node as usize].0);
                node = self.nodes[node as usize].1;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.capacity() * 4
            + self.nodes.capacity() * size_of::<(Event, u32)>()
            + (self.current.capacity() + self.far.capacity()) * size_of::<Event>()
    }
}

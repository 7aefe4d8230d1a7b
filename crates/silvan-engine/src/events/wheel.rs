use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Event;
use crate::table::Table;

pub(super) const BUCKET_SHIFT: u32 = 14;
const BUCKETS: u64 = 1 << 13;
const FULL: u32 = 15;
const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Chunk {
    events: [Event; FULL as usize],
    next: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// The chunk that is being filled, and in the low four bits its number of events.
    buckets: Table<u32>,
    occupied: Table<u64>,
    chunks: Table<Chunk>,
    free: u32,
    /// Bucket number (not wrapped) up to which events are in `current`.
    cursor: u64,
    pub(super) current: Vec<Event>,
    /// Lower bound of all event times: the first of `current`, or the start of the bucket after the cursor; `u64::MAX`
    /// if the wheel is empty.
    pub(super) front: u64,
    far: BinaryHeap<Reverse<Event>>,
    in_buckets: usize,
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            buckets: vec![END; BUCKETS as usize].into(),
            occupied: vec![0; (BUCKETS / 64) as usize].into(),
            chunks: Vec::with_capacity(256).into(),
            free: END,
            cursor: 0,
            current: Vec::with_capacity(64),
            front: u64::MAX,
            far: BinaryHeap::new(),
            in_buckets: 0,
        }
    }

    pub(super) fn restart(&mut self, now: u64) {
        if self.in_buckets > 0 {
            self.buckets.fill(END);
            self.occupied.fill(0);
        }
        self.chunks.clear();
        self.free = END;
        self.current.clear();
        self.far.clear();
        self.in_buckets = 0;
        self.cursor = now >> BUCKET_SHIFT;
        self.front = u64::MAX;
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        let bucket = event.time >> BUCKET_SHIFT;
        if bucket <= self.cursor {
            let at = self.current.partition_point(|other| *other > event);
            self.current.insert(at, event);
            self.front = self.front.min(event.time);
        } else {
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
        let mut filling = self.buckets[slot];
        if filling % 16 == FULL {
            filling = self.open_chunk(slot, filling);
        }
        let place = (filling % 16) as usize;
        self.chunks[(filling / 16) as usize].events[place] = event;
        self.buckets[slot] = filling + 1;
        self.in_buckets += 1;
    }

    fn open_chunk(&mut self, slot: usize, next: u32) -> u32 {
        self.occupied[slot / 64] |= 1 << (slot % 64);
        let chunk = self.free;
        if chunk == END {
            let events = [Event::new(0, 0, 0, 0); FULL as usize];
            self.chunks.push(Chunk { events, next });
            return (self.chunks.len() as u32 - 1) * 16;
        }
        self.free = std::mem::replace(&mut self.chunks[chunk as usize].next, next);
        chunk * 16
    }

    /// Opens the next non-empty bucket up to `limit`, or moves the cursor to `limit`, so that later events find their
    /// bucket. `current` must be empty, the wheel not.
    #[inline(never)]
    pub(super) fn advance(&mut self, limit: u64) {
        let far = self.far.peek().map(|event| event.0.time >> BUCKET_SHIFT);
        let next = self.next_bucket().into_iter().chain(far).min();
        self.cursor = next.map_or(limit, |next| next.min(limit));
        self.fetch_overflow();
        if next == Some(self.cursor) {
            let slot = (self.cursor % BUCKETS) as usize;
            let mut filled = std::mem::replace(&mut self.buckets[slot], END);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            while filled != END {
                let (index, count) = (filled / 16, (filled % 16) as usize);
                let chunk = &mut self.chunks[index as usize];
                self.current.extend_from_slice(&chunk.events[..count]);
                self.in_buckets -= count;
                filled = std::mem::replace(&mut chunk.next, self.free);
                self.free = index;
            }
            if self.current.len() > 1 {
                self.current.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        self.set_front();
    }

    fn fetch_overflow(&mut self) {
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
        if self.in_buckets == 0 {
            return;
        }
        let occupied = self.occupied.iter().enumerate();
        let occupied = occupied.flat_map(|(word, &bits)| {
            let slots = (0..64).filter(move |slot| bits >> slot & 1 == 1);
            slots.map(move |slot| word * 64 + slot)
        });
        for slot in occupied {
            let mut filled = self.buckets[slot];
            while filled != END {
                let chunk = &self.chunks[(filled / 16) as usize];
                let count = (filled % 16) as usize;
                chunk.events[..count].iter().for_each(&mut each);
                filled = chunk.next;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.capacity() * 4
            + self.chunks.capacity() * size_of::<Chunk>()
            + (self.current.capacity() + self.far.capacity()) * size_of::<Event>()
    }
}

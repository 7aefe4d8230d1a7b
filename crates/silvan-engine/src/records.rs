use std::collections::VecDeque;

use crate::packet::NONE;
use crate::variant::EngineVariant;
use silvan_core::prefetch::prefetch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nowhere,
    Input,
    Host,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct OutPort {
    pub free_at: u64,
    /// Time of the scheduled arbitration, `u64::MAX` for none. An event at another time is stale.
    pub wake_at: u64,
    pub xmit_bytes: u64,
    pub xmit_packets: u64,
    /// Start of the port's idle time with waiting packets, possibly in the future; `u64::MAX` if it is not idle.
    pub wait_since: u64,
    pub wait_total: u64,
    pub next: u32,
    pub next_element: u32,
    pub waiting: u32,
    pub rate: u8,
    pub head_queue: u8,
    pub kind: Next,
    pub marks: bool,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct OutLane {
    pub inputs: [u64; 4],
    pub queued_bytes: u32,
    pub queues: u32,
    pub base: u32,
    pub words: u8,
}

const SLOTS: usize = 6;

/// The credits of a lane, in hand and in flight: posted with their arrival, collected on demand, without events. An
/// entry has the time in ps (low 56 bits, 20 hours) and blocks (8 bits); see [`COLLECTED_EVERY`] and [`FARTHEST`].
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Credits {
    pub in_hand: i32,
    /// Index into `Overflow` of later entries that do not fit into `slots`; `NONE` if all fit.
    overflow: u32,
    first: u8,
    end: u8,
    /// The sender waits for credits: wake it if some arrive sooner than expected. Cleared when it sends.
    pub starved: bool,
    /// Round-robin pointer, the local input that is served first; here, because each packet reads this record.
    pub pointer: u8,
    slots: [u64; SLOTS],
}

impl OutLane {
    #[inline]
    pub fn pick<F: EngineVariant>(&self, pointer: u8, blocked: Option<&[u64; 4]>) -> Option<u32> {
        let words = usize::from(self.words);
        let word = |index: usize| {
            let bits = self.inputs[index];
            blocked.map_or(bits, |blocked| bits & !blocked[index])
        };
        let pointer = usize::from(pointer);
        if F::PLAIN || words == 1 {
            let bits = word(0);
            if bits == 0 {
                return None;
            }
            let after = bits & (u64::MAX << (pointer % 64));
            let chosen = if after != 0 { after } else { bits };
            return Some(chosen.trailing_zeros());
        }
        let first = pointer / 64;
        for step in 0..=words {
            let index = (first + step) % words;
            let mut bits = word(index);
            if step == 0 {
                bits &= u64::MAX << (pointer % 64);
            }
            if bits != 0 {
                return Some(index as u32 * 64 + bits.trailing_zeros());
            }
        }
        None
    }

    #[inline]
    pub fn has_input(&self, input: u32) -> bool {
        self.inputs[word_of(input)] >> (input % 64) & 1 == 1
    }

    #[inline]
    pub fn set_input(&mut self, input: u32) {
        self.inputs[word_of(input)] |= 1 << (input % 64);
    }

    #[inline]
    pub fn clear_input(&mut self, input: u32) {
        self.inputs[word_of(input)] &= !(1 << (input % 64));
    }
}

#[inline]
fn word_of(input: u32) -> usize {
    (input / 64) as usize & 3
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Switch,
    Host,
    Remote,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct InPort {
    pub upstream: u32,
    pub element: u32,
    pub credit_delay: u16,
    pub local: u8,
    pub sender: Sender,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    pub base: u32,
    pub ports: u32,
    /// `NONE` for an output-buffer stage or a host.
    pub table: u32,
    /// True if ports differ in speed, so that a packet may wait for its tail.
    pub mixed: bool,
}

const BLOCK_BITS: u32 = 8;
const BLOCK_MASK: u64 = (1 << BLOCK_BITS) - 1;

/// Largest time ahead at which credits are posted: 2^54 ps, about 5 hours.
pub(crate) const FARTHEST: u64 = 1 << (62 - BLOCK_BITS);

/// Longest time between collections of arrived credits: 2^54 ps, about 5 hours.
pub(crate) const COLLECTED_EVERY: u64 = 1 << (62 - BLOCK_BITS);

#[inline(always)]
fn is_after(entry: u64, other: u64) -> bool {
    (entry.wrapping_sub(other) as i64) > 0
}

#[inline(always)]
fn last_of(now: u64) -> u64 {
    now << BLOCK_BITS | BLOCK_MASK
}

/// In ps, as seen from `now`.
#[inline(always)]
fn due(entry: u64, now: u64) -> u64 {
    let ahead = (entry & !BLOCK_MASK).wrapping_sub(now << BLOCK_BITS);
    now.wrapping_add_signed(ahead as i64 >> BLOCK_BITS)
}

/// Credits in flight that do not fit into their lane's slots: many small packets in a large buffer, or a slow sink.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overflow {
    queues: Vec<VecDeque<u64>>,
    free: Vec<u32>,
}

impl Credits {
    /// `capacity` is in blocks.
    pub fn new(capacity: i32) -> Self {
        Self {
            in_hand: capacity,
            overflow: NONE,
            first: 0,
            end: 0,
            starved: false,
            pointer: 0,
            slots: [0; SLOTS],
        }
    }

    #[inline(always)]
    fn ring_entries(&self) -> &[u64] {
        &self.slots[usize::from(self.first)..usize::from(self.end)]
    }

    #[inline(always)]
    pub fn collect_arrived(&mut self, overflow: &mut Overflow, now: u64) {
        // All entries of an instant are below the first of the next.
        let last = last_of(now);
        let (mut arrived, mut blocks) = (0, 0);
        for &entry in self.ring_entries() {
            if is_after(entry, last) {
                break;
            }
            blocks += (entry & BLOCK_MASK) as i32;
            arrived += 1;
        }
        if arrived == 0 {
            return;
        }
        self.in_hand += blocks;
        self.first += arrived;
        if self.first == self.end {
            (self.first, self.end) = (0, 0);
            if self.overflow != NONE {
                self.refill(overflow, now);
            }
        }
    }

    #[inline(always)]
    pub fn has(&mut self, overflow: &mut Overflow, now: u64, blocks: i32) -> bool {
        if self.in_hand < blocks {
            self.collect_arrived(overflow, now);
        }
        self.in_hand >= blocks
    }

    #[inline(always)]
    pub fn post(&mut self, overflow: &mut Overflow, now: u64, due: u64, blocks: i32) {
        debug_assert!(due.saturating_sub(now) < 2 * FARTHEST, "too far ahead");
        let entry = due << BLOCK_BITS | blocks as u64;
        let has_slot = usize::from(self.end) < SLOTS && self.overflow == NONE;
        if !has_slot && !self.free_slot(overflow, now) {
            self.post_overflow(overflow, entry);
            return;
        }
        let at = usize::from(self.end);
        self.slots[at] = entry;
        self.end += 1;
        if self.end - self.first > 1 && is_after(self.slots[at - 1], entry) {
            self.insert_sorted();
        }
    }

    fn compact(&mut self) {
        let (first, end) = (self.first, self.end);
        self.slots
            .copy_within(usize::from(first)..usize::from(end), 0);
        (self.first, self.end) = (0, end - first);
    }

    #[inline(never)]
    fn free_slot(&mut self, overflow: &mut Overflow, now: u64) -> bool {
        if self.overflow != NONE {
            return false;
        }
        // A sender with many credits has not collected for long.
        if self.first == 0 && !is_after(self.slots[SLOTS - 1], last_of(now)) {
            let blocks: u64 = self.slots.iter().map(|entry| entry & BLOCK_MASK).sum();
            self.in_hand += blocks as i32;
            self.end = 0;
            return true;
        }
        self.collect_arrived(overflow, now);
        self.compact();
        usize::from(self.end) < SLOTS
    }

    /// Reads of different length can end out of order.
    #[cold]
    fn insert_sorted(&mut self) {
        let ring_entries = &mut self.slots[usize::from(self.first)..usize::from(self.end)];
        let mut position = ring_entries.len() - 1;
        while position > 0 && is_after(ring_entries[position - 1], ring_entries[position]) {
            ring_entries.swap(position - 1, position);
            position -= 1;
        }
    }

    fn post_overflow(&mut self, overflow: &mut Overflow, entry: u64) {
        let mut latest = entry;
        let ring_entries = &mut self.slots[usize::from(self.first)..usize::from(self.end)];
        if let Some(last) = ring_entries
            .last_mut()
            .filter(|last| is_after(**last, entry))
        {
            latest = std::mem::replace(last, entry);
            self.insert_sorted();
        }
        if self.overflow == NONE {
            self.overflow = overflow.free.pop().unwrap_or_else(|| {
                overflow.queues.push(VecDeque::new());
                (overflow.queues.len() - 1) as u32
            });
        }
        let queue = &mut overflow.queues[self.overflow as usize];
        if queue.back().is_none_or(|&last| !is_after(last, latest)) {
            queue.push_back(latest);
        } else {
            let at = queue.partition_point(|&other| !is_after(other, latest));
            queue.insert(at, latest);
        }
    }

    #[inline(never)]
    fn refill(&mut self, overflow: &mut Overflow, now: u64) {
        let queue = &mut overflow.queues[self.overflow as usize];
        let count = queue.len().min(SLOTS);
        for (slot, entry) in self.slots.iter_mut().zip(queue.drain(..count)) {
            *slot = entry;
        }
        self.end = count as u8;
        if queue.is_empty() {
            overflow.free.push(self.overflow);
            self.overflow = NONE;
        }
        self.collect_arrived(overflow, now);
    }

    #[inline(always)]
    pub fn prefetch_overflow(&self, overflow: &Overflow) {
        prefetch(&overflow.queues, self.overflow as usize);
    }

    fn in_flight<'a>(&'a self, overflow: &'a Overflow) -> impl Iterator<Item = u64> + 'a {
        let overflowed = overflow
            .queues
            .get(self.overflow as usize)
            .into_iter()
            .flatten();
        self.ring_entries().iter().chain(overflowed).copied()
    }

    /// Time of `blocks` credits, as seen from `now`; `None` if credits in flight do not suffice.
    pub fn when(&self, overflow: &Overflow, now: u64, blocks: i32) -> Option<u64> {
        let mut credits = self.in_hand;
        for &entry in self.ring_entries() {
            credits += (entry & BLOCK_MASK) as i32;
            if credits >= blocks {
                return Some(due(entry, now));
            }
        }
        let overflowed = overflow.queues.get(self.overflow as usize)?;
        let suffices = overflowed.iter().find(|&entry| {
            credits += (entry & BLOCK_MASK) as i32;
            credits >= blocks
        });
        suffices.map(|&entry| due(entry, now))
    }

    pub fn split_at<'a>(
        &'a self,
        overflow: &'a Overflow,
        now: u64,
    ) -> (i32, impl Iterator<Item = (u64, u64)> + 'a) {
        let last = last_of(now - 1);
        let arrived = self
            .in_flight(overflow)
            .take_while(move |&entry| !is_after(entry, last));
        let (blocks, count) = arrived.fold((0, 0), |(blocks, count), entry| {
            (blocks + (entry & BLOCK_MASK) as i32, count + 1)
        });
        let coming = self.in_flight(overflow).skip(count);
        (
            self.in_hand + blocks,
            coming.map(move |entry| (due(entry, now), entry & BLOCK_MASK)),
        )
    }

    /// Replaces the credits in hand and on their way.
    pub fn restore(
        &mut self,
        overflow: &mut Overflow,
        in_hand: i32,
        coming: impl Iterator<Item = (u64, u64)>,
    ) {
        if self.overflow != NONE {
            overflow.queues[self.overflow as usize].clear();
            overflow.free.push(self.overflow);
            self.overflow = NONE;
        }
        self.in_hand = in_hand;
        (self.first, self.end) = (0, 0);
        for (due, blocks) in coming {
            // None is collected.
            self.post(overflow, due.saturating_sub(FARTHEST), due, blocks as i32);
        }
    }

    pub fn shift(&mut self, overflow: &mut Overflow, by: u64) {
        let overflowed = overflow.queues.get_mut(self.overflow as usize);
        let slots = &mut self.slots[usize::from(self.first)..usize::from(self.end)];
        for entry in slots.iter_mut().chain(overflowed.into_iter().flatten()) {
            *entry = entry.wrapping_add(by << BLOCK_BITS);
        }
    }

    #[inline]
    pub fn at(&self, overflow: &Overflow, now: u64) -> i32 {
        let last = last_of(now);
        let mut credits = self.in_hand;
        for &entry in self.ring_entries() {
            if is_after(entry, last) {
                return credits;
            }
            credits += (entry & BLOCK_MASK) as i32;
        }
        let overflowed = overflow.queues.get(self.overflow as usize);
        let arrived = overflowed.into_iter().flatten();
        let arrived = arrived.take_while(|&&entry| !is_after(entry, last));
        credits
            + arrived
                .map(|entry| (entry & BLOCK_MASK) as i32)
                .sum::<i32>()
    }

    pub fn pending(&self, overflow: &Overflow) -> i32 {
        self.in_flight(overflow)
            .map(|entry| (entry & BLOCK_MASK) as i32)
            .sum()
    }
}

impl Overflow {
    pub fn bytes(&self) -> usize {
        self.queues.iter().map(|queue| queue.capacity() * 8).sum()
    }
}

impl OutPort {
    pub fn unconnected() -> Self {
        Self {
            free_at: 0,
            wake_at: u64::MAX,
            xmit_bytes: 0,
            xmit_packets: 0,
            wait_since: u64::MAX,
            wait_total: 0,
            next: NONE,
            next_element: NONE,
            waiting: 0,
            rate: 0,
            head_queue: 0,
            kind: Next::Nowhere,
            marks: false,
        }
    }
}

use super::Head;
use crate::table::Table;

#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    /// A power of two, never empty.
    pub(super) slots: Table<T>,
    head: usize,
    len: usize,
    /// The latest event ever appended: no later event has left.
    last: (u64, u32),
}

pub(super) trait Keyed: Copy {
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

    pub(super) fn new(filler: T) -> Self {
        Self {
            slots: vec![filler; Self::START].into(),
            head: 0,
            len: 0,
            last: (0, 0),
        }
    }

    #[inline(always)]
    fn at(&self, position: usize) -> usize {
        (self.head + position) & (self.slots.len() - 1)
    }

    #[inline(always)]
    pub(super) fn front(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.slots[self.head & (self.slots.len() - 1)])
    }

    /// Returns true if an event at `time` may be appended: no event behind it is later.
    #[inline(always)]
    pub(super) fn accepts(&self, time: u64) -> bool {
        self.last.0 <= time
    }

    #[inline(always)]
    pub(super) fn push(&mut self, event: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let at = self.at(self.len);
        self.slots[at] = event;
        self.len += 1;
        let key = event.key();
        debug_assert!(self.last.0 <= key.0, "a lane runs backwards");
        if self.last.0 < key.0 || self.last <= key {
            self.last = key;
        } else {
            self.insert_sorted();
        }
    }

    #[cold]
    fn insert_sorted(&mut self) {
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
        self.slots = slots.into();
        self.head = 0;
    }

    #[inline(always)]
    pub(super) fn pop_front(&mut self) -> T {
        let event = self.slots[self.head & (self.slots.len() - 1)];
        self.head = (self.head + 1) & (self.slots.len() - 1);
        self.len -= 1;
        event
    }

    #[inline(always)]
    pub(super) fn peek(&self, distance: usize) -> Option<&T> {
        (distance < self.len).then(|| &self.slots[self.at(distance)])
    }

    /// The element must exist, and its sort key must not change.
    #[inline(always)]
    pub(super) fn peek_mut(&mut self, distance: usize) -> &mut T {
        debug_assert!(distance < self.len, "no event at this distance");
        let at = self.at(distance);
        &mut self.slots[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|position| &self.slots[self.at(position)])
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let (wrapped, first) = self.slots.split_at_mut(self.head);
        first.iter_mut().chain(wrapped).take(self.len)
    }
}

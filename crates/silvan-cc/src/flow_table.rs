//! A map from flow keys to state, by linear probing; the order of slots depends only on keys and operations.

use silvan_core::prefetch::prefetch_item;

use crate::hooks::Flow;

const FREE: u32 = u32::MAX;

/// 2^32 divided by the golden ratio: spreads consecutive keys over the table.
const SPREAD: u32 = 0x9e37_79b1;

const FIRST_CAPACITY: usize = 8;

/// Key of a flow among the others of its host.
#[inline]
pub fn key(flow: Flow) -> u32 {
    (flow.destination.index() as u32) << 4 | flow.sl.index() as u32
}

#[derive(Clone, Copy, Debug)]
struct Slot<V> {
    key: u32,
    value: V,
}

/// The map. Keys are any `u32` but the largest.
#[derive(Clone, Debug)]
pub struct FlowTable<V> {
    /// Empty or a power of two.
    slots: Box<[Slot<V>]>,
    len: u32,
    shift: u32,
}

impl<V: Copy + Default> Default for FlowTable<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Copy + Default> FlowTable<V> {
    /// A table without memory of its own.
    pub fn new() -> Self {
        Self {
            slots: Box::new([]),
            len: 0,
            shift: 32,
        }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns true if there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&V> {
        self.position(key).map(|at| &self.slots[at].value)
    }

    /// The value of a key, to change it.
    #[inline]
    pub fn get_mut(&mut self, key: u32) -> Option<&mut V> {
        self.position(key).map(|at| &mut self.slots[at].value)
    }

    /// Prefetches the slot of a key.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        if !self.is_empty() {
            prefetch_item(&self.slots[self.home(key)]);
        }
    }

    /// Adds a new key; returns true if entries that `keep` refuses were dropped, because the table was nearly full.
    pub fn insert(&mut self, key: u32, value: V, keep: impl FnMut(u32, &mut V) -> bool) -> bool {
        debug_assert!(key != FREE && self.position(key).is_none());
        let swept = (self.len() + 1) * 4 > self.slots.len() * 3;
        if swept {
            self.retain(keep);
            if (self.len() + 1) * 2 > self.slots.len() {
                self.grow();
            }
        }
        self.place(Slot { key, value });
        self.len += 1;
        swept
    }

    /// Removes a key; returns whether it was there.
    pub fn remove(&mut self, key: u32) -> bool {
        let Some(at) = self.position(key) else {
            return false;
        };
        self.free(at);
        true
    }

    /// Calls `keep` once for every entry and drops those for which it returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(u32, &mut V) -> bool) {
        // A freed slot pulls later entries of its cluster back, so the walk starts behind a free slot, where no cluster
        // wraps round.
        let Some(start) = self.slots.iter().position(|slot| slot.key == FREE) else {
            return;
        };
        let mask = self.slots.len() - 1;
        let mut step = 1;
        while step <= mask {
            let at = (start + step) & mask;
            let slot = &mut self.slots[at];
            if slot.key == FREE || keep(slot.key, &mut slot.value) {
                step += 1;
            } else {
                self.free(at);
            }
        }
    }

    /// All entries, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        self.slots
            .iter()
            .filter(|slot| slot.key != FREE)
            .map(|slot| (slot.key, &slot.value))
    }

    #[inline]
    fn home(&self, key: u32) -> usize {
        (key.wrapping_mul(SPREAD) >> self.shift) as usize
    }

    #[inline]
    fn position(&self, key: u32) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = self.home(key);
        loop {
            let found = self.slots[at].key;
            if found == key {
                return Some(at);
            }
            if found == FREE {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    fn place(&mut self, slot: Slot<V>) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(slot.key);
        while self.slots[at].key != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    fn free(&mut self, at: usize) {
        let mask = self.slots.len() - 1;
        let mut hole = at;
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let key = self.slots[next].key;
            if key == FREE {
                break;
            }
            let from_home = next.wrapping_sub(self.home(key)) & mask;
            let from_hole = next.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.slots[hole] = self.slots[next];
                hole = next;
            }
        }
        self.slots[hole].key = FREE;
        self.len -= 1;
    }

    fn grow(&mut self) {
        let capacity = (self.slots.len() * 2).max(FIRST_CAPACITY);
        let free = Slot {
            key: FREE,
            value: V::default(),
        };
        let old = std::mem::replace(&mut self.slots, vec![free; capacity].into());
        self.shift = 32 - capacity.trailing_zeros();
        for slot in old {
            if slot.key != FREE {
                self.place(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u32, u16),
        Remove(u32),
        DropBelow(u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Few keys, and keys that differ by multiples of the table size, so that clusters form,
        // wrap round the end and are torn apart again.
        let key = prop_oneof![0u32..24, (0u32..24).prop_map(|k| k * 0x1000), 0u32..4096];
        prop_oneof![
            6 => (key.clone(), any::<u16>()).prop_map(|(key, value)| Step::Put(key, value)),
            4 => key.prop_map(Step::Remove),
            1 => any::<u16>().prop_map(Step::DropBelow),
        ]
    }

    proptest! {
        /// Oracle: `BTreeMap` under the same operations.
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec(step(), 0..400)) {
            let mut table = FlowTable::<u16>::new();
            let mut model = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(key, value) => {
                        match table.get_mut(key) {
                            Some(slot) => *slot = value,
                            None => {
                                table.insert(key, value, |_, _| true);
                            }
                        }
                        model.insert(key, value);
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(table.remove(key), model.remove(&key).is_some());
                    }
                    Step::DropBelow(bound) => {
                        let mut calls = 0;
                        table.retain(|_, value| {
                            calls += 1;
                            *value >= bound
                        });
                        prop_assert_eq!(calls, model.len());
                        model.retain(|_, value| *value >= bound);
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert_eq!(table.is_empty(), model.is_empty());
                for (&key, &value) in &model {
                    prop_assert_eq!(table.get(key), Some(&value));
                }
                let listed: BTreeMap<u32, u16> = table.iter().map(|(k, &v)| (k, v)).collect();
                prop_assert_eq!(&listed, &model);
            }
        }
    }

    #[test]
    fn a_sweep_that_frees_enough_keeps_the_memory() {
        let mut table = FlowTable::<bool>::new();
        for key in 0..1_000 {
            table.insert(key, false, |_, _| false);
        }
        assert_eq!(table.slots.len(), FIRST_CAPACITY);
    }

    #[test]
    fn without_stale_entries_it_grows() {
        let mut table = FlowTable::<bool>::new();
        for key in 0..1_000 {
            table.insert(key, true, |_, _| true);
        }
        assert_eq!(table.len(), 1_000);
        assert!(table.slots.len() * 3 >= 1_000 * 4);
    }
}

//! Objects in slots that are used again, with keys that no later object of a slot has.

use std::marker::PhantomData;

pub(crate) struct Key<T> {
    index: u32,
    generation: u32,
    kind: PhantomData<fn(T)>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.index, self.generation) == (other.index, other.generation)
    }
}

impl<T> Eq for Key<T> {}

impl<T> std::fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

impl<T> Key<T> {
    pub(crate) const fn index(self) -> u32 {
        self.index
    }

    pub(crate) const fn generation(self) -> u32 {
        self.generation
    }
}

#[derive(Debug)]
pub(crate) struct Arena<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Arena<T> {
    pub(crate) fn insert(&mut self, make: impl FnOnce(Key<T>) -> T) -> Key<T> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let (generation, slot) = &mut self.slots[index as usize];
        *generation = generation.wrapping_add(1);
        let key = Key {
            index,
            generation: *generation,
            kind: PhantomData,
        };
        *slot = Some(make(key));
        key
    }

    pub(crate) fn remove(&mut self, key: Key<T>) -> Option<T> {
        let (generation, slot) = self.slots.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        let object = slot.take()?;
        self.free.push(key.index);
        Some(object)
    }

    pub(crate) fn get(&self, key: Key<T>) -> Option<&T> {
        match self.slots.get(key.index as usize)? {
            (generation, object) if *generation == key.generation => object.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        match self.slots.get_mut(key.index as usize)? {
            (generation, object) if *generation == key.generation => object.as_mut(),
            _ => None,
        }
    }

    pub(crate) fn key_at(&self, index: u32) -> Option<Key<T>> {
        let (generation, object) = self.slots.get(index as usize)?;
        object.as_ref().map(|_| Key {
            index,
            generation: *generation,
            kind: PhantomData,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

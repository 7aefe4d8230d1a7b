//! Exchange of data between parts: one place for each pair of parts and window parity.

use std::sync::PoisonError;

use crate::sync::Mutex;

pub(crate) trait Contents: Default {
    fn is_empty(&self) -> bool;
}

#[derive(Debug)]
pub(crate) struct Inboxes<T> {
    parts: usize,
    places: [Vec<Mutex<T>>; 2],
}

impl<T: Contents> Inboxes<T> {
    pub fn new(parts: usize) -> Self {
        let places = || (0..parts * parts).map(|_| Mutex::new(T::default()));
        Self {
            parts,
            places: [places().collect(), places().collect()],
        }
    }

    fn place(&self, window: usize, from: usize, to: usize) -> &Mutex<T> {
        &self.places[window % 2][from * self.parts + to]
    }

    pub fn hand_over(&self, window: usize, from: usize, sent: &mut [T]) -> bool {
        let mut any = false;
        for (to, contents) in sent.iter_mut().enumerate() {
            if !contents.is_empty() {
                let place = self.place(window, from, to);
                let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::swap(&mut *place, contents);
                any = true;
            }
        }
        any
    }

    /// Calls `receive` for the data of each other part, in order; it must empty them.
    pub fn receive(&self, window: usize, to: usize, mut receive: impl FnMut(&mut T)) {
        for from in (0..self.parts).filter(|&from| from != to) {
            let place = self.place(window, from, to);
            let mut contents = place.lock().unwrap_or_else(PoisonError::into_inner);
            if !contents.is_empty() {
                receive(&mut contents);
            }
        }
    }
}

//! The engine's tables: vectors without bounds checks in release builds, which would take a tenth of a run. The engine
//! makes all indices; builds with debug assertions check them.

#![allow(
    unsafe_code,
    reason = "docs/decisions/0005-unsafe-code.md gives the reason and the checks"
)]

use std::ops::{Deref, DerefMut, Index, IndexMut, Range};

#[derive(Clone, Debug)]
pub(crate) struct Table<T>(Vec<T>);

impl<T> From<Vec<T>> for Table<T> {
    fn from(items: Vec<T>) -> Self {
        Self(items)
    }
}

impl<T> FromIterator<T> for Table<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for Table<T> {
    type Target = Vec<T>;

    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        debug_assert!(index < self.0.len(), "no such record: {index}");
        // SAFETY: no number that leads beyond a table is stored in another.
        unsafe { self.0.get_unchecked(index) }
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        debug_assert!(index < self.0.len(), "no such record: {index}");
        // SAFETY: no number that leads beyond a table is stored in another.
        unsafe { self.0.get_unchecked_mut(index) }
    }
}

impl<T> Index<Range<usize>> for Table<T> {
    type Output = [T];

    #[inline(always)]
    fn index(&self, range: Range<usize>) -> &[T] {
        &self.0[range]
    }
}

impl<T> IndexMut<Range<usize>> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, range: Range<usize>) -> &mut [T] {
        &mut self.0[range]
    }
}

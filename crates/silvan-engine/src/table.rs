//! The engine's tables: vectors without bounds checks in release builds.
//!
//! The hot loop follows numbers from record to record: a head's input port, its upstream port, lane, queue, and the
//! queue's last node. The engine has made all of them itself, when it compiled the fabric or when it appended to their
//! table. External input (forwarding tables, ports and hosts named by a caller) is checked where it enters. A check at
//! each step cost a tenth of a run's time. Builds with debug assertions, in which all Rust tests run, check each
//! access.

#![allow(
    unsafe_code,
    reason = "docs/decisions/0005-unsafe-code.md gives the reason and the checks"
)]

use std::ops::{Deref, DerefMut, Index, IndexMut, Range};

/// A vector that is indexed by numbers which the engine vouches for; ranges are checked as usual.
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

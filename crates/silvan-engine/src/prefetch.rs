//! Asking for memory before it is needed.
//!
//! The events of a lane stand in the order in which they will happen, so it is known some events
//! ahead which records will be touched. A large fabric does not fit into the cache; asking early
//! hides much of the way to memory.

/// Asks for the cache line of `slice[index]`; does nothing if there is none.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    if let Some(item) = slice.get(index) {
        request(item);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "there is no safe way to ask the processor")]
fn request<T>(item: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads and writes nothing, and the address is that of a live item.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn request<T>(_: &T) {}

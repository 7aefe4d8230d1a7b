//! Prefetching of cache lines: the engine knows some events ahead which records an event will touch.

/// Prefetches the cache line of `slice[index]`; an index out of range has no effect.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    request(slice.as_ptr().wrapping_add(index).cast());
}

/// Prefetches the cache lines of an item, at most its first 256 bytes.
#[inline(always)]
pub fn prefetch_item<T>(item: &T) {
    let first = std::ptr::from_ref(item).cast::<u8>();
    for offset in (0..size_of::<T>().min(256)).step_by(64) {
        request(first.wrapping_add(offset));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "there is no safe way to ask the processor")]
fn request(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads and writes nothing and cannot fault, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn request(_: *const u8) {}

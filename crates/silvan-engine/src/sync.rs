//! Primitives for meetings and exchange of threads. `tests/interleavings.rs` compiles this code with Shuttle's types.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex};

pub(crate) const SPINS: u32 = 2000;

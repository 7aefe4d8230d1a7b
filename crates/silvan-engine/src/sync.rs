//! Primitives with which threads meet and exchange parcels. `tests/interleavings.rs` compiles the
//! same code with Shuttle's types of these names.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex};

/// Checks of a thread for the others before it sleeps: some tens of microseconds.
pub(crate) const SPINS: u32 = 2000;

//! What threads meet and exchange parcels with. `tests/interleavings.rs` compiles the same code with what Shuttle has
//! under these names.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex};

/// How often a thread looks for the others before it sleeps: some tens of microseconds.
pub(crate) const SPINS: u32 = 2000;

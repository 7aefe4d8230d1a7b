//! Runs in other threads when the interpreter ends.
//!
//! CPython ends a thread that takes the lock during finalization, which aborts Rust code. The interpreter waits until
//! every run has stopped; the run's thread then sleeps.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

/// Only endless loops of a compiled scheme, which never takes the lock, need it.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

struct State {
    active: usize,
    ending: bool,
}

static STATE: Mutex<State> = Mutex::new(State {
    active: 0,
    ending: false,
});
static CHANGED: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct ActiveRun {
    is_counted: bool,
}

impl ActiveRun {
    pub fn start() -> Self {
        let mut state = state();
        let is_counted = !state.ending;
        state.active += usize::from(is_counted);
        Self { is_counted }
    }

    /// Call this before the lock is taken: does not return if the interpreter is ending.
    pub fn check(&self) {
        if !self.is_counted {
            return;
        }
        let mut state = state();
        if !state.ending {
            return;
        }
        state.active -= 1;
        CHANGED.notify_all();
        drop(state);
        loop {
            std::thread::park();
        }
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let mut state = state();
        state.active -= usize::from(self.is_counted);
        CHANGED.notify_all();
    }
}

/// Waits until no run takes the interpreter's lock any more. `atexit` calls it.
#[pyfunction]
pub fn stop_runs(py: Python<'_>) {
    py.detach(|| {
        let mut state = state();
        state.ending = true;
        let waited = CHANGED.wait_timeout_while(state, LONGEST_WAIT, |state| state.active > 0);
        drop(waited);
    });
}

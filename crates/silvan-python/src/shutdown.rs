//! Runs in other threads when the interpreter ends.
//!
//! A daemon thread must not take the interpreter's lock once the interpreter is being finalized: CPython then ends the
//! thread in the midst of Rust code, which aborts the process. So the interpreter waits, before it is finalized, until
//! every run has noticed that it has to stop. The run's thread then sleeps until the process ends.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

/// A run notices the end many times a second, except in an endless loop of a compiled scheme, which
/// never takes the lock.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// State shared by runs and the end of the interpreter.
struct State {
    /// Runs that may still take the lock.
    active: usize,
    /// The interpreter is about to end.
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

/// A run that the end of the interpreter waits for.
pub struct ActiveRun {
    /// Runs that start at the end, in functions registered with `atexit`, are left alone: they are in
    /// the thread that ends the interpreter.
    is_counted: bool,
}

impl ActiveRun {
    /// Starts a run, with the interpreter's lock held.
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

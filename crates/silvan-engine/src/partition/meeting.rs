//! The barrier at which the threads of a run meet after each lookahead window.

use std::sync::PoisonError;

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, SPINS, spin_loop};

/// A barrier that also finds the smallest of the numbers that the threads bring, and which flags any of them brings. A
/// thread spins for a moment and then sleeps, because the others take microseconds if each has a core, and milliseconds
/// if not.
#[derive(Debug)]
pub(crate) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    /// Meetings that have ended.
    round: AtomicUsize,
    /// The smallest number so far, of the present meeting and of the one before: the round decides which is which.
    smallest: [AtomicU64; 2],
    /// Combined flags by round, one bit each.
    flags: [AtomicUsize; 2],
    sleeping: AtomicUsize,
    /// A thread has panicked and never comes.
    broken: AtomicBool,
    lock: Mutex<()>,
    ended: Condvar,
}

impl Meeting {
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            smallest: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
            flags: [AtomicUsize::new(0), AtomicUsize::new(0)],
            sleeping: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            lock: Mutex::new(()),
            ended: Condvar::new(),
        }
    }

    /// Waits until all threads have come; returns the smallest number and all flags of the threads, `None` if a thread
    /// has panicked.
    ///
    /// Writes of a thread before the call are visible to the others afterwards. The last thread calls `meanwhile` with
    /// all flags while the others wait.
    pub fn wait(
        &self,
        number: u64,
        flags: usize,
        meanwhile: impl FnOnce(usize),
    ) -> Option<(u64, usize)> {
        let round = self.round.load(Ordering::Relaxed);
        let smallest = &self.smallest[round % 2];
        smallest.fetch_min(number, Ordering::Relaxed);
        if flags != 0 {
            self.flags[round % 2].fetch_or(flags, Ordering::Relaxed);
        }
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            // The meeting before is over for all: they have come to this one.
            self.smallest[(round + 1) % 2].store(u64::MAX, Ordering::Relaxed);
            self.flags[(round + 1) % 2].store(0, Ordering::Relaxed);
            meanwhile(self.flags[round % 2].load(Ordering::Relaxed));
            self.round.store(round + 1, Ordering::SeqCst);
            self.wake();
        } else if !self.spin(round) {
            self.sleep(round);
        }
        let broken = self.broken.load(Ordering::Relaxed);
        let flags = &self.flags[round % 2];
        (!broken).then(|| {
            (
                smallest.load(Ordering::Relaxed),
                flags.load(Ordering::Relaxed),
            )
        })
    }

    fn has_ended(&self, round: usize) -> bool {
        self.round.load(Ordering::SeqCst) != round || self.broken.load(Ordering::SeqCst)
    }

    fn spin(&self, round: usize) -> bool {
        for _ in 0..SPINS {
            if self.has_ended(round) {
                return true;
            }
            spin_loop();
        }
        false
    }

    #[cold]
    fn sleep(&self, round: usize) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Counted before the round is read, so that the last to come sees either.
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        while !self.has_ended(round) {
            guard = self
                .ended
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.ended.notify_all();
        }
    }

    /// Ends this meeting and all later ones.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Does so if the thread that holds this panics.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

/// See [`Meeting::guard`].
pub(crate) struct Guard<'a>(&'a Meeting);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_off();
        }
    }
}

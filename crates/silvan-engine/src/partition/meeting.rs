use std::sync::PoisonError;

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, SPINS, spin_loop};

/// A barrier that finds the smallest number and all flags; threads spin, then sleep.
#[derive(Debug)]
pub(crate) struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// Smallest number by parity of the round, of the current meeting and the one before.
    smallest: [AtomicU64; 2],
    flags: [AtomicUsize; 2],
    sleeping: AtomicUsize,
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

    /// Waits for all threads, whose writes are then visible; `None` after a panic. The last thread first calls
    /// `meanwhile`.
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
        // Before the round is read, so that the last thread sees either.
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

    pub fn break_off(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Calls [`break_off`](Self::break_off) if the thread panics.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a Meeting);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_off();
        }
    }
}

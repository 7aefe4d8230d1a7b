//! The barrier and the inboxes in many interleavings of their threads, by Shuttle.
//!
//! Schedules are random, or have few preemptions (Burckhardt et al., "A randomized scheduler with probabilistic
//! guarantees of finding bugs", 2010).
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise, and not all of the engine's code is used"
)]

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

mod sync {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use shuttle::sync::{Condvar, Mutex};

    /// Few, so that threads also sleep.
    pub(crate) const SPINS: u32 = 2;
}

#[path = "../src/partition/inboxes.rs"]
mod inboxes;
#[path = "../src/partition/meeting.rs"]
mod meeting;

use inboxes::{Contents, Inboxes};
use meeting::Meeting;

impl Contents for Vec<u64> {
    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}

/// Returns the data from a part to another in a window; empty in every third window.
fn sent(window: u64, from: u64, to: u64) -> Vec<u64> {
    match (window + from + to) % 3 {
        0 => Vec::new(),
        _ => vec![window, from, to],
    }
}

/// Each part sends in each window, meets the others, and receives what they have sent in this window, as the engine does.
fn windows(threads: u64, windows: u64) {
    let meeting = Arc::new(Meeting::new(threads as usize));
    let inboxes = Arc::new(Inboxes::<Vec<u64>>::new(threads as usize));
    let met = Arc::new(AtomicUsize::new(0));
    let run = move |own: u64| {
        let _guard = meeting.guard();
        for window in 0..windows {
            let mut parcels: Vec<_> = (0..threads).map(|to| sent(window, own, to)).collect();
            parcels[own as usize].clear();
            inboxes.hand_over(window as usize, own as usize, &mut parcels);
            assert!(parcels.iter().all(Vec::is_empty), "a place was not empty");
            let number = |thread: u64| (thread * 5 + window * 7) % 11;
            let smallest = (0..threads).map(number).min().unwrap();
            let flags = |thread: u64| match (thread + window) % 4 {
                3 => 1 << (thread % 3),
                _ => 0,
            };
            let any = (0..threads).fold(0, |any, thread| any | flags(thread));
            let found = meeting.wait(number(own), flags(own), |all| {
                assert_eq!(all, any);
                met.fetch_add(1, Ordering::Relaxed);
            });
            // Once for all threads, before any thread continues.
            assert_eq!(met.load(Ordering::Relaxed) as u64, window + 1);
            assert_eq!(found, Some((smallest, any)));
            let mut received = Vec::new();
            inboxes.receive(window as usize, own as usize, |parcel| {
                received.append(parcel)
            });
            let others = (0..threads).filter(|&from| from != own);
            let expected: Vec<_> = others.flat_map(|from| sent(window, from, own)).collect();
            assert_eq!(received, expected);
        }
    };
    let run = Arc::new(run);
    let spawn = |own| {
        let run = Arc::clone(&run);
        thread::spawn(move || run(own))
    };
    let others: Vec<_> = (1..threads).map(spawn).collect();
    run(0);
    for other in others {
        other.join().unwrap();
    }
}

#[test]
fn parcels_arrive_in_their_window_in_any_interleaving() {
    for threads in [2, 3] {
        shuttle::check_random(move || windows(threads, 4), 2000);
        shuttle::check_pct(move || windows(threads, 4), 2000, 3);
    }
}

/// Threads that wait for one that has panicked do not wait without end.
#[test]
fn a_panic_ends_the_meetings_in_any_interleaving() {
    let run = || {
        let meeting = Arc::new(Meeting::new(2));
        let other = Arc::clone(&meeting);
        let waits = thread::spawn(move || {
            let first = other.wait(1, 0, |_| {});
            (first, other.wait(1, 0, |_| {}))
        });
        meeting.wait(2, 0, |_| {});
        meeting.break_off();
        let (first, second) = waits.join().unwrap();
        assert!(first.is_none() || first == Some((1, 0)));
        assert_eq!(second, None);
    };
    shuttle::check_random(run, 2000);
    shuttle::check_pct(run, 2000, 3);
}

//! Threads of the system meet.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::meeting::Meeting;

/// Each thread computes which is the smallest number that any of them brings, and which flags.
#[test]
fn every_thread_learns_the_smallest_number_and_all_flags() {
    for threads in [1, 2, 3, 7] {
        let meeting = Meeting::new(threads);
        let alone = std::sync::Mutex::new(Vec::new());
        let number = |thread: u64, round: u64| (thread * 7919 + round * 104_729) % 1009;
        let meet = |thread: u64| {
            for round in 0..500 {
                if (thread + round) % 97 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
                let all = (0..threads as u64).map(|other| number(other, round));
                let flags = |thread: u64| match (thread + round) % 5 {
                    0 => 1 << (thread % 3),
                    _ => 0,
                };
                let any = (0..threads as u64).fold(0, |any, other| any | flags(other));
                let note = |flags| alone.try_lock().unwrap().push(flags);
                let found = meeting.wait(number(thread, round), flags(thread), note);
                assert_eq!(found, all.min().map(|smallest| (smallest, any)));
                // No other thread notes anything before this thread comes again.
                let noted = alone.lock().unwrap();
                assert!(noted.len() as u64 == round + 1 && noted.last() == Some(&any));
            }
        };
        std::thread::scope(|scope| {
            let meet = &meet;
            let spawn = |thread| scope.spawn(move || meet(thread));
            let met: Vec<_> = (0..threads as u64).map(spawn).collect();
            // The end of a scope is no order that ThreadSanitizer knows.
            met.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

#[test]
fn a_panic_ends_the_meetings_of_the_others() {
    let meeting = Meeting::new(3);
    let waits = || (0..1000).find(|_| meeting.wait(1, 0, |_| {}).is_none());
    let met = std::thread::scope(|scope| {
        let others = [scope.spawn(waits), scope.spawn(waits)];
        let failed = scope.spawn(|| {
            let _guard = meeting.guard();
            meeting.wait(1, 0, |_| {});
            panic!("on purpose");
        });
        assert!(failed.join().is_err());
        others.map(|other| other.join().unwrap())
    });
    assert_eq!(met, [Some(1), Some(1)]);
}

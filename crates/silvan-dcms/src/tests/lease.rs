//! Candidates of a lease, with clocks of their own that stop, jump and differ.

use proptest::prelude::*;
use silvan_core::MonotonicTime;

use super::*;
use crate::lease::Lease;

const LENGTH: u64 = 10;

fn at(second: f64) -> MonotonicTime {
    MonotonicTime::from_ns((second * 1e9) as u64)
}

fn candidate(folder: &std::path::Path, name: &str) -> Lease {
    Lease::new(folder, seconds(LENGTH), name.to_owned())
}

fn holds(lease: &Lease, now: MonotonicTime) -> bool {
    lease.until().is_some_and(|until| now < until)
}

#[test]
fn the_first_takes_it_and_keeps_it_by_renewing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (candidate(folder.path(), "a"), candidate(folder.path(), "b"));
    assert!(first.try_take(|| at(0.0)).unwrap());
    for step in 1..100 {
        let now = at(f64::from(step));
        assert!(first.renew(now));
        assert!(!second.try_take(|| now).unwrap());
    }
    assert_eq!(first.term(), Some(1));
}

#[test]
fn a_dead_holder_is_followed_after_the_length_and_a_free_one_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (candidate(folder.path(), "a"), candidate(folder.path(), "b"));
    assert!(first.try_take(|| at(0.0)).unwrap());
    assert!(!second.try_take(|| at(3.0)).unwrap());
    assert!(!second.try_take(|| at(12.9)).unwrap());
    assert!(second.try_take(|| at(13.0)).unwrap());
    assert_eq!(second.term(), Some(2));
    // The first one was stopped, not dead.
    assert!(!first.renew(at(13.1)));
    assert!(!first.try_take(|| at(13.2)).unwrap());
    second.release(at(13.3));
    assert!(first.try_take(|| at(13.4)).unwrap());
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "terms that are over are removed");
}

#[test]
fn a_holder_that_renews_is_told_from_one_that_is_dead() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (candidate(folder.path(), "a"), candidate(folder.path(), "b"));
    assert!(first.try_take(|| at(0.0)).unwrap());
    for step in 1..9 {
        assert!(!second.try_take(|| at(f64::from(step) * 0.5)).unwrap());
        assert_eq!(second.live_holder(), None, "nothing was renewed");
    }
    assert!(first.renew(at(4.5)));
    assert!(!second.try_take(|| at(4.6)).unwrap());
    assert_eq!(second.live_holder(), Some("a"));
    // The holder has ended, and a third candidate has begun.
    first.release(at(4.7));
    let mut third = candidate(folder.path(), "host c");
    assert!(third.try_take(|| at(4.8)).unwrap());
    assert!(!second.try_take(|| at(4.9)).unwrap());
    assert_eq!(second.live_holder(), Some("host c"));
    third.release(at(5.0));
    assert!(second.try_take(|| at(5.1)).unwrap());
    assert_eq!(second.live_holder(), None);
}

#[test]
fn a_holder_that_was_stopped_does_not_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = candidate(folder.path(), "a");
    assert!(first.try_take(|| at(0.0)).unwrap());
    // No other has followed it, and a candidate may just be doing so.
    assert!(!first.renew(at(5.0)));
    assert!(!holds(&first, at(5.0)));
}

#[test]
fn a_clock_that_goes_back_makes_a_candidate_wait_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (candidate(folder.path(), "a"), candidate(folder.path(), "b"));
    assert!(first.try_take(|| at(0.0)).unwrap());
    assert!(!second.try_take(|| at(1000.0)).unwrap());
    assert!(!second.try_take(|| at(500.0)).unwrap());
    assert!(!second.try_take(|| at(509.9)).unwrap());
    assert!(second.try_take(|| at(510.0)).unwrap());
}

/// Action of a candidate at a step.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// The candidate continues.
    Go,
    /// The candidate reads its clock, and is stopped before it uses the time.
    ReadClock,
    /// The candidate ends, and another one starts.
    Restart,
    /// The candidate ends and releases its term.
    Release,
}

proptest! {
    /// Oracle: the definition: at no instant do two candidates hold the lease. Their clocks start anywhere.
    #[test]
    fn never_two_hold_it(
        steps in prop::collection::vec(
            (0_usize..3, prop_oneof![
                8 => Just(Act::Go), 3 => Just(Act::ReadClock), 1 => Just(Act::Restart), 1 => Just(Act::Release),
            ], 0.01_f64..4.0),
            1..120,
        ),
        starts in prop::array::uniform3(0.0_f64..1e6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut names = 0;
        let mut fresh = || {
            names += 1;
            candidate(folder.path(), &format!("candidate-{names}"))
        };
        let mut candidates = [fresh(), fresh(), fresh()];
        let mut read: [Option<MonotonicTime>; 3] = [None; 3];
        let mut time = 0.0;
        for (who, act, passes) in steps {
            time += passes;
            let clock = |who: usize| at(starts[who] + time);
            match act {
                Act::Go => {
                    // The reading from before the stop is used now.
                    let mut earlier = read[who].take();
                    let mut now = || earlier.take().unwrap_or(clock(who));
                    if candidates[who].term().is_some() {
                        candidates[who].renew(now());
                    } else {
                        candidates[who].try_take(now).unwrap();
                    }
                }
                Act::ReadClock => read[who] = read[who].or(Some(clock(who))),
                Act::Restart => (candidates[who], read[who]) = (fresh(), None),
                Act::Release => candidates[who].release(clock(who)),
            }
            let holding = (0..3).filter(|&who| holds(&candidates[who], clock(who)));
            prop_assert!(holding.count() <= 1);
        }
    }
}

//! The part of a management link that a diagnosis takes. Oracle: the instants at which it sends, and the links' rates.

use std::cell::RefCell;
use std::rc::Rc;

use silvan_core::Span;
use silvan_diagnose::survey::Watch;
use silvan_scenario::Scenario;
use silvan_subnet::client::{BYTES_ON_LINK, Client, Limits};

use crate::LINE;
use crate::live::{Live, World};

/// Sweeps a fabric ten times with this part of a link of so many bit/s. No part of the time may have more requests
/// than that, and those that may be in flight. Gives the number of requests, and the seconds from the first to the last.
fn swept(toml: &str, share: f64, bits_per_s: f64) -> (usize, f64) {
    let scenario = Scenario::from_toml(toml, "line.toml", &[]).unwrap();
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    let mut client = Client::new(Live(Rc::clone(&world)), Limits::DEFAULT);
    let mut watch = Watch::with_link_share(share);
    watch.prepare(&mut client).unwrap();
    // The pace of the whole subnet is known from here on. Time without requests saves up no more than what may be in
    // flight.
    world.borrow_mut().advance(Span::from_secs(1));
    world.borrow_mut().sent_at.clear();
    world.borrow_mut().in_flight = (0, 0);
    for _ in 0..10 {
        watch.sweep(&mut client).unwrap();
    }
    let world = world.borrow();
    let sent = &world.sent_at;
    let bits = (BYTES_ON_LINK * 8) as f64;
    for (first, began) in sent.iter().enumerate() {
        for (last, ended) in sent.iter().enumerate().skip(first) {
            let seconds = ended.since(*began).as_ps() as f64 / 1e12;
            let carried = (last - first + 1) as f64 * bits;
            // A request is sent some microseconds after the clock was read.
            let allowed =
                share * bits_per_s * (seconds + 10e-6) + Limits::DEFAULT.in_flight as f64 * bits;
            assert!(carried <= allowed, "{first} to {last} in {seconds} s");
        }
    }
    assert!(world.in_flight.1 <= Limits::DEFAULT.in_flight);
    let seconds = sent[sent.len() - 1].since(sent[0]).as_ps() as f64 / 1e12;
    (sent.len(), seconds)
}

#[test]
fn sweeps_take_their_part_of_the_link_and_no_more() {
    for share in [0.01, 0.001, 0.0001] {
        let (requests, seconds) = swept(LINE, share, 4e9);
        assert!(requests > 2 * Limits::DEFAULT.in_flight, "{requests}");
        // The burst has gone with the first requests.
        let due = (requests - Limits::DEFAULT.in_flight - 1) as f64 * (BYTES_ON_LINK * 8) as f64
            / (share * 4e9);
        assert!(seconds >= 0.99 * due, "{share}: {seconds} s");
        if share < 0.01 {
            // Only the pace delays the requests.
            assert!(seconds <= 1.2 * due + 0.01, "{share}: {seconds} s of {due}");
        }
    }
}

#[test]
fn the_slowest_cable_between_switches_counts() {
    let slow = LINE.replace(r#"to = "right:3" }"#, r#"to = "right:3", width = "1x" }"#);
    assert_ne!(slow, LINE);
    let (_, half) = swept(&slow, 0.0001, 2e9);
    let (_, full) = swept(LINE, 0.0001, 4e9);
    assert!((half / full - 2.0).abs() < 0.3, "{half} and {full} s");
}

//! Matching against a second, simple implementation.

use proptest::prelude::*;
use silvan_workload::programs::{Arrived, Matcher, Posted};

#[derive(Clone, Copy, Debug)]
enum Event {
    Post(Option<u32>, Option<u32>),
    Arrive(u32, u32),
}

fn event() -> impl Strategy<Value = Event> {
    let any_of = |count: u32| prop_oneof![3 => (0..count).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        (any_of(3), any_of(3)).prop_map(|(from, tag)| Event::Post(from, tag)),
        (0..3_u32, 0..3_u32).prop_map(|(from, tag)| Event::Arrive(from, tag)),
    ]
}

/// What the standard says, written as slowly as it reads: all pairs are gone through by the order of
/// messages, each with the receives in their order, until nothing changes. MPI 4.0, section 3.5: a
/// message is taken by the first receive posted that fits, a receive takes the first message that fits.
fn all_at_once(events: &[Event]) -> Vec<(usize, usize)> {
    let mut posted = Vec::new();
    let mut arrived = Vec::new();
    for (number, event) in events.iter().enumerate() {
        match *event {
            Event::Post(from, tag) => posted.push((number, from, tag)),
            Event::Arrive(from, tag) => arrived.push((number, from, tag)),
        }
    }
    let mut pairs = Vec::new();
    for (message, from, tag) in arrived {
        let fits = |(_, f, t): &(usize, Option<u32>, Option<u32>)| {
            f.is_none_or(|f| f == from) && t.is_none_or(|t| t == tag)
        };
        if let Some(place) = posted.iter().position(fits) {
            pairs.push((posted.remove(place).0, message));
        }
    }
    pairs.sort_unstable();
    pairs
}

proptest! {
    /// Who gets what does not depend on which of the two came first: going through the messages in
    /// their order, with all receives posted before, gives the same pairs.
    #[test]
    fn pairs_are_those_of_the_standard(events in proptest::collection::vec(event(), 0..60)) {
        let mut matcher = Matcher::default();
        let mut pairs = Vec::new();
        for (number, event) in events.iter().enumerate() {
            match *event {
                Event::Post(from, tag) => {
                    let token = number as u32;
                    let message = matcher.post(Posted { from, tag, token, bytes: 0 });
                    pairs.extend(message.map(|message| (number, message.message as usize)));
                }
                Event::Arrive(from, tag) => {
                    let message = number as u32;
                    let receive = matcher.arrive(Arrived { from, tag, message, bytes: 0 });
                    pairs.extend(receive.map(|receive| (receive.token as usize, number)));
                }
            }
        }
        pairs.sort_unstable();
        prop_assert_eq!(&pairs, &all_at_once(&events));
        let left = matcher.posted().count() + matcher.arrived().count();
        prop_assert_eq!(left, events.len() - 2 * pairs.len());
    }
}

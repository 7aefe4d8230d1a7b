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

/// Plain implementation of the standard: all pairs are tried in the order of messages and receives, until there is no
/// change. MPI 4.0, section 3.5: a message is taken by the first posted receive that fits, a receive takes the first
/// message that fits.
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
    /// Matching does not depend on the order of arrival and posting. With all receives posted before the messages, the
    /// pairs are equal.
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

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::variant::General;

/// Takes the next event before `end`: its time, phase and id.
fn pop(queue: &mut EventQueue, end: u64) -> Option<(u64, u32, u32)> {
    match queue.next(end) {
        NextEvent::Head(lane) => {
            let head = queue.pop_head(lane);
            Some((head.time, phase::HEAD, head.port))
        }
        NextEvent::Outputs => {
            let (time, output) = queue.pop_output();
            Some((time, phase::ARBITRATE, output))
        }
        NextEvent::Hosts => {
            let (time, host) = queue.pop_host();
            Some((time, phase::HOST, host))
        }
        NextEvent::Wheel => {
            let event = queue.pop_event().unwrap();
            Some((event.time, event.phase(), event.id()))
        }
        NextEvent::None => None,
    }
}

proptest! {
    /// Against a sorted set: pushes of every kind between pops, delays from nothing to far beyond
    /// the wheel's horizon, ends that cut the run into pieces.
    #[test]
    fn the_order_is_total_and_nothing_is_lost(
        steps in prop::collection::vec((0u8..5, 0u32..50, 0u64..400_000_000, 0u64..4), 1..400),
        slice in 1u64..300_000_000,
    ) {
        const DELAYS: [u64; 2] = [200_000, 310_000];
        let mut queue = EventQueue::new(2);
        let mut model = BTreeSet::new();
        let mut now = 0;
        let mut end = slice;
        for (kind, id, delay, scale) in steps {
            let delay = delay >> (scale * 6);
            let inserted = match kind {
                0 | 1 => {
                    let lane = usize::from(kind);
                    let time = now + DELAYS[lane];
                    model.insert((time, phase::HEAD, id)).then(|| {
                        queue.push_head::<General>(lane, Head { time, port: id, output: 0, packet: Packet::default() });
                    })
                }
                2 => model.insert((now + 1_213_630, phase::HOST, id)).then(|| {
                    queue.push_host::<General>(now + 1_213_630, id);
                }),
                3 => model.insert((now + 1_037_000, phase::ARBITRATE, id)).then(|| {
                    queue.push_output::<General>(now + 1_037_000, id);
                }),
                _ => model.insert((now + delay, phase::ARBITRATE, id)).then(|| {
                    queue.push(Event::new(now + delay, phase::ARBITRATE, id, 0));
                }),
            };
            prop_assert!(inserted.is_some() || !model.is_empty());
            if id % 3 == 0 {
                let expected = model.first().copied().filter(|first| first.0 < end);
                let found = pop(&mut queue, end);
                prop_assert_eq!(found, expected);
                match expected {
                    Some(first) => {
                        model.remove(&first);
                        now = first.0;
                    }
                    None => {
                        now = end;
                        end += slice;
                    }
                }
            }
        }
        while let Some(found) = pop(&mut queue, u64::MAX) {
            let first = model.pop_first();
            prop_assert_eq!(Some(found), first);
        }
        prop_assert!(model.is_empty());
    }
}

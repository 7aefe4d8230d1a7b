//! Hosts ask about no flow again while the version of their lanes stays.

use std::cell::Cell;
use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Draws steps: a place (host, first or second switch, or the routes), a destination, and the
/// nanoseconds before the step.
fn steps() -> impl Strategy<Value = Vec<(u8, usize, u64)>> {
    let gap = prop_oneof![9 => 0_u64..2_000, 1 => Just(200_000)];
    proptest::collection::vec((0_u8..8, 1_usize..3, gap), 1..80)
}

struct Turned;

impl RouteView for Turned {
    fn output(&self, port: PortId, to: HostId) -> Option<PortId> {
        let turns = port == SECOND_IN && to.index() > 0;
        Routes.output(
            port,
            if turns {
                HostId::new(3 - to.index())
            } else {
                to
            },
        )
    }
}

/// Packets that wait at a switch, with the lanes on which they came and leave.
type Waiting = VecDeque<(usize, usize, usize)>;

/// The first packet that is not held leaves the first switch.
fn pass(fabric: &mut Fabric, now: Time, first: &mut Waiting, second: &mut Waiting) {
    let place = (0..first.len()).find(|&place| !fabric.holds(first[place].2, first[place].0));
    let Some((to, vl, lane)) = place.and_then(|place| first.remove(place)) else {
        return;
    };
    fabric.leave(now, 1, to, lane, vl);
    let next = fabric.join(now, 2, to, lane);
    second.push_back((to, lane, next));
}

#[test]
fn while_the_version_stays_so_do_the_lanes_of_all_flows() {
    let (kept, changed) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config::with_cases(512));
    let cases = (prop::sample::select(BOTH.to_vec()), steps());
    let ended = runner.run(&cases, |(variant, steps)| {
        let mut fabric = Fabric::new(variant, 3);
        let (mut first, mut second) = (Waiting::new(), Waiting::new());
        let mut now = at(1);
        let mut known: Option<(Option<u64>, Vec<Option<Vl>>)> = None;
        for (what, to, gap) in steps {
            now = now.saturating_add(Span::from_ns(gap));
            match what {
                0..=3 => {
                    let vl = fabric.start(now, to);
                    let lane = fabric.join(now, 1, to, vl);
                    first.push_back((to, vl, lane));
                }
                4 | 5 => pass(&mut fabric, now, &mut first, &mut second),
                6 => {
                    if let Some((to, vl, lane)) = second.pop_front() {
                        fabric.leave(now, 2, to, lane, vl);
                    }
                }
                _ if to == 1 => fabric.queues.on_routes(SECOND_IN, &Turned),
                _ => fabric.queues.on_routes(SECOND_IN, &Routes),
            }
            let version = fabric.queues.host_vl_version(now, HOST);
            let mut asked = fabric.queues.clone();
            let ask = |to| asked.host_vl(now, HOST, Fabric::flow(to), Vl::ZERO);
            let lanes: Vec<_> = (0..3).map(ask).collect();
            if let Some((before, old)) = &known {
                if version.is_some() && version == *before {
                    prop_assert_eq!(&lanes, old);
                    kept.set(kept.get() + 1);
                }
                changed.set(changed.get() + usize::from(lanes != *old));
            }
            known = Some((version, lanes));
        }
        Ok(())
    });
    assert!(ended.is_ok(), "{ended:?}");
    // Both happen often.
    assert!(kept.get() > 5_000, "{}", kept.get());
    assert!(changed.get() > 200, "{}", changed.get());
}

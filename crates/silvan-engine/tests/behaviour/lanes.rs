//! Virtual lanes: one does not feel the congestion of another, and they divide a link by weight.

use silvan_core::Span;
use silvan_engine::VlArbitration;
use silvan_fabric::generators::{Generator, TwoSwitchTestbed};

use crate::common::{MTU, Routed, at, cable, ddr_config, periods, ser, two_lanes, vl};
use crate::script::{Flow, Script};

const RUN: Span = Span::from_ms(2);

/// A, B and C of the testbed send to D on lane 0 if `congested`; X sends to Y on the lane of `sl`.
fn testbed(congested: bool, sl: u8) -> Script {
    let routed = Routed::new(TwoSwitchTestbed {}.build(TwoSwitchTestbed::TRUNK).unwrap());
    let mut flows = vec![Flow {
        sl,
        ..Flow::saturating(4, 5)
    }];
    if congested {
        flows.extend((0..3).map(|source| Flow::saturating(source, 3)));
    }
    let mut config = two_lanes(ddr_config());
    config.vl_arbitration = VlArbitration {
        high: vec![(vl(1), 255)],
        low: vec![(vl(0), 255)],
        limit_high: 255,
    };
    routed.run(&config, &flows, RUN)
}

/// On a separate lane and first in line, a packet of X waits for at most one packet of A on the cable between the
/// switches. So every packet starts exactly when it does in the empty fabric, and arrives at most that packet's time
/// later. On A's lane X gets a third.
#[test]
fn congestion_of_one_lane_leaves_the_other_untouched() {
    let (empty, full) = (testbed(false, 1), testbed(true, 1));
    let (alone, shared) = (&empty.records[0], &full.records[0]);
    let host = ser(TwoSwitchTestbed::HOST_LINK, MTU);
    assert!(periods(&alone.injected).iter().all(|&each| each == host));
    assert_eq!(shared.injected, alone.injected);
    let blocked = ser(TwoSwitchTestbed::TRUNK, MTU);
    for (done, undisturbed) in shared.delivered.iter().zip(&alone.delivered) {
        assert!(
            done >= undisturbed && *done <= *undisturbed + blocked,
            "{done} {undisturbed} {blocked}"
        );
    }
    assert!(alone.delivered.len() - shared.delivered.len() <= 1);

    let shared = testbed(true, 0);
    let share = shared.records[0].delivered.len() as f64 / alone.delivered.len() as f64;
    assert!(share < 0.4, "{share} on the same lane");
    // The other way round, X's lane takes nothing from the congested flows: D's port is full.
    let contributors = full.records[1..]
        .iter()
        .map(|record| record.delivered.len());
    let rate = contributors.sum::<usize>() as f64 / alone.delivered.len() as f64;
    assert!(rate > 0.99, "{rate}");
}

/// Lanes of the deliveries at a host that two others flood, one on each lane, after all buffers have
/// filled.
fn contest(tables: VlArbitration) -> Vec<usize> {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 3]);
    let flows = [0, 1].map(|source| Flow {
        sl: source as u8,
        ..Flow::saturating(source, 2)
    });
    let mut config = two_lanes(ddr_config());
    config.vl_arbitration = tables;
    let script = routed.run(&config, &flows, RUN);
    let mut all: Vec<_> = (0..2)
        .flat_map(|lane| {
            let delivered = script.records[lane].delivered.iter();
            delivered.map(move |&done| (done, lane))
        })
        .collect();
    all.sort();
    let instants: Vec<_> = all.iter().map(|each| each.0).collect();
    let full = ser(cable("4x DDR 2 m"), MTU);
    assert!(
        periods(&instants).iter().all(|&each| each == full),
        "an idle cable"
    );
    all[100..].iter().map(|each| each.1).collect()
}

/// Asserts that lane 0 has `low` packets in a row and lane 1 `high`, again and again.
fn assert_turns(order: &[usize], low: usize, high: usize) {
    let round = low + high;
    let start = order.windows(2).position(|pair| pair == [1, 0]).unwrap() + 1;
    for (place, &lane) in order[start..].iter().enumerate() {
        assert_eq!(lane, usize::from(place % round >= low), "place {place}");
    }
    assert!(order.len() - start > 10 * round);
}

/// A packet of 2074 bytes is 33 units of 64 bytes. A turn lasts until its weight is used up, so a
/// weight of w units is ceil(w / 33) packets.
#[test]
fn weights_divide_a_saturated_link() {
    for (weights, packets) in [
        ([33, 33], [1, 1]),
        ([33, 99], [1, 3]),
        ([132, 66], [4, 2]),
        ([1, 34], [1, 2]),
        ([255, 255], [8, 8]),
    ] {
        let tables = VlArbitration {
            high: vec![],
            low: vec![(vl(0), weights[0]), (vl(1), weights[1])],
            limit_high: 0,
        };
        assert_turns(&contest(tables), packets[0], packets[1]);
    }
}

/// An entry may come twice: its lane then has two turns in a round.
#[test]
fn a_lane_may_be_in_a_table_twice() {
    let tables = VlArbitration {
        high: vec![],
        low: vec![(vl(0), 33), (vl(1), 33), (vl(1), 66)],
        limit_high: 0,
    };
    assert_turns(&contest(tables), 1, 3);
}

/// Limit of High Priority, in units of 4096 bytes, for packets of 33 blocks (2112 bytes). 0 is one packet. Two packets
/// use up one unit, four use up two; then a packet of low priority follows. 255 has no limit, and lane 0 waits
/// permanently.
#[test]
fn the_limit_of_high_priority_lets_low_packets_through() {
    let tables = |limit_high| VlArbitration {
        high: vec![(vl(1), 255)],
        low: vec![(vl(0), 255)],
        limit_high,
    };
    assert_turns(&contest(tables(0)), 1, 1);
    assert_turns(&contest(tables(1)), 1, 2);
    assert_turns(&contest(tables(2)), 1, 4);
    assert!(contest(tables(255)).iter().all(|&lane| lane == 1));
}

/// Lanes without packets or credits do not delay others: a lane alone has the whole link, with any weight.
#[test]
fn an_idle_lane_leaves_the_link_to_the_other() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 2]);
    let mut config = two_lanes(ddr_config());
    config.vl_arbitration = VlArbitration {
        high: vec![(vl(1), 255)],
        low: vec![(vl(0), 1)],
        limit_high: 255,
    };
    let script = routed.run(&config, &[Flow::saturating(0, 1)], RUN);
    let full = ser(cable("4x DDR 2 m"), MTU);
    let delivered = &script.records[0].delivered;
    assert!(periods(delivered).iter().all(|&each| each == full));
    let expected = RUN.as_ps() / full.as_ps();
    assert!(expected - script.records[0].delivered_in(at(Span::ZERO), at(RUN)) <= 2);
}

/// Service levels choose the lane: with both on lane 0 the flows alternate packet by packet, with any weights.
#[test]
fn service_levels_of_one_lane_share_it() {
    let routed = Routed::star(&[cable("4x DDR 2 m"); 3]);
    let flows = [0, 1].map(|source| Flow {
        sl: 2 * source as u8,
        ..Flow::saturating(source, 2)
    });
    let mut config = two_lanes(ddr_config());
    config.vl_arbitration = VlArbitration {
        high: vec![],
        low: vec![(vl(0), 33), (vl(1), 99)],
        limit_high: 0,
    };
    let script = routed.run(&config, &flows, RUN);
    for pair in script.order[100..].windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
}

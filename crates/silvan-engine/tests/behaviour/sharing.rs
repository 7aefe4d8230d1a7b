//! Sharing among flows that meet: round-robin, oldest-first, read limits.

use silvan_core::Span;
use silvan_engine::{Arbitration, CrossbarFeed, OutputBuffer};
use silvan_fabric::generators::{Chain, Generator};

use crate::common::{MTU, Routed, at, cable, ddr_config, periods, room, ser};
use crate::script::{Flow, Script};

const RUN: Span = Span::from_us(600);
/// Deliveries before all buffers are full.
const WARM_UP: usize = 100;

/// Host 2 of every switch but the last, and host 1 of that one, send to the last host of all.
fn parking_lot(switches: usize) -> (Routed, Vec<Flow>) {
    let chain = Chain {
        switches,
        hosts_per_switch: 2,
    };
    let flows = (0..switches)
        .map(|switch| Flow::saturating(2 * switch, 2 * switches - 1))
        .collect();
    (
        Routed::new(chain.build(cable("4x DDR 2 m")).unwrap()),
        flows,
    )
}

/// Each switch takes packets of its own host and of switches up the chain in turn. So every second delivery is from the
/// last switch, every second of the others from the switch before, and so on: 1/2, 1/4, ... The two farthest share the
/// rest.
#[test]
fn a_parking_lot_halves_at_every_switch() {
    for switches in 2..=5 {
        let (routed, flows) = parking_lot(switches);
        let script = routed.run(&ddr_config(), &flows, RUN);
        let mut order = script.order[WARM_UP..].to_vec();
        for own in (1..switches).rev() {
            assert!(order.len() >= 16);
            let first = usize::from(order[0] != own);
            for (place, &flow) in order.iter().enumerate() {
                let turn = place % 2 == first;
                assert_eq!(flow == own, turn, "place {place} at switch {own}");
            }
            order.retain(|&flow| flow != own);
        }
        assert!(order.iter().all(|&flow| flow == 0));
    }
}

/// n hosts into one: strictly in turn, and the cable never idle.
#[test]
fn hosts_of_one_switch_alternate() {
    for senders in [2, 5, 9] {
        let kind = cable("4x QDR 2 m");
        let routed = Routed::star(&vec![kind; senders + 1]);
        let flows: Vec<_> = (0..senders)
            .map(|source| Flow::saturating(source, senders))
            .collect();
        let script = routed.run(&ddr_config(), &flows, RUN);
        let order = &script.order[WARM_UP..];
        for (place, &flow) in order.iter().enumerate() {
            assert_eq!(flow, (order[0] + place) % senders);
        }
        let mut all: Vec<_> = script
            .records
            .iter()
            .flat_map(|record| record.delivered.clone())
            .collect();
        all.sort();
        assert!(periods(&all).iter().all(|&each| each == ser(kind, MTU)));
    }
}

/// Packets of each flow delivered in the second half of the run.
fn counts_beyond_boundary(script: &Script) -> Vec<u64> {
    let half = at(Span::from_ps(RUN.as_ps() / 2));
    let records = script.records.iter();
    records
        .map(|record| record.delivered_in(half, at(RUN)))
        .collect()
}

/// A fast cable into a switch, and its packets out of it by as many slow cables as there are flows.
fn fan_out(outputs: usize) -> (Routed, Vec<Flow>) {
    let (slow, fast) = (cable("4x SDR 2 m"), cable("4x QDR 2 m"));
    let routed = Routed::row(&[&vec![fast; outputs], &vec![slow; outputs]], &[fast]);
    let flows = (0..outputs)
        .map(|index| Flow::saturating(index, outputs + index))
        .collect();
    (routed, flows)
}

/// One read at a time of a buffer that feeds two outputs: each read takes one slow serialisation, the outputs take
/// turns, and each gets half. Without the limit each gets the full rate.
#[test]
fn a_read_limit_of_one_halves_two_outputs() {
    let (routed, flows) = fan_out(2);
    let slow = ser(cable("4x SDR 2 m"), MTU);
    let mut config = ddr_config();
    let free = routed.run(&config, &flows, RUN);
    config.switch.read_limit = Some(1);
    let limited = routed.run(&config, &flows, RUN);
    for flow in 0..2 {
        let all = &free.records[flow].delivered;
        assert!(periods(all).iter().all(|&each| each == slow));
        let half = &limited.records[flow].delivered[WARM_UP..];
        assert!(half.len() > 20);
        assert!(periods(half).iter().all(|&each| each == slow * 2));
    }
}

/// Two reads at a time for three outputs: two packets per serialisation leave the buffer. The outputs share them
/// equally, within one packet for each of the two reads.
#[test]
fn a_read_limit_of_two_leaves_three_outputs_two_thirds() {
    let (routed, flows) = fan_out(3);
    let slow = ser(cable("4x SDR 2 m"), MTU);
    let mut config = ddr_config();
    config.switch.read_limit = Some(2);
    let counts = counts_beyond_boundary(&routed.run(&config, &flows, RUN));
    let serialisations = RUN.as_ps() / 2 / slow.as_ps();
    let total: u64 = counts.iter().sum();
    assert!(
        total.abs_diff(2 * serialisations) <= 2,
        "{total} of 2 * {serialisations}"
    );
    for count in counts {
        assert!((3 * count).abs_diff(total) <= 6, "{count} of {total}");
    }
}

/// The crossbar at twice the speed of the slow cables reads a packet in half the time. So one read at a time is enough
/// for two outputs.
#[test]
fn a_faster_crossbar_makes_up_for_the_read_limit() {
    let (routed, flows) = fan_out(2);
    let slow = ser(cable("4x SDR 2 m"), MTU);
    let mut config = ddr_config();
    config.switch.read_limit = Some(1);
    config.switch.output_buffer = Some(OutputBuffer {
        crossbar: CrossbarFeed::FullRate,
        size: room(4),
        speedup_percent: 200,
    });
    let script = routed.run(&config, &flows, RUN);
    for record in &script.records {
        let beyond_boundary = &record.delivered[20..];
        assert!(beyond_boundary.len() > 100);
        assert!(periods(beyond_boundary).iter().all(|&each| each == slow));
    }
}

/// A limit on reads of one input does not bite where every input feeds one output.
#[test]
fn a_read_limit_is_nothing_to_single_outputs() {
    let (routed, flows) = parking_lot(4);
    let mut config = ddr_config();
    let free = routed.run(&config, &flows, RUN);
    config.switch.read_limit = Some(1);
    let limited = routed.run(&config, &flows, RUN);
    assert_eq!(free.records, limited.records);
}

/// Three hosts each send 9/20 of a cable's rate into buffers that never fill. First come, first served, each gets an
/// equal share: backlog in the queues delays all of them, and the flows differ only by the packets between two
/// switches. With round-robin arbitration, the last switch serves its own host, which needs less than half, with all of
/// its 9/20. The two other hosts get the rest, 11/40 each.
#[test]
fn oldest_first_serves_in_the_order_of_arrival() {
    let (routed, mut flows) = parking_lot(3);
    let full = ser(cable("4x DDR 2 m"), MTU);
    for flow in &mut flows {
        flow.gap = Span::from_ps(full.as_ps() * 20 / 9);
    }
    let mut config = ddr_config();
    config.switch.buffer = Some(room(4096));
    config.switch.arbitration = Arbitration::OldestFirst;
    let counts = counts_beyond_boundary(&routed.run(&config, &flows, RUN));
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(most - least <= 2, "{counts:?}");

    config.switch.arbitration = Arbitration::RoundRobin;
    let counts = counts_beyond_boundary(&routed.run(&config, &flows, RUN));
    let packets = RUN.as_secs_f64() / 2.0 / full.as_secs_f64();
    for (count, share) in counts
        .into_iter()
        .zip([11.0 / 40.0, 11.0 / 40.0, 9.0 / 20.0])
    {
        let expected = packets * share;
        assert!((count as f64 - expected).abs() < 2.0, "{count}, {expected}");
    }
}

/// Age counts from the arrival at the switch, so inputs whose buffers are always equally full are served equally. The
/// parking lot's shares are those of round-robin, within the few packets that a buffer lacks while its credits travel
/// (5 %).
#[test]
fn oldest_first_shares_by_buffers_where_they_are_full() {
    let (routed, flows) = parking_lot(3);
    let mut config = ddr_config();
    config.switch.arbitration = Arbitration::OldestFirst;
    let counts = counts_beyond_boundary(&routed.run(&config, &flows, RUN));
    let total: u64 = counts.iter().sum();
    for (count, share) in counts.into_iter().zip([0.25, 0.25, 0.5]) {
        let measured = count as f64 / total as f64;
        assert!((measured / share - 1.0).abs() < 0.05, "{measured}, {share}");
    }
}

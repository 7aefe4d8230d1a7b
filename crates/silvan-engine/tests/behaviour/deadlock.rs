//! Credit loops end as an error that names them; nothing else does.

use silvan_core::{HostId, PortId, PortNumber, Span, Vl};
use silvan_engine::{Deadlock, EngineConfig, EngineError, Queueing};
use silvan_fabric::generators::{Chain, Generator, Ring};
use silvan_fabric::routing::{ExplicitTable, explicit};

use crate::common::{
    MTU, PlainEngine, Routed, at, cable, ddr_config, mbit, payload_time, periods, room, two_lanes,
    vl,
};
use crate::script::Flow;

/// A ring in which every route goes the same way round.
pub fn one_way_ring(switches: usize, hosts_per_switch: usize) -> Routed {
    let ring = Ring {
        switches,
        hosts_per_switch,
    };
    let fabric = ring.build(cable("4x DDR 2 m")).unwrap();
    let onward = PortNumber::new(u8::try_from(hosts_per_switch + 2).unwrap());
    let tables: Vec<_> = fabric
        .switch_ids()
        .map(|switch| ExplicitTable {
            switch: fabric.switch(switch).name.clone(),
            routes: fabric
                .host_ids()
                .map(|host| {
                    let (home, port) = fabric.host_attachment(host);
                    let out = if home == switch {
                        fabric.ports[port].number
                    } else {
                        onward
                    };
                    (fabric.host(host).name.clone(), out)
                })
                .collect(),
        })
        .collect();
    let tables = explicit(&fabric, &tables).unwrap();
    Routed { fabric, tables }
}

/// The first host of each of these switches sends to that of the switch `hops` further on.
pub fn round(
    senders: std::ops::Range<usize>,
    switches: usize,
    hosts_per_switch: usize,
    hops: usize,
) -> Vec<Flow> {
    senders
        .map(|switch| {
            let target = (switch + hops) % switches;
            Flow::saturating(switch * hosts_per_switch, target * hosts_per_switch)
        })
        .collect()
}

fn tight(packets: u64) -> EngineConfig {
    let mut config = ddr_config();
    config.switch.buffer = Some(room(packets));
    config
}

pub fn deadlock_of(engine: &mut PlainEngine) -> Deadlock {
    match engine.run_until(at(Span::from_ms(5))) {
        Err(EngineError::Deadlock(deadlock)) => deadlock,
        other => panic!("{other:?}"),
    }
}

/// Asserts that the cycle is the ring, from any switch on.
pub fn assert_is_ring(routed: &Routed, hosts_per_switch: usize, deadlock: &Deadlock, lane: Vl) {
    let onward = PortNumber::new(u8::try_from(hosts_per_switch + 2).unwrap());
    let ring: Vec<(PortId, Vl)> = routed
        .fabric
        .switch_ids()
        .map(|switch| (routed.fabric.switch(switch).port(onward).unwrap(), lane))
        .collect();
    let first = ring.iter().position(|place| *place == deadlock.cycle[0]);
    let mut expected = ring.clone();
    expected.rotate_left(first.unwrap());
    assert_eq!(deadlock.cycle, expected);
    assert_eq!(deadlock.stuck, ring.len());
}

/// Room for one packet behind each cable: all hosts send at once, and each buffer holds a packet that needs the next
/// buffer. Routes of three cables and more have the same effect on larger buffers, because half of the packets that
/// enter a buffer are new and must continue.
#[test]
fn a_full_ring_names_its_cycle() {
    for queueing in [Queueing::Voq, Queueing::Fifo] {
        full_rings(queueing);
    }
}

fn full_rings(queueing: Queueing) {
    for switches in 3..=7 {
        for hops in 2..switches {
            for packets in [1, 4] {
                if packets > 1 && hops == 2 {
                    continue;
                }
                let routed = one_way_ring(switches, 1);
                let flows = round(0..switches, switches, 1, hops);
                let mut config = tight(packets);
                config.switch.queueing = queueing;
                let mut engine = routed.engine(&config, &flows);
                let deadlock = deadlock_of(&mut engine);
                assert_is_ring(&routed, 1, &deadlock, vl(0));
                assert!(deadlock.at <= at(Span::from_ms(3)));
                engine.audit().unwrap();
                // Continuing changes nothing.
                let before = engine.events();
                assert_eq!(deadlock_of(&mut engine), deadlock);
                assert_eq!(engine.events(), before);
                let text = deadlock.describe(&routed.fabric);
                assert!(text.contains("switch-00"), "{text}");
            }
        }
    }
}

/// With the hosts of the last `hops` switches silent, no packet takes the cable from the last switch to the first. The
/// used channels depend on each other in a line instead of a cycle.
#[test]
fn a_gap_in_the_ring_keeps_it_moving() {
    for queueing in [Queueing::Voq, Queueing::Fifo] {
        rings_with_a_gap(queueing);
    }
}

fn rings_with_a_gap(queueing: Queueing) {
    for switches in 3..=7 {
        for hops in 2..switches {
            let routed = one_way_ring(switches, 1);
            let flows = round(0..switches - hops, switches, 1, hops);
            let mut config = tight(1);
            config.switch.queueing = queueing;
            let mut engine = routed.engine(&config, &flows);
            engine.run_until(at(Span::from_ms(4))).unwrap();
            engine.audit().unwrap();
            for record in &engine.workload().records {
                let last = *record.delivered.last().unwrap();
                assert!(at(Span::from_ms(4)).since(last) < Span::from_us(100));
            }
        }
    }
}

/// One packet per 16 ms is longer than the interval of deadlock checks. No packet moves in between, in full buffers,
/// but everything moves in the end.
#[test]
fn congestion_is_no_deadlock() {
    let chain = Chain {
        switches: 4,
        hosts_per_switch: 2,
    };
    let routed = Routed::new(chain.build(cable("4x DDR 2 m")).unwrap());
    let flows: Vec<_> = (0..7).map(|source| Flow::saturating(source, 7)).collect();
    let mut config = tight(1);
    config.host.sink_rate = Some(mbit(1));
    config.host.receive_buffer = Some(room(1));
    let mut engine = routed.engine(&config, &flows);
    for step in 1..=100 {
        engine.run_until(at(Span::from_ms(step))).unwrap();
    }
    engine.audit().unwrap();
    let script = engine.workload();
    let mut all: Vec<_> = script
        .records
        .iter()
        .flat_map(|record| record.delivered.clone())
        .collect();
    all.sort();
    assert_eq!(all.len(), 6);
    let service = payload_time(mbit(1), MTU);
    for period in periods(&all) {
        // With room for one packet, the next is sent when the last has been received.
        assert!(period > service && period < service + Span::from_us(10));
    }
}

/// Credits that are in flight for longer than the interval of deadlock checks.
#[test]
fn slow_credits_are_no_deadlock() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::row(&[&[kind], &[kind]], &[kind]);
    let mut config = tight(1);
    config.switch.credit_delay = Span::from_ms(5);
    let mut engine = routed.engine(&config, &[Flow::saturating(0, 1)]);
    for step in 1..=60 {
        engine.run_until(at(Span::from_us(999) * step)).unwrap();
    }
    assert!(engine.workload().records[0].delivered.len() >= 11);
}

/// Two hosts of one switch continue to send while the ring around it is blocked.
#[test]
fn a_deadlock_is_found_while_others_move() {
    let (switches, hosts_per_switch) = (5, 3);
    let routed = one_way_ring(switches, hosts_per_switch);
    let mut flows = round(0..switches, switches, hosts_per_switch, 3);
    flows.push(Flow::saturating(1, 2));
    let mut engine = routed.engine(&tight(2), &flows);
    let deadlock = deadlock_of(&mut engine);
    assert_is_ring(&routed, hosts_per_switch, &deadlock, vl(0));
    engine.audit().unwrap();
    let records = &engine.workload().records;
    let others = records[switches].delivered.last().unwrap();
    assert!(deadlock.at.since(*others) < Span::from_us(10), "they moved");
    for record in &records[..switches] {
        let last = record.delivered.last();
        assert!(last.is_none_or(|&last| deadlock.at.since(last) > Span::from_us(100)));
    }
}

/// The lane is part of the name: lane 1 is stuck, lane 0 crosses the same cables.
#[test]
fn a_deadlock_is_of_one_lane() {
    let switches = 4;
    let routed = one_way_ring(switches, 2);
    let mut flows = round(0..switches, switches, 2, 3);
    for flow in &mut flows {
        flow.sl = 1;
    }
    flows.extend((0..switches).map(|switch| {
        let next = (switch + 1) % switches;
        Flow::saturating(2 * switch + 1, 2 * next + 1)
    }));
    let mut engine = routed.engine(&two_lanes(tight(1)), &flows);
    let deadlock = deadlock_of(&mut engine);
    assert_is_ring(&routed, 2, &deadlock, vl(1));
    for record in &engine.workload().records[switches..] {
        let last = *record.delivered.last().unwrap();
        assert!(deadlock.at.since(last) < Span::from_us(10));
    }
    let receiver = engine.host_counters(HostId::new(1));
    assert!(receiver.delivered_packets > 100);
}

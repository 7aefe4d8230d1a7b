//! Packets that switches spread over shortest paths, and the order in which they arrive.

use silvan_cc::hooks::NoControl;
use silvan_core::{HostId, PortNumber, Span, Time};
use silvan_engine::Engine;
use silvan_fabric::generators::{Generator, Xgft};
use silvan_fabric::routing::{PathChoice, Routes, d_mod_k, minimal_alternatives};
use silvan_fabric::{Fabric, Node};

use crate::common::{at, cable, ddr_config};
use crate::script::{Flow, Script};

/// Two leaves with so many hosts each, and four spines.
fn tree(hosts: usize) -> Fabric {
    let tree = Xgft {
        children: vec![hosts, 2],
        parents: vec![1, 4],
        links: Vec::new(),
    };
    tree.build(cable("4x DDR 2 m")).unwrap()
}

type TestEngine = Engine<NoControl, NoControl, Script>;

fn run(fabric: &Fabric, choice: PathChoice, in_order: bool, flows: &[Flow]) -> TestEngine {
    let tables = d_mod_k(fabric).unwrap();
    let alternatives = minimal_alternatives(fabric).unwrap();
    let routes = Routes {
        alternatives: Some(&alternatives),
        choice,
        ..(&tables).into()
    };
    let mut config = ddr_config();
    config.host.in_order = in_order;
    let mut script = Script::new(flows, fabric.host_count());
    script.in_order = in_order || !choice.reorders();
    let mut engine = Engine::new(fabric, routes, &config, NoControl, NoControl, script).unwrap();
    for step in 1..=20 {
        engine.run_until(at(Span::from_us(100 * step))).unwrap();
        engine.audit().unwrap();
    }
    engine
}

/// Packets sent up by each of the four cables of the first leaf.
fn sent_up(fabric: &Fabric, engine: &TestEngine, hosts: usize) -> [u64; 4] {
    let leaf: &Node = fabric.switch(fabric.host_attachment(HostId::new(0)).0);
    std::array::from_fn(|index| {
        let port = leaf.port(PortNumber::new((hosts + index + 1) as u8));
        engine.port_counters(port.unwrap()).xmit_pkts
    })
}

/// A flow whose packets are distinguished by their sizes.
fn numbered(source: usize, destination: usize, packets: u64) -> Flow {
    Flow {
        packets,
        sizes: (0..packets).map(|number| 64 + number as u32).collect(),
        ..Flow::saturating(source, destination)
    }
}

const SPREADING: [PathChoice; 4] = [
    PathChoice::Adaptive,
    PathChoice::AdaptiveFree,
    PathChoice::SprayRandom,
    PathChoice::SprayRoundRobin,
];

#[test]
fn a_flow_takes_one_path_with_ecmp_and_flows_are_spread() {
    let fabric = tree(2);
    let engine = run(&fabric, PathChoice::Ecmp, false, &[numbered(0, 2, 400)]);
    let up = sent_up(&fabric, &engine, 2);
    assert_eq!(up.iter().filter(|sent| **sent > 0).count(), 1, "{up:?}");
    assert_eq!(up.iter().sum::<u64>(), 400);

    // A packet of each of 1,600 flows: a quarter, within five standard deviations of the binomial.
    let fabric = tree(2);
    let flows: Vec<Flow> = (0..1_600).map(|_| Flow::burst(0, 2, 1)).collect();
    let engine = run(&fabric, PathChoice::Ecmp, false, &flows);
    for sent in sent_up(&fabric, &engine, 2) {
        assert!(sent.abs_diff(400) < 87, "{sent}");
    }
}

#[test]
fn spraying_uses_all_paths_alike() {
    let fabric = tree(2);
    let flows = [Flow::burst(0, 2, 1_600), Flow::burst(1, 3, 1_600)];
    let engine = run(&fabric, PathChoice::SprayRoundRobin, false, &flows);
    assert_eq!(sent_up(&fabric, &engine, 2), [800; 4]);
    // Ports are free most of the time, and a random one of those is taken.
    for choice in [PathChoice::SprayRandom, PathChoice::AdaptiveFree] {
        let engine = run(&fabric, choice, false, &flows);
        for sent in sent_up(&fabric, &engine, 2) {
            assert!(sent.abs_diff(800) < 123, "{choice:?}: {sent}");
        }
    }
}

/// Flows whose paths are differently long, because others share some of the cables.
fn disturbed() -> Vec<Flow> {
    let mut flows: Vec<Flow> = (0..6)
        .map(|host| numbered(host, 6 + (host + 1) % 6, 900))
        .collect();
    flows.extend((0..6).map(|host| numbered(host, 6 + (host + 2) % 6, 900)));
    flows
}

/// Against the sizes in the order of delivery: a packet is reordered if a later one was delivered before it.
#[test]
fn reordered_packets_are_those_that_come_after_later_ones() {
    let fabric = tree(6);
    for choice in SPREADING {
        let engine = run(&fabric, choice, false, &disturbed());
        let (mut all, mut delivered) = (0, 0);
        let mut by_host = vec![0; fabric.host_count()];
        for (flow, sizes) in engine
            .workload()
            .flows
            .iter()
            .zip(&engine.workload().arrived)
        {
            let mut newest = 0;
            for &size in sizes {
                by_host[flow.destination] += u64::from(size < newest);
                all += u64::from(size < newest);
                newest = newest.max(size);
            }
            delivered += sizes.len();
        }
        assert_eq!(delivered, 12 * 900);
        assert!(all > 0, "{choice:?}");
        for (host, reordered) in fabric.host_ids().zip(by_host) {
            assert_eq!(
                engine.host_counters(host).reordered_packets,
                reordered,
                "{choice:?}"
            );
        }
    }
}

/// The script compares the size of each delivered packet with that of the next one sent. A packet is delivered when it arrives, or
/// right after the one before it.
#[test]
fn a_host_can_deliver_in_order() {
    let fabric = tree(6);
    for choice in SPREADING {
        let early = run(&fabric, choice, false, &disturbed());
        let ordered = run(&fabric, choice, true, &disturbed());
        let records = early
            .workload()
            .records
            .iter()
            .zip(&early.workload().arrived);
        let mut waited = false;
        for ((record, sizes), ordered) in records.zip(&ordered.workload().records) {
            assert_eq!(record.injected, ordered.injected);
            let mut arrived = vec![None; sizes.len()];
            for (size, done) in sizes.iter().zip(&record.delivered) {
                arrived[*size as usize - 64] = Some(*done);
            }
            let mut last = Time::ZERO;
            for (arrived, &delivered) in arrived.iter().zip(&ordered.delivered) {
                last = arrived.unwrap().max(last + Span::from_ps(1));
                assert_eq!(delivered, last);
                waited |= arrived.unwrap() < delivered;
            }
        }
        assert!(waited, "{choice:?}");
        for host in fabric.host_ids().skip(6) {
            let counters = (early.host_counters(host), ordered.host_counters(host));
            assert_eq!(counters.0.reordered_packets, counters.1.reordered_packets);
            let held = counters.1.most_held_bytes > 0;
            assert_eq!(held, counters.1.reordered_packets > 0);
            assert_eq!(counters.0.most_held_bytes, 0);
        }
    }
}

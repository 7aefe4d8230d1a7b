//! The engine against the reference model, on every topology with lanes that go up along the way.
//!
//! The reference knows lanes by service level: each flow has a level of its own, whose tables are the lanes of its path.

use proptest::prelude::*;
use proptest::sample::select;
use silvan_cc::hooks::NoControl;
use silvan_core::{Bytes, HostId, PortNumber, Span, Time};
use silvan_engine::Engine;
use silvan_fabric::generators::{Generator, Kind, Topology};
use silvan_fabric::routing::{LaneSteps, PathChoice, Routes, RoutingInput, SlToVlTables};
use silvan_reference::{Flow, Parameters, VlArbitration};

use super::case::Case;
use super::traffic::Flows;
use super::{config, first_difference};
use crate::common::{Routed, at, cable, parameters, room, sl};

const LANES: u8 = 6;
const MTU: u64 = 1024;

const TOPOLOGIES: [(Kind, &str); 10] = [
    (
        Kind::Dragonfly,
        r#"{"switches-per-group": 3, "hosts-per-switch": 1, "global-per-switch": 1}"#,
    ),
    (
        Kind::DragonflyPlus,
        r#"{"leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2, "global-per-spine": 1}"#,
    ),
    (Kind::HyperX, r#"{"sizes": [3, 2], "hosts-per-switch": 2}"#),
    (Kind::SlimFly, r#"{"q": 3}"#),
    (
        Kind::Jellyfish,
        r#"{"switches": 10, "hosts-per-switch": 1, "cables-per-switch": 3}"#,
    ),
    (Kind::Mesh, r#"{"sizes": [3, 3], "hosts-per-switch": 1}"#),
    (Kind::Torus, r#"{"sizes": [5], "hosts-per-switch": 2}"#),
    (
        Kind::LeafSpine,
        r#"{"leaf-hosts": [3, 1, 2], "spine-cables": [2, 1]}"#,
    ),
    (
        Kind::RailOptimised,
        r#"{"servers": 4, "gpus-per-server": 2, "servers-per-pod": 2, "spines": 1,
            "server-link": {"speed": "QDR"}}"#,
    ),
    (
        Kind::Xgft,
        r#"{"children": [2, 2, 2], "parents": [1, 2, 1], "links": [{}, {"speed": "QDR"}]}"#,
    ),
];

fn built((kind, keys): (Kind, &str)) -> (Topology, Routed) {
    let keys: serde_json::Value = serde_json::from_str(keys).unwrap();
    let topology = kind.read(&keys).unwrap();
    let fabric = topology.build(cable("4x DDR 3 m")).unwrap();
    let input = RoutingInput {
        fabric: &fabric,
        topology: Some(&topology),
        data_vls: 1,
    };
    let routing = topology.routing_for(PathChoice::Valiant);
    let (tables, _) = routing.algorithm().unwrap().routes(input).unwrap();
    (topology, Routed { fabric, tables })
}

/// Tables in which the service level of each flow has the lanes of its path.
fn tables(routed: &Routed, steps: &LaneSteps, flows: &[Flow]) -> SlToVlTables {
    let Routed { fabric, tables } = routed;
    let mut lanes = SlToVlTables::default();
    for flow in flows {
        let (mut at, mut entry) = fabric.host_attachment(flow.source);
        let lid = fabric.host(flow.destination).lid;
        let (mut lane, mut kind) = (0, 0);
        loop {
            let number = |port| fabric.ports[port].number;
            let out = fabric
                .switch(at)
                .port(tables.get(at, lid).unwrap())
                .unwrap();
            let next = steps.kind(out);
            lane += u8::from(kind != 0 && next != 0 && next <= kind);
            kind = next;
            let pair: (PortNumber, PortNumber) = (number(entry), number(out));
            let known = lanes.switch(at, pair.0, pair.1);
            let mut vls = known.copied().unwrap_or([0; 16]);
            vls[flow.sl.index()] = lane;
            lanes.set_switch(at, pair.0, pair.1, vls);
            match fabric.peer_switch(out) {
                Some((switch, port)) => (at, entry) = (switch, port),
                None => break,
            }
        }
    }
    lanes
}

/// Up to 16 flows of the hosts of a fabric with so many.
fn flows(hosts: usize) -> impl Strategy<Value = Vec<Flow>> {
    let flow = (0..hosts, 1..hosts, 0_u64..2_000, 1_u64..30, 1_u64..=MTU);
    proptest::collection::vec(flow, 4..=16).prop_map(move |drawn| {
        let flows = drawn.into_iter().enumerate();
        flows
            .map(|(index, (source, ahead, start, packets, payload))| Flow {
                source: HostId::new(source),
                destination: HostId::new((source + ahead) % hosts),
                sl: sl(index as u8),
                start: Time::ZERO + Span::from_ns(start),
                packets: Some(packets),
                payload: Bytes::from_bytes(payload),
                gap: Span::ZERO,
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_on_lanes_that_go_up_arrive_at_the_same_picosecond(
        (topology, flows) in select(TOPOLOGIES.to_vec())
            .prop_flat_map(|named| (Just(named), flows(built(named).1.fabric.host_count()))),
        packets in 1_u64..4,
    ) {
        let (topology, routed) = built(topology);
        let steps = topology.lane_steps(&routed.fabric).with_lanes(LANES);
        let mut wanted: Parameters = parameters();
        wanted.data_vls = LANES;
        wanted.switch.buffer = room(packets, MTU);
        wanted.switch.vl_arbitration = VlArbitration::equal(LANES, 255);
        let case = Case::of(wanted.clone(), Bytes::from_bytes(MTU), flows.clone());
        wanted.tables = Some(tables(&routed, &steps, &flows));
        let until = at(Span::from_ms(5));
        let model = routed.run(&wanted, &flows, until);
        prop_assert_eq!(model.packets_under_way(), 0);
        let routes = Routes { steps: Some(&steps), ..(&routed.tables).into() };
        let workload = Flows::new(&flows, routed.fabric.host_count());
        let config = config(&case);
        let mut engine =
            Engine::new(&routed.fabric, routes, &config, NoControl, NoControl, workload).unwrap();
        engine.run_until(until).unwrap();
        engine.audit().unwrap();
        prop_assert_eq!(first_difference(&model, &engine), None);
    }
}

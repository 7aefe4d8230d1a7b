//! Equal inputs give equal runs, for any division of a run into calls.

use proptest::collection::vec;
use proptest::prelude::*;
use silvan_cc::schemes::ib_cc::{
    IbAdapter, IbParameters, IbSwitch, MarkingMode, ThresholdMap, ThresholdWeight,
};
use silvan_core::{Bytes, HostId, PortCounters, Sl, Span, Time};
use silvan_engine::{BecnCarrier, Engine, FeedbackParams, HostCounters};
use silvan_fabric::generators::{Chain, Generator};

use crate::common::{
    MTU, Routed, at, cable, ddr_config, mbit, room, through_fabric, two_lanes, vl,
};
use crate::lossless::runner;
use crate::script::{Flow, Record, Script};

const END: u64 = 300_000_000;

type Controlled = Engine<IbSwitch, IbAdapter, Script>;

/// A chain with two lanes, slow sinks, throttled flows, random marks and notifications in band.
fn engine(seed: u64) -> (Routed, Controlled) {
    let chain = Chain {
        switches: 4,
        hosts_per_switch: 3,
    };
    let routed = Routed::new(chain.build(cable("4x DDR 3 m")).unwrap());
    let mut config = two_lanes(ddr_config());
    config.switch.buffer = Some(room(6));
    config.switch.read_limit = Some(2);
    config.host.injection_rate = Some(mbit(13_500));
    config.host.sink_rate = Some(mbit(13_600));
    config.feedback = FeedbackParams {
        carrier: Some(BecnCarrier::Cnp),
        charge: Bytes::from_bytes(64),
        ..through_fabric(Some(Sl::try_from(1).unwrap()), Bytes::from_bytes(64), false)
    };
    let map = ThresholdMap::Linear {
        lowest_bytes: 4000,
        highest_bytes: 20_000,
    };
    let mut parameters = IbParameters::gran2012(0.5, map).unwrap();
    parameters.switch.marking.threshold = ThresholdWeight::MAX;
    parameters.switch.marking.marking_rate = 2;
    parameters.switch.marking_mode = MarkingMode::Random;
    let flows: Vec<_> = (0..36)
        .map(|index| {
            let source = index % 12;
            Flow {
                sl: (index % 2) as u8,
                sizes: vec![MTU, 300 + index as u32, 1, 1024],
                start: Time::from_ps(index as u64 * 1_234_567),
                gap: Span::from_ps(index as u64 % 5 * 777_777),
                ..Flow::saturating(source, (source + 1 + index * 7 % 11) % 12)
            }
        })
        .collect();
    let ports = routed.switch_ports();
    let switch = parameters.build_switch(&ports, 2, seed).unwrap();
    let adapter = parameters.build_adapter(12, seed).unwrap();
    let engine = routed.controlled(&config, switch, adapter, &flows);
    (routed, engine)
}

/// Everything that can be read.
#[derive(Debug, PartialEq)]
struct State {
    events: u64,
    packet_hops: u64,
    delivered_packets: u64,
    ports: Vec<PortCounters>,
    hosts: Vec<HostCounters>,
    queued: Vec<Bytes>,
    credits: Vec<u32>,
    classes: Vec<Option<(u64, u64, u64, u64)>>,
    records: Vec<Record>,
    order: Vec<usize>,
}

fn state(routed: &Routed, engine: &mut Controlled) -> State {
    let ports: Vec<_> = routed.fabric.ports.ids().collect();
    let lanes = || {
        let ports = ports.iter();
        ports.flat_map(|&port| [(port, vl(0)), (port, vl(1))])
    };
    State {
        events: engine.events(),
        packet_hops: engine.packet_hops(),
        delivered_packets: engine.delivered_packets(),
        ports: ports
            .iter()
            .map(|&port| engine.port_counters(port))
            .collect(),
        hosts: (0..12)
            .map(|host| engine.host_counters(HostId::new(host)))
            .collect(),
        queued: lanes().map(|(port, vl)| engine.queued(port, vl)).collect(),
        credits: lanes().map(|(port, vl)| engine.credits(port, vl)).collect(),
        classes: (0..36)
            .map(|class| {
                let class = engine.class(class)?;
                let median = class.latency()?.quantile_ns(0.5);
                let (bytes, packets) = (class.delivered_bytes, class.delivered_packets);
                Some((bytes, packets, class.marked_packets, median))
            })
            .collect(),
        records: engine.workload().records.clone(),
        order: engine.workload().order.clone(),
    }
}

fn whole_run(seed: u64) -> State {
    let (routed, mut engine) = engine(seed);
    engine.run_until(Time::from_ps(END)).unwrap();
    state(&routed, &mut engine)
}

#[test]
fn a_run_is_a_function_of_its_inputs() {
    let first = whole_run(1);
    assert_eq!(first, whole_run(1));
    let marks = |state: &State| -> u64 { state.hosts.iter().map(|host| host.fecn_received).sum() };
    assert!(marks(&first) > 0);
    // Another seed draws other marks, so the comparison above is not of two constants.
    assert_ne!(first.records, whole_run(2).records);
}

/// Boundaries, audits and readings in between leave no trace; at each boundary exactly the
/// deliveries before it have been counted.
#[test]
fn pieces_make_the_same_run() {
    let whole = whole_run(3);
    let pieces = vec(0..END, 1..40);
    let result = runner(24).run(&pieces, |mut boundaries| {
        boundaries.sort_unstable();
        let (routed, mut engine) = engine(3);
        for boundary in boundaries.into_iter().map(Time::from_ps) {
            engine.run_until(boundary).unwrap();
            engine.audit().unwrap();
            let now = state(&routed, &mut engine);
            let script = engine.workload();
            for (flow, record) in whole.records.iter().enumerate() {
                let count = record.delivered_in(Time::ZERO, boundary);
                prop_assert_eq!(now.records[flow].delivered.len() as u64, count);
                let counted = now.classes[flow].map_or((0, 0), |class| (class.0, class.1));
                prop_assert_eq!(counted, (script.payload(flow, count as usize), count));
            }
        }
        engine.run_until(Time::from_ps(END)).unwrap();
        prop_assert_eq!(&state(&routed, &mut engine), &whole);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A boundary at the very instant of a delivery leaves it to the next piece.
#[test]
fn a_delivery_at_the_boundary_comes_after_it() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 2]);
    let flow = [Flow::burst(0, 1, 1)];
    let config = ddr_config();
    let done = routed.run(&config, &flow, Span::from_ms(1)).records[0].delivered[0];
    let mut engine = routed.engine(&config, &flow);
    let delivered = |engine: &crate::common::PlainEngine| {
        engine.host_counters(HostId::new(1)).delivered_packets
    };
    engine.run_until(done).unwrap();
    assert_eq!(delivered(&engine), 0);
    assert_eq!(engine.now(), done);
    engine.run_until(done + Span::from_ps(1)).unwrap();
    assert_eq!(delivered(&engine), 1);
    // Going back is not possible, and does nothing.
    engine.run_until(at(Span::ZERO)).unwrap();
    assert_eq!(delivered(&engine), 1);
    assert_eq!(engine.now(), done + Span::from_ps(1));
}

//! Notifications: each arrives once, acknowledges what it should, and not too often.

use std::collections::BTreeMap;

use silvan_cc::hooks::{Feedback, Flow as QueuePair, SourceControl};
use silvan_cc::schemes::ib_cc::{IbAdapter, IbParameters, IbSwitch, ThresholdMap};
use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, Sl, Span, Time};
use silvan_engine::{BecnCarrier, Engine, EngineConfig, FeedbackParams};
use silvan_fabric::generators::{Generator, TwoSwitchTestbed};

use crate::common::{MTU, Routed, at, ddr_config, past_fabric, through_fabric, two_lanes};
use crate::script::{Flow, Script};

const STOP: Span = Span::from_ms(3);
const DRAINED: Span = Span::from_ms(6);

/// An adapter that notes what reaches it.
#[derive(Debug)]
struct Listener {
    adapter: IbAdapter,
    heard: BTreeMap<QueuePair, Vec<(Time, Feedback)>>,
}

impl SourceControl for Listener {
    fn release(&mut self, now: Time, flow: QueuePair) -> Time {
        self.adapter.release(now, flow)
    }

    fn on_send(&mut self, now: Time, flow: QueuePair, wire_time: Span, payload: u32) {
        self.adapter.on_send(now, flow, wire_time, payload);
    }

    fn on_feedback(&mut self, now: Time, flow: QueuePair, feedback: Feedback) -> bool {
        self.heard.entry(flow).or_default().push((now, feedback));
        self.adapter.on_feedback(now, flow, feedback)
    }
}

/// The testbed with three contributors and a victim, run until everything has drained.
fn drained(config: &EngineConfig) -> Engine<IbSwitch, Listener, Script> {
    let routed = Routed::new(TwoSwitchTestbed {}.build(TwoSwitchTestbed::TRUNK).unwrap());
    let flows = [(0, 3), (1, 3), (2, 3), (4, 5), (3, 0)].map(|(from, to)| Flow {
        stop: at(STOP),
        sizes: vec![MTU, 1500, 1000],
        message: 3,
        ..Flow::saturating(from, to)
    });
    let map = ThresholdMap::Linear {
        lowest_bytes: 4000,
        highest_bytes: 20_000,
    };
    let parameters = IbParameters::gran2012(0.2, map).unwrap();
    let ports = routed.switch_ports();
    let switch = parameters.build_switch(&ports, config.data_vls, 5).unwrap();
    let listener = Listener {
        adapter: parameters.build_adapter(6, 5).unwrap(),
        heard: BTreeMap::new(),
    };
    let mut engine = routed.controlled(config, switch, listener, &flows);
    engine.run_until(at(DRAINED)).unwrap();
    engine.audit().unwrap();
    assert_eq!(engine.notifications_inside(), 0);
    for record in &engine.workload().records {
        assert_eq!(record.delivered.len(), record.injected.len());
    }
    engine
}

/// Returns the feedback received by the source of script flow `flow`.
fn heard(engine: &Engine<IbSwitch, Listener, Script>, flow: usize) -> &[(Time, Feedback)] {
    let flow = &engine.workload().flows[flow];
    let pair = QueuePair {
        source: HostId::new(flow.source),
        destination: HostId::new(flow.destination),
        sl: Sl::try_from(flow.sl).unwrap(),
        queue: 0,
    };
    let heard = engine.source_control().heard.get(&pair);
    heard.map_or(&[], Vec::as_slice)
}

fn paths() -> Vec<FeedbackParams> {
    let mut paths = vec![past_fabric(Span::from_us(2))];
    for sl in [None, Some(1)] {
        let sl = sl.map(|sl| Sl::try_from(sl).unwrap());
        for priority in [false, true] {
            paths.push(through_fabric(sl, Bytes::from_bytes(64), priority));
            paths.push(through_fabric(sl, Bytes::from_bytes(2074), priority));
        }
    }
    paths
}

/// One CNP per marked packet, to the flow of the packet, neither lost nor doubled on any path.
#[test]
fn every_mark_comes_back_once() {
    for path in paths() {
        let mut config = two_lanes(ddr_config());
        config.feedback = path;
        let engine = drained(&config);
        let mut total = 0;
        for flow in 0..5 {
            let marked = engine.class(flow).unwrap().marked_packets;
            let heard = heard(&engine, usize::from(flow));
            assert_eq!(heard.len() as u64, marked, "flow {flow}, {path:?}");
            assert!(heard.iter().all(|(_, feedback)| *feedback == Feedback::Cnp));
            total += marked;
        }
        assert!(total > 100, "{total} marks, {path:?}");
        let sum = |count: fn(silvan_engine::HostCounters) -> u64| -> u64 {
            let hosts = (0..6).map(HostId::new);
            hosts.map(|host| count(engine.host_counters(host))).sum()
        };
        assert_eq!(sum(|host| host.fecn_received), total);
        assert_eq!(sum(|host| host.becn_received), total);
    }
}

/// One acknowledgement per packet, in order and for its bytes; those with BECN are as many as marks.
#[test]
fn acknowledgements_per_packet_add_up() {
    for path in paths() {
        let mut config = two_lanes(ddr_config());
        config.feedback = path;
        config.feedback.carrier = Some(BecnCarrier::AckPerPacket);
        let engine = drained(&config);
        for flow in 0..5 {
            let script = engine.workload();
            let delivered = script.records[flow].delivered.len();
            let acknowledged: Vec<_> = heard(&engine, flow)
                .iter()
                .map(|(_, feedback)| match feedback {
                    Feedback::Ack { bytes, becn } => (*bytes, *becn),
                    Feedback::Cnp => panic!("a CNP"),
                })
                .collect();
            let bytes: Vec<_> = acknowledged.iter().map(|ack| ack.0).collect();
            let expected: Vec<_> = (0..delivered)
                .map(|sequence| script.flows[flow].size(sequence))
                .collect();
            assert_eq!(bytes, expected, "flow {flow}, {path:?}");
            let becns = acknowledged.iter().filter(|ack| ack.1).count() as u64;
            let marked = engine.class(flow as u16).unwrap().marked_packets;
            assert_eq!(becns, marked);
        }
    }
}

/// One acknowledgement per whole message of three packets, for all of its bytes.
#[test]
fn acknowledgements_per_message_add_up() {
    for path in paths() {
        let mut config = two_lanes(ddr_config());
        config.feedback = path;
        config.feedback.carrier = Some(BecnCarrier::AckPerMessage);
        let engine = drained(&config);
        for flow in 0..5 {
            let messages = engine.workload().records[flow].delivered.len() / 3;
            assert!(messages > 10);
            let heard = heard(&engine, flow);
            assert_eq!(heard.len(), messages, "flow {flow}, {path:?}");
            let mut becns = 0;
            for (_, feedback) in heard {
                let Feedback::Ack { bytes, becn } = *feedback else {
                    panic!("a CNP");
                };
                assert_eq!(bytes, MTU + 1500 + 1000);
                becns += u64::from(becn);
            }
            let marked = engine.class(flow as u16).unwrap().marked_packets;
            // A BECN reports one to three marks; those of a last, unfinished message for none.
            assert!(becns <= marked && marked <= 3 * becns + 2);
        }
    }
}

/// At most one CNP of a flow in each interval: in 3 ms at 50 us at most 61, and never two at a
/// shorter distance.
#[test]
fn coalescing_bounds_the_number_of_notifications() {
    let interval = Span::from_us(50);
    let mut feedback = past_fabric(Span::from_us(2));
    feedback.coalesce = Some(Limit::At(interval));
    let config = EngineConfig {
        feedback,
        ..ddr_config()
    };
    let engine = drained(&config);
    for flow in 0..3 {
        let heard = heard(&engine, flow);
        let marked = engine.class(flow as u16).unwrap().marked_packets;
        let most = DRAINED.as_ps() / interval.as_ps() + 1;
        assert!(heard.len() > 5 && heard.len() as u64 <= most);
        assert!((heard.len() as u64) < marked);
        for pair in heard.windows(2) {
            assert!(pair[1].0.since(pair[0].0) >= interval);
        }
    }
}

/// Out of band a notification takes its constant time from the delivery of the packet on.
#[test]
fn out_of_band_the_delay_is_constant() {
    let delay = Span::from_ns(1234);
    let mut feedback = past_fabric(delay);
    feedback.carrier = Some(BecnCarrier::AckPerPacket);
    let config = EngineConfig {
        feedback,
        ..ddr_config()
    };
    let engine = drained(&config);
    for flow in 0..5 {
        let instants: Vec<_> = heard(&engine, flow).iter().map(|(at, _)| *at).collect();
        let expected: Vec<_> = engine.workload().records[flow]
            .delivered
            .iter()
            .map(|&done| done + delay)
            .collect();
        assert_eq!(instants, expected);
    }
}

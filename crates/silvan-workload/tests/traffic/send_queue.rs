//! A queue per host instead of per destination, and messages to the own host.

use silvan_cc::workload::Workload;
use silvan_core::{Bytes, HostId, Sl, Span, Time};
use silvan_workload::traffic::{Environment, Flow, SendQueue, Traffic, TrafficSection};

use crate::mock::{
    MTU, MockHost, environment, flow, flows, host, injection_time, nodes, only_nodes,
};

const PER_DESTINATION: SendQueue = SendQueue::PerDestination;

/// Two flows of messages of two packets and a short one.
fn two_flows() -> TrafficSection {
    let message = Some(Bytes::from_bytes(2 * MTU + 500));
    flows(
        [1, 2]
            .map(|to| Flow {
                message,
                ..flow(0, to)
            })
            .to_vec(),
    )
}

fn build(spec: &TrafficSection, hosts: usize, send_queue: SendQueue) -> Traffic {
    let environment = Environment {
        send_queue,
        ..environment(hosts, 1)
    };
    Traffic::new(spec, &environment).unwrap()
}

fn destinations(mock: &mut MockHost, send_queue: SendQueue, packets: usize) -> Vec<usize> {
    mock.send_packets(&mut build(&two_flows(), 8, send_queue), packets);
    mock.log.iter().map(|sent| sent.offer.dst.index()).collect()
}

#[test]
fn a_fifo_sends_message_by_message() {
    let packets = destinations(&mut MockHost::unthrottled(0), PER_DESTINATION, 6);
    assert_eq!(packets, [1, 2, 1, 2, 1, 2]);
    let mut mock = MockHost::unthrottled(0);
    assert_eq!(
        destinations(&mut mock, SendQueue::Fifo, 6),
        [1, 1, 1, 2, 2, 2]
    );
    let sizes: Vec<_> = mock.log.iter().map(|sent| sent.offer.bytes).collect();
    assert_eq!(sizes, [2048, 2048, 500, 2048, 2048, 500]);
    let last: Vec<_> = mock.log.iter().map(|sent| sent.offer.last).collect();
    assert_eq!(last, [false, false, true, false, false, true]);
}

/// A throttled message at the head of a FIFO holds back the messages to other hosts; queues per
/// destination do not.
#[test]
fn a_throttled_head_blocks_a_fifo() {
    let release = Time::ZERO + Span::from_us(100);
    for (send_queue, blocks) in [(PER_DESTINATION, false), (SendQueue::Fifo, true)] {
        let mut traffic = build(&two_flows(), 8, send_queue);
        let mut mock = MockHost::unthrottled(0);
        mock.throttled.insert((host(1), Sl::ZERO), release);
        mock.send_packets(&mut traffic, 1);
        let first = mock.log[0];
        if blocks {
            assert_eq!((first.at, first.offer.dst), (release, host(1)));
        } else {
            assert_eq!((first.at, first.offer.dst), (Time::ZERO, host(2)));
        }
    }
}

/// With an open gate, the order of messages has no effect for a host with one source.
#[test]
fn an_open_gate_makes_a_fifo_the_same() {
    let spec = only_nodes(nodes(1.0, 0.0, 0.0, 0.0));
    let log = |send_queue| {
        let mut traffic = build(&spec, 64, send_queue);
        let mut mock = MockHost::unthrottled(3);
        mock.send_packets(&mut traffic, 1000);
        mock.log
    };
    assert_eq!(log(PER_DESTINATION), log(SendQueue::Fifo));
}

/// Destinations are drawn from all hosts, the sender included, alike.
#[test]
fn with_loopback_a_host_draws_itself_too() {
    let (hosts, packets, own) = (16_usize, 64_000, HostId::new(5));
    let spec = TrafficSection {
        loopback: true,
        message: Some(Bytes::from_bytes(MTU)),
        ..only_nodes(nodes(1.0, 0.0, 0.0, 0.0))
    };
    let mut traffic = Traffic::new(&spec, &environment(hosts, 1)).unwrap();
    let mut counts = vec![0.0; hosts];
    let mut gate = Open;
    let mut now = traffic_start();
    for _ in 0..packets {
        let silvan_cc::workload::Poll::Send(offer) = traffic.poll(own, now, &mut gate) else {
            panic!("nothing to send");
        };
        counts[offer.dst.index()] += 1.0;
        now += injection_time(MTU);
    }
    let mean = f64::from(packets) / hosts as f64;
    // Five standard deviations of a binomial count.
    assert!(
        counts
            .iter()
            .all(|count: &f64| (count - mean).abs() < 5.0 * mean.sqrt()),
        "{counts:?}"
    );
    // All V nodes together offer each host its own rate.
    assert!((traffic.tmax(now) / 13.5e9 - 1.0).abs() < 1e-9);
}

/// After every random start offset.
fn traffic_start() -> Time {
    Time::ZERO + Span::from_us(10)
}

struct Open;

impl silvan_cc::workload::Gate for Open {
    fn release(&mut self, _: HostId, _: Sl) -> Time {
        Time::ZERO
    }

    fn lane_open(&mut self, _: Sl, _: u32) -> bool {
        true
    }
}

//! Reliable connections: go-back-N, timeouts, and what arrives.

use silvan_core::{HostId, PortId, Span, Time};
use silvan_engine::{EngineConfig, OnWire, RetryParams};
use silvan_model::bit_errors::{BitErrors, ErrorTimes, PlannedBitErrors};

use crate::common::{MTU, PlainEngine, Routed, WIRE, at, cable, ddr_config, propagation, ser};
use crate::script::Flow;

const CABLE: &str = "4x DDR 2 m";

fn with_retries(retry: RetryParams) -> EngineConfig {
    let mut config = ddr_config();
    config.host.retry = Some(retry);
    config
}

/// Timeout of 16.4 us, longer than any round trip of these tests.
const RETRY: RetryParams = RetryParams {
    timeout: 2,
    retry_count: 7,
    window: 64,
};

fn with_errors(config: EngineConfig, port: PortId, rate: f64, times: ErrorTimes) -> EngineConfig {
    let errors = BitErrors {
        rate,
        bursts: None,
        retransmits: false,
        replay_latency: None,
        retraining: Span::ZERO,
    };
    EngineConfig {
        bit_errors: vec![PlannedBitErrors {
            port,
            errors,
            times,
        }],
        ..config
    }
}

const ALWAYS: ErrorTimes = ErrorTimes {
    at: Time::ZERO,
    lasts: None,
    every: None,
};

fn errors_for(lasts: Span) -> ErrorTimes {
    ErrorTimes {
        lasts: Some(lasts),
        ..ALWAYS
    }
}

/// Two hosts at a switch, and the ports that receive the flow: the switch's, and the host's.
fn pair() -> (Routed, [PortId; 2]) {
    let routed = Routed::star(&[cable(CABLE); 2]);
    let host = routed.fabric.host_port(HostId::new(1));
    let first = routed.port_to(0);
    (routed, [first, host])
}

fn run(routed: &Routed, config: &EngineConfig, flow: Flow, time: Span) -> PlainEngine {
    let mut engine = routed.engine(config, &[flow]);
    engine.run_until(at(time)).unwrap();
    engine.audit().unwrap();
    engine
}

/// Delivery of the only packet of a good run.
fn alone(routed: &Routed) -> Time {
    let engine = run(
        routed,
        &ddr_config(),
        Flow::burst(0, 1, 1),
        Span::from_ms(1),
    );
    engine.workload().records[0].delivered[0]
}

/// Time from the start of a packet to its acknowledgement.
fn round_trip(routed: &Routed) -> Span {
    alone(routed).since(Time::ZERO) + ddr_config().feedback.delay
}

/// Oracle: the deliveries of the run without retries, if no packet is lost and the window covers the round trip.
#[test]
fn retries_change_nothing_without_losses() {
    let (routed, _) = pair();
    let flow = || Flow::saturating(0, 1);
    let plain = run(&routed, &ddr_config(), flow(), Span::from_us(300));
    let retrying = run(&routed, &with_retries(RETRY), flow(), Span::from_us(300));
    assert_eq!(plain.workload().records, retrying.workload().records);
    assert_eq!(retrying.host_counters(HostId::new(0)).retries, 0);
}

/// Oracle: W packets per round trip.
#[test]
fn window_bounds_the_throughput() {
    let (routed, _) = pair();
    let packet = ser(cable(CABLE), MTU);
    for window in [1, 2, 3] {
        let round_trip = round_trip(&routed);
        assert!(packet.as_ps() * u64::from(window) < round_trip.as_ps());
        let config = with_retries(RetryParams { window, ..RETRY });
        let time = Span::from_ms(2);
        let engine = run(&routed, &config, Flow::saturating(0, 1), time);
        let rounds = time.as_ps() / round_trip.as_ps();
        let sent = engine.workload().records[0].injected.len() as u64;
        let expected = rounds * u64::from(window);
        assert!(
            sent.abs_diff(expected) <= u64::from(window),
            "{sent}, {expected}"
        );
    }
}

/// Oracle: a lost packet costs N packets, from its start to the NAK that the next packet causes; a packet lost again costs
/// a timeout. With the probability p of a loss, a packet then takes 1 + p N + p^2 M / (1 - p) packet times.
#[test]
fn goodput_of_go_back_n_is_the_closed_form() {
    let (routed, ports) = pair();
    let packet = ser(cable(CABLE), MTU).as_ps();
    let time = Span::from_ms(100);
    let nak = packet + round_trip(&routed).as_ps();
    let timeout = RETRY.wait().unwrap().as_ps();
    for port in ports {
        for rate in [1e-7, 1e-6, 3e-6] {
            let config = with_errors(with_retries(RETRY), port, rate, ALWAYS);
            let engine = run(&routed, &config, Flow::saturating(0, 1), time);
            let p = 1.0 - (1.0 - rate).powi(WIRE as i32 * 8);
            let (n, m) = (nak.div_ceil(packet) as f64, timeout as f64 / packet as f64);
            let each = 1.0 + p * n + p * p * m / (1.0 - p);
            let slots = time.as_ps() as f64 / packet as f64;
            let expected = slots / each;
            let got = engine.delivered_packets() as f64;
            // Of the number of losses, and some packets at the end.
            let deviation = (slots * p).sqrt() * n / each + n;
            assert!(
                (got - expected).abs() < 4.0 * deviation,
                "{got}, not {expected} +- {deviation} at {rate}"
            );
            assert!(p < 1e-3 || (got / expected - 1.0).abs() < 0.03);
            let lost = engine.port_counters(port).rcv_errors;
            let counters = engine.host_counters(HostId::new(0));
            assert!(
                counters.retries > 0 && counters.retries <= lost + 1,
                "{counters:?}"
            );
            assert_eq!(counters.failed_connections, 0);
        }
    }
}

/// Oracle: the payload of every packet once, in order (the script checks sizes), whatever is lost on both links.
#[test]
fn every_packet_arrives_once_and_in_order() {
    let (routed, ports) = pair();
    for (port, seed) in ports.into_iter().zip(1..) {
        let config = EngineConfig {
            seed,
            ..with_errors(with_retries(RETRY), port, 1e-5, ALWAYS)
        };
        let flow = Flow {
            sizes: (0..13).map(|step| 100 + step * 150).collect(),
            ..Flow::burst(0, 1, 2_000)
        };
        let engine = run(&routed, &config, flow, Span::from_ms(50));
        let delivered = engine.workload().records[0].delivered.len();
        assert_eq!(delivered, 2_000);
        let counters = engine.host_counters(HostId::new(1));
        let payload = engine.workload().payload(0, 2_000);
        assert_eq!(counters.delivered_bytes, payload);
        let sender = engine.host_counters(HostId::new(0));
        assert!(sender.retries > 50, "{sender:?}");
        // Bytes that were sent and not delivered were discarded.
        assert_eq!(sender.injected_bytes - payload, sender.resent_bytes);
        assert_eq!(engine.discarded_bytes(), sender.resent_bytes);
    }
}

/// Oracle: k timeouts of 4.096 us times 2^n each, and the time of a packet alone; no later packet shows the loss.
#[test]
fn lost_last_packet_is_sent_again_after_each_timeout() {
    let (routed, [port, _]) = pair();
    let good = alone(&routed);
    for (timeout, times) in [(0, 0_u64), (1, 1), (2, 1), (2, 4), (5, 2)] {
        let retry = RetryParams { timeout, ..RETRY };
        let wait = retry.wait().unwrap_or(Span::from_us(50));
        // 16.6 errors in the packet: it is good with a probability of 6e-8.
        let lasts = match times {
            0 => wait,
            times => Span::from_ps(wait.as_ps() * times - 1_000),
        };
        let config = with_errors(with_retries(retry), port, 1e-3, errors_for(lasts));
        let engine = run(&routed, &config, Flow::burst(0, 1, 1), Span::from_ms(2));
        let delivered = &engine.workload().records[0].delivered;
        let retries = engine.host_counters(HostId::new(0)).retries;
        if timeout == 0 {
            assert!(delivered.is_empty() && retries == 0);
            continue;
        }
        assert_eq!(*delivered, [good + wait * times]);
        assert_eq!(retries, times);
    }
}

/// Oracle: the first packet, and one for each retry.
#[test]
fn connection_fails_after_its_last_retry() {
    let (routed, [port, _]) = pair();
    for retry_count in [0, 1, 7] {
        let retry = RetryParams {
            retry_count,
            timeout: 1,
            ..RETRY
        };
        let config = with_errors(with_retries(retry), port, 1e-3, ALWAYS);
        let engine = run(&routed, &config, Flow::burst(0, 1, 1), Span::from_ms(1));
        let counters = engine.host_counters(HostId::new(0));
        assert_eq!(counters.failed_connections, 1);
        assert_eq!(counters.retries, u64::from(retry_count));
        assert_eq!(
            counters.resent_bytes,
            u64::from(MTU) * u64::from(retry_count)
        );
        assert!(engine.flow(0, HostId::new(0)).has_failed);
        assert_eq!(engine.delivered_packets(), 0);
    }
}

/// Oracle: the packets of a burst are sent once more at each timeout, and arrive after the first one behind the repair.
#[test]
fn burst_completes_at_the_first_timeout_after_a_repair() {
    let (routed, _) = pair();
    let packets = 20;
    let good = run(
        &routed,
        &ddr_config(),
        Flow::burst(0, 1, packets),
        Span::from_ms(1),
    );
    let good = *good.workload().records[0].delivered.last().unwrap();
    let retry = RetryParams {
        timeout: 4,
        ..RETRY
    };
    let wait = retry.wait().unwrap();
    for (repaired, timeouts) in [(Span::from_us(30), 1), (Span::from_us(170), 3)] {
        assert!(wait * (timeouts - 1) < repaired && repaired < wait * timeouts);
        let mut engine = routed.engine(&with_retries(retry), &[Flow::burst(0, 1, packets)]);
        engine.discard_unroutable(true);
        let to_receiver = routed.port_to(1);
        engine.close_port(to_receiver, OnWire::Lost);
        engine.run_until(at(repaired)).unwrap();
        engine.open_port(to_receiver);
        engine.run_until(at(Span::from_ms(1))).unwrap();
        engine.audit().unwrap();
        let delivered = &engine.workload().records[0].delivered;
        assert_eq!(delivered.len() as u64, packets);
        assert_eq!(*delivered.last().unwrap(), good + wait * timeouts);
        assert_eq!(engine.host_counters(HostId::new(0)).retries, timeouts);
        // Propagation of the last packet included, no event is left that sends anything again.
        let sent = engine
            .port_counters(routed.fabric.host_port(HostId::new(0)))
            .xmit_pkts;
        assert_eq!(sent, packets * (timeouts + 1));
        assert!(propagation(cable(CABLE)) < wait);
    }
}

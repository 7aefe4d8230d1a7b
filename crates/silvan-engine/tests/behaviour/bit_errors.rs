//! Links with bit errors: shares of bad packets, replays, counters, credits.

use silvan_core::{PortCounters, PortId, Span, Time};
use silvan_engine::EngineConfig;
use silvan_fabric::LinkKind;
use silvan_model::bit_errors::{BitErrors, ErrorProcess, ErrorTimes, PlannedBitErrors};

use crate::common::{MTU, PlainEngine, Routed, WIRE, at, cable, ddr_config, propagation, ser};
use crate::script::Flow;

const CABLE: &str = "4x DDR 2 m";
const ALWAYS: ErrorTimes = ErrorTimes {
    at: Time::ZERO,
    lasts: None,
    every: None,
};

fn errors(rate: f64, retransmits: bool) -> BitErrors {
    BitErrors {
        rate,
        bursts: None,
        retransmits,
        replay_latency: None,
        retraining: Span::ZERO,
    }
}

fn with_errors(port: PortId, errors: BitErrors, times: ErrorTimes) -> EngineConfig {
    EngineConfig {
        bit_errors: vec![PlannedBitErrors {
            port,
            errors,
            times,
        }],
        ..ddr_config()
    }
}

/// Two hosts at a switch, and the switch's port to the sender: the first and the last link of the flow.
fn pair() -> (Routed, [PortId; 2]) {
    let routed = Routed::star(&[cable(CABLE); 2]);
    let host = routed.fabric.host_port(silvan_core::HostId::new(1));
    let first = routed.port_to(0);
    (routed, [first, host])
}

fn run(routed: &Routed, config: &EngineConfig, time: Span) -> PlainEngine {
    let mut engine = routed.engine(config, &[Flow::saturating(0, 1)]);
    engine.workload_mut().in_order = false;
    engine.run_until(at(time)).unwrap();
    engine.audit().unwrap();
    engine
}

fn delivered(engine: &PlainEngine) -> u64 {
    engine.delivered_packets()
}

#[track_caller]
fn assert_share(count: u64, of: u64, expected: f64) {
    let share = count as f64 / of as f64;
    let deviation = (expected * (1.0 - expected) / of as f64).sqrt();
    assert!(
        (share - expected).abs() < 4.0 * deviation,
        "{share}, not {expected} +- {deviation}"
    );
}

/// Probability that a full packet has an error.
fn bad(rate: f64) -> f64 {
    1.0 - (1.0 - rate).powi(WIRE as i32 * 8)
}

/// Oracle: 1 - (1 - p)^n of packets of n bits are discarded, and each is counted once. Buffers of the receiver lose no
/// space: the audit adds up the credits, and the link is always busy.
#[test]
fn receiver_discards_the_share_of_the_closed_form() {
    let (routed, ports) = pair();
    for port in ports {
        for rate in [1e-6, 1e-5, 1e-4] {
            let config = with_errors(port, errors(rate, false), ALWAYS);
            let time = Span::from_ms(50);
            let engine = run(&routed, &config, time);
            let counters = engine.port_counters(port);
            let sent = engine.port_counters(routed.fabric.ports[port].peer.unwrap());
            let line = time.as_ps() / ser(cable(CABLE), MTU).as_ps();
            if port == ports[0] {
                assert!(sent.xmit_pkts.abs_diff(line) <= 1, "{sent:?}");
            }
            assert_share(counters.rcv_errors, sent.xmit_pkts, bad(rate));
            let inside = sent.xmit_pkts - counters.rcv_errors - delivered(&engine);
            assert!(inside <= 3, "{inside} packets are missing");
            assert_eq!(
                engine.discarded_bytes() / u64::from(MTU),
                counters.rcv_errors
            );
            assert_eq!(counters.link_replays, 0);
        }
    }
}

/// Oracle: the process of the errors itself, with the same seed.
#[test]
fn symbol_errors_are_those_that_were_injected() {
    let (routed, ports) = pair();
    for port in ports {
        let config = with_errors(port, errors(1e-6, false), ALWAYS);
        let mut process = ErrorProcess::new(
            &errors(1e-6, false),
            ALWAYS,
            cable(CABLE).data_rate(),
            (config.seed, port, 0),
        );
        for ms in [1, 7, 20] {
            let engine = run(&routed, &config, Span::from_ms(ms));
            let counted = engine.port_counters(port).symbol_errors;
            let injected = process.clone().count_until(Span::from_ms(ms).as_ps());
            // A packet that has started counts with all of its errors.
            assert!(counted.abs_diff(injected) <= 1, "{counted}, {injected}");
        }
        assert!(process.count_until(1_000_000_000) > 5);
    }
}

/// Time from the end of a bad packet to its replay: twice the propagation, and the credit delay of switches.
fn latency(cable: LinkKind) -> Span {
    propagation(cable) + propagation(cable) + ddr_config().switch.credit_delay
}

/// Oracle: a packet takes n + 1 times its serialisation and n times the latency, if it is bad n times. Errors at the start
/// of the run only.
#[test]
fn replay_takes_the_packet_and_the_latency_once_more() {
    let (routed, ports) = pair();
    let cable = cable(CABLE);
    let packet = ser(cable, MTU);
    let alone = |config: &EngineConfig| {
        let mut engine = routed.engine(config, &[Flow::burst(0, 1, 1)]);
        engine.run_until(at(Span::from_ms(1))).unwrap();
        engine.audit().unwrap();
        let counters = ports.map(|port| engine.port_counters(port));
        (engine.workload().records[0].delivered[0], counters)
    };
    let (good, _) = alone(&ddr_config());
    for (port, index) in ports.into_iter().zip(0..) {
        for given in [None, Some(Span::from_us(3))] {
            let starts = match index {
                0 => Span::ZERO,
                // The head leaves the switch behind its latency.
                _ => propagation(cable) + ddr_config().switch.latency,
            };
            let times = ErrorTimes {
                at: at(starts),
                lasts: Some(packet),
                every: None,
            };
            // 16.6 errors in the packet: it is good with a probability of 6e-8.
            let errors = BitErrors {
                replay_latency: given,
                ..errors(1e-3, true)
            };
            let (late, counters) = alone(&with_errors(port, errors, times));
            let latency = given.unwrap_or(latency(cable));
            assert_eq!(late.since(good), packet + latency);
            let counters: PortCounters = counters[index];
            assert_eq!((counters.link_replays, counters.rcv_errors), (1, 0));
        }
    }
}

/// Oracle: a packet is bad with the probability b, so it is sent 1 / (1 - b) times, and takes the latency b / (1 - b) times.
#[test]
fn replays_leave_the_goodput_of_the_closed_form() {
    let (routed, ports) = pair();
    let cable = cable(CABLE);
    for port in ports {
        for rate in [1e-6, 1e-5, 3e-5] {
            let time = Span::from_ms(50);
            let engine = run(
                &routed,
                &with_errors(port, errors(rate, true), ALWAYS),
                time,
            );
            let counters = engine.port_counters(port);
            let sent = engine.port_counters(routed.fabric.ports[port].peer.unwrap());
            let bad = bad(rate);
            let [packet, latency] =
                [ser(cable, MTU), latency(cable)].map(|span| span.as_ps() as f64);
            let each = packet / (1.0 - bad) + latency * bad / (1.0 - bad);
            let expected = time.as_ps() as f64 / each;
            let sent = sent.xmit_pkts as f64;
            assert!((sent / expected - 1.0).abs() < 0.01, "{sent}, {expected}");
            assert_share(
                counters.link_replays,
                sent as u64 + counters.link_replays,
                bad,
            );
            // Eight replays hardly ever fail.
            let given_up = sent * bad.powi(9);
            assert!(
                (counters.rcv_errors as f64) < 3.0 * given_up + 3.0,
                "{counters:?}"
            );
            assert!((sent - delivered(&engine) as f64).abs() < 40.0);
        }
    }
}

/// Every packet has errors, so none arrives; each is replayed eight times, and after nine bad ones the link is retrained.
#[test]
fn link_gives_a_packet_up_after_eight_replays() {
    let (routed, ports) = pair();
    for port in ports {
        // One attempt in 16 million is good; this seed has none.
        let config = EngineConfig {
            seed: 2,
            ..with_errors(port, errors(1e-3, true), ALWAYS)
        };
        let engine = run(&routed, &config, Span::from_ms(10));
        assert_eq!(delivered(&engine), 0);
        let counters = engine.port_counters(port);
        assert!(counters.rcv_errors > 500, "{counters:?}");
        // A packet that is on its way counts with its replays already.
        let given_up = counters.link_replays / 8;
        assert_eq!(counters.link_replays, 8 * given_up);
        assert_eq!(counters.link_error_recovery, given_up);
        assert!(given_up - counters.rcv_errors <= 1, "{counters:?}");
    }
}

/// Bad packets that are discarded outnumber good ones: the link is retrained after nine more. Where good ones are the
/// majority by far, it is not.
#[test]
fn link_is_retrained_where_bad_packets_outnumber_good_ones() {
    let (routed, [port, _]) = pair();
    let recoveries = |rate| {
        let config = with_errors(port, errors(rate, false), ALWAYS);
        let engine = run(&routed, &config, Span::from_ms(20));
        let counters = engine.port_counters(port);
        (counters.link_error_recovery, counters.rcv_errors)
    };
    let (recovered, bad) = recoveries(1e-3);
    assert!(
        recovered == bad / 9 || recovered == bad / 9 + 1,
        "{recovered} of {bad}"
    );
    assert_eq!(recoveries(5e-6).0, 0);
}

/// Oracle: the run without errors, before they begin and after they have ended.
#[test]
fn running_engine_gets_bit_errors_and_loses_them() {
    let (routed, ports) = pair();
    for port in ports {
        let mut engine = routed.engine(&ddr_config(), &[Flow::saturating(0, 1)]);
        engine.workload_mut().in_order = false;
        engine.run_until(at(Span::from_ms(1))).unwrap();
        engine.set_bit_errors(port, Some(&errors(1e-4, false)));
        engine.run_until(at(Span::from_ms(6))).unwrap();
        engine.audit().unwrap();
        let counters = engine.port_counters(port);
        let packets = Span::from_ms(5).as_ps() / ser(cable(CABLE), MTU).as_ps();
        assert_share(counters.rcv_errors, packets, bad(1e-4));
        engine.set_bit_errors(port, None);
        engine.run_until(at(Span::from_ms(7))).unwrap();
        let counters = engine.port_counters(port);
        engine.run_until(at(Span::from_ms(9))).unwrap();
        let after = engine.port_counters(port);
        assert_eq!(after.rcv_errors, counters.rcv_errors);
        assert_eq!(after.symbol_errors, counters.symbol_errors);
        engine.audit().unwrap();
    }
}

/// Oracle: nine bad packets and the time of retraining, again and again, if every packet is bad.
#[test]
fn retraining_takes_its_time() {
    let (routed, ports) = pair();
    for port in ports {
        let mut config = EngineConfig {
            seed: 2,
            ..with_errors(port, errors(1e-3, false), ALWAYS)
        };
        let retraining = Span::from_us(100);
        config.bit_errors[0].errors.retraining = retraining;
        let time = Span::from_ms(10);
        let engine = run(&routed, &config, time);
        let counters = engine.port_counters(port);
        let period = ser(cable(CABLE), MTU) * 9 + retraining;
        let expected = time.as_ps() / period.as_ps();
        let recovered = counters.link_error_recovery;
        assert!(recovered.abs_diff(expected) <= 2, "{recovered}, {expected}");
        assert!(
            counters.rcv_errors.abs_diff(9 * expected) <= 18,
            "{counters:?}"
        );
    }
}

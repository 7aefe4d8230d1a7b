//! InfiniBand's congestion control around the whole loop: mark, notify, throttle, recover.

use silvan_cc::hooks::Flow as QueuePair;
use silvan_cc::schemes::ib_cc::{IbAdapter, IbParameters, IbSwitch, ThresholdMap};
use silvan_core::{Bytes, HostId, Sl, Span, Time};
use silvan_engine::{Engine, EngineConfig, FeedbackParams};
use silvan_fabric::generators::{Chain, Generator, TwoSwitchTestbed};

use crate::common::{
    MTU, Routed, WIRE, at, cable, ddr_config, room, ser, through_fabric, two_lanes,
};
use crate::script::{Flow, Script};

type Controlled = Engine<IbSwitch, IbAdapter, Script>;

/// The values of gran2012, with a threshold of eight packets.
fn parameters() -> IbParameters {
    let map = ThresholdMap::Linear {
        lowest_bytes: 8 * WIRE as u32,
        highest_bytes: 20 * WIRE as u32,
    };
    IbParameters::gran2012(0.5, map).unwrap()
}

fn controlled(
    routed: &Routed,
    config: &EngineConfig,
    parameters: &IbParameters,
    flows: &[Flow],
) -> Controlled {
    let ports = routed.switch_ports();
    let switch = parameters.build_switch(&ports, config.data_vls, 5).unwrap();
    let adapter = parameters
        .build_adapter(routed.fabric.host_count(), 5)
        .unwrap();
    routed.controlled(config, switch, adapter, flows)
}

fn queue_pair(flow: &Flow) -> QueuePair {
    QueuePair {
        source: HostId::new(flow.source),
        destination: HostId::new(flow.destination),
        sl: Sl::try_from(flow.sl).unwrap(),
        queue: 0,
    }
}

/// Jain's index of fairness: 1 if all are equal, 1/n if one has all.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

fn shares(script: &Script, from: Span, to: Span) -> Vec<f64> {
    let records = script.records.iter();
    records
        .map(|record| record.delivered_in(at(from), at(to)) as f64)
        .collect()
}

/// CCTI rises while eight hosts send to one. Once they have stopped and their last notifications are
/// in, it falls by one per CCTI_Timer, which expires exactly k times in k periods, down to zero.
#[test]
fn the_index_rises_and_falls() {
    const STOP: Span = Span::from_ms(2);
    let routed = Routed::star(&[cable("4x DDR 2 m"); 9]);
    let flows: Vec<_> = (0..8)
        .map(|source| Flow {
            stop: at(STOP),
            ..Flow::saturating(source, 8)
        })
        .collect();
    let config = ddr_config();
    let mut engine = controlled(&routed, &config, &parameters(), &flows);
    let ccti = |engine: &Controlled, now: Time| -> Vec<u16> {
        let adapter = engine.source_control();
        let flows = flows.iter();
        flows
            .map(|flow| adapter.ccti(now, queue_pair(flow)))
            .collect()
    };
    assert_eq!(ccti(&engine, Time::ZERO), [0; 8]);
    // 256 packets of 1037 ns may wait when the hosts stop, and notifications take 2 us.
    let quiet = at(STOP + Span::from_us(300));
    engine.run_until(quiet).unwrap();
    let high = ccti(&engine, quiet);
    assert!(high.iter().all(|&ccti| ccti >= 3), "{high:?}");
    let period = Span::from_ns(1024) * 150;
    for periods in 1..=200 {
        let now = quiet + period * periods;
        engine.run_until(now).unwrap();
        let expected: Vec<u16> = high
            .iter()
            .map(|&ccti| ccti.saturating_sub(periods as u16))
            .collect();
        assert_eq!(ccti(&engine, now), expected);
    }
    for host in 0..8 {
        assert_eq!(
            engine
                .source_control()
                .throttled_flows(engine.now(), HostId::new(host)),
            0
        );
    }
}

/// Four hosts on a chain of four switches into a fifth. Round-robin gives them 1/8, 1/8, 1/4, 1/2 of
/// the cable: an index of 1 / (4 * (1/64 + 1/64 + 1/16 + 1/4)) = 0.727. Marks are as frequent as
/// packets, so a host that sends more is throttled more, until all are equal: the bound is 0.95.
#[test]
fn throttled_flows_share_fairly() {
    let chain = Chain {
        switches: 4,
        hosts_per_switch: 2,
    };
    let routed = Routed::new(chain.build(cable("4x DDR 2 m")).unwrap());
    let flows: Vec<_> = (0..4)
        .map(|switch| Flow::saturating(2 * switch, 7))
        .collect();
    let config = ddr_config();
    let (from, to) = (Span::from_ms(40), Span::from_ms(140));

    let script = routed.run(&config, &flows, to);
    let unfair = jain(&shares(&script, from, to));
    let expected = 1.0 / (4.0 * (2.0 / 64.0 + 1.0 / 16.0 + 1.0 / 4.0));
    assert!((unfair - expected).abs() < 0.001, "{unfair}, {expected}");

    let mut engine = controlled(&routed, &config, &parameters(), &flows);
    engine.run_until(at(to)).unwrap();
    let shares = shares(engine.workload(), from, to);
    let fair = jain(&shares);
    assert!(fair > 0.95, "{fair} of {shares:?}");
}

fn paths() -> [(&'static str, EngineConfig); 3] {
    let mut own_lane = two_lanes(ddr_config());
    let bytes = Bytes::from_bytes(64);
    own_lane.feedback = through_fabric(Some(Sl::try_from(1).unwrap()), bytes, true);
    let with_the_data = EngineConfig {
        feedback: through_fabric(None, bytes, false),
        ..ddr_config()
    };
    let out_of_band = EngineConfig {
        feedback: FeedbackParams::default(),
        ..ddr_config()
    };
    [
        ("out of band", out_of_band),
        ("on a lane of its own", own_lane),
        ("among the data", with_the_data),
    ]
}

/// mizero2017, section 4 and Fig. 3c: A, B and C send to D, X sends to Y. The port to D gives A, B and C a third of its
/// 8 Gbit/s each. A and X share the cable between the switches and the buffer behind it. X's packets leave that buffer
/// at once, A's packets at a third of the rate, so the buffer is full of A's packets. The cable gets a credit each time
/// one of them leaves, and passes one packet of A and one of X in turn. So X gets the same third as A.
#[test]
fn a_victim_recovers_when_the_contributors_are_throttled() {
    let routed = Routed::new(TwoSwitchTestbed {}.build(TwoSwitchTestbed::TRUNK).unwrap());
    let (a, b, c, d, x, y) = (0, 1, 2, 3, 4, 5);
    let flows = [(a, d), (b, d), (c, d), (x, y)].map(|(from, to)| Flow::saturating(from, to));
    let (from, to) = (Span::from_ms(20), Span::from_ms(40));
    let full = (to.as_secs_f64() - from.as_secs_f64())
        / ser(TwoSwitchTestbed::HOST_LINK, MTU).as_secs_f64();

    for (name, config) in paths() {
        let script = routed.run(&config, &flows, to);
        for share in shares(&script, from, to) {
            let third = share / full * 3.0;
            assert!((third - 1.0).abs() < 0.02, "{name}: {third} thirds");
        }
        let mut engine = controlled(&routed, &config, &parameters(), &flows);
        engine.run_until(at(to)).unwrap();
        let shares = shares(engine.workload(), from, to);
        let victim = shares[3] / full;
        assert!(victim > 0.9, "{name}: {victim} of {shares:?}");
        let contributors = shares[..3].iter().sum::<f64>() / full;
        assert!(
            (0.5..=1.0).contains(&contributors),
            "{name}: {contributors}"
        );
    }
}

/// A throttled flow gives way to another flow of its host, to an idle destination. The other flow is not slowed down
/// and gets the rest of the host's cable.
#[test]
fn queue_pairs_of_one_host_do_not_block_each_other() {
    let kind = cable("4x DDR 2 m");
    let routed = Routed::star(&[kind; 6]);
    let mut flows: Vec<_> = (0..4).map(|source| Flow::saturating(source, 4)).collect();
    flows.push(Flow::saturating(0, 5));
    let mut config = ddr_config();
    config.switch.buffer = Some(room(64));
    let mut engine = controlled(&routed, &config, &parameters(), &flows);
    let (from, to) = (Span::from_ms(40), Span::from_ms(80));
    engine.run_until(at(to)).unwrap();
    let shares = shares(engine.workload(), from, to);
    let full = (to.as_secs_f64() - from.as_secs_f64()) / ser(kind, MTU).as_secs_f64();
    let host = (shares[0] + shares[4]) / full;
    assert!(host > 0.99, "host 0 uses {host} of its cable");
    assert!(shares[0] / full < 0.35, "{shares:?}");
}

//! The source event by event; every expected rate is computed from the paper's formulas.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use silvan_core::{HostId, Sl};

use super::*;
use crate::schemes::ecn::{Fimd, Fixed, Lipd};

const MTU: u32 = 2_048;
/// 2068 bytes at 1 GB/s.
const PACKET: Span = Span::from_ns(2_068);

fn flow(destination: usize) -> Flow {
    Flow {
        source: HostId::new(0),
        destination: HostId::new(destination),
        sl: Sl::ZERO,
        queue: 0,
    }
}

fn ack(becn: bool) -> Feedback {
    Feedback::Ack { bytes: MTU, becn }
}

fn lipd() -> Response {
    Response::Lipd(Lipd::new(MIN_RATE).unwrap())
}

fn parameters(rates: RateModel) -> SourceParameters {
    SourceParameters {
        rates,
        window: WindowLimit { min: 1, max: 1 },
        initial_rate: 1.0,
        persistent: true,
        mtu: MTU,
    }
}

fn source(parameters: SourceParameters) -> EcnSource {
    EcnSource::new(parameters, 4).unwrap()
}

/// Sends one packet at `now` and takes its acknowledgement; gives when the next may start.
fn exchange(source: &mut EcnSource, now: Time, becn: bool) -> Time {
    source.on_send(now, flow(1), PACKET, MTU);
    assert_eq!(
        source.release(now, flow(1)),
        Time::MAX,
        "the window is shut"
    );
    assert!(source.on_feedback(now + PACKET, flow(1), ack(becn)));
    source.release(now + PACKET, flow(1))
}

/// A mark at full rate doubles the time from packet to packet from the next packet on.
#[test]
fn marks_lower_and_acknowledgements_raise_the_rate() {
    let start = Time::ZERO + Span::from_us(1);
    for rates in [
        RateModel::Continuous(lipd()),
        RateModel::Discrete(RateTables::compute(&lipd())),
    ] {
        let mut source = source(parameters(rates));
        assert_eq!(source.release(start, flow(1)), start);
        let second = exchange(&mut source, start, true);
        assert_eq!(second, start + PACKET);
        assert_eq!(source.rate(flow(1)), 0.5);
        let third = exchange(&mut source, second, true);
        assert_eq!(third, second + PACKET * 2);
        assert!((source.rate(flow(1)) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(exchange(&mut source, third, false), third + PACKET * 3);
        // Other flows go on at full rate.
        assert_eq!(source.rate(flow(2)), 1.0);
        assert_eq!(source.release(third, flow(2)), third);
    }
}

/// LIPD at ipd i goes up one step after 256/(1 + i) acknowledgements, and a mark starts the count again.
#[test]
fn discrete_steps_count_acknowledgements() {
    let mut source = source(parameters(RateModel::Discrete(
        RateTables::compute(&lipd()),
    )));
    let mut now = exchange(&mut source, Time::ZERO, true);
    for _ in 0..127 {
        now = exchange(&mut source, now, false);
    }
    assert_eq!(source.rate(flow(1)), 0.5);
    now = exchange(&mut source, now, false);
    assert_eq!(source.rate(flow(1)), 1.0);
    for becn in [true, false, true] {
        now = exchange(&mut source, now, becn);
    }
    for _ in 0..84 {
        now = exchange(&mut source, now, false);
    }
    assert_eq!(source.rate(flow(1)), 1.0 / 3.0);
    exchange(&mut source, now, false);
    assert_eq!(source.rate(flow(1)), 0.5);
}

/// A flow without marks is on the curve `Finc` at every packet.
#[test]
fn a_flow_recovers_along_the_curve() {
    let fimd = Fimd::new(2.0, MIN_RATE).unwrap();
    let mut source = source(SourceParameters {
        initial_rate: MIN_RATE,
        ..parameters(RateModel::Continuous(Response::Fimd(fimd)))
    });
    let mut now = Time::ZERO;
    while source.rate(flow(1)) < 1.0 {
        let elapsed = now.as_ps() as f64 / PACKET.as_ps() as f64;
        let expected = fimd.rate_after(elapsed).unwrap();
        assert!((source.rate(flow(1)) / expected - 1.0).abs() < 1e-6);
        now = exchange(&mut source, now, false);
    }
    // 8 doublings of 256 packet times; the last step goes a little beyond Rmax.
    let elapsed = now.as_ps() as f64 / PACKET.as_ps() as f64;
    assert!((2_048.0..2_050.0).contains(&elapsed), "{elapsed}");
}

/// Footnote 9: an acknowledgement of a quarter of a packet raises the rate by a quarter of the step.
#[test]
fn small_packets_count_by_their_size() {
    let lipd_function = lipd();
    let small = Feedback::Ack {
        bytes: MTU / 4,
        becn: false,
    };
    let mut continuous = source(SourceParameters {
        initial_rate: 0.25,
        ..parameters(RateModel::Continuous(lipd_function))
    });
    let time = Span::from_ns(532);
    continuous.on_send(Time::ZERO, flow(1), time, MTU / 4);
    continuous.on_feedback(Time::ZERO + time, flow(1), small);
    let expected = 0.25 + (lipd_function.increase(0.25) - 0.25) / 4.0;
    assert!((continuous.rate(flow(1)) - expected).abs() < 1e-15);
    // The gap is in proportion to the packet's own time: the limit is one of bytes per second.
    assert_eq!(
        continuous.release(Time::ZERO + time, flow(1)),
        Time::ZERO + time * 4
    );

    let mut discrete = source(SourceParameters {
        initial_rate: 0.25,
        ..parameters(RateModel::Discrete(RateTables::compute(&lipd_function)))
    });
    for acknowledged in 1..=4 * 64 {
        discrete.on_send(Time::ZERO, flow(1), time, MTU / 4);
        discrete.on_feedback(Time::ZERO + time, flow(1), small);
        let expected = if acknowledged < 4 * 64 {
            0.25
        } else {
            1.0 / 3.0
        };
        assert_eq!(discrete.rate(flow(1)), expected);
    }
}

#[test]
fn the_window_bounds_what_is_under_way() {
    let mut source = source(SourceParameters {
        window: WindowLimit { min: 3, max: 3 },
        ..parameters(RateModel::Continuous(Response::Fixed(Fixed)))
    });
    let mut now = Time::ZERO;
    for _ in 0..3 {
        assert_eq!(source.release(now, flow(1)), now);
        source.on_send(now, flow(1), PACKET, MTU);
        now += PACKET;
    }
    assert_eq!(source.under_way(flow(1)), 3);
    assert_eq!(source.release(now, flow(1)), Time::MAX);
    assert!(source.on_feedback(now, flow(1), ack(true)), "it opens");
    assert_eq!(source.release(now, flow(1)), now);
    assert!(!source.on_feedback(now, flow(1), ack(true)), "it was open");
    assert_eq!(source.rate(flow(1)), 1.0);
    assert!(
        !source.on_feedback(now, flow(1), Feedback::Cnp),
        "a CNP acknowledges nothing"
    );
    assert_eq!(source.under_way(flow(1)), 1);
}

/// Window and rate together: the window opens at full rate only, by one packet per window, and a mark
/// halves it before it lowers the rate.
#[test]
fn the_window_takes_the_first_marks() {
    let mut source = source(SourceParameters {
        window: WindowLimit { min: 1, max: 4 },
        ..parameters(RateModel::Continuous(lipd()))
    });
    let mut windows = Vec::new();
    for becn in [
        false, false, false, false, false, false, false, true, true, true, false,
    ] {
        source.on_send(Time::ZERO, flow(1), PACKET, MTU);
        source.on_feedback(Time::ZERO + PACKET, flow(1), ack(becn));
        windows.push(source.window(flow(1)));
    }
    // One packet opens 1, two open 2, three open 3; 4 is the limit.
    assert_eq!(windows, [2, 2, 3, 3, 3, 4, 4, 2, 1, 1, 1]);
    let lipd = Lipd::new(MIN_RATE).unwrap();
    assert_eq!(source.rate(flow(1)), lipd.increase(0.5));
}

/// Section VI-B.2: a new flow between the same hosts starts at Rmax, or with what the last one left.
#[test]
fn state_persists_or_not() {
    for persistent in [true, false] {
        let mut source = source(SourceParameters {
            persistent,
            ..parameters(RateModel::Continuous(lipd()))
        });
        let now = exchange(&mut source, Time::ZERO, true);
        source.on_send(now, flow(1), PACKET, MTU);
        source.on_flow_start(now, flow(1));
        let rate = if persistent { 0.5 } else { 1.0 };
        assert_eq!(source.rate(flow(1)), rate);
        assert_eq!(source.under_way(flow(1)), u16::from(persistent));
        // The acknowledgement of the old flow's packet is of no concern to a new one.
        source.on_feedback(now, flow(1), ack(true));
        assert_eq!(source.under_way(flow(1)), 0);
        let rate = if persistent { 1.0 / 3.0 } else { 1.0 };
        assert!((source.rate(flow(1)) - rate).abs() < 1e-12);
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let fixed = || parameters(RateModel::Continuous(Response::Fixed(Fixed)));
    for (min, max) in [(0, 1), (2, 1)] {
        let window = WindowLimit { min, max };
        let wrong = SourceParameters { window, ..fixed() };
        assert_eq!(wrong.validate(), Err(EcnError::Window { min, max }));
    }
    for rate in [0.0, 1.5, f64::NAN, MIN_RATE / 2.0] {
        let wrong = SourceParameters {
            initial_rate: rate,
            ..fixed()
        };
        assert!(matches!(
            wrong.validate(),
            Err(EcnError::InitialRate { .. })
        ));
    }
}

/// A host with more flows than its table first has room for forgets only those that are as new.
#[test]
fn idle_flows_at_full_rate_cost_no_memory_and_others_stay() {
    let mut source = EcnSource::new(parameters(RateModel::Continuous(lipd())), 1_000).unwrap();
    let mut now = Time::ZERO;
    for destination in 1..1_000 {
        source.on_send(now, flow(destination), PACKET, MTU);
        now += PACKET;
        source.on_feedback(now, flow(destination), ack(destination % 100 == 0));
    }
    for destination in 1..1_000 {
        let expected = if destination % 100 == 0 { 0.5 } else { 1.0 };
        assert_eq!(source.rate(flow(destination)), expected);
    }
    assert!(source.flows[0].len() < 50, "{}", source.flows[0].len());
}

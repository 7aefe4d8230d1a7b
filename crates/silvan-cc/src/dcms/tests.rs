//! The DCMS against sweeps played by hand on mizero2017's testbed, and against invariants under
//! random sweeps.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;
use silvan_core::growth::CongestionGrowth;
use silvan_core::{MonotonicTime, PortId, Span, SwitchId, Time};

use super::*;

const S1_TO_S2: PortId = PortId::new(0);
const S2_TO_S1: PortId = PortId::new(1);
const S2_TO_D: PortId = PortId::new(2);
const S1: SwitchId = SwitchId::new(0);
const S2: SwitchId = SwitchId::new(1);

/// Counter rates of figure 5(b): words/s of (S1, 15) with the victim alone, slowed down, and with
/// the contributors throttled.
const WORDS_ALONE: u64 = 270_000_000;
const WORDS_SLOWED: u64 = 180_000_000;
const WORDS_FREED: u64 = 310_000_000;
const WORDS_AFTER: u64 = 40_000_000;

fn info(port: PortId, switch: SwitchId, neighbour: Neighbour) -> SwitchPortInfo {
    SwitchPortInfo {
        port,
        switch,
        neighbour,
        controllable: true,
    }
}

fn cable(switch: SwitchId, port: PortId) -> Neighbour {
    Neighbour::Switch { switch, port }
}

fn testbed() -> DcmsTopology {
    DcmsTopology::new([
        info(S1_TO_S2, S1, cable(S2, S2_TO_S1)),
        info(S2_TO_S1, S2, cable(S1, S1_TO_S2)),
        info(S2_TO_D, S2, Neighbour::Host),
    ])
}

fn growth(wait: u64, data: u64, cong: u64) -> Option<CongestionGrowth> {
    Some(CongestionGrowth {
        span: Span::from_secs(1),
        xmit_wait: Some(wait),
        xmit_data: Some(data),
        xmit_time_cong: Some(cong),
    })
}

/// A sweep's growth of (S1, 15) and (S2, 23); nothing happens at the other port.
fn sweep(victim: (u64, u64), root_cong: u64) -> [Option<CongestionGrowth>; 3] {
    [
        growth(victim.0, victim.1, 0),
        growth(0, 0, 0),
        growth(0, WORDS_ALONE, root_cong),
    ]
}

fn at(second: u64) -> Time {
    Time::ZERO + Span::from_secs(second)
}

fn actions(decisions: &[Decision]) -> Vec<(PortId, u16)> {
    decisions
        .iter()
        .filter_map(|decision| Some((decision.action?.port?, decision.action?.marking_rate)))
        .collect()
}

fn machine(parameters: DcmsParameters) -> Dcms {
    Dcms::new(parameters, testbed()).unwrap()
}

const QUIET: (u64, u64) = (0, WORDS_ALONE);
const SLOWED: (u64, u64) = (28_000_000, WORDS_SLOWED);
const FREED: (u64, u64) = (0, WORDS_FREED);
const CONGESTED: u64 = 9_000_000;

/// Oracle: the paper's account of figure 5: no action while congestion is localized, low when the
/// victim appears, default when the victim's flow has ended.
#[test]
fn scenario_1_lowers_once_and_restores_when_the_victim_has_gone() {
    let mut dcms = machine(DcmsParameters::mizero2017());
    let mut all = Vec::new();
    let sweeps = [
        sweep(QUIET, 0),
        sweep(QUIET, CONGESTED),
        sweep(SLOWED, CONGESTED),
        sweep(FREED, 0),
        sweep(FREED, 0),
        sweep((0, WORDS_AFTER), 0),
        sweep((0, WORDS_AFTER), CONGESTED),
    ];
    for (second, sweep) in (1..).zip(sweeps) {
        for (port, rate) in actions(dcms.step(at(second), &sweep)) {
            all.push((second, port, rate));
        }
        let is_low = dcms.state(S2_TO_D) != MarkingState::Default;
        assert_eq!(is_low, (3..6).contains(&second), "second {second}");
    }
    assert_eq!(all, [(3, S2_TO_D, 0), (6, S2_TO_D, 128)]);
}

/// Oracle: the paper's account of figure 6: restored at the time limit, lowered again as the victim
/// still runs.
#[test]
fn scenario_2_restores_at_the_time_limit_and_starts_a_second_cycle() {
    let mut dcms = machine(DcmsParameters {
        low_duration: Span::from_secs(6),
        ..DcmsParameters::mizero2017()
    });
    let mut all = Vec::new();
    for second in 1..=20 {
        let is_low = dcms.state(S2_TO_D) != MarkingState::Default;
        let sweep = if is_low {
            sweep(FREED, 0)
        } else {
            sweep(SLOWED, CONGESTED)
        };
        for (_, rate) in actions(dcms.step(at(second), &sweep)) {
            all.push((second, rate));
        }
    }
    // Low at 1, 6 s later the default, one sweep later low again.
    assert_eq!(all, [(1, 0), (7, 128), (8, 0), (14, 128), (15, 0)]);
}

/// Oracle: Algorithm 2, line 2: a port to a host is congested, too, if it waits; one to a
/// switch is not.
#[test]
fn a_host_port_that_waits_is_congested() {
    let waits = growth(28_000_000, 0, 0);
    let mut dcms = machine(DcmsParameters::mizero2017());
    assert_eq!(
        actions(dcms.step(at(1), &[waits, growth(0, 0, 0), waits])),
        [(S2_TO_D, 0)]
    );
    // (S2, 20) waits because of (S1, 15)'s switch, but faces a switch: it is no root.
    let mut dcms = machine(DcmsParameters::mizero2017());
    assert!(
        dcms.step(at(1), &[waits, waits, growth(0, 0, 0)])
            .is_empty()
    );
}

/// Oracle: twice the growth in twice the time is the same rate.
#[test]
fn thresholds_are_rates() {
    for (seconds, factor, lowered) in [(2, 2, true), (2, 1, false), (1, 1, true), (4, 3, false)] {
        let mut dcms = machine(DcmsParameters::mizero2017());
        let growth = sweep(SLOWED, CONGESTED).map(|growth| {
            growth.map(|growth| CongestionGrowth {
                span: Span::from_secs(seconds),
                xmit_wait: growth.xmit_wait.map(|ticks| ticks * factor),
                xmit_time_cong: growth.xmit_time_cong.map(|ticks| ticks * factor),
                ..growth
            })
        });
        let decided = !dcms.step(at(seconds), &growth).is_empty();
        assert_eq!(decided, lowered, "{factor} x in {seconds} s");
    }
}

/// Oracle: what is not known leads to no action, but the time limit still ends a low rate.
#[test]
fn unknown_counters_lead_to_no_action() {
    let mut dcms = machine(DcmsParameters::mizero2017());
    let [victim, other, root] = sweep(SLOWED, CONGESTED);
    assert!(dcms.step(at(1), &[None, other, root]).is_empty());
    assert!(dcms.step(at(2), &[victim, other, None]).is_empty());
    assert!(dcms.step(at(3), &[]).is_empty());
    assert_eq!(dcms.step(at(4), &[victim, other, root]).len(), 1);
    // The victim's utilization is unknown in one sweep of each pair.
    for second in 5..16 {
        let growth = if second % 2 == 0 {
            sweep((0, 0), 0)
        } else {
            [None; 3]
        };
        assert!(dcms.step(at(second), &growth).is_empty(), "{second}");
    }
    assert_eq!(actions(dcms.step(at(16), &[None; 3])), [(S2_TO_D, 128)]);
}

/// Oracle: rules written down in the configuration's documentation.
#[test]
fn ports_that_must_not_be_changed_are_not() {
    let topology = DcmsTopology::new(testbed().ports().iter().map(|info| SwitchPortInfo {
        controllable: false,
        ..*info
    }));
    let mut dcms = Dcms::new(DcmsParameters::mizero2017(), topology).unwrap();
    let decisions = dcms.step(at(1), &sweep(SLOWED, CONGESTED));
    let expected = Reason::NotAllowed { victim: S1_TO_S2 };
    assert!(decisions.len() == 1 && decisions[0].reason == expected);
    assert_eq!(decisions[0].action, None);
    assert_eq!(dcms.state(S2_TO_D), MarkingState::Default);
}

/// Two switches fed by a third, each with two host ports that congest.
fn wide(scope: MarkingScope) -> (DcmsTopology, [PortId; 4]) {
    let roots = [4, 5, 6, 7].map(PortId::new);
    let core = SwitchId::new(2);
    let leaf = [SwitchId::new(0), SwitchId::new(1)];
    let (down, up) = (
        [PortId::new(0), PortId::new(1)],
        [PortId::new(2), PortId::new(3)],
    );
    let topology = DcmsTopology::new([
        info(down[0], core, cable(leaf[0], up[0])),
        info(down[1], core, cable(leaf[1], up[1])),
        info(up[0], leaf[0], cable(core, down[0])),
        info(up[1], leaf[1], cable(core, down[1])),
        info(roots[0], leaf[0], Neighbour::Host),
        info(roots[1], leaf[0], Neighbour::Host),
        info(roots[2], leaf[1], Neighbour::Host),
        info(roots[3], leaf[1], Neighbour::Host),
    ]);
    (topology.with_scope(leaf[0], scope), roots)
}

fn wide_sweep(congested: &[PortId]) -> Vec<Option<CongestionGrowth>> {
    (0..8)
        .map(|index| {
            if index < 2 {
                growth(28_000_000, 0, 0)
            } else if congested.contains(&PortId::new(index)) {
                growth(0, 0, CONGESTED)
            } else {
                growth(0, 0, 0)
            }
        })
        .collect()
}

/// Oracle: the limit itself.
#[test]
fn no_more_switches_are_lowered_than_allowed() {
    let (topology, roots) = wide(MarkingScope::Port);
    let parameters = DcmsParameters {
        max_low_switches: Some(1),
        ..DcmsParameters::mizero2017()
    };
    let mut dcms = Dcms::new(parameters, topology).unwrap();
    let decisions = dcms.step(at(1), &wide_sweep(&roots));
    // Both ports of the first switch, none of the second.
    assert_eq!(actions(decisions), [(roots[0], 0), (roots[1], 0)]);
    let refused = decisions
        .iter()
        .filter(|one| matches!(one.reason, Reason::TooManySwitches { .. }));
    assert_eq!(refused.count(), 2);
}

/// Oracle: a switch that is only set as a whole is lowered with its first port and restored
/// with its last.
#[test]
fn a_switch_set_as_a_whole_is_set_once() {
    let (topology, roots) = wide(MarkingScope::Switch);
    let mut dcms = Dcms::new(DcmsParameters::mizero2017(), topology).unwrap();
    let whole = |rate| Action {
        switch: SwitchId::new(0),
        port: None,
        marking_rate: rate,
    };
    let mut seen = Vec::new();
    for second in 1..=14 {
        let congested: &[PortId] = match second {
            1 => &roots[..1],
            2 => &roots[1..2],
            _ => &[],
        };
        let decisions = dcms.step(at(second), &wide_sweep(congested));
        seen.extend(
            decisions
                .iter()
                .filter_map(|one| Some((second, one.action?))),
        );
    }
    // The first port's time is over at 13, the second's at 14.
    assert_eq!(seen, [(1, whole(0)), (14, whole(128))]);
}

/// Oracle: the definition of the two inter-sweep intervals.
#[test]
fn sweeps_are_dense_while_congestion_lasts() {
    let mut dcms = machine(DcmsParameters {
        busy_interval: Some(Span::from_ms(200)),
        ..DcmsParameters::mizero2017()
    });
    assert_eq!(dcms.next_interval(), Span::from_secs(1));
    dcms.step(at(1), &sweep(QUIET, CONGESTED));
    assert_eq!(dcms.next_interval(), Span::from_ms(200));
    dcms.step(at(2), &sweep(QUIET, 0));
    assert_eq!(dcms.next_interval(), Span::from_secs(1));
    dcms.step(at(3), &sweep(SLOWED, CONGESTED));
    dcms.step(at(4), &sweep(FREED, 0));
    assert_eq!(dcms.next_interval(), Span::from_ms(200), "still low");
}

/// Oracle: the definition of [`CongestionTimeReads::WhereSeen`].
#[test]
fn congestion_time_is_read_where_it_was_seen() {
    let mut dcms = machine(DcmsParameters {
        congestion_time: CongestionTimeReads::WhereSeen { rescan: 3 },
        ..DcmsParameters::mizero2017()
    });
    let mut wanted = Vec::new();
    for second in 1..=6 {
        wanted.push((
            dcms.wants_congestion_time(S1_TO_S2),
            dcms.wants_congestion_time(S2_TO_D),
        ));
        let congestion = if second == 2 { CONGESTED } else { 0 };
        dcms.step(at(second), &sweep(QUIET, congestion));
    }
    let (root, others): (Vec<bool>, Vec<bool>) = wanted.into_iter().map(|(a, b)| (b, a)).unzip();
    assert_eq!(others, [true, false, false, true, false, false]);
    assert_eq!(root, [true, false, true, true, true, true]);
}

/// Oracle: nothing can be set on a port that is gone, and a root without victims is restored.
#[test]
fn ports_may_vanish() {
    let mut dcms = machine(DcmsParameters::mizero2017());
    dcms.step(at(1), &sweep(SLOWED, CONGESTED));
    let without_victim = DcmsTopology::new(testbed().ports()[1..].iter().copied());
    assert!(dcms.set_topology(at(2), without_victim).is_empty());
    assert_eq!(
        actions(dcms.step(at(2), &sweep(FREED, 0))),
        [(S2_TO_D, 128)]
    );

    let mut dcms = machine(DcmsParameters::mizero2017());
    dcms.step(at(1), &sweep(SLOWED, CONGESTED));
    let without_root = DcmsTopology::new(testbed().ports()[..2].iter().copied());
    let decisions = dcms.set_topology(at(2), without_root);
    assert_eq!(decisions[0].reason, Reason::Vanished);
    assert_eq!(decisions[0].action, None);
    assert!(dcms.step(at(3), &sweep(FREED, 0)).is_empty());
}

/// Oracle: ranges written down by hand.
#[test]
fn impossible_parameters_are_refused() {
    let good = DcmsParameters::mizero2017();
    assert_eq!(good.validate(), Ok(()));
    let bad = [
        DcmsParameters {
            interval: Span::ZERO,
            ..good
        },
        DcmsParameters {
            busy_interval: Some(Span::ZERO),
            ..good
        },
        DcmsParameters {
            low_marking_rate: 128,
            ..good
        },
        DcmsParameters {
            interval: Span::from_ms(100),
            ..good
        },
        DcmsParameters {
            max_low_switches: Some(0),
            ..good
        },
        DcmsParameters {
            congestion_threshold: 0,
            ..good
        },
        DcmsParameters {
            rate_reduction_threshold: 0,
            ..good
        },
        DcmsParameters {
            congestion_time: CongestionTimeReads::WhereSeen { rescan: 0 },
            ..good
        },
    ];
    for parameters in bad {
        assert!(parameters.validate().is_err(), "{parameters:?}");
    }
}

fn any_growth() -> impl Strategy<Value = Option<CongestionGrowth>> {
    let counter = |most: u64| proptest::option::weighted(0.9, 0..most);
    let growth = (
        1..3_000u64,
        counter(60_000_000),
        counter(400_000_000),
        counter(20_000_000),
    );
    proptest::option::weighted(
        0.9,
        growth.prop_map(
            |(ms, xmit_wait, xmit_data, xmit_time_cong)| CongestionGrowth {
                span: Span::from_ms(ms),
                xmit_wait,
                xmit_data,
                xmit_time_cong,
            },
        ),
    )
}

/// A step of a real clock from one sweep to the next, in nanoseconds.
fn any_clock_step() -> impl Strategy<Value = i128> {
    const SECOND: i128 = 1_000_000_000;
    const YEAR: i128 = 365 * 86_400 * SECOND;
    prop_oneof![
        8 => 1..3 * SECOND,
        1 => Just(0),
        1 => 0..20 * YEAR,
        1 => -20 * YEAR..0,
        1 => -3 * SECOND..0,
    ]
}

proptest! {
    /// Oracle: the definition of T_I, counted in 128 bits, on a clock that runs for decades, stands still and jumps.
    /// While its victim waits, a rate returns to its default in the first sweep after T_I or with a clock that has gone
    /// back, and in no other.
    #[test]
    fn low_rates_end_by_any_clock(
        start in 0..300 * 365 * 86_400 * 1_000_000_000_i128,
        steps in proptest::collection::vec(any_clock_step(), 1..80),
    ) {
        let parameters = DcmsParameters::mizero2017();
        let limit = i128::from(parameters.low_duration.as_ps() / 1_000);
        let mut dcms: Dcms<MonotonicTime> = Dcms::new(parameters, testbed()).unwrap();
        let mut now = start;
        let mut low_since = None;
        for step in steps {
            let before = now;
            now = (now + step).max(0);
            let at = MonotonicTime::from_ns(u64::try_from(now).unwrap());
            let decisions = dcms.step(at, &sweep(SLOWED, CONGESTED)).to_vec();
            let expected = match low_since {
                None => Some(0),
                Some(since) if now < before || now - since >= limit => Some(128),
                Some(_) => None,
            };
            let set: Vec<u16> = decisions
                .iter()
                .filter_map(|decision| Some(decision.action?.marking_rate))
                .collect();
            prop_assert_eq!(&set, &expected.into_iter().collect::<Vec<u16>>());
            low_since = match expected {
                Some(0) => Some(now),
                Some(_) => None,
                None => low_since,
            };
            let is_low = dcms.state(S2_TO_D) != MarkingState::Default;
            prop_assert_eq!(is_low, low_since.is_some());
        }
    }
}

proptest! {
    /// Oracle: rates set on each switch port alternate low, default, low, ... A low rate ends within the limit plus one
    /// sweep; victims send to the root's switch.
    #[test]
    fn whatever_the_counters_say_low_rates_end(
        sweeps in proptest::collection::vec(proptest::collection::vec(any_growth(), 8), 1..60),
        most in proptest::option::of(1..3u32),
    ) {
        let (topology, _) = wide(MarkingScope::Port);
        let parameters = DcmsParameters { max_low_switches: most, ..DcmsParameters::mizero2017() };
        let mut dcms = Dcms::new(parameters, topology.clone()).unwrap();
        let mut low_since = [None; 8];
        for (second, growth) in (1..).zip(&sweeps) {
            for (port, rate) in actions(dcms.step(at(second), growth)) {
                let since = &mut low_since[port.index()];
                prop_assert_eq!(rate == 128, since.is_some());
                *since = (rate == 0).then_some(second);
            }
            let mut switches = Vec::new();
            for (index, since) in low_since.iter().enumerate() {
                let port = PortId::new(index);
                let is_low = dcms.state(port) != MarkingState::Default;
                prop_assert_eq!(is_low, since.is_some());
                prop_assert!(since.is_none_or(|since| second < since + 12));
                let switch = topology.port(port).unwrap().switch;
                if is_low {
                    switches.push(switch);
                }
                for victim in dcms.victims(port) {
                    prop_assert!(topology.feeders(switch).contains(victim));
                }
            }
            switches.sort_unstable();
            switches.dedup();
            prop_assert!(most.is_none_or(|most| switches.len() <= most as usize));
        }
    }
}

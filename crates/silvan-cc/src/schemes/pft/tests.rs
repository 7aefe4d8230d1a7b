#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;
use silvan_core::{HostId, Sl, Span, Time};

use super::draws::Draws;
use super::interface::{Interface, Ready};
use super::*;
use crate::hooks::{Flow, SourceControl};

const ENTER: Spell = Spell {
    window: 5,
    count: 3,
};
const ESCAPE: Spell = Spell {
    window: 4,
    count: 2,
};

fn parameters(threshold: Threshold, sending: Sending) -> PftParameters {
    PftParameters {
        threshold,
        enter: 10,
        escape: 6,
        shift: Shift { m: 0, n: 2, k: 0 },
        sending,
        flit_time: Span::from_ns(1),
        credit_bytes: 64,
    }
}

fn fixed() -> PftParameters {
    parameters(Threshold::Fixed, Sending::Interval)
}

fn average() -> PftParameters {
    let threshold = Threshold::Average {
        enter: ENTER,
        escape: ESCAPE,
    };
    parameters(threshold, Sending::Interval)
}

/// Returns the states before each of these cycles and after the last cycle, `C` for congested.
fn states(parameters: &PftParameters, used: &[u32]) -> String {
    let mut detector = Detector::default();
    let mut states = String::from("-");
    for &used in used {
        detector.cycle(parameters, used);
        states.push(if detector.is_congested() { 'C' } else { '-' });
    }
    states
}

#[test]
fn algorithm_1_compares_strictly() {
    // 10 is not above te = 10, 11 is; 6 is not below ts = 6, 5 is.
    let used = [0, 10, 11, 11, 7, 6, 5, 5, 10, 12];
    assert_eq!(states(&fixed(), &used), "---CCCC---C");
}

#[test]
fn algorithm_2_needs_enough_cycles_in_a_window() {
    // Te = 5, Te' = 3. Cycles 1 to 4 count, 5 starts again, then 6 to 10 count and 11 starts again.
    // Two of the first four do not suffice, nor does the fifth make a third.
    assert_eq!(states(&average(), &[11, 0, 11, 0, 11]), "------");
    // Three of them do, in a row or not.
    assert_eq!(states(&average(), &[11, 11, 11]), "---C");
    assert_eq!(states(&average(), &[11, 0, 11, 11]), "----C");
    // Counts of one window do not carry over: two before, three from cycle 6 on.
    assert_eq!(
        states(&average(), &[0, 0, 11, 11, 11, 11, 11, 11]),
        "--------C"
    );
}

#[test]
fn algorithm_2_leaves_in_the_same_way_with_its_own_window() {
    // Congested after three cycles, with both counters at 0. Ts = 4, Ts' = 2: cycles 1 to 3 count, the
    // fourth starts again.
    let enter = [11, 11, 11];
    let after = |rest: &[u32]| states(&average(), &[&enter, rest].concat())[3..].to_owned();
    assert_eq!(after(&[5, 5]), "CC-");
    assert_eq!(after(&[6, 6, 6, 6, 6, 6]), "CCCCCCC");
    assert_eq!(after(&[5, 6, 6, 5, 5, 5]), "CCCCCC-");
}

#[test]
fn an_average_threshold_may_be_left_above_where_it_was_entered() {
    // The best configuration of the paper has 0x250 to enter and 0x2a0 to escape. Between the two
    // the interface is congested and normal in turns, Te' cycles this and Ts' cycles that.
    let both = PftParameters {
        enter: 0x250,
        escape: 0x2a0,
        ..average()
    };
    assert_eq!(both.validate(), Ok(()));
    assert_eq!(states(&both, &[0x260; 12]), "---CC---CC---");
    let fixed = PftParameters {
        threshold: Threshold::Fixed,
        ..both
    };
    assert!(matches!(
        fixed.validate(),
        Err(PftError::EscapeAboveEnter { .. })
    ));
}

#[test]
fn impossible_parameters_are_refused() {
    let base = average();
    let spell = Spell {
        window: 5,
        count: 6,
    };
    let cases = [
        PftParameters {
            shift: Shift { m: 32, n: 0, k: 0 },
            ..base
        },
        PftParameters {
            shift: Shift { m: 0, n: 32, k: 0 },
            ..base
        },
        PftParameters {
            sending: Sending::Random { bits: 0 },
            ..base
        },
        PftParameters {
            sending: Sending::Random { bits: 33 },
            ..base
        },
        PftParameters {
            threshold: Threshold::Average {
                enter: ENTER,
                escape: spell,
            },
            ..base
        },
        PftParameters {
            flit_time: Span::ZERO,
            ..base
        },
        PftParameters {
            credit_bytes: 0,
            ..base
        },
    ];
    for case in cases {
        assert!(case.validate().is_err(), "{case:?}");
        assert!(PftSource::new(case, 1, 1).is_err());
    }
    assert_eq!(base.validate(), Ok(()));
}

#[test]
fn fixed_intervals_have_the_rate_of_the_formula() {
    // Figure 1(a): one flit in 1 + f(c) cycles.
    for n in 8..=12 {
        for k in [0, 1, 5] {
            for used in [0, 255, 256, 1_000, 4_095, 4_096, 8_191] {
                let shift = Shift { m: 0, n, k };
                let gap = (used >> n) as u64 + u64::from(k);
                let parameters = PftParameters { shift, ..fixed() };
                let cycles = (gap + 1) * 1_000;
                let rate = injection_rate(&parameters, used, cycles, 1);
                assert_eq!(rate, 1.0 / (gap + 1) as f64, "n {n} k {k} c {used}");
            }
        }
    }
}

#[test]
fn random_intervals_have_the_probability_of_the_formula() {
    // Figure 1(b): r >= f(c) for one in 2^32 / (2^32 - f(c)) of 32-bit numbers r.
    let cycles = 200_000;
    for m in 15..=22 {
        for used in [0, 100, 592, 1_000, 1_024] {
            let parameters = PftParameters {
                shift: Shift { m, n: 0, k: 0 },
                sending: Sending::Random { bits: 32 },
                ..fixed()
            };
            let share = f64::from(used) * f64::from(1 << m) / 2f64.powi(32);
            let expected = (1.0 - share).max(0.0);
            // Five standard deviations; the first flit is not a draw.
            let error = 5.0 * (expected * (1.0 - expected) / cycles as f64).sqrt();
            let rate = injection_rate(&parameters, used, cycles, u64::from(m));
            assert!(
                (rate - expected).abs() <= error + 2.0 / cycles as f64,
                "m {m} c {used}: {rate} for {expected}"
            );
        }
    }
}

#[test]
fn a_host_waits_by_its_own_credits_only() {
    let mut source = PftSource::new(fixed(), 2, 1).unwrap();
    let [first, second] = [HostId::new(0), HostId::new(1)];
    let flow = Flow {
        source: first,
        destination: second,
        sl: Sl::ZERO,
        queue: 0,
    };
    let at = |ns: u64| Time::from_ps(ns * 1_000);
    // 40 credits at a packet of 8 flits: congested one cycle later. f(c) = 10 idle cycles for each flit, so the 8 flits
    // of cycles 100, 111, ... 177 are followed by a flit in cycle 188.
    source.on_credit(at(100), first, 40, 64);
    source.on_send(at(100), flow, Span::from_ns(8), 0);
    assert_eq!(source.host_release(at(100), first), at(188));
    assert!(source.is_congested(first));
    assert_eq!(source.host_release(at(100), second), at(100));
    // At cycle 150 five flits have left, the last in cycle 144. With 8 credits, f(c) = 2, the next may go at once,
    // three more in 150, 153 and 156, and the next packet in 159.
    source.on_credit(at(150), first, 8, 64);
    assert_eq!(source.host_release(at(150), first), at(159));
    // With 5 credits the state is normal after another cycle: 150, 151, 152, and the next in 153.
    source.on_credit(at(150), first, 5, 64);
    assert_eq!(source.host_release(at(150), first), at(153));
    assert_eq!(source.host_release(at(153), first), at(153));
    assert!(!source.is_congested(first));
}

#[test]
fn limits_are_the_rates_of_congested_interfaces() {
    let random = PftParameters {
        shift: Shift { m: 18, n: 0, k: 0 },
        sending: Sending::Random { bits: 32 },
        ..fixed()
    };
    let host = HostId::new(0);
    for parameters in [fixed(), random] {
        let mut source = PftSource::new(parameters, 2, 1).unwrap();
        let later = Time::ZERO + Span::from_us(1);
        assert_eq!(source.flow_limits(later, host), []);
        for used in [40, 1_000] {
            source.on_credit(Time::ZERO, host, used, 1_024);
            let limits = source.flow_limits(later, host);
            // The flits of an interface, cycle by cycle.
            let played = injection_rate(&parameters, used, 300_000, 1);
            let [limit] = limits[..] else {
                panic!("one limit of all flows: {limits:?}");
            };
            assert_eq!((limit.destination, limit.ccti), (None, 0));
            assert!(
                (limit.rate - played).abs() < 0.005,
                "{} {played}",
                limit.rate
            );
            assert_eq!(source.flow_limits(later, HostId::new(1)), []);
        }
        source.on_credit(later, host, 0, 1_024);
        assert_eq!(source.flow_limits(later + Span::from_us(1), host), []);
    }
}

#[test]
fn a_normal_interface_never_holds_the_link_back() {
    let mut source = PftSource::new(fixed(), 1, 1).unwrap();
    let host = HostId::new(0);
    let flow = Flow {
        source: host,
        destination: host,
        sl: Sl::ZERO,
        queue: 0,
    };
    // Packets of 129.6 flits, back to back from an instant within a cycle.
    let wire_time = Span::from_ps(129_625);
    let mut now = Time::from_ps(77_777);
    for _ in 0..1_000 {
        assert_eq!(source.host_release(now, host), now);
        source.on_send(now, flow, wire_time, 2_048);
        now += wire_time;
    }
}

#[test]
fn a_shut_interface_waits_for_credits() {
    let parameters = PftParameters {
        shift: Shift { m: 22, n: 0, k: 0 },
        sending: Sending::Random { bits: 32 },
        ..fixed()
    };
    let mut source = PftSource::new(parameters, 1, 1).unwrap();
    let host = HostId::new(0);
    source.on_credit(Time::ZERO, host, 1_024, 1_024);
    let later = Time::ZERO + Span::from_us(1);
    assert_eq!(source.host_release(later, host), Time::MAX);
    source.on_credit(later, host, 0, 1_024);
    // The state changes at the end of that cycle, but with c = 0 every number is large enough.
    assert_eq!(source.host_release(later, host), later);
}

/// An event of an interface, at a cycle.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Used(u32),
    Packet(u64),
}

/// The interface cycle by cycle, as hardware has it.
#[derive(Default)]
struct ByCycle {
    detector: Detector,
    used: u32,
    after_flit: u64,
    owed: u64,
}

impl ByCycle {
    fn is_open(&self, parameters: &PftParameters, draws: &Draws, cycle: u64) -> bool {
        let bound = parameters.shift.of(self.used);
        !self.detector.is_congested()
            || match parameters.sending {
                Sending::Interval => cycle >= self.after_flit + bound,
                Sending::Random { bits } => number(draws, bits, cycle) >= bound,
            }
    }

    fn cycle(
        &mut self,
        parameters: &PftParameters,
        draws: &Draws,
        cycle: u64,
        packet: Option<u64>,
    ) {
        if let Some(flits) = packet {
            self.owed = flits - 1;
            self.after_flit = cycle + 1;
        } else if self.owed > 0 && self.is_open(parameters, draws, cycle) {
            self.owed -= 1;
            self.after_flit = cycle + 1;
        }
        self.detector.cycle(parameters, self.used);
    }
}

/// The random number of a cycle, put together from its bits.
fn number(draws: &Draws, bits: u8, cycle: u64) -> u64 {
    let bit = |bit: u32| draws.word(cycle / 64, bit) >> (cycle % 64) & 1;
    (0..u32::from(bits)).map(|at| bit(at) << at).sum()
}

fn spells() -> impl Strategy<Value = Spell> {
    (1u32..12, 1u32..12).prop_map(|(a, b)| Spell {
        window: a.max(b),
        count: a.min(b),
    })
}

fn any_parameters() -> impl Strategy<Value = PftParameters> {
    let threshold = prop_oneof![
        Just(Threshold::Fixed),
        (spells(), spells()).prop_map(|(enter, escape)| Threshold::Average { enter, escape }),
    ];
    let sending = prop_oneof![
        Just(Sending::Interval),
        (1u8..=32).prop_map(|bits| Sending::Random { bits }),
    ];
    let bounds = (0u32..40, 0u32..40);
    (threshold, sending, bounds, 0u8..32, 0u8..32, 0u32..4).prop_map(
        |(threshold, sending, (a, b), m, n, k)| PftParameters {
            threshold,
            enter: a.max(b),
            // An average threshold may be left above where it was entered.
            escape: if threshold == Threshold::Fixed {
                a.min(b)
            } else {
                b
            },
            shift: Shift { m, n, k },
            sending,
            flit_time: Span::from_ns(1),
            credit_bytes: 64,
        },
    )
}

proptest! {
    /// Oracle: whole numbers of 128 bits.
    #[test]
    fn shifts_are_products(used: u32, m in 0u8..32, n in 0u8..32, k: u32) {
        let exact = u128::from(used) * (1 << m) / (1 << n) + u128::from(k);
        prop_assert_eq!(u128::from(Shift { m, n, k }.of(used)), exact);
    }

    /// Oracle: the algorithms as printed, one cycle after the other.
    #[test]
    fn skipping_is_many_cycles(
        parameters in any_parameters(),
        steps in prop::collection::vec((0u32..50, 1u64..40), 1..40),
    ) {
        let mut skipped = Detector::default();
        let mut stepped = Detector::default();
        for (used, mut cycles) in steps {
            let changes = skipped.until_change(&parameters, used);
            let mut ahead = skipped;
            let found = (1..200).find(|_| {
                ahead.cycle(&parameters, used);
                ahead.is_congested() != skipped.is_congested()
            });
            prop_assert_eq!(changes, found);
            (0..cycles).for_each(|_| stepped.cycle(&parameters, used));
            while cycles > 0 {
                let part = skipped.until_change(&parameters, used).map_or(cycles, |n| n.min(cycles));
                skipped.skip(&parameters, used, part);
                cycles -= part;
            }
            prop_assert_eq!(skipped, stepped);
        }
    }

    /// Oracle: the numbers of the cycles, compared as numbers.
    #[test]
    fn comparing_bit_by_bit_is_comparing(seed: u64, group in 0u64..1000, bits in 1u8..=32, bound: u64) {
        let draws = Draws::new(seed, 3);
        for bound in [bound & ((1 << bits) - 1), bound >> (bound % 40), 0, 1 << bits] {
            let open = draws.at_least(group, bits, bound);
            for lane in 0..64 {
                let expected = number(&draws, bits, group * 64 + lane) >= bound;
                prop_assert_eq!(open >> lane & 1 == 1, expected);
            }
        }
    }

    /// Oracle: the interface flit by flit and cycle by cycle.
    #[test]
    fn nothing_is_lost_between_events(
        parameters in any_parameters(),
        happenings in prop::collection::vec(
            (
                0u64..90,
                prop_oneof![(0u32..50).prop_map(Happening::Used), (1u64..40).prop_map(Happening::Packet)],
            ),
            1..40,
        ),
        seed: u64,
    ) {
        let draws = Draws::new(seed, 0);
        let mut interface = Interface::default();
        let mut model = ByCycle::default();
        let mut played = 0;
        let mut cycle = 0;
        for (wait, happening) in happenings {
            cycle = (cycle + wait).max(played);
            for at in played..cycle {
                model.cycle(&parameters, &draws, at, None);
            }
            played = cycle;
            match happening {
                Happening::Used(used) => {
                    model.used = used;
                    interface.set_used(&parameters, &draws, cycle, used);
                }
                Happening::Packet(flits) => {
                    model.cycle(&parameters, &draws, cycle, Some(flits));
                    played += 1;
                    interface.start_packet(&parameters, &draws, cycle, flits);
                }
            }
            interface.play(&parameters, &draws, played);
            prop_assert_eq!(interface.owed(), model.owed);
            prop_assert_eq!(interface.is_congested(), model.detector.is_congested());
            // The next packet may start in the first cycle in which nothing is owed and a flit may go.
            let mut ahead = ByCycle { ..model };
            let limit = played + 2_000;
            let first = (played..limit).find(|&at| {
                let is_ready = ahead.owed == 0 && ahead.is_open(&parameters, &draws, at);
                ahead.cycle(&parameters, &draws, at, None);
                is_ready
            });
            match (interface.ready(&parameters, &draws), first) {
                (Ready::At(at), Some(first)) => prop_assert_eq!(at, first),
                (Ready::At(at) | Ready::NotBefore(at), None) => prop_assert!(at >= limit),
                (Ready::Never, None) => {}
                (ready, first) => prop_assert!(false, "{ready:?} for {first:?}"),
            }
        }
    }
}

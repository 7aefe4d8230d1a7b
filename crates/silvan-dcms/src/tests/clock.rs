//! A clock that has run for decades, stands far ahead, and goes back.

use proptest::prelude::*;

use super::*;

const SECOND: i64 = 1_000_000_000;
const YEAR: i64 = 365 * 86_400 * SECOND;

/// Times for which a rate was low, in seconds, by the world's clock.
fn low_times(bench: &Bench) -> Vec<f64> {
    let mut times = Vec::new();
    let mut since = None;
    for &(at, rate) in &bench.subnet.world().rates_set {
        match (rate, since) {
            (0, None) => since = Some(at),
            (128, Some(low)) => {
                times.push(at - low);
                since = None;
            }
            _ => {}
        }
    }
    assert_eq!(since, None);
    times
}

/// Oracle: the same run with a clock that has just started: 64 bits of picoseconds end after 213
/// days.
#[test]
fn the_age_of_the_clock_changes_nothing() {
    let young = Bench::congested(1, 40);
    assert_eq!(young.act(CONFIG), 0);
    assert!(young.sets().len() > 6);
    for years in [1, 50, 290] {
        for seconds in [0, 5, 10] {
            // Also around the end of 64 bits of picoseconds.
            let end = (u64::MAX / 1_000) as i64 - seconds * SECOND;
            for offset in [years * YEAR, end] {
                let old = Bench::congested(1, 40);
                old.subnet.world().clock_ns = offset;
                assert_eq!(old.act(CONFIG), 0);
                assert_eq!(old.events(), young.events());
                assert_eq!(old.sets(), young.sets());
                old.assert_untouched();
            }
        }
    }
}

/// Oracle: the definition: once the clock has gone back, everything is restored in the next round, and
/// work starts over.
#[test]
fn a_clock_that_goes_back_restores_everything() {
    for back in [-SECOND / 10, -SECOND, -100 * YEAR] {
        let bench = Bench::new(1);
        bench.subnet.world().clock_ns = 200 * YEAR;
        bench.after(3, Fault::Incast(true));
        // Low for longer than the test takes.
        let config = "[dcms]\nlow-duration = \"10000000 s\"\n";
        bench.after(10, Fault::Clock(back));
        bench.after(40, Fault::Stop);
        assert_eq!(bench.act(config), 0);
        let is_back = |event: &Event| matches!(event, Event::ClockWentBack);
        assert_eq!(bench.count(is_back), 1, "{back}");
        let events = bench.events();
        let location = |is: fn(&Event) -> bool| events.iter().position(is).unwrap();
        let restored = location(|event| matches!(event, Event::Restored { .. }));
        assert!(location(is_back) < restored);
        // Then the congestion is found again, and ends with the run.
        let lowered = bench.count(|event| matches!(event, Event::Lowered { .. }));
        assert_eq!(lowered, 2);
        let times = low_times(&bench);
        assert!(times[0] < 10.0, "{times:?}");
        bench.assert_losses_are_logged();
        bench.assert_untouched();
    }
}

/// Oracle: a switch that is silent when the clock goes back is queried again at once, instead of after the old
/// deadline.
#[test]
fn backoffs_do_not_outlive_the_clock() {
    let bench = Bench::new(1);
    bench.subnet.world().clock_ns = 50 * YEAR;
    bench.after(3, Fault::Incast(true));
    bench.after(7, Fault::Reboot("S2", seconds(20)));
    bench.after(20, Fault::Clock(-20 * YEAR));
    bench.after(60, Fault::Stop);
    assert_eq!(bench.act(CONFIG), 0);
    let left_alone = bench.count(|event| matches!(event, Event::LeftAlone { .. }));
    assert_eq!(left_alone, 1);
    let back = bench.count(|event| matches!(event, Event::SwitchBack { .. }));
    assert!(back <= 1);
    assert!(bench.count(|event| matches!(event, Event::Lowered { .. })) >= 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Oracle: the world's clock, which does not jump. Without losses, no rate is low for longer than T_I and two
    /// intervals, for any manager's clock. In the end all changes are restored, also if some datagrams are lost.
    #[test]
    fn no_rate_stays_low_whatever_the_clock_does(
        years in 0..100_i64,
        jumps in proptest::collection::vec((1..60_u64, prop_oneof![
            -5 * SECOND..5 * SECOND,
            -30 * YEAR..30 * YEAR,
        ]), 0..6),
        loss in prop_oneof![Just(0), 0..50_u64],
        seed in any::<u64>(),
    ) {
        let bench = Bench::congested(seed, 60);
        bench.subnet.world().clock_ns = years * YEAR;
        bench.subnet.world().loss = loss;
        for (second, ns) in jumps {
            bench.after(second, Fault::Clock(ns));
        }
        prop_assert_eq!(bench.act(CONFIG), 0);
        for time in low_times(&bench) {
            prop_assert!(loss > 0 || time < 6.0 + 2.0, "low for {} s", time);
        }
        bench.assert_untouched();
    }
}

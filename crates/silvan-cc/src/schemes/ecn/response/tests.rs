#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;

use super::*;

/// The curves and steps of the paper's functions, m = 2 where they have one.
fn functions() -> [Response; 3] {
    [
        Response::Aimd(Aimd::new(2.0, MIN_RATE).unwrap()),
        Response::Fimd(Fimd::new(2.0, MIN_RATE).unwrap()),
        Response::Lipd(Lipd::new(MIN_RATE).unwrap()),
    ]
}

fn milliseconds(packet_times: f64) -> f64 {
    // 2048 bytes at 1 GB/s.
    packet_times * 2.048e-3
}

/// santos2003, section VI-B: from Rmax/256 to Rmax in 4.2 ms (FIMD) and 133.7 ms (AIMD, LIPD).
#[test]
fn recovery_from_the_lowest_rate_takes_as_long_as_the_paper_says() {
    let times = functions().map(|function| milliseconds(function.time_to(1.0).unwrap()));
    for (time, stated) in times.into_iter().zip([133.7, 4.2, 133.7]) {
        assert!((time - stated).abs() < 0.05, "{time} ms, not {stated}");
    }
}

/// Section V-D: n flows at Rmax/n lower their rates to Rmax/(n + 1) with one mark each.
#[test]
fn lipd_makes_room_for_one_more() {
    let lipd = Lipd::new(MIN_RATE).unwrap();
    for flows in 1..256 {
        let rate = lipd.decrease(1.0 / f64::from(flows));
        assert!((rate * f64::from(flows + 1) - 1.0).abs() < 1e-12);
    }
    assert_eq!(lipd.decrease(MIN_RATE), MIN_RATE);
}

#[test]
fn impossible_parameters_are_refused() {
    for factor in [1.0, 0.5, 257.0, f64::NAN] {
        assert!(matches!(
            Fimd::new(factor, MIN_RATE),
            Err(EcnError::DecreaseFactor(_))
        ));
    }
    for min in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(matches!(Lipd::new(min), Err(EcnError::MinRate(_))));
    }
}

proptest! {
    /// Section V-B: `finc(r) = min(F(1/r), Rmax)`, F being the curve from r on.
    #[test]
    fn one_acknowledgement_follows_the_curve(rate in MIN_RATE..=1.0, index in 0usize..3) {
        let function = functions()[index];
        let later = function.time_to(rate).unwrap() + 1.0 / rate;
        let expected = function.rate_after(later).unwrap();
        let raised = function.increase(rate);
        prop_assert!((raised / expected - 1.0).abs() < 1e-9, "{raised} {expected}");
    }

    #[test]
    fn the_curve_and_its_inverse_agree(rate in MIN_RATE..=1.0, index in 0usize..3) {
        let function = functions()[index];
        let back = function.rate_after(function.time_to(rate).unwrap()).unwrap();
        prop_assert!((back / rate - 1.0).abs() < 1e-9);
    }
}

/// Multiplicative decrease by 2 is exact in the discrete rates: 1 + ipd doubles.
#[test]
fn halving_doubles_the_interval() {
    let tables = RateTables::compute(&functions()[1]);
    for ipd in 0..=127u8 {
        assert_eq!(tables.decrease(ipd), 2 * ipd + 1);
    }
    assert_eq!(tables.decrease(128), 255);
}

/// LIPD: one more packet time per mark; 256/(1 + i) acknowledgements per step up, which is the one
/// recovery time of 256 packet times.
#[test]
fn lipd_steps_by_one() {
    let tables = RateTables::compute(&functions()[2]);
    for ipd in 0..255u8 {
        assert_eq!(tables.decrease(ipd), ipd + 1);
    }
    for ipd in 1..=255u8 {
        let Increase { packets, next } = tables.increase(ipd);
        assert_eq!(next, ipd - 1);
        let exact = 256.0 / f64::from(u16::from(ipd) + 1);
        assert!(
            (f64::from(packets) - exact).abs() <= 0.5 + 1e-6,
            "{ipd}: {packets}"
        );
    }
    assert_eq!(tables.decrease(255), 255);
    assert_eq!(tables.increase(0).next, 0);
}

/// A flow takes about as long from the lowest rate to the highest in discrete steps as along the
/// curve. The difference is rounding to whole acknowledgements, and down to a discrete rate.
#[test]
fn discrete_rates_recover_as_fast_as_continuous_ones() {
    for function in functions() {
        let tables = RateTables::compute(&function);
        let mut time = 0.0;
        let mut ipd = 255;
        while ipd > 0 {
            let Increase { packets, next } = tables.increase(ipd);
            time += f64::from(packets) * (1.0 + f64::from(ipd));
            ipd = next;
        }
        let exact = function.time_to(1.0).unwrap();
        assert!(
            (time / exact - 1.0).abs() < 0.05,
            "{function:?}: {time} packet times, not {exact}"
        );
    }
}

proptest! {
    /// Oracle: the continuous function, entry by entry.
    #[test]
    fn tables_do_not_exceed_the_function(ipd in any::<u8>(), index in 0usize..3) {
        let function = functions()[index];
        let tables = RateTables::compute(&function);
        let rate = |ipd: u8| 1.0 / (1.0 + f64::from(ipd));
        let slack = 1.0 + 1e-6;
        prop_assert!(rate(tables.decrease(ipd)) <= function.decrease(rate(ipd)) * slack);
        let Increase { packets, next } = tables.increase(ipd);
        if packets == 1 {
            let reached = function.increase(rate(ipd)) * slack;
            // A single packet may also be what a little more than one rounds to.
            prop_assert!(rate(next) <= reached || next == ipd - 1);
        }
        prop_assert!(next < ipd || ipd == 0);
    }
}

#[test]
fn tables_from_outside_are_checked() {
    let increase = vec![
        Increase {
            packets: 1,
            next: 0
        };
        RATES
    ];
    let decrease = vec![255; RATES];
    assert!(RateTables::from_entries(&increase, &decrease).is_ok());
    assert!(matches!(
        RateTables::from_entries(&increase[1..], &decrease),
        Err(EcnError::TableLength {
            table: "increase",
            found: 255
        })
    ));
    let mut wrong = increase.clone();
    wrong[7].next = 8;
    assert!(matches!(
        RateTables::from_entries(&wrong, &decrease),
        Err(EcnError::TableEntry { ipd: 7, .. })
    ));
    let mut wrong = decrease.clone();
    wrong[9] = 8;
    assert!(matches!(
        RateTables::from_entries(&increase, &wrong),
        Err(EcnError::TableEntry {
            table: "decrease",
            ipd: 9,
            ..
        })
    ));
    let mut wrong = increase;
    wrong[3].packets = 0;
    assert!(RateTables::from_entries(&wrong, &decrease).is_err());
}

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::prelude::*;

use super::*;

proptest! {
    /// Oracle: the formula of the specification in 128-bit rational arithmetic, compared by cross
    /// multiplication: `delay * 2^shift <= time * multiplier < (delay + 1) * 2^shift`.
    #[test]
    fn delay_is_the_formula_rounded_down(raw: u16, time in prop_oneof![0u64..1 << 40, any::<u64>()]) {
        let entry = CctEntry::from_raw(raw);
        let (shift, multiplier) = (raw >> 14, raw & 0x3fff);
        let exact = u128::from(time) * u128::from(multiplier);
        let step = 1u128 << shift;
        let delay = u128::from(entry.delay(Span::from_ps(time)).as_ps());
        if exact / step > u128::from(u64::MAX) {
            prop_assert_eq!(delay, u128::from(u64::MAX));
        } else {
            prop_assert!(delay * step <= exact && exact < (delay + 1) * step);
        }
    }

    #[test]
    fn raw_round_trip(raw: u16) {
        let entry = CctEntry::from_raw(raw);
        prop_assert_eq!(entry.as_raw(), raw);
        prop_assert_eq!(CctEntry::try_new(entry.shift(), entry.multiplier()), Ok(entry));
    }

    /// Oracle: no entry of any shift lies nearer than the one chosen.
    #[test]
    fn nearest_has_no_nearer_rival(wanted in prop_oneof![0.0f64..20.0, 0.0f64..16383.0]) {
        let chosen = (CctEntry::nearest(wanted).unwrap().packet_times() - wanted).abs();
        for shift in 0u8..=3 {
            let scaled = wanted * f64::from(1u16 << shift);
            for multiplier in [scaled.floor(), scaled.ceil()] {
                if multiplier <= 16383.0 {
                    let rival = CctEntry::try_new(shift, multiplier as u16).unwrap();
                    prop_assert!(chosen <= (rival.packet_times() - wanted).abs());
                }
            }
        }
    }

    /// Oracle: the definition of the linear table, and the stated error.
    #[test]
    fn linear_table_is_within_its_stated_error(slope in 0.0f64..64.0, limit in 0u16..256) {
        let table = CongestionControlTable::linear(slope, limit).unwrap();
        prop_assert_eq!(table.entries().len(), usize::from(limit) + 1);
        let errors = (0..=limit)
            .map(|i| (table.entry(i).packet_times() - slope * f64::from(i)).abs());
        let worst = errors.fold(0.0, f64::max);
        prop_assert_eq!(worst, table.quantisation_error());
        prop_assert!(worst <= 0.5);
    }
}

/// The fields of literal words: shift in the top 2 bits, multiplier in the lower 14.
#[test]
fn literal_words() {
    let table = [
        (0x0000, 0, 0, 0.0),
        (0x0001, 0, 1, 1.0),
        (0xc001, 3, 1, 0.125),
        (0x3fff, 0, 16383, 16383.0),
        (0xffff, 3, 16383, 2047.875),
        (0x4003, 1, 3, 1.5),
    ];
    for (raw, shift, multiplier, packet_times) in table {
        let entry = CctEntry::from_raw(raw);
        assert_eq!((entry.shift(), entry.multiplier()), (shift, multiplier));
        assert_eq!(entry.packet_times(), packet_times);
        assert_eq!(CctEntry::try_new(shift, multiplier).unwrap().as_raw(), raw);
    }
}

/// 2074 bytes at 16 Gbit/s take 1.037 us; index 100 of a table with slope 1 waits 100 times that.
/// So the flow sends one packet in 101 packet times.
#[test]
fn whole_packet_times() {
    let table = CongestionControlTable::linear(1.0, 127).unwrap();
    assert_eq!(table.quantisation_error(), 0.0);
    let packet_time = Span::from_ps(1_037_000);
    assert_eq!(table.delay(100, packet_time), Span::from_ps(103_700_000));
}

/// 0.5 * 2^(i - 1) is exact in every entry: 0, 1/2, 1, 2, 4, ...
#[test]
fn geometric_doubles() {
    let table = CongestionControlTable::geometric(0.5, 2.0, 14).unwrap();
    assert_eq!(table.entry(0), CctEntry::ZERO);
    for i in 1u16..=14 {
        assert_eq!(
            table.entry(i).packet_times(),
            f64::from(1u32 << (i - 1)) / 2.0
        );
    }
    assert_eq!(table.quantisation_error(), 0.0);
}

#[test]
fn fields_that_do_not_fit_are_named() {
    assert_eq!(
        CctEntry::try_new(4, 0).unwrap_err().to_string(),
        "CCT_Shift is 4, it must be 0 to 3"
    );
    assert_eq!(
        CctEntry::try_new(0, 16384).unwrap_err().to_string(),
        "CCT_Multiplier is 16384, it must be 0 to 16383"
    );
}

#[test]
fn bad_tables_are_refused() {
    let zeros = |n| vec![CctEntry::ZERO; n];
    assert_eq!(
        CongestionControlTable::from_entries(zeros(128), 128).unwrap_err(),
        ParameterError::LimitBeyondTable {
            limit: 128,
            entries: 128
        }
    );
    assert!(CongestionControlTable::from_entries(zeros(128), 127).is_ok());
    assert!(CongestionControlTable::from_entries(zeros(0), 0).is_err());
    assert!(CongestionControlTable::from_entries(zeros(16_384), 16_383).is_ok());
    assert!(CongestionControlTable::from_entries(zeros(16_385), 0).is_err());
    assert_eq!(
        CongestionControlTable::from_entries(vec![CctEntry::from_raw(0xc001)], 0).unwrap_err(),
        ParameterError::FirstEntryDelays {
            packet_times: 0.125
        }
    );
    // 200 * 82 = 16400 is the first multiple of 200 beyond the largest multiplier.
    assert_eq!(
        CongestionControlTable::linear(200.0, 127).unwrap_err(),
        ParameterError::DelayNotRepresentable {
            index: 82,
            packet_times: 16400.0
        }
    );
    for slope in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(CongestionControlTable::linear(slope, 1).is_err());
    }
}

//! Quantities: exact values, text in both directions, and every kind of bad input.
#![allow(clippy::unwrap_used, reason = "a failed conversion is a failed test")]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use proptest::prelude::*;
use silvan_core::{
    Bytes, Credits, Length, ParseQuantityError, ParseQuantityReason as Reason, Rate, Span, Time,
};

fn span(text: &str) -> Span {
    text.parse().unwrap()
}

fn bytes(text: &str) -> Bytes {
    text.parse().unwrap()
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

#[test]
fn texts_have_their_values() {
    for (text, ps) in [
        ("1 ps", 1),
        ("22 ns", 22_000),
        ("22ns", 22_000),
        ("  150 us ", 150_000_000),
        ("1.5 ms", 1_500_000_000),
        ("1.024 us", 1_024_000),
        ("0.1 s", 100_000_000_000),
        ("0.100000000000000000000000 s", 100_000_000_000),
        ("0 s", 0),
        ("18446744073709551615 ps", u64::MAX),
        ("18446744.073709551615 s", u64::MAX),
    ] {
        assert_eq!(span(text).as_ps(), ps, "{text}");
    }
    for (text, expected) in [
        ("2048 B", 2_048),
        ("64 KiB", 65_536),
        ("4 kB", 4_000),
        ("1 MiB", 1_048_576),
        ("128 MiB", 134_217_728),
        ("0.5 KiB", 512),
        ("2 GB", 2_000_000_000),
        ("1 GiB", 1_073_741_824),
    ] {
        assert_eq!(bytes(text).as_u64(), expected, "{text}");
    }
    for (text, bits) in [
        ("13.5 Gbit/s", 13_500_000_000),
        ("16 Gbit/s", 16_000_000_000),
        ("1 GB/s", 8_000_000_000),
        ("2.5 Mbit/s", 2_500_000),
        ("1 KiB/s", 8_192),
        ("0.4 Tbit/s", 400_000_000_000),
    ] {
        assert_eq!(rate(text).bits_per_sec(), bits, "{text}");
    }
    for (text, mm) in [
        ("2 m", 2_000),
        ("50 cm", 500),
        ("3.5 m", 3_500),
        ("10 mm", 10),
    ] {
        assert_eq!(text.parse::<Length>().unwrap().as_mm(), mm, "{text}");
    }
}

#[test]
fn values_print_as_one_would_write_them() {
    for text in [
        "150 us",
        "1.5 ms",
        "1.21363 us",
        "100 ms",
        "22 ns",
        "1 ps",
        "0 s",
    ] {
        assert_eq!(span(text).to_string(), text);
    }
    for text in [
        "64 KiB", "100 B", "2 KiB", "64 kB", "1 MB", "128 MiB", "1500 B", "0 B",
    ] {
        assert_eq!(bytes(text).to_string(), text);
    }
    for text in [
        "13.5 Gbit/s",
        "1 bit/s",
        "2.5 Mbit/s",
        "54.545454545 Gbit/s",
    ] {
        assert_eq!(rate(text).to_string(), text);
    }
    for text in ["2 m", "50 cm", "3.5 m", "5 mm", "0 m", "1000 m"] {
        assert_eq!(text.parse::<Length>().unwrap().to_string(), text);
    }
    assert_eq!((Time::ZERO + span("1.5 ms")).to_string(), "1.5 ms");
    assert_eq!(format!("[{:>8}]", span("22 ns")), "[   22 ns]");
}

/// The values that the calibration of the model rests on.
#[test]
fn serialisation_times_are_exact() {
    let packet = bytes("2048 B");
    assert_eq!(rate("16 Gbit/s").span_for(packet).as_ps(), 1_024_000);
    // 2048 * 8 / 13.5 ns = 1213.6296 ns, rounded up.
    assert_eq!(rate("13.5 Gbit/s").span_for(packet).as_ps(), 1_213_630);
    assert_eq!(rate("400 Gbit/s").span_for(bytes("1 B")).as_ps(), 20);
    assert_eq!(rate("16 Gbit/s").span_for(Bytes::ZERO), Span::ZERO);
    assert_eq!(
        rate("1 bit/s").span_for(Bytes::from_bytes(u64::MAX)),
        Span::MAX
    );
    assert_eq!(
        "2 m".parse::<Length>().unwrap().propagation(),
        span("10 ns")
    );
    let measured = Rate::from_bytes_in(bytes("2048 B"), span("1.024 us"));
    assert!((measured / 16e9 - 1.0).abs() < 1e-12, "{measured}");
}

#[test]
fn credits_are_blocks_of_64_bytes_rounded_up() {
    for (amount, blocks) in [(0, 0), (1, 1), (64, 1), (65, 2), (2_048, 32), (2_074, 33)] {
        assert_eq!(Bytes::from_bytes(amount).credits(), Credits::new(blocks));
    }
    assert_eq!(Credits::new(33).bytes(), bytes("2112 B"));
    assert_eq!(Credits::new(1).checked_sub(Credits::new(2)), None);
}

#[test]
fn instants_and_spans_never_wrap_silently() {
    let (early, late) = (Time::from_ps(3), Time::from_ps(10));
    assert_eq!(late.since(early), Span::from_ps(7));
    assert_eq!(early.checked_since(late), None);
    assert_eq!(early.checked_sub(Span::from_ps(4)), None);
    assert_eq!(early.saturating_sub(Span::from_ps(4)), Time::ZERO);
    assert_eq!(Time::MAX.checked_add(Span::from_ps(1)), None);
    assert_eq!(Time::MAX.saturating_add(Span::from_ps(1)), Time::MAX);
    assert_eq!(Span::MAX.checked_mul(2), None);
    assert_eq!(Span::from_us(2) * 3, Span::from_ns(6_000));
    assert_eq!(Rate::from_bits_per_sec(0), None);
}

#[test]
#[should_panic(expected = "not earlier")]
fn since_a_later_instant_panics() {
    let _ = Time::ZERO.since(Time::from_ps(1));
}

fn refused<T>(text: &str) -> ParseQuantityError
where
    T: FromStr<Err = ParseQuantityError> + Debug,
{
    text.parse::<T>().unwrap_err()
}

#[test]
fn bad_spans_are_refused_with_a_reason() {
    for (text, reason) in [
        ("", Reason::NotANumber),
        ("us", Reason::NotANumber),
        ("-1 us", Reason::NotANumber),
        ("+1 us", Reason::NotANumber),
        (".5 us", Reason::NotANumber),
        ("5. us", Reason::NotANumber),
        ("1.2.3 us", Reason::NotANumber),
        ("150", Reason::MissingUnit),
        ("1.5 ", Reason::MissingUnit),
        ("1 Us", Reason::UnknownUnit),
        ("1e3 ns", Reason::UnknownUnit),
        ("1,5 us", Reason::UnknownUnit),
        ("1 us 2", Reason::UnknownUnit),
        ("1 Gbit/s", Reason::UnknownUnit),
        ("0.5 ps", Reason::Inexact),
        ("0.0000000000001 s", Reason::Inexact),
        ("0.00000000000000000001 s", Reason::Inexact),
        ("18446744073709551616 ps", Reason::Overflow),
        ("18446744.073709551616 s", Reason::Overflow),
        ("99999999999999999999999999 s", Reason::Overflow),
    ] {
        assert_eq!(refused::<Span>(text).reason(), reason, "{text:?}");
    }
}

#[test]
fn other_bad_quantities_are_refused_with_a_reason() {
    assert_eq!(refused::<Rate>("0 Gbit/s").reason(), Reason::Zero);
    assert_eq!(refused::<Rate>("0.5 bit/s").reason(), Reason::Inexact);
    assert_eq!(refused::<Rate>("16").reason(), Reason::MissingUnit);
    assert_eq!(refused::<Bytes>("0.3 KiB").reason(), Reason::Inexact);
    assert_eq!(refused::<Bytes>("64").reason(), Reason::MissingUnit);
    assert_eq!(refused::<Length>("5000 km").reason(), Reason::Overflow);
    assert_eq!(refused::<Length>("0.5 mm").reason(), Reason::Inexact);
}

/// Units that differ by the case of one letter are refused.
#[test]
fn messages_say_what_to_write_instead() {
    for (text, message) in [
        (
            "16 Gb/s",
            r#"invalid data rate "16 Gb/s": the unit is not known (write "Gbit/s" for bits or "GB/s" for bytes)"#,
        ),
        (
            "16 Gbps",
            r#"invalid data rate "16 Gbps": the unit is not known (write "Gbit/s" for bits or "GB/s" for bytes)"#,
        ),
        (
            "16",
            r#"invalid data rate "16": the unit is missing (write e.g. "13.5 Gbit/s")"#,
        ),
    ] {
        assert_eq!(refused::<Rate>(text).to_string(), message);
    }
    for (text, hint) in [
        ("64 KB", r#"write "kB" for 1000 bytes or "KiB" for 1024"#),
        (
            "64 Kb",
            r#"write "B" for bytes; data amounts are not given in bits"#,
        ),
        (
            "64 kbyte",
            "known units: B, kB, KiB, MB, MiB, GB, GiB, TB, TiB",
        ),
        ("0.5 B", "the smallest step is 1 B"),
    ] {
        assert_eq!(refused::<Bytes>(text).hint(), hint);
    }
    assert_eq!(
        refused::<Span>("1 \u{b5}s").hint(),
        r#"write "us" for microseconds"#
    );
    assert_eq!(
        refused::<Length>("5000 km").hint(),
        "the largest value is 4294967295 mm"
    );
}

#[test]
fn serde_reads_and_writes_text_only() {
    assert_eq!(
        serde_json::to_string(&span("150 us")).unwrap(),
        r#""150 us""#
    );
    assert_eq!(
        serde_json::from_str::<Rate>(r#""13.5 Gbit/s""#).unwrap(),
        rate("13.5 Gbit/s")
    );
    let number = serde_json::from_str::<Span>("150").unwrap_err().to_string();
    assert!(
        number.contains(r#"expected a time span as text with its unit, e.g. "150 us""#),
        "{number}"
    );
    let bare = serde_json::from_str::<Bytes>(r#""64""#)
        .unwrap_err()
        .to_string();
    assert!(bare.contains(r#"write e.g. "64 KiB""#), "{bare}");
}

fn assert_round_trip<T>(value: T)
where
    T: FromStr<Err = ParseQuantityError> + Display + Debug + PartialEq,
{
    assert_eq!(value.to_string().parse::<T>().unwrap(), value);
}

/// Values of every magnitude, as often small as large.
fn any_magnitude() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift)
}

proptest! {
    #[test]
    fn printed_quantities_parse_back(value in any_magnitude(), tens in 0_u32..20) {
        // Round values too, which are printed in larger units.
        let rounded = value / 10_u64.pow(tens) * 10_u64.pow(tens);
        for value in [value, rounded, value & !0xfffff] {
            assert_round_trip(Span::from_ps(value));
            assert_round_trip(Bytes::from_bytes(value));
            assert_round_trip(Length::from_mm(value as u32));
            if let Some(rate) = Rate::from_bits_per_sec(value) {
                assert_round_trip(rate);
            }
        }
    }

    /// Against the decimal number as one integer with its point removed.
    #[test]
    fn decimals_are_exact_or_refused(
        whole in 0_u64..1_000_000,
        fraction in "[0-9]{1,15}",
        unit in prop::sample::select(vec![("ps", 0), ("ns", 3), ("us", 6), ("ms", 9), ("s", 12)]),
    ) {
        let (unit, power) = unit;
        let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
        let scaled = digits * 10_u128.pow(power);
        let divisor = 10_u128.pow(fraction.len() as u32);
        let parsed = format!("{whole}.{fraction} {unit}").parse::<Span>();
        if scaled % divisor == 0 {
            prop_assert_eq!(u128::from(parsed.unwrap().as_ps()), scaled / divisor);
        } else {
            prop_assert_eq!(parsed.unwrap_err().reason(), Reason::Inexact);
        }
    }

    #[test]
    fn serialisation_never_exceeds_the_rate(data in any_magnitude(), bits in any_magnitude()) {
        prop_assume!(bits > 0);
        let span = Rate::from_bits_per_sec(bits).unwrap().span_for(Bytes::from_bytes(data));
        let needed = u128::from(data) * 8_000_000_000_000;
        let sent = |ps: u64| u128::from(ps) * u128::from(bits);
        // The shortest time in which the rate allows the data.
        prop_assert!(sent(span.as_ps()) >= needed || span == Span::MAX);
        prop_assert!(span == Span::ZERO || sent(span.as_ps() - 1) < needed);
    }

    /// Text of almost the right form: accepted text survives printing.
    #[test]
    fn accepted_text_survives_printing(text in "[0-9]{1,6}[.]?[0-9]{0,4} ?[kMG]?i?(bit/s|b/s|B/s|bps)") {
        if let Ok(rate) = text.parse::<Rate>() {
            prop_assert!(!text.contains("b/s") && !text.contains("bps"), "{} was guessed", text);
            assert_round_trip(rate);
        }
    }
}

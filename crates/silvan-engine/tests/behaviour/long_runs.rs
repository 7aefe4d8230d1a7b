//! Runs in which clocks of fewer bits come round: credits and packets keep 56 bits of the time, 20 hours.

use silvan_core::{Span, Time};

use crate::common::{MTU, Routed, cable, ddr_config};
use crate::script::{Flow, Record};

/// Three hosts send to a fourth host with a slow sink: some packets at the start of the run, and many around an
/// instant. The latter start 20 us before it, so that packets wait, and credits are on their way, at the instant.
fn around(instant: Time) -> Vec<Record> {
    let kind = cable("4x DDR 7 m");
    let routed = Routed::star(&[kind; 4]);
    let mut config = ddr_config();
    config.host.sink_rate = Some(crate::common::mbit(3_000));
    let flows: Vec<Flow> = [Time::ZERO, instant.saturating_sub(Span::from_us(20))]
        .into_iter()
        .flat_map(|start| {
            (0..3).map(move |source| Flow {
                start,
                sizes: vec![MTU, 100, 700],
                ..Flow::burst(source, 3, 40)
            })
        })
        .collect();
    let run = instant.since(Time::ZERO) + Span::from_ms(2);
    routed.run(&config, &flows, run).records
}

/// Returns the start and delivery times of packets, relative to an instant.
fn since(records: &[Record], start: Time) -> Vec<(Span, Span)> {
    let late = |record: &Record| {
        let times = record.injected.iter().zip(&record.delivered);
        times
            .map(|(sent, delivered)| (sent.since(start), delivered.since(start)))
            .collect::<Vec<_>>()
    };
    records[3..].iter().flat_map(late).collect()
}

#[test]
fn nothing_changes_when_the_clocks_of_credits_and_packets_come_round() {
    let early = Time::ZERO + Span::from_ms(5);
    let before = Span::from_us(20);
    let expected = since(&around(early), early.saturating_sub(before));
    assert_eq!(expected.len(), 3 * 40);
    for bits in [55, 56] {
        let late = Time::from_ps(1 << bits);
        let records = around(late);
        let found = since(&records, late.saturating_sub(before));
        assert_eq!(found, expected, "2^{bits} ps");
    }
}

//! Settings that change during a run act from their instant on, where they are meant to and nowhere
//! else.

use std::ops::ControlFlow;

use silvan_core::{Bytes, Rate, Span};
use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::{ColumnData, RunOutput, run};

use crate::on_ddr;

/// Time between samples, and samples in each phase of a run.
const SAMPLE: Span = Span::from_us(100);
const PHASE: usize = 5;
const PHASE_TIME: Span = Span::from_us(500);

/// Packets of MTU size take this long on the link, 4x DDR: 2074 bytes at 16 Gbit/s.
fn packet_time() -> Span {
    let rate: Rate = "16 Gbit/s".parse().unwrap();
    rate.span_for(Bytes::from_bytes(2_074))
}

/// Two switches with three hosts each; the two other hosts of a switch send to host 0 or 3. No flow is throttled: only
/// the first entry of the table is in use.
const BASE: &str = r#"
    [fabric]
    generator = "chain"
    switches = 2
    hosts-per-switch = 3
    routing = "min-hop"
    [link]
    width = "4x"
    speed = "DDR"
    length = "2 m"
    [packet]
    mtu = "2 KiB"
    header = "26 B"
    [[traffic.incast]]
    from = ["host-0001", "host-0002"]
    to = "host-0000"
    [[traffic.incast]]
    from = ["host-0004", "host-0005"]
    to = "host-0003"
    [control]
    scheme = "ib-cc+table1"
    [control.ib-cc.switch]
    threshold-lowest = "1 B"
    marking = "counter"
    [control.ib-cc.adapter]
    ccti-limit = 0
    cct = { shape = "given", entries = [[0, 0], [0, 9]] }
    [probe]
    interval = "100 us"
    ports = true
    [run]
    duration = "2 ms"
"#;

fn run_with(overrides: &[(&str, &str)], changes: &str) -> RunOutput {
    let changes = [("control.ib-cc.change", changes)];
    let overrides = on_ddr(&[overrides, &changes].concat());
    let scenario = Scenario::from_toml(BASE, "base.toml", &overrides).unwrap();
    run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Packets sent, and packets marked, by this port in each phase.
fn phases(output: &RunOutput, node: &str, port: u32) -> Vec<(u64, u64)> {
    let ports = output.table("ports").unwrap();
    let nodes = ports.text_column("node").unwrap();
    let ColumnData::U32(numbers) = ports.column("port").unwrap() else {
        panic!("port numbers are u32");
    };
    let row = (0..ports.rows()).find(|&row| nodes[row] == node && numbers[row] == port);
    let series = output.table("port_series").unwrap();
    let sum = |column: &str| -> Vec<u64> {
        let values = series.u64_column(column).unwrap();
        let samples = values.iter().skip(row.unwrap()).step_by(ports.rows());
        let samples: Vec<u64> = samples.copied().collect();
        samples
            .chunks(PHASE)
            .map(|phase| phase.iter().sum())
            .collect()
    };
    let sent = sum("xmit_bytes").into_iter().map(|bytes| bytes / 2_074);
    sent.zip(sum("fecn_marked")).collect()
}

/// Payload that a host receives in each phase, its first sample left out, as a share of its link.
fn shares(output: &RunOutput, host: u32) -> Vec<f64> {
    let series = output.table("host_series").unwrap();
    let ColumnData::U32(hosts) = series.column("host").unwrap() else {
        panic!("host numbers are u32");
    };
    let bytes = series.u64_column("delivered_bytes").unwrap();
    let samples = (0..series.rows()).filter(|&row| hosts[row] == host);
    let samples: Vec<u64> = samples.map(|row| bytes[row]).collect();
    let full = SAMPLE.as_ps() as f64 / packet_time().as_ps() as f64 * 2_048.0;
    let share = |phase: &[u64]| phase[1..].iter().sum::<u64>() as f64 / (full * (PHASE - 1) as f64);
    samples.chunks(PHASE).map(share).collect()
}

fn assert_shares(output: &RunOutput, host: u32, expected: [f64; 4]) {
    let measured = shares(output, host);
    assert_eq!(measured.len(), 4);
    for (measured, expected) in measured.iter().zip(expected) {
        // A packet more or less than the share at each end of 400 us, which are 385 packets.
        assert!(
            (measured - expected).abs() < 0.006,
            "{measured}, {expected}"
        );
    }
}

/// The ports to hosts 0 and 3: saturated, and all that leaves them is eligible.
const TO_HOST_0: (&str, u32) = ("switch-00", 1);
const TO_HOST_3: (&str, u32) = ("switch-01", 1);

fn marked(output: &RunOutput, (node, port): (&str, u32)) -> Vec<(u64, u64)> {
    let phases = phases(output, node, port);
    assert_eq!(phases.len(), 4);
    // The first packet comes after some hundred nanoseconds, and saturation lasts to the end.
    let full = PHASE_TIME.as_ps() / packet_time().as_ps();
    assert!(phases.iter().all(|(sent, _)| sent.abs_diff(full) <= 2));
    phases
}

/// Marking_Rate of one switch, then of all: every (rate + 1)-th packet is marked.
#[test]
fn marking_rate() {
    let changes = r#"[
        { at = "500 us", switch = "switch-00", marking-rate = 7 },
        { at = "1 ms", switch = "switch-01", port = 1, marking-rate = 1 },
        { at = "1500 us", marking-rate = 99 },
    ]"#;
    let output = run_with(&[], changes);
    for (port, rates) in [(TO_HOST_0, [0, 7, 7, 99]), (TO_HOST_3, [0, 0, 1, 99])] {
        for ((sent, marked), rate) in marked(&output, port).into_iter().zip(rates) {
            assert!(
                marked.abs_diff(sent / (rate + 1)) <= 1,
                "{marked} at {rate}"
            );
        }
    }
}

/// A packet of 2074 bytes is larger than 32 units of Packet_Size, and smaller than 33.
#[test]
fn packet_size() {
    let changes = r#"[
        { at = "500 us", switch = "switch-00", packet-size = 33 },
        { at = "1 ms", packet-size = 33 },
        { at = "1500 us", switch = "switch-00", port = 1, packet-size = 32 },
    ]"#;
    let output = run_with(&[], changes);
    all_or_none(&output, TO_HOST_0, [true, false, false, true]);
    all_or_none(&output, TO_HOST_3, [true, true, false, false]);
}

fn all_or_none(output: &RunOutput, port: (&str, u32), expected: [bool; 4]) {
    for ((sent, marked), expected) in marked(output, port).into_iter().zip(expected) {
        assert_eq!(marked, if expected { sent } else { 0 }, "{port:?}");
    }
}

/// The receive buffers hold one packet and the hosts receive at half the link's rate. So a port never has credits for
/// another packet, and is in the congestion state only if it is in Victim_Mask.
#[test]
fn victim_mask() {
    let slow = [
        ("host.sink-rate", "8 Gbit/s"),
        ("host.receive-buffer", "2112 B"),
        ("control.ib-cc.switch.victim-mask", "none"),
    ];
    let changes = r#"[
        { at = "500 us", switch = "switch-00", victim-mask = true },
        { at = "1 ms", victim-mask = true },
        { at = "1 ms", switch = "switch-00", port = 1, victim-mask = false },
        { at = "1500 us", victim-mask = false },
    ]"#;
    let output = run_with(&slow, changes);
    for ((node, port), expected) in [
        (TO_HOST_0, [false, true, false, false]),
        (TO_HOST_3, [false, false, true, false]),
    ] {
        for ((sent, marked), expected) in phases(&output, node, port).into_iter().zip(expected) {
            assert!(sent > 140);
            assert_eq!(marked, if expected { sent } else { 0 }, "{node}");
        }
    }
}

/// A table of one step, which only the timer takes back. Each of the two senders of a throttled host starts a packet
/// every ten packet times.
const ONE_STEP: [(&str, &str); 2] = [
    ("control.ib-cc.adapter.ccti-limit", "1"),
    ("control.ib-cc.adapter.ccti-timer", "0"),
];

/// CCTI_Increase 0 never throttles; CCTI_Timer 1 takes the step back in a microsecond. Changes on another service level
/// have no effect.
#[test]
fn adapters() {
    let overrides = [
        ONE_STEP.as_slice(),
        &[("control.ib-cc.adapter.ccti-increase", "0")],
    ]
    .concat();
    let changes = r#"[
        { at = "500 us", ccti-increase = 1 },
        { at = "1 ms", ccti-increase = 0, ccti-timer = 1 },
        { at = "1500 us", sl = 3, ccti-increase = 1, ccti-timer = 0 },
    ]"#;
    let output = run_with(&overrides, changes);
    for host in [0, 3] {
        assert_shares(&output, host, [1.0, 0.2, 1.0, 1.0]);
    }
}

/// Threshold 0 never marks.
#[test]
fn threshold() {
    let overrides = [
        ONE_STEP.as_slice(),
        &[("control.ib-cc.switch.threshold", "0")],
    ]
    .concat();
    let changes = r#"[
        { at = "500 us", switch = "switch-00", threshold = 15 },
        { at = "1 ms", switch = "switch-01", port = 4, threshold = 15 },
        { at = "1500 us", switch = "switch-01", port = 1, threshold = 15 },
    ]"#;
    let output = run_with(&overrides, changes);
    assert_shares(&output, 0, [1.0, 0.2, 0.2, 0.2]);
    assert_shares(&output, 3, [1.0, 1.0, 1.0, 0.2]);
}

/// Buffers of four packets, and a threshold of one: credits are late as long as any waits. Nothing is marked.
const FOUR_PACKETS: [(&str, &str); 3] = [
    ("switch.buffer", "8448 B"),
    ("control.ib-cc.switch.threshold", "0"),
    ("control.ib-cc.switch.threshold-lowest", "2112 B"),
];

/// Two hosts alternate on the way to a third host. Behind the port in Credit_Mask a host has four turns in the time of
/// a credit's return: the packet, the delay, and less than one packet time for the way, rounded up to a turn.
#[test]
fn credit_mask() {
    let changes = r#"[
        { at = "500 us", switch = "switch-00", port = 2, credit-mask = true },
        { at = "500 us", credit-return-delay = 8.01 },
        { at = "1 ms", switch = "switch-00", credit-return-delay = 20 },
        { at = "1500 us", switch = "switch-00", credit-threshold = 0 },
    ]"#;
    let output = run_with(&FOUR_PACKETS, changes);
    let full = (PHASE_TIME.as_ps() / packet_time().as_ps()) as f64;
    let turns = [0.5, 4.0 / 10.0, 4.0 / 22.0, 0.5];
    let rest = turns.map(|turns| 1.0 - turns);
    let half = [0.5; 4];
    for (host, shares) in [
        ("host-0001", turns),
        ("host-0002", rest),
        ("host-0004", half),
    ] {
        for ((sent, _), share) in phases(&output, host, 1).into_iter().zip(shares) {
            // The buffer, and what is late at the change.
            assert!(
                (sent as f64 - full * share).abs() <= 8.0,
                "{host}: {sent}, {share}"
            );
        }
    }
    assert!(
        output
            .table("ports")
            .unwrap()
            .u64_column("fecn_marked")
            .unwrap()
            .iter()
            .all(|&n| n == 0)
    );
}

/// Credit_Mask from the start, and for one port only, with a separate delay.
#[test]
fn credit_mask_from_the_start() {
    let own = [
        ("control.ib-cc.switch.credit-return-delay", "8"),
        (
            "control.ib-cc.port",
            r#"[
                { switch = "switch-00", port = 2, credit-mask = true },
                { switch = "switch-01", port = 2, credit-mask = true, credit-return-delay = 20 },
            ]"#,
        ),
    ];
    let output = run_with(&[FOUR_PACKETS.as_slice(), &own].concat(), "[]");
    let full = (PHASE_TIME.as_ps() / packet_time().as_ps()) as f64;
    for (host, share) in [("host-0001", 4.0 / 10.0), ("host-0004", 4.0 / 22.0)] {
        for (sent, _) in phases(&output, host, 1) {
            assert!((sent as f64 - full * share).abs() <= 8.0, "{host}: {sent}");
        }
    }
}

//! Cables with bit errors: which are named, and which of them cause congestion. Oracle: the faults.

use std::cell::RefCell;
use std::rc::Rc;

use silvan_core::{GivenTicks, Span};
use silvan_diagnose::health::Severity;
use silvan_diagnose::report::{CablePart, Report};
use silvan_diagnose::survey::survey;
use silvan_scenario::Scenario;
use silvan_subnet::client::{Client, Limits};

use crate::LINE;
use crate::live::{Live, World};

/// Seconds between the sweeps.
const SECONDS: f64 = 0.2;

/// Bits that the cables of the line carry in a second.
const RATE: f64 = 4e9;

/// Diagnoses a fabric while `right:3`, the receiving port of the cable between the switches, has this fault.
fn diagnosed(text: &str, keys: &str) -> Report {
    let text = format!("{text}[[fault]]\ndo = \"bit-errors\"\nport = \"right:3\"\n{keys}\n");
    let scenario = Scenario::from_toml(&text, "line.toml", &[]).unwrap();
    let mut world = World::new(&scenario);
    for planned in scenario.faults() {
        world.plane.begin_fault(planned.fault).unwrap();
    }
    let world = Rc::new(RefCell::new(world));
    world.borrow_mut().advance(Span::from_ms(20));
    let mut client = Client::new(Live(Rc::clone(&world)), Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms((SECONDS * 1e3) as u64)).unwrap();
    let (report, _) = survey.diagnose(&GivenTicks::default(), 1.0, || client.now());
    world.borrow().plane.audit().unwrap();
    report
}

/// Two flows over the cable between the switches, which is 75 % full without replays.
fn two_flows() -> String {
    let flows = LINE.find("[[traffic.flow]]").unwrap();
    let flow = |from: &str, to: &str| {
        format!("[[traffic.flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nload = \"1.5 Gbit/s\"\n")
    };
    format!("{}{}{}", &LINE[..flows], flow("a", "c"), flow("b", "d"))
}

fn finding(report: &Report) -> (Severity, &str) {
    let mut items = report.health.iter();
    let item = items.find(|item| item.what.starts_with("Bad cable at"));
    let item = item.unwrap_or_else(|| panic!("{:?}", report.health));
    (item.severity, &item.what)
}

#[track_caller]
fn assert_rate(measured: f64, expected: f64) {
    // Four standard deviations, and readings that are not at one instant.
    let deviation = 4.0 * (expected * SECONDS).sqrt() / SECONDS + 0.02 * expected;
    assert!(
        (measured - expected).abs() < deviation,
        "{measured}, {expected}"
    );
}

/// Packets of 4,122 B have 32,976 bits. At 3e-5 63 % of them are bad, so the cable carries 37 % of its rate, and the flows
/// need 75 %.
#[test]
fn cable_whose_replays_cause_congestion_is_the_root() {
    let report = diagnosed(&two_flows(), "bit-error-rate = 3e-5\nretransmission = true");
    let [tree] = &report.trees[..] else {
        panic!("{report:?}");
    };
    assert_eq!((tree.root.as_str(), tree.cause), ("left:3", "bad cable"));
    let mut hosts: Vec<_> = tree.contributors.iter().map(|one| &one.host[..]).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["a", "b"]);
    let [cable] = &report.bad_cables[..] else {
        panic!("{report:?}");
    };
    assert_eq!(
        (cable.port.as_str(), cable.peer.as_str()),
        ("right:3", "left:3")
    );
    assert_eq!(cable.congestion, CablePart::Causes);
    assert_rate(cable.symbol_errors_per_s, 3e-5 * RATE);
    let (severity, what) = finding(&report);
    assert_eq!(severity, Severity::Error);
    assert!(
        what.contains("it causes the congestion at left:3"),
        "{what}"
    );
    assert!(what.contains("SymbolErrorCounter +"), "{what}");
}

/// The incast of the line holds the cable up. One packet in 3,000 is replayed, which is nothing to it.
#[test]
fn cable_that_carries_the_congestion_of_another_root_does_not_cause_it() {
    let report = diagnosed(LINE, "bit-error-rate = 1e-8\nretransmission = true");
    let [tree] = &report.trees[..] else {
        panic!("{report:?}");
    };
    assert_eq!((tree.root.as_str(), tree.cause), ("right:1", "incast"));
    let [cable] = &report.bad_cables[..] else {
        panic!("{report:?}");
    };
    assert_eq!(cable.congestion, CablePart::Carries);
    assert_rate(cable.symbol_errors_per_s, 1e-8 * RATE);
    let (severity, what) = finding(&report);
    assert_eq!(severity, Severity::Warning);
    assert!(
        what.contains("it carries the congestion at right:1, and does not cause it"),
        "{what}"
    );
}

/// Without retransmission bad packets are lost, and nothing waits. Oracle: 1 - (1 - p)^n of the packets of 3 Gbit/s.
#[test]
fn cable_that_loses_packets_is_named_with_its_losses() {
    let report = diagnosed(&two_flows(), "bit-error-rate = 1e-6");
    assert!(report.trees.is_empty(), "{report:?}");
    let [cable] = &report.bad_cables[..] else {
        panic!("{report:?}");
    };
    assert_eq!(cable.congestion, CablePart::None);
    let packets = 3e9 / 8.0 / 4096.0;
    let bad = 1.0 - (1.0 - 1e-6_f64).powi(32_976);
    assert_rate(cable.rcv_errors_per_s, packets * bad);
    assert_rate(cable.symbol_errors_per_s, 1e-6 * RATE);
    let (severity, what) = finding(&report);
    assert_eq!(severity, Severity::Error);
    assert!(what.contains("PortRcvErrors +"), "{what}");
}

#[test]
fn good_cables_are_not_named() {
    let scenario = Scenario::from_toml(LINE, "line.toml", &[]).unwrap();
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    world.borrow_mut().advance(Span::from_ms(20));
    let mut client = Client::new(Live(world), Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms(100)).unwrap();
    let (report, _) = survey.diagnose(&GivenTicks::default(), 1.0, || client.now());
    assert!(report.bad_cables.is_empty(), "{report:?}");
}

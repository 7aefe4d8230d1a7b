//! Bad descriptions: each names the entry and the key.

use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, Rate, Sl, Span, Time};
use silvan_workload::traffic::{
    Entry, Flow, Hotspots, Incast, Load, Nodes, Pattern, Permutation, Reason, RoleShare, Selection,
    Spacing, Traffic, TrafficError, TrafficSection, Uniform,
};

use crate::mock::{environment, flow, flows, host, injection, nodes, only_nodes, refs};

const HOSTS: usize = 12;

fn error(spec: &TrafficSection) -> TrafficError {
    Traffic::new(spec, &environment(HOSTS, 1)).unwrap_err()
}

#[track_caller]
fn refused(spec: &TrafficSection, entry: Entry, key: &str, reason: Reason) {
    let error = error(spec);
    assert_eq!((error.entry, error.key, error.reason), (entry, key, reason));
}

fn base() -> Nodes {
    nodes(0.25, 0.5, 0.25, 0.5)
}

#[test]
fn the_text_names_place_and_value() {
    let spec = flows(vec![flow(0, 1), flow(0, 99)]);
    assert_eq!(
        error(&spec).to_string(),
        "traffic.flow 2, to: host 99 is outside the fabric of 12 hosts"
    );
}

#[test]
fn nodes_are_checked() {
    let refused = |nodes: Nodes, key, reason| {
        refused(&only_nodes(nodes), Entry::single("nodes"), key, reason);
    };
    let given = |list: &[usize]| Hotspots::Given(refs(list.iter().copied()));
    let with_hotspots = |hotspots| Nodes { hotspots, ..base() };
    let outside = Reason::OutsideFabric {
        host: host(12),
        hosts: HOSTS,
    };
    refused(with_hotspots(given(&[3, 12])), "hotspots", outside);
    refused(
        with_hotspots(given(&[3, 3])),
        "hotspots",
        Reason::Repeated(host(3)),
    );
    refused(with_hotspots(given(&[])), "hotspots", Reason::NoHotspots);
    let too_few = Reason::TooFewHosts {
        wanted: 13,
        available: 12,
    };
    refused(with_hotspots(Hotspots::Random(13)), "hotspots", too_few);
    refused(nodes(0.5, 0.75, 0.0, 0.0), "", Reason::FractionSum(1.25));
    refused(nodes(-0.5, 1.0, 0.5, 0.0), "v", Reason::NotAFraction(-0.5));
    refused(
        nodes(0.0, 0.0, 1.0, 1.01),
        "p",
        Reason::NotAPercentage(101.0),
    );
    let mixed = Nodes {
        v: RoleShare::Given(refs([1])),
        ..base()
    };
    refused(mixed, "c", Reason::MixedRoles);
    refused(
        Nodes {
            hotspot_lifetime: Limit::At(Span::ZERO),
            ..base()
        },
        "hotspot-lifetime",
        Reason::ZeroSpan,
    );
    let listed = |c: &[usize], b: &[usize], hotspots| Nodes {
        v: RoleShare::Fraction(0.0),
        c: RoleShare::Given(refs(c.iter().copied())),
        b: RoleShare::Given(refs(b.iter().copied())),
        hotspots,
        ..base()
    };
    refused(
        listed(&[1], &[2, 1], given(&[0])),
        "b",
        Reason::Repeated(host(1)),
    );
    refused(
        listed(&[1, 2], &[], given(&[2])),
        "c",
        Reason::ToItself(host(2)),
    );
}

#[test]
fn not_a_number_is_not_a_fraction() {
    let error = error(&only_nodes(nodes(0.0, 0.0, 1.0, f64::NAN)));
    assert_eq!(error.key, "p");
    assert!(matches!(error.reason, Reason::NotAPercentage(value) if value.is_nan()));
}

#[test]
fn flows_are_checked() {
    let refused = |flow, key, reason| {
        refused(&flows(vec![flow]), Entry::listed("flow", 0), key, reason);
    };
    refused(flow(3, 3), "to", Reason::ToItself(host(3)));
    let zero = Some(Bytes::ZERO);
    refused(
        Flow {
            bytes: Limit::At(Bytes::ZERO),
            ..flow(0, 1)
        },
        "bytes",
        Reason::ZeroBytes,
    );
    refused(
        Flow {
            message: zero,
            ..flow(0, 1)
        },
        "message",
        Reason::ZeroBytes,
    );
    let (start, end) = (Time::from_ps(9), Time::from_ps(9));
    refused(
        Flow {
            start: start.since(Time::ZERO),
            end: Limit::At(end.since(Time::ZERO)),
            ..flow(0, 1)
        },
        "end",
        Reason::EndBeforeStart { start, end },
    );
    let rate = Rate::from_bits_per_sec(injection().bits_per_sec() + 1).unwrap();
    refused(
        Flow {
            load: Load::Rate(rate),
            ..flow(0, 1)
        },
        "load",
        Reason::AboveInjection {
            rate,
            host: host(0),
            injection: injection(),
        },
    );
}

#[test]
fn general_settings_and_names_are_checked() {
    let spec = TrafficSection {
        backlog: 0,
        ..TrafficSection::default()
    };
    refused(&spec, Entry::ALL, "backlog", Reason::ZeroBacklog);
    let spec = TrafficSection {
        message: Some(Bytes::from_bytes(1 << 32)),
        ..flows(vec![flow(0, 1)])
    };
    let too_large = Reason::TooLarge(Bytes::from_bytes(1 << 32));
    refused(&spec, Entry::listed("flow", 0), "message", too_large);
    let named = Flow {
        name: Some("flow-1".to_owned()),
        ..flow(0, 2)
    };
    let taken = Reason::NameTaken("flow-1".to_owned());
    refused(
        &flows(vec![flow(0, 1), named]),
        Entry::listed("flow", 1),
        "name",
        taken,
    );
}

fn uniform(from: Selection, load: Load) -> TrafficSection {
    let entry = Uniform {
        name: None,
        from,
        load,
        spacing: Spacing::Poisson,
        start: Span::ZERO,
        end: Limit::Unlimited,
        message: None,
        sl: Sl::ZERO,
    };
    TrafficSection {
        uniform: vec![entry],
        ..TrafficSection::default()
    }
}

#[test]
fn uniform_entries_are_checked() {
    let refused = |spec: TrafficSection, key, reason| {
        refused(&spec, Entry::listed("uniform", 0), key, reason);
    };
    let all = |load| uniform(Selection::All, load);
    refused(all(Load::Fraction(0.0)), "load", Reason::ZeroLoad);
    refused(all(Load::Fraction(1.5)), "load", Reason::NotAFraction(1.5));
    let none = Selection::Given(vec![]);
    refused(uniform(none, Load::Saturating), "from", Reason::NoHosts);
    let error = Traffic::new(&all(Load::Saturating), &environment(1, 1)).unwrap_err();
    assert_eq!(error.reason, Reason::NoOtherHost(1));
}

#[test]
fn permutations_are_checked() {
    let refused = |entry: Permutation, key, reason| {
        let spec = TrafficSection {
            permutation: vec![entry],
            ..TrafficSection::default()
        };
        refused(&spec, Entry::listed("permutation", 0), key, reason);
    };
    let shifted = |shift| Permutation {
        pattern: Pattern::Shift,
        shift,
        ..Permutation::default()
    };
    refused(shifted(Some(24)), "shift", Reason::ToItself(host(0)));
    let (choice, key) = ("shift", "shift");
    refused(shifted(None), key, Reason::MissingKey { choice, key });
    let complement = Permutation {
        pattern: Pattern::BitComplement,
        ..Permutation::default()
    };
    refused(complement, "pattern", Reason::NotAPowerOfTwo(HOSTS));
    let given = |list: Vec<usize>| Permutation {
        pattern: Pattern::Given,
        to: Some(refs(list)),
        ..Permutation::default()
    };
    let (choice, wanted) = ("given", Some("to"));
    let both = Permutation {
        shift: Some(1),
        ..given(vec![1])
    };
    refused(both, "shift", Reason::UnwantedKey { choice, wanted });
    let wrong = Reason::WrongLength {
        given: 1,
        hosts: HOSTS,
    };
    refused(given(vec![1]), "to", wrong);
    let mut list: Vec<_> = (0..HOSTS).map(|index| (index + 1) % HOSTS).collect();
    list.swap(4, 3);
    refused(given(list), "to", Reason::ToItself(host(4)));
}

#[test]
fn incasts_are_checked() {
    let refused = |from, to: HostId, key, reason| {
        let entry = Incast {
            name: None,
            from,
            to: to.into(),
            bytes: Limit::Unlimited,
            load: Load::Saturating,
            spacing: Spacing::Poisson,
            start: Span::ZERO,
            end: Limit::Unlimited,
            on_off: None,
            message: None,
            sl: Sl::ZERO,
        };
        let spec = TrafficSection {
            incast: vec![entry],
            ..TrafficSection::default()
        };
        refused(&spec, Entry::listed("incast", 0), key, reason);
    };
    let outside = Reason::OutsideFabric {
        host: host(12),
        hosts: HOSTS,
    };
    refused(Selection::All, host(12), "to", outside);
    let with_receiver = Selection::Given(refs([1, 5]));
    refused(with_receiver, host(5), "from", Reason::ToItself(host(5)));
    let too_few = Reason::TooFewHosts {
        wanted: 12,
        available: 11,
    };
    refused(Selection::Random(12), host(5), "from", too_few);
}

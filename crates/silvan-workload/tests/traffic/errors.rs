//! Bad descriptions: each names the entry and the key.

use silvan_core::{Bytes, Rate, Sl, Span, Time};
use silvan_workload::traffic::{
    Entry, FlowSpec, Hotspots, IncastSpec, Load, NodesSpec, Pattern, PermutationSpec, Reason,
    Roles, Selection, Spacing, Traffic, TrafficError, TrafficSpec, UniformSpec, Window,
};

use crate::mock::{environment, flow, flows, host, injection, nodes, only_nodes};

const HOSTS: usize = 12;

fn error(spec: &TrafficSpec) -> TrafficError {
    Traffic::new(spec, &environment(HOSTS, 1)).unwrap_err()
}

#[track_caller]
fn refused(spec: &TrafficSpec, entry: Entry, key: &str, reason: Reason) {
    let error = error(spec);
    assert_eq!((error.entry, error.key, error.reason), (entry, key, reason));
}

fn base() -> NodesSpec {
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
    let refused = |nodes: NodesSpec, key, reason| {
        refused(&only_nodes(nodes), Entry::Nodes, key, reason);
    };
    let given = |list: &[usize]| Hotspots::Given(list.iter().map(|&index| host(index)).collect());
    let with_hotspots = |hotspots| NodesSpec { hotspots, ..base() };
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
    refused(
        nodes(0.2, 0.7, 0.0, 0.0),
        "v",
        Reason::FractionSum(0.2 + 0.7),
    );
    refused(nodes(-0.5, 1.0, 0.5, 0.0), "v", Reason::NotAFraction(-0.5));
    refused(nodes(0.0, 0.0, 1.0, 1.01), "p", Reason::NotAFraction(1.01));
    refused(
        NodesSpec {
            hotspot_lifetime: Some(Span::ZERO),
            ..base()
        },
        "hotspot-lifetime",
        Reason::ZeroSpan,
    );
    let lists = |c: &[usize], b: &[usize]| Roles::Lists {
        v: vec![],
        c: c.iter().map(|&index| host(index)).collect(),
        b: b.iter().map(|&index| host(index)).collect(),
    };
    let listed = |roles, hotspots| NodesSpec {
        roles,
        hotspots,
        ..base()
    };
    refused(
        listed(lists(&[1], &[2, 1]), given(&[0])),
        "b",
        Reason::Repeated(host(1)),
    );
    refused(
        listed(lists(&[1, 2], &[]), given(&[2])),
        "c",
        Reason::ToItself(host(2)),
    );
}

#[test]
fn not_a_number_is_not_a_fraction() {
    let error = error(&only_nodes(nodes(0.0, 0.0, 1.0, f64::NAN)));
    assert_eq!(error.key, "p");
    assert!(matches!(error.reason, Reason::NotAFraction(value) if value.is_nan()));
}

#[test]
fn flows_are_checked() {
    let refused = |flow, key, reason| {
        refused(&flows(vec![flow]), Entry::Flow(0), key, reason);
    };
    refused(flow(3, 3), "to", Reason::ToItself(host(3)));
    let zero = Some(Bytes::ZERO);
    refused(
        FlowSpec {
            bytes: zero,
            ..flow(0, 1)
        },
        "bytes",
        Reason::ZeroBytes,
    );
    refused(
        FlowSpec {
            message: zero,
            ..flow(0, 1)
        },
        "message",
        Reason::ZeroBytes,
    );
    let (start, end) = (Time::from_ps(9), Time::from_ps(9));
    let window = Window {
        start,
        end: Some(end),
    };
    refused(
        FlowSpec {
            window,
            on_off: None,
            ..flow(0, 1)
        },
        "end",
        Reason::EndBeforeStart { start, end },
    );
    let rate = Rate::from_bits_per_sec(injection().bits_per_sec() + 1).unwrap();
    refused(
        FlowSpec {
            load: Load::Rate(rate),
            ..flow(0, 1)
        },
        "rate",
        Reason::AboveInjection {
            rate,
            host: host(0),
            injection: injection(),
        },
    );
}

#[test]
fn general_settings_and_names_are_checked() {
    let spec = TrafficSpec {
        backlog: 0,
        ..TrafficSpec::default()
    };
    refused(&spec, Entry::Traffic, "backlog", Reason::ZeroBacklog);
    let spec = TrafficSpec {
        message: Some(Bytes::from_bytes(1 << 32)),
        ..flows(vec![flow(0, 1)])
    };
    let too_large = Reason::TooLarge(Bytes::from_bytes(1 << 32));
    refused(&spec, Entry::Flow(0), "message", too_large);
    let named = FlowSpec {
        name: Some("flow-1".to_owned()),
        ..flow(0, 2)
    };
    let taken = Reason::NameTaken("flow-1".to_owned());
    refused(
        &flows(vec![flow(0, 1), named]),
        Entry::Flow(1),
        "name",
        taken,
    );
}

fn uniform(from: Selection, load: Load) -> TrafficSpec {
    let entry = UniformSpec {
        name: None,
        from,
        load,
        spacing: Spacing::Poisson,
        window: Window::default(),
        message: None,
        sl: Sl::ZERO,
    };
    TrafficSpec {
        uniform: vec![entry],
        ..TrafficSpec::default()
    }
}

#[test]
fn uniform_entries_are_checked() {
    let refused = |spec: TrafficSpec, key, reason| {
        refused(&spec, Entry::Uniform(0), key, reason);
    };
    let all = |load| uniform(Selection::All, load);
    refused(all(Load::Fraction(0.0)), "load", Reason::ZeroLoad);
    refused(all(Load::Fraction(1.5)), "load", Reason::NotAFraction(1.5));
    let none = Selection::Given(vec![]);
    refused(uniform(none, Load::Saturating), "from", Reason::NoHosts);
    let error = Traffic::new(&all(Load::Saturating), &environment(1, 1)).unwrap_err();
    let too_few = Reason::TooFewHosts {
        wanted: 2,
        available: 1,
    };
    assert_eq!(error.reason, too_few, "a lone host has nobody to send to");
}

#[test]
fn permutations_are_checked() {
    let refused = |pattern, reason| {
        let entry = PermutationSpec {
            name: None,
            pattern,
            load: Load::Saturating,
            spacing: Spacing::Poisson,
            window: Window::default(),
            message: None,
            sl: Sl::ZERO,
        };
        let spec = TrafficSpec {
            permutation: vec![entry],
            ..TrafficSpec::default()
        };
        refused(&spec, Entry::Permutation(0), "pattern", reason);
    };
    refused(Pattern::Shift(24), Reason::ToItself(host(0)));
    refused(Pattern::BitComplement, Reason::NotAPowerOfTwo(HOSTS));
    let wrong = Reason::WrongLength {
        given: 1,
        hosts: HOSTS,
    };
    refused(Pattern::Given(vec![host(1)]), wrong);
    let mut list: Vec<_> = (0..HOSTS).map(|index| host((index + 1) % HOSTS)).collect();
    list.swap(4, 3);
    refused(Pattern::Given(list), Reason::ToItself(host(4)));
}

#[test]
fn incasts_are_checked() {
    let refused = |from, to, key, reason| {
        let entry = IncastSpec {
            name: None,
            from,
            to,
            bytes: None,
            load: Load::Saturating,
            spacing: Spacing::Poisson,
            window: Window::default(),
            on_off: None,
            message: None,
            sl: Sl::ZERO,
        };
        let spec = TrafficSpec {
            incast: vec![entry],
            ..TrafficSpec::default()
        };
        refused(&spec, Entry::Incast(0), key, reason);
    };
    let outside = Reason::OutsideFabric {
        host: host(12),
        hosts: HOSTS,
    };
    refused(Selection::All, host(12), "to", outside);
    let with_receiver = Selection::Given(vec![host(1), host(5)]);
    refused(with_receiver, host(5), "from", Reason::ToItself(host(5)));
    let too_few = Reason::TooFewHosts {
        wanted: 12,
        available: 11,
    };
    refused(Selection::Random(12), host(5), "from", too_few);
}

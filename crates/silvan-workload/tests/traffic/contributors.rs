//! C nodes and hotspots: who sends to whom, and what happens when hotspots move.

use std::collections::BTreeMap;

use silvan_cc::workload::Workload;
use silvan_core::document::Limit;
use silvan_core::{HostId, Sl, Span, Time};
use silvan_workload::traffic::{Hotspots, Nodes, Role, RoleShare, SeedSource, Traffic};

use crate::mock::{MockHost, environment, host, nodes, only_nodes, refs};

const LIFETIME: Span = Span::from_us(100);

fn build(nodes: Nodes, hosts: usize, seed: u64) -> Traffic {
    Traffic::new(&only_nodes(nodes), &environment(hosts, seed)).unwrap()
}

fn hosts_with(traffic: &Traffic, hosts: usize, role: Role) -> Vec<HostId> {
    let all = (0..hosts).map(HostId::new);
    all.filter(|&host| traffic.role(host) == role).collect()
}

#[test]
fn contributors_are_evenly_divided_and_stay_with_their_hotspot() {
    let mut traffic = build(nodes(0.2, 0.8, 0.0, 0.0), 648, 2);
    let contributors = hosts_with(&traffic, 648, Role::C);
    assert_eq!(contributors.len(), 518);
    assert_eq!(hosts_with(&traffic, 648, Role::V).len(), 130);
    let mut subsets: BTreeMap<HostId, usize> = BTreeMap::new();
    for &contributor in &contributors {
        let mut mock = MockHost::unthrottled(contributor.index());
        mock.send_packets(&mut traffic, 8);
        let hotspot = mock.log[0].offer.dst;
        assert!(mock.log.iter().all(|sent| sent.offer.dst == hotspot));
        *subsets.entry(hotspot).or_default() += 1;
    }
    let mut hotspots = traffic.hotspots(Time::ZERO);
    hotspots.sort_unstable();
    assert_eq!(subsets.keys().copied().collect::<Vec<_>>(), hotspots);
    // 518 = 8 * 64 + 6.
    assert!(subsets.values().all(|&size| size == 64 || size == 65));
}

#[test]
fn v_nodes_of_a_seed_do_not_depend_on_the_other_roles() {
    let with = build(nodes(0.2, 0.8, 0.0, 0.0), 648, 6);
    let without = build(
        Nodes {
            ..nodes(0.2, 0.0, 0.0, 0.0)
        },
        648,
        6,
    );
    assert_eq!(
        hosts_with(&with, 648, Role::V),
        hosts_with(&without, 648, Role::V)
    );
    assert_eq!(with.hotspots(Time::ZERO), without.hotspots(Time::ZERO));
    let other_seed = build(nodes(0.2, 0.8, 0.0, 0.0), 648, 7);
    assert_ne!(
        hosts_with(&with, 648, Role::V),
        hosts_with(&other_seed, 648, Role::V)
    );
}

#[test]
fn a_placement_seed_fixes_the_placement_for_all_seeds() {
    let placed = |seed| {
        let nodes = Nodes {
            placement_seed: SeedSource::Fixed(42),
            ..nodes(0.2, 0.8, 0.0, 0.0)
        };
        let traffic = build(nodes, 648, seed);
        (
            hosts_with(&traffic, 648, Role::V),
            traffic.hotspots(Time::ZERO),
        )
    };
    assert_eq!(placed(1), placed(2));
}

#[test]
fn contributors_follow_their_moving_hotspot() {
    let moving = Nodes {
        hotspot_lifetime: Limit::At(LIFETIME),
        ..nodes(0.0, 0.5, 0.5, 0.4)
    };
    let mut traffic = build(moving, 64, 8);
    let contributor = hosts_with(&traffic, 64, Role::C)[3];
    let first = traffic.clone();
    let mut mock = MockHost::unthrottled(contributor.index());
    mock.run(&mut traffic, Time::ZERO + LIFETIME * 40);
    let start = first.hotspots(Time::ZERO);
    let subset = start
        .iter()
        .position(|&hotspot| hotspot == mock.log[0].offer.dst)
        .unwrap();
    // A message starts on the hotspot of its own slot, and its second packet follows it there.
    let mut slots = 0;
    for message in mock.log.chunks_exact(2) {
        let hotspots = first.hotspots(message[0].at);
        let expected = match hotspots[subset] {
            own if own == contributor => hotspots[(subset + 1) % hotspots.len()],
            other => other,
        };
        assert_eq!(message[0].offer.dst, expected);
        assert_eq!(message[1].offer.dst, expected);
        slots += usize::from(hotspots != start);
    }
    assert!(slots > 1000, "hotspots moved for most of the run: {slots}");
}

#[test]
fn a_throttled_message_stays_behind_when_the_hotspot_moves() {
    let moving = Nodes {
        hotspot_lifetime: Limit::At(LIFETIME),
        ..nodes(0.0, 1.0, 0.0, 0.0)
    };
    let mut traffic = build(moving, 64, 8);
    let mut mock = MockHost::unthrottled(10);
    mock.send_packets(&mut traffic, 1);
    let old = mock.log[0].offer.dst;
    let release = Time::ZERO + LIFETIME + Span::from_us(50);
    mock.throttled.insert((old, Sl::ZERO), release);
    mock.run(&mut traffic, Time::ZERO + LIFETIME * 2);
    let second = mock.log[1];
    assert_eq!(
        second.at,
        Time::ZERO + LIFETIME,
        "the new one is not held back"
    );
    assert_ne!(second.offer.dst, old);
    let to_old: Vec<_> = mock
        .log
        .iter()
        .filter(|sent| sent.offer.dst == old)
        .collect();
    assert_eq!(to_old.len(), 2, "only the message that had started");
    assert!(to_old[1].at >= release && to_old[1].offer.last);
}

#[test]
fn changes_come_at_the_ends_of_lifetimes_and_wake_the_contributors() {
    let moving = Nodes {
        hotspot_lifetime: Limit::At(LIFETIME),
        ..nodes(0.25, 0.5, 0.25, 0.4)
    };
    let mut traffic = build(moving, 64, 8);
    let at = Time::ZERO + LIFETIME;
    assert_eq!(traffic.next_change(Time::ZERO), Some(at));
    let mut wake = Vec::new();
    traffic.apply_change(at, &mut wake);
    let mut expected = hosts_with(&traffic, 64, Role::C);
    expected.extend(hosts_with(&traffic, 64, Role::B));
    expected.sort_unstable();
    assert_eq!(wake, expected);
    let still = build(nodes(0.2, 0.8, 0.0, 0.0), 64, 8);
    assert_eq!(still.next_change(Time::ZERO), None);
}

#[test]
fn the_only_hotspot_sends_no_hotspot_traffic() {
    let single = |v, c, b| Nodes {
        hotspots: Hotspots::Given(refs([4])),
        ..nodes(v, c, b, 0.5)
    };
    let mut traffic = build(single(0.0, 1.0, 0.0), 16, 1);
    let mut mock = MockHost::unthrottled(4);
    mock.run(&mut traffic, Time::ZERO + Span::from_ms(1));
    assert_eq!(mock.log, []);
    let mut traffic = build(single(0.0, 0.0, 1.0), 16, 1);
    let mut mock = MockHost::unthrottled(4);
    mock.run(&mut traffic, Time::ZERO + Span::from_ms(1));
    let classes = traffic.classes();
    let names = mock
        .log
        .iter()
        .map(|sent| &classes[sent.offer.class as usize]);
    assert!(mock.log.len() > 100 && names.into_iter().all(|name| name == "b-uniform"));
}

#[test]
fn listed_roles_are_taken_as_they_are() {
    let listed = Nodes {
        v: RoleShare::Given(refs([1])),
        c: RoleShare::Given(refs([2, 5, 3])),
        b: RoleShare::Given(refs([9])),
        hotspots: Hotspots::Given(refs([0, 8])),
        ..nodes(0.0, 0.0, 0.0, 0.5)
    };
    let mut traffic = build(listed, 10, 1);
    let roles: Vec<Role> = (0..10).map(|index| traffic.role(host(index))).collect();
    use Role::{B, C, Idle, V};
    assert_eq!(roles, [Idle, V, C, C, Idle, C, Idle, Idle, Idle, B]);
    // Dealt out in the order of the list: 2 and 3 to the first hotspot, 5 to the second.
    for (contributor, hotspot) in [(2, 0), (5, 8), (3, 0)] {
        let mut mock = MockHost::unthrottled(contributor);
        mock.send_packets(&mut traffic, 2);
        assert_eq!(mock.log[0].offer.dst, host(hotspot));
    }
}

use silvan_core::Length;
use silvan_fabric::generators::{Generator, KAryNTree};
use silvan_fabric::routing::d_mod_k;
use silvan_fabric::{ForwardingTables, LinkKind, Speed, Width};

use super::*;

fn path(fabric: &Fabric, tables: &ForwardingTables, from: HostId, to: HostId) -> Vec<PortId> {
    let mut path = vec![fabric.host_port(from)];
    let (mut switch, _) = fabric.host_attachment(from);
    loop {
        let number = tables.get(switch, fabric.host(to).lid).unwrap();
        path.push(fabric.switch(switch).port(number).unwrap());
        match fabric.peer_switch(path[path.len() - 1]) {
            Some((next, _)) => switch = next,
            None => return path,
        }
    }
}

/// Four hosts send to one, which receives all that its link carries, and others as much to each other. The true flows are
/// a set that explains all, so that none that is drawn may cost more.
#[test]
fn sets_are_as_likely_as_the_true_flows() {
    let link = LinkKind::new(Width::X1, Speed::Sdr, Length::ZERO);
    let fabric = KAryNTree { k: 4, n: 2 }.build(link).unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    let hosts: Vec<HostId> = fabric.host_ids().collect();
    let to_one = [4, 8, 12, 13].map(|from| (from, 0));
    let others = [(5, 1), (6, 9), (9, 14), (10, 2), (14, 6), (15, 11), (1, 7)];
    let truth: Vec<(usize, usize)> = to_one.into_iter().chain(others).collect();
    let rate = data_rate(&fabric, fabric.host_port(hosts[0]))
        .unwrap()
        .bits_per_sec() as f64
        / 4.0;
    let mut left = IdVec::filled(Some(0.0), fabric.ports.len());
    let mut waiting = Waiting {
        busy: IdVec::filled(false, fabric.ports.len()),
        held_up: IdVec::filled(false, fabric.ports.len()),
        full: IdVec::filled(false, fabric.ports.len()),
    };
    for (number, &(from, to)) in truth.iter().enumerate() {
        let path = path(&fabric, &tables, hosts[from], hosts[to]);
        for (step, &port) in path.iter().enumerate() {
            left[port] = left[port].map(|load| load + rate);
            if number < to_one.len() {
                waiting.busy[port] |= step > 0;
                waiting.held_up[port] |= step + 1 < path.len();
            }
        }
    }
    let pairs: Vec<(HostId, HostId)> = truth
        .iter()
        .flat_map(|&(from, _)| truth.iter().map(move |&(_, to)| (from, to)))
        .filter(|(from, to)| from != to)
        .map(|(from, to)| (hosts[from], hosts[to]))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let paths: Vec<Vec<PortId>> = pairs
        .iter()
        .map(|&(from, to)| path(&fabric, &tables, from, to))
        .collect();
    let path_of = |flow: usize| &paths[flow][..];
    let open = vec![true; pairs.len()];
    let candidates = Candidates::new(&fabric, &waiting, pairs.iter().copied(), &open, &path_of);
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 16
    };
    let true_set: Set = truth
        .iter()
        .map(|&(from, to)| (hosts[from], hosts[to]))
        .map(|pair| (candidates.pairs[&pair], rate))
        .collect();
    let state = candidates.start(left.clone(), &[], &true_set, &mut random);
    let of_truth = candidates.cost(&state);
    assert_eq!(state.active.len(), truth.len());
    assert!(state.unexplained < 1e-9);
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let state = candidates.start(left.clone(), &[], &[], &mut random);
        for (cost, set) in candidates.search(state, MOST_EXCHANGES, &mut random) {
            let sent: f64 = set.iter().map(|(_, rate)| rate).sum();
            assert!((sent / rate - truth.len() as f64).abs() < 0.1);
            let state = candidates.start(left.clone(), &[], &set, &mut random);
            assert!((candidates.cost(&state) - cost).abs() < 0.5);
            best = best.min(cost);
        }
    }
    assert!(best <= of_truth + 0.01, "{best} instead of {of_truth}");
}

#[test]
fn as_many_flows_as_loads_say_nothing() {
    let link = LinkKind::new(Width::X1, Speed::Sdr, Length::ZERO);
    let fabric = KAryNTree { k: 2, n: 2 }.build(link).unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    let hosts: Vec<HostId> = fabric.host_ids().collect();
    let pairs = [(0, 2), (0, 3), (1, 2), (1, 3)].map(|(from, to)| (hosts[from], hosts[to]));
    let paths = pairs.map(|(from, to)| path(&fabric, &tables, from, to));
    let path_of = |flow: usize| &paths[flow][..];
    let waiting = Waiting {
        busy: IdVec::filled(false, fabric.ports.len()),
        held_up: IdVec::filled(false, fabric.ports.len()),
        full: IdVec::filled(false, fabric.ports.len()),
    };
    let open = [true; 4];
    let candidates = Candidates::new(&fabric, &waiting, pairs.into_iter(), &open, &path_of);
    // The loads of two senders and two receivers have one sum.
    assert_eq!(candidates.loads(), 3);
}

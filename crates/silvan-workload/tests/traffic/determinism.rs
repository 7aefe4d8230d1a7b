//! A seed gives the same traffic, in whichever order hosts are polled.

use silvan_core::document::Limit;
use silvan_core::{Sl, Span, Time};
use silvan_workload::traffic::{Load, Selection, Spacing, Traffic, TrafficSection, Uniform};

use crate::mock::{MockHost, Sent, Weather, environment, nodes, only_nodes};

const END: Time = Time::from_ps(2_000_000_000);
const WEATHER: Weather = Weather {
    throttle_percent: 20,
    throttle: Span::from_us(40),
    close_percent: 5,
    close: Span::from_us(10),
    amnesty_percent: 1,
    pardon_percent: 0,
    dry_percent: 0,
};

fn mixed() -> TrafficSection {
    let background = Uniform {
        name: None,
        from: Selection::All,
        load: Load::Fraction(0.1),
        spacing: Spacing::Poisson,
        start: Span::ZERO,
        end: Limit::Unlimited,
        message: None,
        sl: Sl::ZERO,
    };
    TrafficSection {
        uniform: vec![background],
        ..only_nodes(silvan_workload::traffic::Nodes {
            hotspot_lifetime: Limit::At(Span::from_us(300)),
            ..nodes(0.2, 0.3, 0.5, 0.4)
        })
    }
}

/// Returns the messages of each host when the hosts are polled in the order of their next instants.
fn together(traffic: &mut Traffic, hosts: &[usize]) -> Vec<Vec<Sent>> {
    let mut mocks: Vec<MockHost> = hosts
        .iter()
        .map(|&host| MockHost::new(host, WEATHER, host as u64))
        .collect();
    while let Some(mock) = mocks
        .iter_mut()
        .filter(|mock| mock.now < END)
        .min_by_key(|mock| mock.now)
    {
        if !mock.step(traffic) {
            mock.now = END;
        }
    }
    mocks.into_iter().map(|mock| mock.log).collect()
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let spec = mixed();
    let hosts: Vec<usize> = (0..64).collect();
    let run = |seed| {
        let mut traffic = Traffic::new(&spec, &environment(64, seed)).unwrap();
        together(&mut traffic, &hosts)
    };
    let first = run(1);
    assert!(first.iter().map(Vec::len).sum::<usize>() > 10_000);
    assert!(first == run(1));
    assert!(first != run(2));
}

#[test]
fn polling_other_hosts_moves_nothing() {
    let traffic = Traffic::new(&mixed(), &environment(64, 1)).unwrap();
    let all: Vec<usize> = (0..64).collect();
    let among_all = together(&mut traffic.clone(), &all);
    for host in [0, 17, 63] {
        let alone = together(&mut traffic.clone(), &[host]);
        assert!(alone[0] == among_all[host], "host {host}");
    }
}

#[test]
fn adding_an_entry_leaves_the_streams_of_the_others() {
    // A flow of host 1 changes the turns of that host, and nothing else.
    let spec = mixed();
    let with_flow = TrafficSection {
        flow: vec![crate::mock::flow(1, 2)],
        ..mixed()
    };
    let run = |spec: &TrafficSection| {
        let mut traffic = Traffic::new(spec, &environment(64, 1)).unwrap();
        together(&mut traffic, &[0, 1, 2])
    };
    let (without, with) = (run(&spec), run(&with_flow));
    assert!(without[0] == with[0]);
    assert!(without[1] != with[1]);
    assert!(without[2] == with[2]);
}

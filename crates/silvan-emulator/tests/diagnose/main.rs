//! The diagnosis of live fabrics: what it finds, and what it says when the subnet does not cooperate.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod alike;
mod cables;
mod faults;
mod live;
mod logs;
mod pace;
mod scene;
mod score;
mod ticks;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use silvan_core::{GivenTicks, Lid, Span};
use silvan_diagnose::report::Report;
use silvan_diagnose::survey::survey;
use silvan_mad::smp::{PhysicalState, PortInfo, Smp, SmpRoute};
use silvan_mad::{Body, Mad, Method};
use silvan_scenario::Scenario;
use silvan_subnet::client::{Client, Limits};

use live::{Live, World};
use scene::Conditions;
use score::Score;

/// Two hosts at each of two leaves: a and d send to c, b to d, so that b is held up at left:3.
const LINE: &str = r#"
[fabric]
switch = [{ name = "left", ports = 4 }, { name = "right", ports = 4 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "left:2" },
    { from = "c", to = "right:1" },
    { from = "d", to = "right:2" },
    { from = "left:3", to = "right:3" },
]
routing = "min-hop"
[link]
width = "2x"
speed = "SDR"
[packet]
mtu = "4 KiB"
[traffic]
message = "4 KiB"
[[traffic.flow]]
from = "a"
to = "c"
[[traffic.flow]]
from = "d"
to = "c"
[[traffic.flow]]
from = "b"
to = "d"
load = "1.5 Gbit/s"
"#;

/// Diagnoses the line while an incident happens between the sweeps, and this part of all datagrams is lost.
fn diagnosed(incident: Option<fn(&mut World)>, loss: f64) -> Report {
    diagnosed_scenario(LINE, incident, loss)
}

fn diagnosed_scenario(toml: &str, incident: Option<fn(&mut World)>, loss: f64) -> Report {
    let scenario = Scenario::from_toml(toml, "scenario.toml", &[]).unwrap();
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    world.borrow_mut().advance(Span::from_ms(20));
    world.borrow_mut().incident = incident;
    world.borrow_mut().plane.lose(loss, 1);
    let mut client = Client::new(Live(Rc::clone(&world)), Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms(500)).unwrap();
    let (report, _) = survey.diagnose(&GivenTicks::default(), 1.0, || client.now());
    assert_eq!(world.borrow().sets, 0, "nothing is set");
    report
}

/// Sets a port of a switch or host, as an administrator does.
fn set(world: &mut World, name: &str, port: u32, info: PortInfo) {
    let fabric = world.plane.fabric();
    let lid = fabric.nodes[fabric.node_by_name(name).unwrap()].lid;
    let body = Body::Smp(Smp {
        m_key: 0,
        route: SmpRoute::Lid,
        attribute: info.into(),
    });
    let mut mad = Mad::request(Method::SET, body);
    mad.modifier = port;
    world.send(lid, &mad.emit());
    world.take_answer().unwrap();
}

fn says(report: &Report, text: &str) -> bool {
    report
        .health
        .iter()
        .any(|finding| finding.what.contains(text))
}

#[test]
fn an_incast_is_found_with_its_contributors_and_its_victim() {
    let report = diagnosed(None, 0.01);
    assert_eq!(report.unknown_ports, 0);
    let [tree] = &report.trees[..] else {
        panic!("{report:?}");
    };
    assert_eq!(
        (tree.root.as_str(), tree.cause, tree.confidence),
        ("right:1", "incast", "medium")
    );
    let mut hosts: Vec<_> = tree
        .contributors
        .iter()
        .map(|one| one.host.as_str())
        .collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["a", "d"]);
    let victims: Vec<_> = tree.victims.iter().map(|one| one.host.as_str()).collect();
    assert_eq!(victims, ["b"]);
    // C's link of 4 Gbit/s is shared equally by left:3 and d.
    for one in &tree.contributors {
        assert!((one.gbps - 2.0).abs() < 0.1, "{one:?}");
    }
    assert!(
        says(&report, "no LID of a subnet manager"),
        "{:?}",
        report.health
    );
}

/// Every 16th or 32nd packet of two inputs served in turn is of one input, and the logs name its senders alone.
/// Oracle: the arbitration, which gives each input of leaf-00 half of the root, and each of three senders behind one a third
/// of that.
#[test]
fn contributors_whose_packets_are_never_marked_are_found() {
    for (rate, marking) in [
        (15, "counter"),
        (31, "counter"),
        (31, "dithered"),
        (15, "random"),
    ] {
        let toml = format!(
            r#"
[fabric]
generator = "leaf-spine"
leaf-hosts = [4, 4]
spine-cables = [2, 2]
[link]
width = "2x"
speed = "SDR"
[packet]
mtu = "4 KiB"
[[traffic.incast]]
to = "host-0000"
from = ["host-0001", "host-0004", "host-0005", "host-0006"]
[control]
scheme = "ib-cc"
[control.ib-cc]
switch = {{ marking-rate = {rate}, marking = "{marking}", threshold = 11 }}
adapter = {{ ccti-increase = 0 }}
"#
        );
        let report = diagnosed_scenario(&toml, None, 0.0);
        let [tree] = &report.trees[..] else {
            panic!("{report:?}");
        };
        assert_eq!(
            (tree.root.as_str(), tree.contributors.len()),
            ("leaf-00:1", 4)
        );
        let expected = match marking {
            "counter" => "medium",
            _ => "high",
        };
        assert_eq!(tree.confidence, expected, "{rate} {marking}");
        for one in &tree.contributors {
            let right = if one.host == "host-0001" {
                2.0
            } else {
                2.0 / 3.0
            };
            assert!(
                (one.gbps - right).abs() < 0.02 * right,
                "{rate} {marking}: {one:?}"
            );
        }
    }
}

#[test]
fn a_subnet_that_loses_half_of_all_datagrams_is_not_called_healthy() {
    let report = diagnosed(None, 0.5);
    let is_honest = report.unknown_ports > 0 || report.ports < 10 || !report.health.is_empty();
    assert!(is_honest, "{report:?}");
    for tree in &report.trees {
        assert_eq!(tree.root, "right:1");
    }
    assert!(report.datagrams.unwrap().timeouts > 0);
}

#[test]
fn a_link_that_goes_down_between_the_sweeps_is_named() {
    let report = diagnosed(
        Some(|world| {
            let info = PortInfo {
                physical_state: PhysicalState::POLLING,
                ..PortInfo::default()
            };
            set(world, "left", 2, info);
        }),
        0.0,
    );
    assert!(
        says(&report, "left:2, b:1: the link went down"),
        "{:?}",
        report.health
    );
}

#[test]
fn counters_behind_a_lid_that_moved_are_not_used() {
    let report = diagnosed(
        Some(|world| {
            // D gets the LID of b, and b another one.
            let b = world.plane.fabric().nodes[world.plane.fabric().node_by_name("b").unwrap()].lid;
            let to = |lid| PortInfo {
                lid,
                ..PortInfo::default()
            };
            set(world, "b", 1, to(Lid::new(99)));
            set(world, "d", 1, to(b));
        }),
        0.0,
    );
    assert!(
        says(&report, "changed their LID") || says(&report, "did not answer"),
        "{:?}",
        report.health
    );
    assert!(report.unknown_ports > 0);
}

/// Prints the results of ten scenarios, as `make check-diagnose` does. The limits are a little below the results.
#[test]
fn drawn_scenarios_are_diagnosed_as_the_ground_truth_has_them() {
    let mut all = Score::default();
    let mut controls = BTreeSet::new();
    for seed in 2..=11 {
        let (scene, survey, verdict, truth) = score::run(seed, Conditions::default());
        let scenario = Scenario::from_toml(&scene.toml, "scene.toml", &[]).unwrap();
        controls.insert(scene.control);
        all.add(&score::score(&survey, &verdict, &truth, scenario.fabric()));
    }
    assert_eq!(controls.len(), 3, "with and without congestion control");
    assert!(all.roots.hit >= 10, "{all:?}");
    assert!(
        all.roots.precision() >= 0.95 && all.roots.recall() >= 0.95,
        "{all:?}"
    );
    assert!(all.top_right as f64 >= 0.85 * all.top as f64, "{all:?}");
    assert!(
        all.causes_right as f64 >= 0.9 * all.causes as f64,
        "{all:?}"
    );
    assert!(all.victims.f1() >= 0.7, "{all:?}");
}

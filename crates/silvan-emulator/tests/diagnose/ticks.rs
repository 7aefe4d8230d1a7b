//! Switches of several devices, whose counters of time have different ticks.

use std::cell::RefCell;
use std::rc::Rc;

use silvan_core::{DeviceId, GivenTicks, Span};
use silvan_diagnose::report::Report;
use silvan_diagnose::survey::survey;
use silvan_emulator::{Setup, Start, SwitchDevices};
use silvan_scenario::Scenario;
use silvan_subnet::client::{Client, Limits};

use super::live::{Live, World};

/// Two hosts at each of two leaves: a and d send to c.
fn line(left: &str, right: &str) -> String {
    format!(
        r#"
[fabric]
switch = [{{ name = "left", ports = 4 }}, {{ name = "right", ports = 4 }}]
host = [{{ name = "a" }}, {{ name = "b" }}, {{ name = "c" }}, {{ name = "d" }}]
cable = [
    {{ from = "a", to = "left:1", speed = "{left}" }},
    {{ from = "b", to = "left:2", speed = "{left}" }},
    {{ from = "c", to = "right:1", speed = "{right}" }},
    {{ from = "d", to = "right:2", speed = "{right}" }},
    {{ from = "left:3", to = "right:3", speed = "{left}" }},
]
routing = "min-hop"
[link]
width = "1x"
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
"#
    )
}

fn diagnosed(toml: &str, devices: SwitchDevices, given: &GivenTicks) -> Report {
    let scenario = Scenario::from_toml(toml, "line.toml", &[]).unwrap();
    let setup = Setup {
        devices,
        ..Start::Configured.into()
    };
    let world = Rc::new(RefCell::new(World::with(&scenario, setup)));
    world.borrow_mut().advance(Span::from_ms(1));
    let mut client = Client::new(Live(Rc::clone(&world)), Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms(20)).unwrap();
    let (report, _) = survey.diagnose(given, 1.0, || client.now());
    report
}

fn ticks(report: &Report) -> Vec<(f64, usize)> {
    report
        .ticks
        .iter()
        .map(|tick| (tick.ns, tick.ports))
        .collect()
}

/// Oracle: the traffic, which the devices do not change; the ticks of 1x HDR (50 Gbit/s) and NDR (100 Gbit/s) by hand.
#[test]
fn devices_with_different_ticks_give_the_same_verdict() {
    const PORTS: usize = 10;
    let quantum = SwitchDevices::Same(DeviceId::QUANTUM);
    let switch_ib = SwitchDevices::Same(DeviceId::SWITCH_IB_2);
    let by_speed = SwitchDevices::BySpeed;
    let cases = [
        (("HDR", "HDR"), by_speed, vec![(1.28, PORTS)]),
        (("HDR", "HDR"), switch_ib, vec![(5.12, PORTS)]),
        (("HDR", "HDR"), SwitchDevices::default(), vec![(4.0, PORTS)]),
        (("NDR", "NDR"), by_speed, vec![(0.64, PORTS)]),
        // The cable between the switches is of the slower one.
        (("HDR", "NDR"), by_speed, vec![(0.64, 4), (1.28, 6)]),
        (
            ("EDR", "HDR"),
            by_speed,
            vec![(1.28, 4), (2.56, 1), (10.24, 5)],
        ),
        (("EDR", "HDR"), quantum, vec![(1.28, 4), (2.56, 6)]),
    ];
    for ((left, right), devices, expected) in cases {
        let report = diagnosed(&line(left, right), devices, &GivenTicks::default());
        let case = format!("{left} {right} {devices:?}");
        assert_eq!(ticks(&report), expected, "{case}");
        assert_eq!(report.unknown_ports, 0, "{case}");
        let [tree] = &report.trees[..] else {
            panic!("{case}: {report:?}");
        };
        assert_eq!(
            (tree.root.as_str(), tree.cause),
            ("right:1", "incast"),
            "{case}"
        );
        if left == right {
            // C's link is shared equally by left:3 and d.
            let wait_of = |port: &str| {
                let branch = tree.branches.iter().find(|branch| branch.port == port);
                branch.unwrap().wait.unwrap()
            };
            for port in ["left:3", "d:1"] {
                let wait = wait_of(port);
                assert!((wait - 0.5).abs() < 0.02, "{case}: {port} {wait}");
            }
        }
    }
}

/// Oracle: what was given, for switches and the adapters that are cabled to them.
#[test]
fn given_ticks_win_over_those_of_devices() {
    let toml = line("EDR", "HDR");
    let of = |texts: &[&str]| {
        let given = GivenTicks::parse(texts.iter().copied()).unwrap();
        diagnosed(&toml, SwitchDevices::BySpeed, &given)
    };
    assert_eq!(ticks(&of(&["1 ns"])), [(1.0, 10)]);
    // The Quantum's port to the Switch-IB 2, its two hosts, and their ports.
    assert_eq!(ticks(&of(&["quantum=1 ns"])), [(1.0, 5), (10.24, 5)]);
    let both = of(&["0xcf08=2 ns", "1 ns"]);
    assert_eq!(ticks(&both), [(1.0, 5), (2.0, 5)]);
    let absent = of(&["quantum-3=2 ns"]);
    let found = absent
        .health
        .iter()
        .any(|one| one.what == "54004 (0xd2f4): no node has this DeviceID, whose tick is given");
    assert!(found, "{:?}", absent.health);
}

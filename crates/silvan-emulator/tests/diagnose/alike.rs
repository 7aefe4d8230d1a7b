//! Cases that counters cannot distinguish and logs of switches can.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use silvan_core::{GivenTicks, Span};
use silvan_diagnose::report::Report;
use silvan_diagnose::survey::survey;
use silvan_scenario::Scenario;
use silvan_subnet::client::{Client, Limits};

use super::live::{Live, World};

/// Two hosts at one leaf, three at the other. D and e send to c; of a and b, one sends to c, and the other to d.
fn leaves(a_to: &str, b_to: &str, control: &str) -> String {
    format!(
        r#"
[fabric]
switch = [{{ name = "left", ports = 4 }}, {{ name = "right", ports = 4 }}]
host = [{{ name = "a" }}, {{ name = "b" }}, {{ name = "c" }}, {{ name = "d" }}, {{ name = "e" }}]
cable = [
    {{ from = "a", to = "left:1" }},
    {{ from = "b", to = "left:2" }},
    {{ from = "c", to = "right:1" }},
    {{ from = "d", to = "right:2" }},
    {{ from = "e", to = "right:3" }},
    {{ from = "left:3", to = "right:4" }},
]
routing = "min-hop"
[link]
width = "2x"
speed = "SDR"
[packet]
mtu = "4 KiB"
[traffic]
message = "4 KiB"
flow = [
    {{ from = "a", to = "{a_to}" }},
    {{ from = "b", to = "{b_to}" }},
    {{ from = "d", to = "c" }},
    {{ from = "e", to = "c" }},
]
{control}
"#
    )
}

const MARKS: &str = r#"
[control]
scheme = "ib-cc"
[control.ib-cc]
switch = { marking-rate = 31, marking = "random" }
adapter = { ccti-increase = 0 }
"#;

/// The report, what each port sends and how long it waits, and who is a victim in truth.
fn diagnosed(toml: &str) -> (Report, BTreeMap<String, (f64, f64)>, Vec<String>) {
    let scenario = Scenario::from_toml(toml, "leaves.toml", &[]).unwrap();
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    world.borrow_mut().advance(Span::from_ms(20));
    let mut client = Client::new(Live(Rc::clone(&world)), Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms(500)).unwrap();
    let (report, observation) = survey.diagnose(&GivenTicks::default(), 1.0, || client.now());
    assert_eq!(world.borrow().sets, 0, "nothing is set");
    let fabric = &survey.topology.fabric;
    let cabled = fabric
        .ports
        .ids()
        .filter(|&port| fabric.ports[port].link.is_some());
    let counted = cabled.map(|port| {
        let load = observation.ports[port];
        let name = fabric.port_name(port).to_string();
        (name, (load.load.unwrap(), load.wait.unwrap()))
    });
    let samples = world.borrow_mut().samples.take().unwrap();
    let mut often: BTreeMap<String, usize> = BTreeMap::new();
    for share in samples
        .iter()
        .flat_map(|forest| &forest.trees)
        .flat_map(|tree| &tree.shares)
    {
        if !share.victim.is_zero() {
            *often
                .entry(scenario.fabric().host(share.host).name.clone())
                .or_default() += 1;
        }
    }
    often.retain(|_, count| *count * 2 > samples.len());
    (report, counted.collect(), often.into_keys().collect())
}

fn victims(report: &Report) -> Vec<&str> {
    let all = report.trees.iter().flat_map(|tree| &tree.victims);
    all.map(|victim| victim.host.as_str()).collect()
}

/// Round-robin arbitration lets a and b send equally much, no matter which of them feeds the root.
#[test]
fn without_marks_equal_counters_have_different_victims() {
    let (first, counted, victims_of_first) = diagnosed(&leaves("c", "d", ""));
    let (second, counted_again, victims_of_second) = diagnosed(&leaves("d", "c", ""));
    assert_eq!(victims_of_first, ["b"]);
    assert_eq!(victims_of_second, ["a"]);
    assert_eq!(counted.len(), 12);
    for (port, (load, wait)) in &counted {
        let (other_load, other_wait) = counted_again[port];
        assert!(
            (load - other_load).abs() < 0.002,
            "{port}: {load}, {other_load}"
        );
        assert!(
            (wait - other_wait).abs() < 0.01,
            "{port}: {wait}, {other_wait}"
        );
    }
    for report in [first, second] {
        assert_eq!(report.trees.len(), 1, "{report:?}");
        assert_eq!(report.trees[0].root, "right:1");
        let doubt = &report.trees[0].cannot_know;
        assert!(!doubt.is_empty(), "the report says that it cannot know");
    }
}

#[test]
fn the_logs_of_switches_tell_them_apart() {
    for (a_to, b_to) in [("c", "d"), ("d", "c")] {
        let (report, _, truth) = diagnosed(&leaves(a_to, b_to, MARKS));
        assert_eq!(report.trees.len(), 1, "{report:?}");
        let tree = &report.trees[0];
        assert_eq!((tree.root.as_str(), tree.confidence), ("right:1", "high"));
        assert_eq!(victims(&report), truth);
        let mut contributors: Vec<&str> = tree
            .contributors
            .iter()
            .map(|one| one.host.as_str())
            .collect();
        contributors.sort_unstable();
        assert_eq!(
            contributors,
            [if a_to == "c" { "a" } else { "b" }, "d", "e"]
        );
    }
}

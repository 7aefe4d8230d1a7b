//! Faults at each datagram of a diagnosis: a link that goes down, counters that are reset, a switch that
//! answers half of the time. Oracle: the traffic, whose only root is right:1.

use std::cell::RefCell;
use std::rc::Rc;

use silvan_core::{GivenTicks, Lid, MonotonicTime, PortNumber, Sl, Span};
use silvan_diagnose::health::{HealthItem, Severity};
use silvan_diagnose::report::Report;
use silvan_diagnose::survey::{Watch, survey};
use silvan_mad::congestion::{
    CaCongestionEntry, CaCongestionSetting, CongestionControl, ManagementAttribute,
};
use silvan_mad::performance::{PortCounters, PortCountersExtended};
use silvan_mad::smp::{PhysicalState, PortInfo, Smp, SmpRoute};
use silvan_mad::{Body, Mad, Method};
use silvan_scenario::Scenario;
use silvan_subnet::client::{Client, Limits};
use silvan_subnet::transport::{Incoming, Outgoing, Transport, TransportError};

use crate::live::{Live, World};
use crate::{LINE, set};

/// A transport on which something happens when a request is sent.
struct Faulty<F> {
    live: Live,
    sent: usize,
    /// Gets the number of the request and its destination; returns whether the request is lost.
    fault: F,
}

impl<F: FnMut(&mut World, usize, Lid) -> bool> Transport for Faulty<F> {
    fn now(&mut self) -> MonotonicTime {
        self.live.now()
    }

    fn unix_time(&mut self) -> u64 {
        self.live.unix_time()
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        self.sent += 1;
        let is_lost = {
            let mut world = self.live.0.borrow_mut();
            (self.fault)(&mut world, self.sent, outgoing.destination)
        };
        let destination = match is_lost {
            // No node has it.
            true => Lid::new(0xbffe),
            false => outgoing.destination,
        };
        self.live.send(Outgoing {
            destination,
            ..outgoing
        })
    }

    fn receive(&mut self, limit: Span) -> Result<Option<Incoming>, TransportError> {
        self.live.receive(limit)
    }

    fn pause(&mut self, span: Span) {
        self.live.pause(span);
    }
}

fn lid_of(world: &World, name: &str) -> Lid {
    let fabric = world.plane.fabric();
    fabric.nodes[fabric.node_by_name(name).unwrap()].lid
}

/// Diagnoses the line; gives the report, or `None` where it is refused, and the number of requests.
fn diagnosed(fault: impl FnMut(&mut World, usize, Lid) -> bool) -> (Option<Report>, usize) {
    let scenario = Scenario::from_toml(LINE, "line.toml", &[]).unwrap();
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    world.borrow_mut().advance(Span::from_ms(20));
    let transport = Faulty {
        live: Live(Rc::clone(&world)),
        sent: 0,
        fault,
    };
    let mut client = Client::new(transport, Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms(100)).ok();
    let report = survey.map(|survey| {
        let (report, _) = survey.diagnose(&GivenTicks::default(), 1.0, || client.now());
        report
    });
    (report, client.transport().sent)
}

/// Lets something happen before each request in turn, and checks what is said then.
fn at_each_request(incident: impl Fn(&mut World)) {
    let (report, requests) = diagnosed(|_, _, _| false);
    let healthy = report.unwrap();
    assert_eq!(healthy.trees.len(), 1);
    assert!(requests > 60, "{requests}");
    for at in 1..=requests {
        let (report, _) = diagnosed(|world, sent, _| {
            if sent == at {
                incident(world);
            }
            false
        });
        let Some(report) = report else { continue };
        for tree in &report.trees {
            assert_eq!(tree.root, "right:1", "request {at}: {report:?}");
        }
        let is_new = report
            .health
            .iter()
            .any(|item| !healthy.health.contains(item));
        let is_same = report.trees.len() == 1 && report.ports == healthy.ports;
        assert!(is_same || is_new, "request {at}: {report:?}");
    }
}

#[test]
fn a_link_that_goes_down_during_the_diagnosis_is_named_or_makes_no_difference() {
    at_each_request(|world| {
        let info = PortInfo {
            physical_state: PhysicalState::POLLING,
            ..PortInfo::default()
        };
        let mut mad = Mad::request(
            Method::SET,
            Body::Smp(Smp {
                m_key: 0,
                route: SmpRoute::Lid,
                attribute: info.into(),
            }),
        );
        mad.modifier = 2;
        // The diagnosis gets the answer, too, and drops it.
        world.send(lid_of(world, "left"), &mad.emit());
    });
}

#[test]
fn counters_that_are_reset_during_the_diagnosis_make_no_root() {
    at_each_request(|world| {
        let lid = lid_of(world, "right");
        for port in 1..=3 {
            let port_select = PortNumber::new(port);
            let narrow = PortCounters {
                port_select,
                counter_select: 0xffff,
                counter_select2: 1,
                ..PortCounters::default()
            };
            let wide = PortCountersExtended {
                port_select,
                counter_select: 0xff,
                ..PortCountersExtended::default()
            };
            for body in [narrow.into(), wide.into()] {
                world.send(
                    lid,
                    &Mad::request(Method::SET, Body::Performance(body)).emit(),
                );
            }
        }
    });
}

#[test]
fn a_switch_that_answers_half_of_the_time_makes_no_other_root() {
    for seed in 1..=20_u64 {
        let mut state = seed;
        let (report, _) = diagnosed(|world, _, destination| {
            let right = lid_of(world, "right");
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            destination == right && state >> 63 == 1
        });
        let report = report.unwrap();
        for tree in &report.trees {
            assert_eq!(tree.root, "right:1", "seed {seed}: {report:?}");
        }
        let is_named = report
            .health
            .iter()
            .any(|item| item.what.contains("was not read") || item.what.contains("did not answer"));
        assert!(
            report.trees.len() == 1 || is_named,
            "seed {seed}: {report:?}"
        );
        assert!(report.datagrams.unwrap().timeouts > 0);
    }
}

/// Oracle: the count in the guide, two requests to a port and one to a node. A datagram with its headers has
/// 290 bytes at most.
#[test]
fn a_sweep_costs_what_the_guide_states() {
    let scenario = Scenario::from_toml(LINE, "line.toml", &[]).unwrap();
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    world.borrow_mut().advance(Span::from_ms(20));
    let mut client = Client::new(Live(Rc::clone(&world)), Limits::DEFAULT);
    let mut watch = Watch::default();
    watch.prepare(&mut client).unwrap();
    for _ in 0..3 {
        let before = client.statistics().sent;
        watch.sweep(&mut client).unwrap();
        let (ports, nodes) = (10, 6);
        assert_eq!(client.statistics().sent - before, 2 * ports + nodes);
    }
    assert!(world.borrow().in_flight.1 <= Limits::DEFAULT.in_flight);
}

/// Oracle: the settings that were made.
#[test]
fn adapters_with_other_settings_of_congestion_control_are_named() {
    let control = r#"
[control]
scheme = "ib-cc"
[control.ib-cc]
adapter = { ccti-timer = 150, ccti-increase = 1 }
"#;
    let health = |changes: &[(&str, u16, u8)]| {
        let text = format!("{LINE}{control}");
        let scenario = Scenario::from_toml(&text, "line.toml", &[]).unwrap();
        let mut world = World::new(&scenario);
        for &(host, ccti_timer, ccti_increase) in changes {
            let entry = CaCongestionEntry {
                ccti_timer,
                ccti_increase,
                ..CaCongestionEntry::default()
            };
            let setting = CaCongestionSetting {
                control_map: 0xffff,
                entries: [entry; Sl::COUNT],
                ..CaCongestionSetting::default()
            };
            let body = Body::CongestionControl(CongestionControl {
                cc_key: 0,
                attribute: ManagementAttribute::from(setting).into(),
            });
            let lid = lid_of(&world, host);
            world.send(lid, &Mad::request(Method::SET, body).emit());
            world.take_answer().unwrap();
        }
        let mut client = Client::new(Live(Rc::new(RefCell::new(world))), Limits::DEFAULT);
        let survey = survey(&mut client, Span::from_ms(10)).unwrap();
        let (report, _) = survey.diagnose(&GivenTicks::default(), 1.0, || client.now());
        let about = |item: &&HealthItem| item.what.contains("CCTI");
        let items = report.health.iter().filter(about);
        items
            .map(|item| (item.severity, item.what.clone()))
            .collect::<Vec<_>>()
    };
    let item = |severity, what: &str| (severity, what.to_owned());
    let all = "reacts with CCTI_Timer 150 (153.6 us), CCTI_Increase 1 and CCTI_Min 0";
    assert_eq!(
        health(&[]),
        [item(Severity::Info, &format!("a, b, c, d: {all}"))]
    );
    let changed = health(&[("a", 75, 1), ("b", 150, 0), ("c", 0, 1)]);
    let wanted = [
        "b: does not react to notifications (CCTI_Increase 0), and switches mark packets",
        "c: does not recover after a notification (CCTI_Timer 0)",
        "a: reacts with CCTI_Timer 75 (76.8 us), CCTI_Increase 1 and CCTI_Min 0",
        &format!("d: {all}"),
    ];
    assert_eq!(changed, wanted.map(|what| item(Severity::Warning, what)));
}

/// A cable that is cut behind the tables' back: requests that the tables lead there are sent once. Oracle: all retries
/// of one request take 1,875 ms, one request 125 ms.
#[test]
fn nodes_that_no_route_leads_to_cost_little_time_and_come_after_the_reason() {
    let second = "{ from = \"left:3\", to = \"right:3\" },";
    let text = LINE.replace(
        second,
        &format!("{second}\n    {{ from = \"left:4\", to = \"right:4\" }},"),
    );
    let mut cut = Vec::new();
    for port in [3, 4] {
        let scenario = Scenario::from_toml(&text, "line.toml", &[]).unwrap();
        let mut world = World::new(&scenario);
        world.advance(Span::from_ms(20));
        let info = PortInfo {
            physical_state: PhysicalState::DISABLED,
            ..PortInfo::default()
        };
        let body = Body::Smp(Smp {
            m_key: 0,
            route: SmpRoute::Lid,
            attribute: info.into(),
        });
        let mut mad = Mad::request(Method::SET, body);
        mad.modifier = port;
        world.send(lid_of(&world, "left"), &mad.emit());
        world.take_answer().unwrap();
        let mut client = Client::new(Live(Rc::new(RefCell::new(world))), Limits::DEFAULT);
        let began = client.now();
        let Ok(survey) = survey(&mut client, Span::from_ms(500)) else {
            continue;
        };
        let took = client.now().checked_since(began).unwrap();
        let (report, _) = survey.diagnose(&GivenTicks::default(), 1.0, || client.now());
        let health: Vec<&str> = report.health.iter().map(|item| &item.what[..]).collect();
        if !survey.facts.silent.is_empty() && survey.facts.without_table.is_empty() {
            assert!(
                took < Span::from_ms(1_875),
                "port {port}: {took} {health:?}"
            );
            assert!(health[0].starts_with("The routes are wrong"), "{health:?}");
            for name in &survey.facts.silent {
                let about = |what: &&&str| what.contains(&format!("{name}:"));
                assert!(
                    !health
                        .iter()
                        .any(|what| about(&what) && what.contains("was not read"))
                );
            }
            cut.push(port);
        }
    }
    assert!(!cut.is_empty(), "no cable leads to a node that is asked");
}

/// A switch that no request by LID reaches, and a host less at it: LIDs are taken, not counted. Oracle: the fabric's LIDs.
#[test]
fn hosts_of_a_switch_without_a_readable_table_keep_their_lids() {
    let scenario = Scenario::from_toml(LINE, "line.toml", &[]).unwrap();
    let mut world = World::new(&scenario);
    world.advance(Span::from_ms(20));
    let cut = PortInfo {
        physical_state: PhysicalState::DISABLED,
        ..PortInfo::default()
    };
    set(&mut world, "right", 1, cut);
    let wanted = ["a", "b", "d"].map(|name| (name.to_owned(), lid_of(&world, name)));
    let right = lid_of(&world, "right");
    let transport = Faulty {
        live: Live(Rc::new(RefCell::new(world))),
        sent: 0,
        fault: |_: &mut World, _, destination| destination == right,
    };
    let mut client = Client::new(transport, Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms(100)).unwrap();
    let fabric = &survey.topology.fabric;
    let hosts = fabric.host_ids().map(|host| fabric.host(host));
    let mut found: Vec<_> = hosts.map(|host| (host.name.clone(), host.lid)).collect();
    found.sort_unstable();
    assert_eq!(found, wanted);
    assert_eq!(survey.facts.without_table, ["right"]);
    assert_eq!(survey.facts.silent, ["right"]);
    assert!(survey.facts.moved.is_empty());
}

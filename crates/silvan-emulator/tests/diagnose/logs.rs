//! The logs of adapters. Oracle: the traffic.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use silvan_core::{Lid, MonotonicTime, Span};
use silvan_diagnose::survey::{Survey, survey};
use silvan_mad::congestion::CongestionLog;
use silvan_mad::{Class, Packet};
use silvan_scenario::Scenario;
use silvan_subnet::client::{Client, Limits};
use silvan_subnet::transport::{Incoming, Outgoing, Transport, TransportError};

use crate::LINE;
use crate::live::{Live, World};

const CONTROL: &str = r#"
[control]
scheme = "ib-cc"
[control.ib-cc]
adapter = { trigger-threshold = 1 }
"#;

/// A transport that drops the logs of these nodes.
struct WithoutLogs {
    live: Live,
    silent: BTreeSet<Lid>,
}

impl Transport for WithoutLogs {
    fn now(&mut self) -> MonotonicTime {
        self.live.now()
    }

    fn unix_time(&mut self) -> u64 {
        self.live.unix_time()
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<(), TransportError> {
        let packet = Packet::new(outgoing.mad);
        let is_log = packet.class() == Class::CONGESTION_CONTROL
            && packet.attribute_id() == CongestionLog::ID;
        let is_lost = is_log && self.silent.contains(&outgoing.destination);
        self.live.send(Outgoing {
            destination: if is_lost {
                Lid::new(0xbffe)
            } else {
                outgoing.destination
            },
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

/// Surveys the line with congestion control on, without the logs of these nodes.
fn surveyed(silent: &[&str]) -> Survey {
    let scenario = Scenario::from_toml(&format!("{LINE}{CONTROL}"), "line.toml", &[]).unwrap();
    let world = Rc::new(RefCell::new(World::new(&scenario)));
    world.borrow_mut().advance(Span::from_ms(20));
    let fabric = scenario.fabric();
    let lid = |name: &&str| fabric.nodes[fabric.node_by_name(name).unwrap()].lid;
    let transport = WithoutLogs {
        live: Live(Rc::clone(&world)),
        silent: silent.iter().map(lid).collect(),
    };
    let mut client = Client::new(transport, Limits::DEFAULT);
    let survey = survey(&mut client, Span::from_ms(200)).unwrap();
    assert_eq!(world.borrow().sets, 0, "nothing is set");
    survey
}

/// Sender and receiver of the marked packets in the logs.
fn pairs(survey: &Survey) -> BTreeSet<(String, String)> {
    let fabric = &survey.topology.fabric;
    let name = |host| fabric.host(host).name.clone();
    let pairs = survey.logs.pairs();
    pairs
        .map(|((from, to), _)| (name(from), name(to)))
        .collect()
}

fn named(pairs: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    pairs
        .iter()
        .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
        .collect()
}

#[test]
fn adapters_name_the_flows_that_they_throttle_where_switches_have_no_log() {
    let survey = surveyed(&["left", "right"]);
    assert_eq!(survey.logs.adapters(), 4);
    let pairs = pairs(&survey);
    // A and d overload the link of c. B sends to d, through a cable that a shares.
    assert!(
        pairs.is_superset(&named(&[("a", "c"), ("d", "c")])),
        "{pairs:?}"
    );
    assert!(
        pairs.is_subset(&named(&[("a", "c"), ("d", "c"), ("b", "d")])),
        "{pairs:?}"
    );
}

#[test]
fn an_adapter_without_a_log_is_left_out() {
    let survey = surveyed(&["left", "right", "a", "b", "c"]);
    assert_eq!(survey.logs.adapters(), 1);
    assert_eq!(pairs(&survey), named(&[("d", "c")]));
}

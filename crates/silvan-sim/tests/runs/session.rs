//! Simulations that a driver steers.

use std::sync::{Arc, Mutex};

use silvan_core::{HostId, Span, Time};
use silvan_instances::{Fastest, Shared};
use silvan_model::{EngineError, Engines};
use silvan_scenario::Scenario;
use silvan_sim::{Pause, RunError, Session, has_route};
use silvan_workload::programs::{Driver, Request, SendQueue};

use crate::on_ddr;

const SWITCH: &str = "[fabric]\ngenerator = \"single-switch\"\nhosts = 3\n";

/// Runs the action of each token, and records the notifications.
#[derive(Debug, Default)]
struct Script {
    then: Vec<(u32, Request)>,
    log: Arc<Mutex<Vec<(u32, u64)>>>,
}

impl Driver for Script {
    fn notify(&mut self, token: u32, now: Time, requests: &mut Vec<Request>) {
        self.log.lock().unwrap().push((token, now.as_ps()));
        let due = self.then.iter().filter(|(after, _)| *after == token);
        requests.extend(due.map(|(_, request)| *request));
    }
}

fn send(from: usize, to: usize, bytes: u64, token: u32) -> Request {
    let [from, to] = [from, to].map(HostId::new);
    Request::Send {
        from,
        to,
        bytes,
        sl: None,
        queue: SendQueue::default(),
        token,
    }
}

fn timer(delay: Span, token: u32) -> Request {
    Request::Timer { delay, token }
}

type Log = Arc<Mutex<Vec<(u32, u64)>>>;

fn open(engines: &dyn Engines, text: &str, then: &[(u32, Request)]) -> (Session, Log) {
    let script = Script {
        then: then.to_vec(),
        ..Script::default()
    };
    let log = script.log.clone();
    let scenario = Scenario::from_toml(text, "test", &on_ddr(&[])).unwrap();
    let session = Session::open(engines, scenario, 1, Box::new(script)).unwrap();
    (session, log)
}

/// Returns the events after these requests, until no request is pending.
fn events(text: &str, first: &[Request], then: &[(u32, Request)]) -> Vec<(u32, u64)> {
    let (mut session, log) = open(&Fastest, text, then);
    session.request(&mut first.to_vec()).unwrap();
    assert_eq!(session.run_until_idle(), Ok(Pause::Reached));
    assert_eq!(session.totals().pending, 0);
    let log = log.lock().unwrap().clone();
    assert_eq!(session.now().as_ps(), log.last().unwrap().1);
    log
}

/// Oracle: timers of one instant go off in the order in which they were requested, also those without delay.
#[test]
fn timers_go_off_in_order() {
    let us = Span::from_us;
    let first = [timer(us(2), 0), timer(us(1), 1), timer(us(2), 2)];
    let then = [(1, timer(us(1), 3)), (0, timer(Span::ZERO, 4))];
    let log = events(SWITCH, &first, &then);
    let expected = [(1, 1), (0, 2), (2, 2), (3, 2), (4, 2)];
    assert_eq!(log, expected.map(|(token, us)| (token, us * 1_000_000)));
}

/// A message between others takes what it takes alone if they share no link; one that shares its sender's waits.
#[test]
fn messages_share_what_programs_share() {
    let alone = events(SWITCH, &[send(0, 1, 100_000, 7)], &[])[0].1;
    let apart = events(
        SWITCH,
        &[send(0, 1, 100_000, 7), send(2, 0, 100_000, 8)],
        &[],
    );
    // Messages of one instant arrive in the order of the receiving hosts.
    assert_eq!(apart, [(8, alone), (7, alone)]);
    let shared = events(
        SWITCH,
        &[send(0, 1, 100_000, 7), send(0, 2, 100_000, 8)],
        &[],
    );
    assert!(
        shared[1].1 > 2 * alone * 9 / 10,
        "{shared:?}, alone {alone}"
    );
}

/// A request from outside at the end of a run has the times of one from within.
#[test]
fn a_run_pauses_at_the_instant_of_the_last_event() {
    let then = [
        (0, send(1, 2, 5000, 1)),
        (1, send(2, 2, 64, 2)),
        (2, send(2, 0, 1, 3)),
    ];
    let within = events(SWITCH, &[send(0, 1, 9000, 0)], &then);
    for engines in [&Fastest as &dyn Engines, &Shared] {
        let (mut session, log) = open(engines, SWITCH, &[]);
        for request in [send(0, 1, 9000, 0), then[0].1, then[1].1, then[2].1] {
            session.request(&mut vec![request]).unwrap();
            session.run_until_idle().unwrap();
        }
        assert_eq!(*log.lock().unwrap(), within);
        // Nothing is pending: time stands still.
        let now = session.now();
        session.run_until_idle().unwrap();
        assert_eq!(session.now(), now);
    }
}

/// Oracle: the same requests without any pause.
#[test]
fn pauses_change_nothing() {
    let flow = format!("{SWITCH}[[traffic.flow]]\nfrom = \"host-0002\"\nto = \"host-0001\"\n");
    let then = [(0, send(1, 0, 70_000, 1)), (1, send(0, 1, 70_000, 2))];
    let straight = events(&flow, &[send(0, 1, 70_000, 0)], &then);
    let (mut session, log) = open(&Fastest, &flow, &then);
    session.request(&mut vec![send(0, 1, 70_000, 0)]).unwrap();
    let mut now = Time::ZERO;
    while log.lock().unwrap().len() < 3 {
        now += Span::from_ps(777_777);
        assert_eq!(session.run_until(now), Ok(Pause::Reached));
        assert_eq!(session.now(), now);
    }
    assert_eq!(*log.lock().unwrap(), straight);
}

#[test]
fn a_driver_stops_the_run_at_its_instant() {
    let then = [
        (0, Request::Stop),
        (0, timer(Span::ZERO, 1)),
        (1, Request::Stop),
    ];
    let (mut session, log) = open(&Fastest, SWITCH, &then);
    session
        .request(&mut vec![timer(Span::from_us(3), 0)])
        .unwrap();
    for stops in 1..3 {
        assert_eq!(
            session.run_until(Time::from_ps(9_000_000)),
            Ok(Pause::Stopped)
        );
        assert_eq!(
            (log.lock().unwrap().len(), session.now().as_ps()),
            (stops, 3_000_000)
        );
    }
    assert_eq!(
        session.run_until(Time::from_ps(9_000_000)),
        Ok(Pause::Reached)
    );
    assert_eq!(session.now().as_ps(), 9_000_000);
}

/// Oracle: an incast takes half of the receiver's link.
#[test]
fn the_scenario_s_own_load_runs_next_to_the_driver() {
    let incast =
        format!("{SWITCH}[[traffic.incast]]\nto = \"host-0001\"\nfrom = [\"host-0002\"]\n");
    let alone = events(SWITCH, &[send(0, 1, 1_000_000, 0)], &[])[0].1;
    let beside = events(&incast, &[send(0, 1, 1_000_000, 0)], &[])[0].1;
    assert!(beside > alone * 19 / 10, "{beside}, alone {alone}");
}

#[test]
fn instants_beyond_the_clock_are_refused() {
    let (mut session, _) = open(&Fastest, SWITCH, &[]);
    let late = session.request(&mut vec![timer(Span::from_ps(1 << 62), 0)]);
    assert!(matches!(
        late,
        Err(RunError::Engine(EngineError::TooLate(_)))
    ));
    assert_eq!(session.totals().pending, 0);
    assert!(session.run_until(Time::MAX).is_err());
}

/// Oracle: the one entry that the tables lack.
#[test]
fn hosts_without_a_route_are_known() {
    let text = r#"
[fabric]
switch = [{ name = "left", ports = 4 }, { name = "right", ports = 4 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "right:1" },
    { from = "c", to = "right:2" },
    { from = "left:3", to = "right:3" },
]
routing = "explicit"
unreachable = "drop"
[fabric.tables.left]
a = 1
c = 3
[fabric.tables.right]
a = 3
b = 1
c = 2
"#;
    let scenario = Scenario::from_toml(text, "test", &[]).unwrap();
    let routes = |from: usize, to: usize| has_route(&scenario, HostId::new(from), HostId::new(to));
    assert!(!routes(0, 1));
    assert!(routes(0, 2) && routes(1, 0) && routes(2, 1) && routes(0, 0));
}

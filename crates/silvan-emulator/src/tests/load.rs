//! Programs of a scenario, a driver, timed changes and the DCMS in the data plane. Runs and sessions of the scenario are
//! the oracle.

use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;
use silvan_cc::hooks::Flow;
use silvan_cc::schemes::SchemeChoice;
use silvan_core::counters::CounterTable;
use silvan_core::{HostId, PortId, Sl};
use silvan_mad::congestion::{
    CaCongestionSetting, ManagementAttribute, SwitchPortCongestionElement,
    SwitchPortCongestionSetting,
};
use silvan_scenario::Override;
use silvan_sim::{ColumnData, RunOutput, Session, run};
use silvan_workload::programs::{Driver, Request, SendQueue};

use super::schedule::run_to;
use super::*;
use crate::command::{ControlSession, CounterRates};
use crate::faults::Timetable;
use crate::management::ManagementPlane;
use crate::pace::Pace;
use crate::plane::{ProgramState, Sender};
use crate::verbs::Exchange;
use crate::view::FoundTrees;

/// An all-to-all between eight hosts, across a bottleneck that two flows congest and marks.
const PROGRAM: &str = r#"
[fabric]
generator = "xgft"
children = [4, 2]
parents = [1, 1]
[link]
speed = "DDR"
[switch]
buffer = "64 KiB"
[host]
receive-buffer = "16 KiB"
[packet]
mtu = "2 KiB"
[control]
scheme = "ib-cc"
[[traffic.program]]
name = "exchange"
kind = "alltoall"
bytes = "10 KiB"
iterations = 2
[[traffic.flow]]
name = "first"
from = "host-0000"
to = "host-0006"
[[traffic.flow]]
name = "second"
from = "host-0001"
to = "host-0006"
[run]
duration = "10 ms"
"#;

/// Marking begins at 50 us, and the timer is shorter from 70 us on.
const CHANGES: &str = r#"
[fabric]
generator = "single-switch"
hosts = 3
[link]
speed = "DDR"
[switch]
buffer = "64 KiB"
[host]
receive-buffer = "16 KiB"
[packet]
mtu = "2 KiB"
[control]
scheme = "ib-cc"
[control.ib-cc.switch]
threshold = 0
[[control.ib-cc.change]]
at = "50 us"
threshold = 15
marking-rate = 2
[[control.ib-cc.change]]
at = "70 us"
ccti-timer = 1
[[traffic.incast]]
to = "host-0000"
"#;

/// Experiment II of mizero2017, 1,250 times as fast.
const MANAGED: &str = r#"
[fabric]
generator = "two-switch-testbed"
routing = "min-hop"
[link]
speed = "SDR"
[switch]
buffer = "64 KiB"
[host]
receive-buffer = "16 KiB"
[packet]
mtu = "2 KiB"
[traffic]
flow = [
    { name = "B-D", from = "B", to = "D" },
    { name = "X-Y", from = "X", to = "Y" },
    { name = "C-D", from = "C", to = "D", start = "1 ms" },
    { name = "A-D", from = "A", to = "D", start = "1 ms" },
]
[control]
scheme = "ib-cc"
[control.ib-cc.switch]
threshold-lowest = "6222 B"
marking-rate = 128
[control.ib-cc.adapter]
ccti-timer = 75
cct = { shape = "linear", slope = 5.5 }
[control.dcms]
interval = "1 ms"
tick = "22 ns"
congestion-threshold = 6400
rate-reduction-threshold = 21920
utilization-change-threshold = 24000
low-duration = "12 ms"
low-marking-rate = 0
"#;

fn scenario(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides = overrides
        .iter()
        .map(|(key, value)| Override::new(*key, *value));
    Scenario::from_toml(text, "test.toml", &overrides.collect::<Vec<_>>()).unwrap()
}

fn live(scenario: &Scenario, driver: Option<Box<dyn Driver>>) -> Clients {
    let subnet = Subnet::new(&Fastest, scenario, Start::Configured, driver).unwrap();
    Clients::new(subnet, None).unwrap()
}

fn output(scenario: &Scenario) -> RunOutput {
    let seed = scenario.seed();
    run(&Fastest, scenario, seed, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// The counters of all cabled ports, as the table `ports` has them.
fn counters(
    scenario: &Scenario,
    read: impl Fn(PortId) -> silvan_core::PortCounters,
) -> Vec<(&'static str, Vec<u64>)> {
    let ports = scenario.fabric().ports.iter_enumerated();
    let cabled = ports.filter(|(_, port)| port.peer.is_some());
    let ids: Vec<PortId> = cabled.map(|(id, _)| id).collect();
    silvan_core::PortCounters::in_table(CounterTable::Ports)
        .map(|counter| {
            let values = ids.iter().map(|&id| counter.read(&read(id)));
            (counter.column, values.collect())
        })
        .collect()
}

fn counters_of_run(output: &RunOutput) -> Vec<(&'static str, Vec<u64>)> {
    let table = output.table("ports").unwrap();
    silvan_core::PortCounters::in_table(CounterTable::Ports)
        .map(|counter| {
            let values = table.u64_column(counter.column).unwrap();
            (counter.column, values.to_vec())
        })
        .collect()
}

fn sum(counters: &[(&'static str, Vec<u64>)], column: &str) -> u64 {
    let found = counters.iter().find(|(name, _)| *name == column);
    found.unwrap().1.iter().sum()
}

fn sender(clients: &Clients, name: &str) -> Sender {
    let senders = clients.subnet.plane.senders().into_iter();
    senders
        .filter(|sender| sender.name == name)
        .collect::<Vec<_>>()
        .pop()
        .unwrap()
}

/// Sends a message back as often as `left` says, each larger than the last, and records when each arrives.
#[derive(Debug)]
struct PingPong {
    left: u32,
    log: Arc<Mutex<Vec<(u32, u64)>>>,
}

impl Driver for PingPong {
    fn notify(&mut self, token: u32, now: Time, requests: &mut Vec<Request>) {
        self.log.lock().unwrap().push((token, now.as_ps()));
        if token < self.left {
            requests.push(ping(token + 1));
            requests.push(Request::Timer {
                delay: Span::from_ns(700),
                token: 1000 + token,
            });
        }
    }
}

fn ping(token: u32) -> Request {
    let hosts = [0, 7].map(HostId::new);
    let [from, to] = match token % 2 {
        0 => hosts,
        _ => [hosts[1], hosts[0]],
    };
    Request::Send {
        from,
        to,
        bytes: 1 + 1500 * u64::from(token),
        sl: None,
        queue: SendQueue::default(),
        token,
    }
}

type Log = Arc<Mutex<Vec<(u32, u64)>>>;

fn ping_pong(left: u32) -> (Box<dyn Driver>, Log) {
    let log = Log::default();
    let driver = PingPong {
        left,
        log: Arc::clone(&log),
    };
    (Box::new(driver), log)
}

#[test]
fn program_waits_until_its_start() {
    let late = [("traffic.program.0.start", "\"40 us\"")];
    let mut clients = live(&scenario(PROGRAM, &late), None);
    let start = Time::from_ps(40_000_000);
    let waiting = sender(&clients, "exchange");
    assert_eq!(waiting.program, Some(ProgramState::Waiting(start)));
    assert!(!waiting.is_running);
    clients.subnet.step(start).unwrap();
    assert!(sender(&clients, "exchange").is_running);
}

/// Oracle: a run of the scenario, with congestion control that marks and without any.
#[test]
fn a_program_takes_the_times_and_counters_of_a_run() {
    for scheme in ["ib-cc", "none"] {
        let scenario = scenario(PROGRAM, &[("control.scheme", &format!("{scheme:?}"))]);
        let output = output(&scenario);
        let ColumnData::OptionalU64(ends) =
            output.table("programs").unwrap().column("end_ps").unwrap()
        else {
            panic!("an end may be missing");
        };
        let mut clients = live(&scenario, None);
        // In steps of a length that matches no other instant.
        let end = Time::from_ps(output.summary.simulated_ps);
        while clients.subnet.now() < end {
            let next = clients.subnet.now() + Span::from_ps(7_777_777);
            clients.subnet.step(next.min(end)).unwrap();
        }
        let done = sender(&clients, "exchange");
        assert_eq!(
            done.program,
            Some(ProgramState::Done(Time::from_ps(ends[0].unwrap())))
        );
        assert!(!done.is_running);
        let classes = output.table("classes").unwrap();
        let delivered = classes.u64_column("delivered_bytes").unwrap();
        // Two times 10 KiB from each of eight hosts to the seven others, and what asks for that.
        assert!(delivered[2] >= 2 * 8 * 7 * (10 << 10));
        assert_eq!(done.delivered_bytes, delivered[2]);
        let live = counters(&scenario, |port| clients.subnet.plane.counters(port));
        let expected = counters_of_run(&output);
        assert_eq!(live, expected);
        assert_eq!(sum(&live, "fecn_marked") > 0, scheme == "ib-cc");
        clients.subnet.plane.engine.audit().unwrap();
    }
}

/// Oracle: a run of the scenario with each scheme and each of its variants. Most do not leave the counters as they are without.
#[test]
fn every_scheme_acts_as_in_a_run() {
    let with_scheme = |name: &str| {
        let scheme = format!("{name:?}");
        let overrides = [
            ("control.scheme", &*scheme),
            ("fabric.parents", "[1, 2]"),
            ("traffic.program.0.iterations", "1"),
        ];
        scenario(PROGRAM, &overrides)
    };
    let without = counters_of_run(&output(&with_scheme("none")));
    let mut acted = 0;
    // Functions are in a file that a scenario names, and the number of lanes of two variants is written by hand.
    let by_hand = ["python", "voqnet", "voqsw"];
    let all = SchemeChoice::all().iter();
    for choice in all.filter(|choice| !by_hand.contains(&choice.name())) {
        let scenario = with_scheme(choice.name());
        let output = output(&scenario);
        let end = Time::from_ps(output.summary.simulated_ps);
        let mut clients = live(&scenario, None);
        while clients.subnet.now() < end {
            let next = clients.subnet.now() + Span::from_ps(7_777_777);
            clients.subnet.step(next.min(end)).unwrap();
        }
        let live = counters(&scenario, |port| clients.subnet.plane.counters(port));
        let expected = counters_of_run(&output);
        assert_eq!(live, expected, "{}", choice.name());
        acted += usize::from(expected != without);
        clients.subnet.plane.engine.audit().unwrap();
    }
    assert!(acted > SchemeChoice::all().len() / 2, "{acted}");
}

/// Oracle: the lists of the scenario. A flow that is added has a class behind those of programs, and its own bytes.
#[test]
fn programs_are_listed_beside_flows() {
    let scenario = scenario(PROGRAM, &[]);
    let mut clients = live(&scenario, None);
    let mut pace = Pace::new(1.0, Instant::now(), Time::ZERO);
    let answer = |clients: &mut Clients, pace: &mut Pace, line: &str| -> Value {
        let mut session = ControlSession {
            clients,
            pace,
            rates: &CounterRates::default(),
            exchange: &Exchange::default(),
            trees: &mut FoundTrees::default(),
            now: Instant::now(),
            quit: &mut false,
        };
        serde_json::from_slice(&session.answer(line)).unwrap()
    };
    let start = r#"{"do": "start", "from": "host-0007", "to": "host-0002", "bytes": "64 KiB"}"#;
    let started = answer(&mut clients, &mut pace, start);
    assert_eq!(started["ok"]["flow"], "flow-1");
    let taken = r#"{"do": "start", "from": "host-0007", "to": "host-0002", "name": "exchange"}"#;
    let refused = answer(&mut clients, &mut pace, taken);
    assert!(
        refused["error"].as_str().unwrap().contains("taken"),
        "{refused}"
    );
    let flows = |clients: &mut Clients, pace: &mut Pace| {
        let flows = answer(clients, pace, r#"{"do": "flows"}"#);
        let flows = flows["ok"].as_array().unwrap().clone();
        let state = |flow: &Value| {
            let name = flow["flow"].as_str().unwrap().to_owned();
            (
                name,
                flow["running"].clone(),
                flow["program"]["state"].clone(),
            )
        };
        flows.iter().map(state).collect::<Vec<_>>()
    };
    let expected = |running: bool, state: &str| {
        let flow = |name: &str| (name.to_owned(), Value::from(true), Value::Null);
        let program = (
            "exchange".to_owned(),
            Value::from(running),
            Value::from(state),
        );
        vec![flow("first"), flow("second"), program, flow("flow-1")]
    };
    assert_eq!(flows(&mut clients, &mut pace), expected(true, "running"));
    clients.subnet.step(at_us(3_000)).unwrap();
    assert_eq!(flows(&mut clients, &mut pace), expected(false, "done"));
    assert_eq!(sender(&clients, "flow-1").delivered_bytes, 64 << 10);
    let stop = |name: &str| format!(r#"{{"do": "stop", "flow": "{name}"}}"#);
    let refused = answer(&mut clients, &mut pace, &stop("exchange"));
    assert!(
        refused["error"].as_str().unwrap().contains("is a program"),
        "{refused}"
    );
    answer(&mut clients, &mut pace, &stop("flow-1"));
    assert!(!sender(&clients, "flow-1").is_running);
    let refused = answer(&mut clients, &mut pace, &stop("nothing"));
    assert_eq!(
        refused["error"],
        "nothing is named \"nothing\"; there are first, second, flow-1"
    );
}

/// Oracle: a session with the same driver, next to the program and the flows.
#[test]
fn a_driver_has_the_times_of_a_session() {
    for text in [
        PROGRAM,
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 8\n",
    ] {
        let scenario = scenario(text, &[]);
        let (driver, expected) = ping_pong(20);
        let mut session =
            Session::open(&Fastest, scenario.clone(), scenario.seed(), driver).unwrap();
        session.request(&mut vec![ping(0)]).unwrap();
        session.run_until(at_us(2_000)).unwrap();
        let (driver, log) = ping_pong(20);
        let mut plane =
            ManagementPlane::driven(&Fastest, &scenario, Start::Configured, driver).unwrap();
        plane.request(&mut vec![ping(0)]).unwrap();
        while plane.now() < at_us(2_000) {
            plane.pass(Span::from_us(5)).unwrap();
        }
        let log = log.lock().unwrap();
        // 21 messages and 20 timers.
        assert_eq!(log.len(), 41);
        assert_eq!(*log, *expected.lock().unwrap());
        let delivered = plane.delivered();
        // 1 byte more than 1,500 times the number of each.
        assert_eq!(
            delivered.last().unwrap(),
            &("external".to_owned(), 21 + 1500 * 210)
        );
        plane.audit().unwrap();
    }
}

/// Stops at each notification of a timer.
#[derive(Debug)]
struct Stopper;

impl Driver for Stopper {
    fn notify(&mut self, token: u32, _: Time, requests: &mut Vec<Request>) {
        requests.push(Request::Stop);
        if token == 0 {
            let delay = Span::ZERO;
            requests.push(Request::Timer { delay, token: 1 });
        }
    }
}

/// Oracle: the instant of the timers.
#[test]
fn a_driver_stops_a_step_at_its_instant() {
    let scenario = scenario(CHANGES, &[]);
    let mut clients = live(&scenario, Some(Box::new(Stopper)));
    let delay = Span::from_us(3);
    let timer = Request::Timer { delay, token: 0 };
    clients.subnet.plane.request(&mut vec![timer]).unwrap();
    for reached in [3, 3, 9] {
        clients.subnet.step(at_us(9)).unwrap();
        assert_eq!(clients.subnet.now(), at_us(reached));
    }
    let late = Request::Timer {
        delay: Span::from_ps(1 << 62),
        token: 2,
    };
    assert!(clients.subnet.plane.request(&mut vec![late]).is_err());
}

/// Oracle: the counters of all ports in a run, in a session and here, before, at and after each change; and of a run
/// without the change.
#[test]
fn timed_changes_apply_at_the_instants_of_runs_and_sessions() {
    for us in [50, 60, 70, 400] {
        let duration = format!("\"{us} us\"");
        let scenario = scenario(CHANGES, &[("run.duration", &duration)]);
        let run = counters_of_run(&output(&scenario));
        let (driver, _) = ping_pong(0);
        let mut session =
            Session::open(&Fastest, scenario.clone(), scenario.seed(), driver).unwrap();
        session.run_until(at_us(us)).unwrap();
        let of_session = counters(&scenario, |port| session.simulation().port_counters(port));
        let mut clients = live(&scenario, None);
        clients.subnet.step(at_us(us)).unwrap();
        let here = counters(&scenario, |port| clients.subnet.plane.counters(port));
        assert_eq!(here, run, "after {us} us");
        assert_eq!(here, of_session, "after {us} us");
        assert_eq!(sum(&here, "fecn_marked") > 0, us > 50);
        let one_change = scenario.with_overrides(&[Override::new(
            "control.ib-cc.change",
            "[{ at = \"50 us\", threshold = 15, marking-rate = 2 }]",
        )]);
        let without = counters_of_run(&output(&one_change.unwrap()));
        assert_eq!(here != without, us > 70, "after {us} us");
    }
}

/// Gets or sets an attribute of congestion control.
fn congestion(
    clients: &mut Clients,
    me: u16,
    to: u16,
    method: Method,
    attribute: CongestionAttribute,
) -> ManagementAttribute {
    let body = Body::CongestionControl(CongestionControl {
        cc_key: 0,
        attribute,
    });
    match ask(clients, me, to, &Mad::request(method, body)).body {
        Body::CongestionControl(CongestionControl {
            attribute: CongestionAttribute::Management(attribute),
            ..
        }) => attribute,
        _ => panic!("no congestion control"),
    }
}

/// The settings that the first ports of a switch have of their own, by port number.
fn port_settings(clients: &mut Clients, me: u16, switch: u16) -> Vec<SwitchPortCongestionElement> {
    let wanted = SwitchPortCongestionSetting::default().into();
    match congestion(clients, me, switch, Method::GET, wanted) {
        ManagementAttribute::SwitchPortCongestionSetting(setting) => setting.ports.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Oracle: the file of the scenario. A setting by a tool stays where a change sets something else.
#[test]
fn tools_read_what_a_timed_change_has_set() {
    let mut clients = live(&scenario(CHANGES, &[]), None);
    let me = attach(&mut clients, "host-0000", false);
    let [switch, host] = ["switch-00", "host-0001"].map(|name| lid(&clients, name));
    let port = |clients: &mut Clients| {
        let port = port_settings(clients, me, switch)[1];
        (port.valid, port.threshold.get(), port.marking_rate)
    };
    let adapter = |clients: &mut Clients| {
        let wanted = CaCongestionSetting::default().into();
        match congestion(clients, me, host, Method::GET, wanted) {
            ManagementAttribute::CaCongestionSetting(setting) => setting,
            other => panic!("{other:?}"),
        }
    };
    let before_change = Time::from_ps(at_us(50).as_ps() - 1);
    clients.subnet.step(before_change).unwrap();
    assert!(!port(&mut clients).0);
    clients.subnet.step(at_us(50)).unwrap();
    assert_eq!(port(&mut clients), (true, 15, 2));
    let mut wanted = adapter(&mut clients);
    let sl = Sl::ZERO.index();
    assert_eq!(wanted.entries[sl].ccti_timer, 150);
    wanted.entries[sl].ccti_timer = 99;
    wanted.entries[sl].ccti_increase = 5;
    congestion(&mut clients, me, host, Method::SET, wanted.into());
    assert_eq!(adapter(&mut clients).entries[sl].ccti_timer, 99);
    clients.subnet.step(at_us(70)).unwrap();
    let entry = adapter(&mut clients).entries[sl];
    assert_eq!((entry.ccti_timer, entry.ccti_increase), (1, 5));
}

/// Oracle: a run of the scenario, whose DCMS lowers a Marking_Rate.
#[test]
fn the_dcms_of_the_scenario_acts_as_in_a_run() {
    let scenario = scenario(MANAGED, &[("run.duration", "\"4500 us\"")]);
    let output = output(&scenario);
    let ColumnData::U32(rates) = output
        .table("dcms")
        .unwrap()
        .column("marking_rate")
        .unwrap()
    else {
        panic!("rates are numbers");
    };
    assert!(rates.contains(&0), "{rates:?}");
    let mut clients = live(&scenario, None);
    clients.subnet.step(at_us(4_500)).unwrap();
    let here = counters(&scenario, |port| clients.subnet.plane.counters(port));
    assert_eq!(here, counters_of_run(&output));
    // The agent of the congested switch shows the low rate.
    let me = attach(&mut clients, "D", false);
    let switch = lid(&clients, "S2");
    let ports = port_settings(&mut clients, me, switch);
    let own = ports.iter().filter(|port| port.valid);
    assert_eq!(own.map(|port| port.marking_rate).collect::<Vec<_>>(), [0]);
}

/// Oracle: a receive without a send. The other program and the fabric go on.
#[test]
fn a_program_that_is_stuck_says_so() {
    let text = r#"
[fabric]
generator = "single-switch"
hosts = 2
[[traffic.program]]
name = "stuck"
kind = "goal"
trace = '''
num_ranks 2
rank 0 {
l1: recv 8b from 1 tag 1
}
rank 1 {
l1: calc 10
}
'''
[[traffic.program]]
name = "sound"
kind = "barrier"
"#;
    let mut clients = live(&scenario(text, &[]), None);
    clients.subnet.step(at_us(100)).unwrap();
    let Some(ProgramState::Failed(fault)) = sender(&clients, "stuck").program else {
        panic!("the receive has ended");
    };
    assert!(
        fault.starts_with("program \"stuck\" is stuck at "),
        "{fault}"
    );
    assert!(matches!(
        sender(&clients, "sound").program,
        Some(ProgramState::Done(_))
    ));
}

/// Records what becomes of messages.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<(&'static str, u32)>>>, Arc<Mutex<Vec<Gap>>>);

/// A message, its lost packet, and the message of the packet behind it.
type Gap = (u32, u64, u32);

impl Driver for Recorder {
    fn notify(&mut self, token: u32, _now: Time, _requests: &mut Vec<Request>) {
        self.0.lock().unwrap().push(("arrived", token));
    }

    fn departed(&mut self, token: u32, _now: Time, _requests: &mut Vec<Request>) {
        self.0.lock().unwrap().push(("departed", token));
    }

    fn gap(&mut self, token: u32, index: u64, next: u32, _now: Time, _requests: &mut Vec<Request>) {
        self.0.lock().unwrap().push(("gap", token));
        self.1.lock().unwrap().push((token, index, next));
    }

    fn lost(&mut self, token: u32, _now: Time, _requests: &mut Vec<Request>) {
        self.0.lock().unwrap().push(("lost", token));
    }
}

fn message_to(to: usize, bytes: u64, number: u32, token: u32) -> Request {
    Request::Send {
        from: HostId::new(0),
        to: HostId::new(to),
        bytes,
        sl: None,
        queue: SendQueue {
            number,
            tells_gaps: true,
            ..SendQueue::default()
        },
        token,
    }
}

/// Oracle: the packets that the host had when its cable was cut, and one gap per message. Later messages arrive.
#[test]
fn a_driver_learns_where_messages_break_off() {
    let scenario = scenario("[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n", &[]);
    let recorder = Recorder::default();
    let mut clients = live(&scenario, Some(Box::new(recorder.clone())));
    let mut pace = Pace::new(1.0, Instant::now(), Time::ZERO);
    let mut command = |clients: &mut Clients, line: &str| {
        let mut session = ControlSession {
            clients,
            pace: &mut pace,
            rates: &CounterRates::default(),
            exchange: &Exchange::default(),
            trees: &mut FoundTrees::default(),
            now: Instant::now(),
            quit: &mut false,
        };
        let answer: Value = serde_json::from_slice(&session.answer(line)).unwrap();
        assert!(answer["error"].is_null(), "{answer}");
    };
    let step = |clients: &mut Clients, us: u64| {
        clients.subnet.step(at_us(us)).unwrap();
        clients.come_due();
    };
    let log = || std::mem::take(&mut *recorder.0.lock().unwrap());
    step(&mut clients, 1);
    let mut requests = vec![
        message_to(1, 4 << 20, 1, 0),
        message_to(1, 4 << 20, 2, 1),
        message_to(2, 100, 1, 2),
    ];
    clients.subnet.plane.request(&mut requests).unwrap();
    step(&mut clients, 20);
    assert_eq!(log(), [("departed", 2), ("arrived", 2)]);
    command(&mut clients, r#"{"do": "cut", "port": "host-0001"}"#);
    step(&mut clients, 40);
    assert_eq!(log(), []);
    let had = clients.subnet.plane.engine.host_counters(HostId::new(1));
    let had = had.delivered_bytes / 4096;
    command(&mut clients, r#"{"do": "restore", "port": "host-0001"}"#);
    let mut requests = vec![message_to(1, 64 << 10, 1, 3), message_to(3, 0, 1, 4)];
    clients.subnet.plane.request(&mut requests).unwrap();
    for ms in 1..40 {
        step(&mut clients, ms * 1000);
    }
    let mut outcome = log();
    outcome.sort_unstable();
    outcome.dedup();
    let expected = [
        ("arrived", 0),
        ("arrived", 1),
        ("arrived", 3),
        ("arrived", 4),
        ("departed", 0),
        ("departed", 1),
        ("departed", 3),
        ("departed", 4),
        ("gap", 0),
        ("gap", 1),
    ];
    assert_eq!(outcome, expected);
    // Each message has one gap, behind the packets that the host had.
    let gaps = recorder.1.lock().unwrap().clone();
    let (first, second): (Vec<Gap>, Vec<Gap>) = gaps.into_iter().partition(|gap| gap.0 == 0);
    for (message, gaps) in [(0, &first), (1, &second)] {
        let start = gaps[0].1;
        let expected: Vec<_> = (start..start + gaps.len() as u64)
            .map(|index| (message, index, message))
            .collect();
        assert_eq!(*gaps, expected);
    }
    assert!(had > 0);
    assert_eq!(first[0].1 + second[0].1, had);
    assert!(first[0].1.abs_diff(second[0].1) <= 1, "queues take turns");
    clients.subnet.plane.engine.audit().unwrap();
}

/// Oracle: the port's count of discarded packets. Each is one gap, and each message arrives or is lost, also after numbers
/// of messages have come round twice.
#[test]
fn each_discarded_packet_is_one_gap() {
    const MESSAGES: u32 = 140_000;
    let text = r#"
[fabric]
generator = "single-switch"
hosts = 2
[[fault]]
do = "bit-errors"
port = "host-0001"
bit-error-rate = 1e-6
retransmission = false
"#;
    let recorder = Recorder::default();
    let scenario = scenario(text, &[]);
    let mut clients = live(&scenario, Some(Box::new(recorder.clone())));
    let fabric = clients.subnet.fabric.clone();
    let mut faults = Timetable::new(scenario.faults(), None, &fabric).unwrap();
    let bytes = |token: u32| 64 + u64::from(token % 7) * 800;
    let mut requests: Vec<Request> = (0..MESSAGES)
        .map(|token| message_to(1, bytes(token), 1 + token % 3, token))
        .collect();
    run_to(&mut clients, &mut faults, at_us(1));
    clients.subnet.plane.request(&mut requests).unwrap();
    run_to(&mut clients, &mut faults, at_us(400_000));
    let log = recorder.0.lock().unwrap();
    let count = |what: &str| log.iter().filter(|entry| entry.0 == what).count();
    let host = fabric.node_of_host(HostId::new(1));
    let port = fabric.port(host, PortNumber::new(1)).unwrap();
    let discarded = clients.subnet.plane.counters(port).rcv_errors;
    assert!(discarded > 1000, "{discarded} discarded");
    assert_eq!(count("gap") as u64, discarded);
    assert_eq!(count("arrived") + count("lost"), MESSAGES as usize);
    assert_eq!(count("departed"), MESSAGES as usize);
    let programs = clients.subnet.plane.engine.programs().unwrap();
    assert_eq!(programs.requests_pending(), 0);
}

/// Oracle: the packets that have left. What waits in one queue is withdrawn, and the queue goes on.
#[test]
fn a_driver_withdraws_what_has_not_left() {
    let text = "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n";
    let recorder = Recorder::default();
    let mut clients = live(&scenario(text, &[]), Some(Box::new(recorder.clone())));
    let plane = &mut clients.subnet.plane;
    let queue = SendQueue {
        number: 1,
        ..SendQueue::default()
    };
    let from = HostId::new(0);
    let mut requests = vec![
        message_to(1, 1 << 20, 1, 0),
        message_to(1, 1 << 20, 1, 1),
        message_to(2, 1 << 20, 1, 2),
        message_to(1, 10_000, 2, 3),
    ];
    plane.request(&mut requests).unwrap();
    plane.step(at_us(20)).unwrap();
    plane
        .request(&mut vec![Request::Withdraw { from, queue }])
        .unwrap();
    plane.step(at_us(21)).unwrap();
    let sent = plane.engine.host_counters(from).injected_bytes;
    assert!((64 << 10..1 << 20).contains(&sent), "{sent} bytes");
    plane.request(&mut vec![message_to(1, 5000, 1, 4)]).unwrap();
    plane.step(at_us(2_000)).unwrap();
    let after = plane.engine.host_counters(from).injected_bytes;
    assert_eq!(after, sent + 5000);
    let mut log = recorder.0.lock().unwrap().clone();
    log.sort_unstable();
    let expected = [
        ("arrived", 3),
        ("arrived", 4),
        ("departed", 3),
        ("departed", 4),
        ("lost", 0),
        ("lost", 1),
        ("lost", 2),
    ];
    assert_eq!(log, expected);
}

/// Oracle: one packet per MTU of the queue, and never more than the fabric's.
#[test]
fn a_queue_has_an_mtu_of_its_own() {
    let text = "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n";
    for (mtu, packets) in [(256, 17), (4096, 2), (1 << 20, 2)] {
        let recorder = Recorder::default();
        let mut clients = live(&scenario(text, &[]), Some(Box::new(recorder.clone())));
        let mut request = message_to(1, 4100, 1, 0);
        if let Request::Send { queue, .. } = &mut request {
            queue.mtu = NonZeroU32::new(mtu);
        }
        let plane = &mut clients.subnet.plane;
        plane.request(&mut vec![request]).unwrap();
        plane.step(at_us(100)).unwrap();
        let fabric = &clients.subnet.fabric;
        let node = fabric.node_of_host(HostId::new(0));
        let port = fabric.port(node, PortNumber::new(1)).unwrap();
        let plane = &clients.subnet.plane;
        assert_eq!(plane.counters(port).xmit_pkts, packets);
        assert_eq!(recorder.0.lock().unwrap().last(), Some(&("arrived", 0)));
    }
}

/// Oracle: Annex A10, a BECN throttles the queue pair whose packet was marked. Queue 9 sends little, and meets no queue.
#[test]
fn congestion_control_tells_queue_pairs_apart() {
    let text =
        "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n[control]\nscheme = \"ib-cc\"\n";
    let mut clients = live(&scenario(text, &[]), Some(Box::<Recorder>::default()));
    let plane = &mut clients.subnet.plane;
    let mut requests = vec![message_to(1, 64, 9, 0)];
    plane.request(&mut requests).unwrap();
    plane.step(at_us(10)).unwrap();
    let from = |host: usize, request: Request| match request {
        Request::Send {
            to,
            bytes,
            sl,
            queue,
            token,
            ..
        } => Request::Send {
            from: HostId::new(host),
            to,
            bytes,
            sl,
            queue,
            token,
        },
        other => other,
    };
    let mut requests = vec![
        message_to(1, 8 << 20, 7, 1),
        message_to(1, 8 << 20, 8, 2),
        from(2, message_to(1, 8 << 20, 7, 3)),
    ];
    plane.request(&mut requests).unwrap();
    plane.step(at_us(2_000)).unwrap();
    let ccti = |queue: u16| {
        let flow = Flow {
            source: HostId::new(0),
            destination: HostId::new(1),
            sl: Sl::ZERO,
            queue,
        };
        let control = &clients.subnet.plane.engine.adapter().inner.0;
        control.ccti(at_us(2_000), flow)
    };
    // Numbers of queues count from 1 in flows.
    assert!(ccti(7 + 1) > 0 && ccti(8 + 1) > 0);
    assert_eq!((ccti(9 + 1), ccti(0)), (0, 0));
}

/// Oracle: fairness. A long message does not hold back a short one of another queue between the same hosts.
#[test]
fn queues_of_a_driver_take_turns() {
    let text = "[fabric]\ngenerator = \"single-switch\"\nhosts = 4\n";
    let scenario = scenario(text, &[]);
    for (number, first) in [(1, 0), (2, 1)] {
        let recorder = Recorder::default();
        let mut clients = live(&scenario, Some(Box::new(recorder.clone())));
        let mut requests = vec![message_to(1, 1 << 20, 1, 0), message_to(1, 100, number, 1)];
        clients.subnet.plane.request(&mut requests).unwrap();
        clients.subnet.step(at_us(2_000)).unwrap();
        let log = recorder.0.lock().unwrap();
        let arrived: Vec<u32> = log
            .iter()
            .filter(|(what, _)| *what == "arrived")
            .map(|(_, token)| *token)
            .collect();
        assert_eq!(arrived, [first, 1 - first]);
    }
}

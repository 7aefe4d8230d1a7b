//! The counters of the live fabric have no effect, for any hooks of a scheme.

use silvan_cc::hooks::{
    Feedback, Flow, PacketView, PortVl, QueueView, Resident, SourceControl, SwitchControl,
};
use silvan_core::{HostId, PortId, Span, Time, Vl};
use silvan_engine::Engine;
use silvan_model::meter::{MeteredAdapter, MeteredSwitch};
use silvan_scenario::Scenario;
use silvan_workload::traffic::Traffic;

const SCENARIO: &str = r#"
[fabric]
generator = "chain"
switches = 2
hosts-per-switch = 4
routing = "min-hop"
[[traffic.incast]]
to = "host-0000"
[[traffic.flow]]
from = "host-0001"
to = "host-0005"
bytes = "64 KiB"
[[traffic.flow]]
from = "host-0001"
to = "host-0006"
on-off = { on = "20 us", off = "30 us" }
"#;

/// Marks buffers that fill and every seventh packet, and counts the marks of each Port VL.
struct Marker {
    departures: u64,
    full: u64,
    marked: Vec<u64>,
}

impl SwitchControl for Marker {
    fn needs_buffer_full(&self) -> bool {
        true
    }
    fn on_queued(&mut self, _: Time, _: PortVl, _: QueueView, _: PacketView) {}
    fn on_departure(&mut self, _: Time, output: PortVl, _: QueueView, packet: PacketView) -> bool {
        self.departures += 1;
        let mark = self.departures % 7 == 0;
        self.marked[output.0 as usize] += u64::from(mark || packet.marked);
        mark
    }
    fn on_buffer_full<R: Resident>(&mut self, _: Time, input: PortId, vl: Vl, resident: &mut R) {
        self.full += 1;
        resident.mark_input(input, vl);
    }
    fn delays_credits(&self) -> bool {
        true
    }
    fn credit_return_delay(&self, input: PortId, _: u32, packet_time: Span) -> Span {
        packet_time * (input.index() as u64 % 2)
    }
    fn marked(&self, output: PortVl) -> u64 {
        self.marked[output.0 as usize]
    }
    fn congested_time(&self, now: Time, _: PortVl) -> Span {
        now.since(Time::ZERO)
    }
}

/// Holds back hosts with many credits in use and flows that have been notified, until they start again.
#[derive(Default)]
struct Pacer {
    flow: Vec<Time>,
    host: Vec<Time>,
    starts: u64,
    credits: u64,
}

impl SourceControl for Pacer {
    fn needs_credit(&self) -> bool {
        true
    }
    fn release(&mut self, _: Time, flow: Flow) -> Time {
        self.flow[flow.source.index()]
    }
    fn host_release(&mut self, _: Time, host: HostId) -> Time {
        self.host[host.index()]
    }
    fn on_flow_start(&mut self, now: Time, flow: Flow) {
        self.starts += 1;
        self.flow[flow.source.index()] = now + Span::from_us(3);
    }
    fn on_send(&mut self, _: Time, _: Flow, _: Span, _: u32) {}
    fn on_feedback(&mut self, now: Time, flow: Flow, _: Feedback) -> bool {
        self.flow[flow.source.index()] = now + Span::from_us(2);
        false
    }
    fn on_credit(&mut self, now: Time, host: HostId, used: u32, capacity: u32) {
        self.credits += 1;
        if used * 2 > capacity {
            self.host[host.index()] = now + Span::from_us(1);
        }
    }
}

fn scheme(scenario: &Scenario) -> (Marker, Pacer) {
    let fabric = scenario.fabric();
    let lanes = fabric.ports.len() * usize::from(scenario.engine_config().data_vls);
    let hosts = fabric.host_count();
    let marker = Marker {
        departures: 0,
        full: 0,
        marked: vec![0; lanes],
    };
    let pacer = Pacer {
        flow: vec![Time::ZERO; hosts],
        host: vec![Time::ZERO; hosts],
        ..Pacer::default()
    };
    (marker, pacer)
}

/// Everything that the engine has counted, as text.
fn counters<S: SwitchControl, C: SourceControl>(
    scenario: &Scenario,
    switch: S,
    source: C,
) -> (Vec<String>, Engine<S, C, Traffic>) {
    let traffic = Traffic::new(scenario.traffic(), &scenario.environment(1)).unwrap();
    let mut engine = Engine::new(
        scenario.fabric(),
        scenario.forwarding(),
        scenario.engine_config(),
        switch,
        source,
        traffic,
    )
    .unwrap();
    engine.run_until(Time::ZERO + Span::from_us(500)).unwrap();
    let mut texts = vec![engine.events().to_string()];
    for port in scenario.fabric().ports.ids() {
        let lane = PortVl(port.index() as u32);
        texts.push(format!(
            "{:?} {} {:?}",
            engine.port_counters(port),
            engine.switch_control().marked(lane),
            engine.switch_control().congested_time(engine.now(), lane),
        ));
    }
    for host in 0..scenario.fabric().host_count() {
        texts.push(format!("{:?}", engine.host_counters(HostId::new(host))));
    }
    (texts, engine)
}

/// Oracle: the same scheme without counters.
#[test]
fn metered_equals_unmetered() {
    let scenario = Scenario::from_toml(SCENARIO, "metered.toml", &[]).unwrap();
    let fabric = scenario.fabric();
    let (switch, source) = scheme(&scenario);
    let (specialised, engine) = counters(&scenario, switch, source);
    let (marker, pacer) = (engine.switch_control(), engine.source_control());
    // Every hook has been called.
    assert!(marker.full > 0 && marker.marked.iter().sum::<u64>() > 0);
    assert!(pacer.starts > 0 && pacer.credits > 0);

    let (switch, source) = scheme(&scenario);
    let switch_of = fabric.ports.iter().map(|_| None).collect();
    let vls = usize::from(scenario.engine_config().data_vls);
    let switch = MeteredSwitch::new(switch, switch_of, vls);
    let source = MeteredAdapter::new(source, fabric.host_count());
    let (metered, engine) = counters(&scenario, switch, source);
    assert_eq!(metered, specialised);
    let counted = &engine.switch_control().meter.by_sl;
    assert!(counted.iter().map(|port| port.bytes[0]).sum::<u64>() > 0);
}

//! The engine behind the traits of `silvan-model`.

use silvan_cc::hooks::{
    PerHost, PerPortVl, PortReading, PortVl, SettingChange, Settings, SourceControl, SwitchControl,
    UnknownSetting,
};
use silvan_core::{Bytes, HostId, NodeId, PortId, PortNumber, Rate, Sl, Time, Vl};
use silvan_engine::workload::Workload;
use silvan_engine::{
    BuildError, ClassStats, CompiledFabric, Discards, Engine, EngineError, FlowProgress, Forest,
    Form, General, HostCounters, InvariantError, Latencies, OnWire, Plain, PortCounters,
    VlArbitration, Windowed,
};
use silvan_model::meter::{MeteredAdapter, MeteredSwitch};
use silvan_model::{ClassTotals, LiveSimulation, Simulation};
use silvan_workload::programs::{Load, Programs};
use silvan_workload::traffic::Traffic;

/// A workload that consists of traffic, and perhaps of programs.
pub(crate) trait HostLoad: Workload {
    fn traffic(&self) -> &Traffic;
    fn classes(&self) -> &[String];
    fn programs(&self) -> Option<&Programs>;
}

impl HostLoad for Traffic {
    fn traffic(&self) -> &Traffic {
        self
    }

    fn classes(&self) -> &[String] {
        self.classes()
    }

    fn programs(&self) -> Option<&Programs> {
        None
    }
}

impl HostLoad for Load {
    fn traffic(&self) -> &Traffic {
        self.traffic()
    }

    fn classes(&self) -> &[String] {
        self.classes()
    }

    fn programs(&self) -> Option<&Programs> {
        self.programs()
    }
}

/// An engine compiled for these types.
#[derive(Debug)]
pub(crate) struct Compiled<S, C, W, F = General>(Engine<S, C, W, F>);

impl<S: SwitchControl, C: SourceControl, W: Workload> Compiled<S, C, W> {
    pub fn general(fabric: CompiledFabric, switch: S, source: C, load: W) -> Box<Self> {
        Box::new(Self(Engine::general(fabric, switch, source, load)))
    }

    /// Whether packets without a forwarding entry are discarded and counted; else they end the run.
    pub fn discarding(mut self: Box<Self>, discard: bool) -> Box<Self> {
        self.0.discard_unroutable(discard);
        self
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload> Compiled<S, C, W, Plain> {
    pub fn plain(fabric: CompiledFabric, switch: S, source: C, load: W) -> Box<Self> {
        Box::new(Self(Engine::plain(fabric, switch, source, load)))
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload> Compiled<S, C, W, Windowed> {
    pub fn windowed(fabric: CompiledFabric, switch: S, source: C, load: W) -> Box<Self> {
        Box::new(Self(Engine::windowed(fabric, switch, source, load)))
    }
}

impl<S, C, W, F> Simulation for Compiled<S, C, W, F>
where
    S: SwitchControl + Settings,
    C: SourceControl + Settings,
    W: HostLoad,
    F: Form,
{
    fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.0.run_until(end)
    }

    fn apply(&mut self, change: &SettingChange) -> Result<(), UnknownSetting> {
        let now = self.0.now();
        match self.0.switch_control_mut().apply(now, change) {
            Ok(()) => Ok(()),
            Err(_) => self.0.source_control_mut().apply(now, change),
        }
    }

    fn now(&self) -> Time {
        self.0.now()
    }

    fn events(&self) -> u64 {
        self.0.events()
    }

    fn packet_hops(&self) -> u64 {
        self.0.packet_hops()
    }

    fn delivered_packets(&self) -> u64 {
        self.0.delivered_packets()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn port_counters(&self, port: PortId) -> PortCounters {
        self.0.port_counters(port)
    }

    fn reading(&self, port: PortId) -> PortReading {
        self.0.reading(port)
    }

    fn discards(&self, port: PortId) -> Discards {
        self.0.discards(port)
    }

    fn marked(&self, output: PortVl) -> u64 {
        self.0.switch_control().marked(output)
    }

    fn queued(&self, output: PortId, vl: Vl) -> Bytes {
        self.0.queued(output, vl)
    }

    fn host_counters(&self, host: HostId) -> HostCounters {
        self.0.host_counters(host)
    }

    fn class(&self, class: u16) -> ClassTotals {
        let totals = |stats: &ClassStats| ClassTotals {
            delivered_bytes: stats.delivered_bytes,
            delivered_packets: stats.delivered_packets,
            marked_packets: stats.marked_packets,
        };
        self.0.class(class).map(totals).unwrap_or_default()
    }

    fn latency_of_class(&self, class: u16) -> Option<Latencies> {
        self.0.class(class)?.latency()
    }

    fn latency_of_host(&self, host: HostId) -> Option<Latencies> {
        self.0.latency_of_host(host)
    }

    fn track_flows(&mut self, flows: &[(u16, HostId)]) {
        self.0.track_flows(flows.iter().copied());
    }

    fn flow(&self, class: u16, source: HostId) -> FlowProgress {
        self.0.flow(class, source)
    }

    fn reset_latency(&mut self) {
        self.0.reset_latency();
    }

    fn forest(&self, threshold: Bytes) -> Forest {
        self.0.forest(threshold)
    }

    fn traffic(&self) -> &Traffic {
        self.0.workload().traffic()
    }

    fn classes(&self) -> &[String] {
        self.0.workload().classes()
    }

    fn programs(&self) -> Option<&Programs> {
        self.0.workload().programs()
    }

    fn audit(&self) -> Result<(), InvariantError> {
        self.0.audit()
    }
}

impl LiveSimulation for Compiled<MeteredSwitch, MeteredAdapter, Traffic> {
    fn step_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.0.step_until(end)
    }

    fn break_deadlock(&mut self) -> usize {
        self.0.break_deadlock()
    }

    fn set_routes(&mut self, switch: NodeId, routes: &[(HostId, Option<PortNumber>)]) {
        self.0.set_routes(switch, routes);
    }

    fn set_vl_arbitration(
        &mut self,
        port: PortId,
        tables: &VlArbitration,
    ) -> Result<(), BuildError> {
        self.0.set_vl_arbitration(port, tables)
    }

    fn set_sl_to_vl(
        &mut self,
        switch: NodeId,
        input: PortNumber,
        output: PortNumber,
        vls: &[u8; 16],
    ) {
        self.0.set_sl_to_vl(switch, input, output, vls);
    }

    fn sl_to_vl(&self, switch: NodeId, input: PortNumber, output: PortNumber) -> Option<[u8; 16]> {
        self.0.sl_to_vl(switch, input, output)
    }

    fn set_host_sl_to_vl(&mut self, host: HostId, vls: &[u8; 16]) {
        self.0.set_host_sl_to_vl(host, vls);
    }

    fn host_sl_to_vl(&self, host: HostId) -> [u8; 16] {
        self.0.host_sl_to_vl(host)
    }

    fn set_path_level(&mut self, source: HostId, destination: HostId, level: Sl) {
        self.0.set_path_level(source, destination, level);
    }

    fn path_level(&self, source: HostId, destination: HostId) -> Sl {
        self.0.path_level(source, destination)
    }

    fn close_port(&mut self, port: PortId, on_wire: OnWire) {
        self.0.close_port(port, on_wire);
    }

    fn set_link_rate(&mut self, port: PortId, rate: Rate) {
        self.0.set_link_rate(port, rate);
    }

    fn open_port(&mut self, port: PortId) {
        self.0.open_port(port);
    }

    fn discarded_bytes(&self) -> u64 {
        self.0.discarded_bytes()
    }

    fn ports(&self) -> usize {
        self.0.ports()
    }

    fn switch(&self) -> &MeteredSwitch {
        self.0.switch_control()
    }

    fn switch_mut(&mut self) -> &mut MeteredSwitch {
        self.0.switch_control_mut()
    }

    fn adapter(&self) -> &MeteredAdapter {
        self.0.source_control()
    }

    fn adapter_mut(&mut self) -> &mut MeteredAdapter {
        self.0.source_control_mut()
    }

    fn traffic_mut(&mut self) -> &mut Traffic {
        self.0.workload_mut()
    }

    fn wake(&mut self, host: HostId) {
        self.0.wake(host);
    }
}

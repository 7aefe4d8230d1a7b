use silvan_cc::hooks::{
    FlowLimit, PerHost, PerPortVl, SettingChange, Settings, SourceControl, SwitchControl,
    UnknownSetting,
};
use silvan_core::{Bytes, HostId, NodeId, PortCounters, PortId, PortNumber, Rate, Sl, Time, Vl};
use silvan_engine::workload::Workload;
use silvan_engine::{
    BuildError, ClassStats, CompiledFabric, Engine, EngineError, EngineVariant, FlowProgress,
    Forest, General, GeneralLookahead, HostCounters, InvariantError, Latencies, Lookahead,
    LostPackets, OnWire, PacketFilter, PacketHop, Partitioned, Traced, VlArbitration,
};
use silvan_model::bit_errors::BitErrors;
use silvan_model::meter::{MeteredAdapter, MeteredSwitch};
use silvan_model::{Balance, ClassTotals, FabricChange, LiveSimulation, PortReading, Simulation};
use silvan_workload::programs::{Load, Programs};
use silvan_workload::traffic::Traffic;

pub(crate) trait HostLoad: Workload {
    fn traffic(&self) -> &Traffic;
    fn classes(&self) -> &[String];
    fn programs(&self) -> Option<&Programs>;

    fn change_programs(&mut self, wake: &mut Vec<HostId>, change: impl FnOnce(&mut Programs));

    fn lend(&mut self) {}

    fn take_back(&mut self) {}
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

    fn change_programs(&mut self, _: &mut Vec<HostId>, _: impl FnOnce(&mut Programs)) {}
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

    fn change_programs(&mut self, wake: &mut Vec<HostId>, change: impl FnOnce(&mut Programs)) {
        self.change_programs(wake, change);
    }

    fn lend(&mut self) {
        self.lend();
    }

    fn take_back(&mut self) {
        self.take_back();
    }
}

#[derive(Debug)]
pub(crate) struct Compiled<S, C, W, F = General>(Engine<S, C, W, F>);

impl<S: SwitchControl, C: SourceControl, W: Workload> Compiled<S, C, W> {
    pub fn general(fabric: CompiledFabric, switch: S, source: C, load: W) -> Box<Self> {
        Box::new(Self(Engine::general(fabric, switch, source, load)))
    }

    /// Otherwise packets without a forwarding entry end the run.
    pub fn discarding(mut self: Box<Self>, discard: bool) -> Box<Self> {
        self.0.discard_unroutable(discard);
        self
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload> Compiled<S, C, W, Traced> {
    pub fn traced(
        fabric: CompiledFabric,
        switch: S,
        source: C,
        load: W,
        (filter, discards_unroutable): (&PacketFilter, bool),
    ) -> Box<Self> {
        let mut engine = Engine::traced(fabric, switch, source, load, filter);
        engine.discard_unroutable(discards_unroutable);
        Box::new(Self(engine))
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload> Compiled<S, C, W, Lookahead> {
    pub fn lookahead(fabric: CompiledFabric, switch: S, source: C, load: W) -> Box<Self> {
        Box::new(Self(Engine::lookahead(fabric, switch, source, load)))
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload> Compiled<S, C, W, GeneralLookahead> {
    pub fn general_lookahead(fabric: CompiledFabric, switch: S, source: C, load: W) -> Box<Self> {
        Box::new(Self(Engine::general_lookahead(
            fabric, switch, source, load,
        )))
    }
}

#[derive(Debug)]
pub(crate) struct Divided<S, C, W, F = Lookahead>(Partitioned<S, C, W, F>);

impl<S: PerPortVl, C: PerHost, W: HostLoad + Clone> Divided<S, C, W> {
    pub fn new(fabric: CompiledFabric, switch: S, source: C, load: W, threads: usize) -> Box<Self> {
        let mut engine = Partitioned::new(fabric, switch, source, load, (threads, 1));
        engine.workload_mut().take_back();
        Box::new(Self(engine))
    }
}

impl<S: PerPortVl, C: PerHost, W: HostLoad + Clone> Divided<S, C, W, GeneralLookahead> {
    pub fn general_lookahead(
        fabric: CompiledFabric,
        switch: S,
        source: C,
        load: W,
        threads: usize,
    ) -> Box<Self> {
        let mut engine = Partitioned::general_lookahead(fabric, switch, source, load, (threads, 1));
        engine.workload_mut().take_back();
        Box::new(Self(engine))
    }
}

pub(crate) trait Reconfigurable: EngineVariant + Sized {
    fn change_fabric<S: SwitchControl, C: SourceControl, W: Workload>(
        engine: &mut Engine<S, C, W, Self>,
        change: FabricChange,
    );
}

impl Reconfigurable for General {
    fn change_fabric<S: SwitchControl, C: SourceControl, W: Workload>(
        engine: &mut Engine<S, C, W, Self>,
        change: FabricChange,
    ) {
        match change {
            FabricChange::LinkDown(port) => engine.close_port(port, OnWire::Lost),
            FabricChange::LinkUp(port) => engine.open_port(port),
            FabricChange::LinkRate(port, rate) => engine.set_link_rate(port, rate),
            FabricChange::SinkRate(host, rate) => engine.set_sink_rate(host, rate),
        }
    }
}

macro_rules! fixed_fabric {
    ($($variant:ident)*) => {
        $(impl Reconfigurable for $variant {
            fn change_fabric<S: SwitchControl, C: SourceControl, W: Workload>(
                _: &mut Engine<S, C, W, Self>,
                _: FabricChange,
            ) {
                panic!("the run was started for a fabric that does not change");
            }
        })*
    };
}

fixed_fabric!(Lookahead GeneralLookahead Traced);

macro_rules! forward {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        $(fn $name(&self, $($argument: $kind),*) $(-> $result)? {
            self.0.$name($($argument),*)
        })*
    };
}

macro_rules! forward_mut {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        $(fn $name(&mut self, $($argument: $kind),*) $(-> $result)? {
            self.0.$name($($argument),*)
        })*
    };
}

fn totals(stats: &ClassStats) -> ClassTotals {
    ClassTotals {
        delivered_bytes: stats.delivered_bytes,
        delivered_packets: stats.delivered_packets,
        marked_packets: stats.marked_packets,
    }
}

impl<S, C, W, F> Simulation for Compiled<S, C, W, F>
where
    S: SwitchControl + Settings,
    C: SourceControl + Settings,
    W: HostLoad,
    F: Reconfigurable,
{
    fn change_fabric(&mut self, change: FabricChange) {
        F::change_fabric(&mut self.0, change);
    }

    fn apply(&mut self, change: &SettingChange) -> Result<(), UnknownSetting> {
        let now = self.0.now();
        match self.0.switch_control_mut().apply(now, change) {
            Ok(()) => Ok(()),
            Err(_) => self.0.source_control_mut().apply(now, change),
        }
    }

    fn class(&self, class: u16) -> ClassTotals {
        self.0.class(class).map(totals).unwrap_or_default()
    }

    fn latency_of_class(&self, class: u16) -> Option<Latencies> {
        self.0.class(class)?.latency()
    }

    fn add_latency_counts(&self, class: u16, counts: &mut Vec<u64>) {
        if let Some(class) = self.0.class(class) {
            class.add_latency_counts(counts);
        }
    }

    fn track_flows(&mut self, flows: &[(u16, HostId)]) {
        self.0.track_flows(flows.iter().copied());
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

    fn change_programs(&mut self, change: &mut dyn FnMut(&mut Programs, Time)) {
        self.0.change_workload(|load, now, wake| {
            load.change_programs(wake, |programs| change(programs, now));
        });
    }

    forward_mut! {
        run_until(end: Time) -> Result<(), EngineError>;
        step_until(end: Time) -> Result<(), EngineError>;
        advance_until(end: Time) -> Result<(), EngineError>;
        settle();
        reset_latency();
        take_hops() -> Vec<PacketHop>;
    }

    forward! {
        now() -> Time;
        events() -> u64;
        packet_hops() -> u64;
        leapt_packet_hops() -> u64;
        no_leaps() -> Option<&'static str>;
        control_acted() -> bool;
        delivered_packets() -> u64;
        memory_bytes() -> usize;
        port_counters(port: PortId) -> PortCounters;
        read_ports(ports: &[PortId], vls: u8, readings: &mut Vec<PortReading>);
        queued(output: PortId, vl: Vl) -> Bytes;
        host_counters(host: HostId) -> HostCounters;
        flow_limits(host: HostId) -> Vec<FlowLimit>;
        latency_of_host(host: HostId) -> Option<Latencies>;
        flow(class: u16, source: HostId) -> FlowProgress;
        lost() -> Vec<LostPackets>;
        forest(threshold: Bytes) -> Forest;
        audit() -> Result<(), InvariantError>;
    }
}

impl<S, C, W, F> Simulation for Divided<S, C, W, F>
where
    S: PerPortVl + Settings,
    C: PerHost + Settings,
    W: HostLoad + Send,
    F: EngineVariant,
{
    fn change_fabric(&mut self, _: FabricChange) {
        panic!("the run was started for a fabric that does not change");
    }

    fn class(&self, class: u16) -> ClassTotals {
        self.0.class(class).as_ref().map(totals).unwrap_or_default()
    }

    fn latency_of_class(&self, class: u16) -> Option<Latencies> {
        self.0.class(class)?.latency()
    }

    fn add_latency_counts(&self, class: u16, counts: &mut Vec<u64>) {
        if let Some(class) = self.0.class(class) {
            class.add_latency_counts(counts);
        }
    }

    fn traffic(&self) -> &Traffic {
        self.0.workload().traffic()
    }

    fn traffic_of(&self, host: HostId) -> &Traffic {
        self.0.workload_of(host).traffic()
    }

    fn classes(&self) -> &[String] {
        self.0.workload().classes()
    }

    fn programs(&self) -> Option<&Programs> {
        self.0.workload().programs()
    }

    fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.0.workload_mut().lend();
        let result = self.0.run_until(end);
        self.0.workload_mut().take_back();
        result
    }

    fn step_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.0.workload_mut().lend();
        let result = self.0.step_until(end);
        self.0.workload_mut().take_back();
        result
    }

    fn advance_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.0.workload_mut().lend();
        let result = self.0.advance_until(end);
        self.0.workload_mut().take_back();
        result
    }

    forward_mut! {
        apply(change: &SettingChange) -> Result<(), UnknownSetting>;
        track_flows(flows: &[(u16, HostId)]);
        reset_latency();
    }

    forward! {
        threads() -> usize;
        balance() -> Option<Balance>;
        now() -> Time;
        events() -> u64;
        packet_hops() -> u64;
        control_acted() -> bool;
        delivered_packets() -> u64;
        memory_bytes() -> usize;
        port_counters(port: PortId) -> PortCounters;
        queued(output: PortId, vl: Vl) -> Bytes;
        host_counters(host: HostId) -> HostCounters;
        flow_limits(host: HostId) -> Vec<FlowLimit>;
        latency_of_host(host: HostId) -> Option<Latencies>;
        flow(class: u16, source: HostId) -> FlowProgress;
        lost() -> Vec<LostPackets>;
        forest(threshold: Bytes) -> Forest;
        audit() -> Result<(), InvariantError>;
    }
}

impl LiveSimulation for Compiled<MeteredSwitch, MeteredAdapter, Load> {
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

    fn load_mut(&mut self) -> &mut Load {
        self.0.workload_mut()
    }

    forward_mut! {
        break_deadlock() -> usize;
        settle_losses();
        set_routes(switch: NodeId, routes: &[(HostId, Option<PortNumber>)]);
        set_vl_arbitration(port: PortId, tables: &VlArbitration) -> Result<(), BuildError>;
        set_sl_to_vl(switch: NodeId, input: PortNumber, output: PortNumber, vls: &[u8; 16]);
        set_host_sl_to_vl(host: HostId, vls: &[u8; 16]);
        set_path_sl(source: HostId, destination: HostId, level: Sl);
        close_port(port: PortId, on_wire: OnWire);
        set_link_rate(port: PortId, rate: Rate);
        set_sink_rate(host: HostId, rate: Option<Rate>);
        set_bit_errors(port: PortId, errors: Option<&BitErrors>);
        open_port(port: PortId);
        wake(host: HostId);
    }

    forward! {
        sl_to_vl(switch: NodeId, input: PortNumber, output: PortNumber) -> Option<[u8; 16]>;
        host_sl_to_vl(host: HostId) -> [u8; 16];
        path_sl(source: HostId, destination: HostId) -> Sl;
        discarded_bytes() -> u64;
        ports() -> usize;
    }
}

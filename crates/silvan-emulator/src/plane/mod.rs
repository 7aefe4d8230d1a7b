//! The data plane behind the management plane: the engine with its counters, steps of simulated
//! time, and what management changes in it.

use silvan_cc::hooks::PortVl;
use silvan_cc::schemes::SchemeName;
use silvan_cc::workload::Workload;
use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, PortCounters, PortId, Rate, Sl, Time, Vl};
use silvan_fabric::Fabric;
use silvan_model::OnWire;
use silvan_model::meter::{BySl, MeteredAdapter, MeteredSwitch};
use silvan_model::{Engines, LiveSimulation, Network};
use silvan_scenario::{Override, Scenario, switch_ports};
use silvan_workload::traffic::{Environment, Flow, Load, Traffic};

use crate::error::EmulatorError;

/// Largest MTU of InfiniBand, in bytes.
const MOST_MTU: u64 = 4096;

/// A flow to start.
#[derive(Clone, Debug)]
pub(crate) struct NewFlow {
    pub name: Option<String>,
    pub from: HostId,
    pub to: HostId,
    /// Payload rate; `None` for as much as the host can.
    pub rate: Option<Rate>,
    pub bytes: Option<Bytes>,
    pub sl: Sl,
}

/// The running data plane.
#[derive(Debug)]
pub(crate) struct DataPlane {
    pub engine: Box<dyn LiveSimulation>,
    environment: Environment,
    message: Option<Bytes>,
    /// Deadlocks that discards have ended, and packets discarded for it.
    pub deadlocks: u64,
    pub deadlock_discards: u64,
}

/// The scenario with congestion control present, switched off if the scenario has none: a switch
/// that is not configured marks nothing.
pub(crate) fn with_control(scenario: &Scenario) -> Result<Scenario, EmulatorError> {
    if scenario.scheme().includes(SchemeName::IbCc) {
        return Ok(scenario.clone());
    }
    let off = [
        Override::new("control.scheme", "\"ib-cc\""),
        Override::new("control.ib-cc.switch.threshold", "0"),
    ];
    Ok(scenario.with_overrides(&off)?)
}

impl DataPlane {
    /// The data plane of a scenario that has congestion control. `routed` says whether its
    /// forwarding tables are in force from the start.
    pub fn new(
        engines: &dyn Engines,
        scenario: &Scenario,
        routed: bool,
    ) -> Result<Self, EmulatorError> {
        let seed = scenario.seed();
        let fabric = scenario.fabric();
        let config = scenario.engine_config();
        if !scenario.scheme().includes(SchemeName::IbCc) {
            return Err(EmulatorError::NoControl);
        }
        if config.pfc.is_some() {
            return Err(EmulatorError::Ethernet);
        }
        let mtu = config.packet.mtu.as_u64();
        if mtu > MOST_MTU {
            return Err(EmulatorError::Mtu(mtu));
        }
        let control = &scenario.scheme_parameters().ib_cc;
        let (switch, adapter) = silvan_sim::build_scheme(scenario, control, seed)?;
        let ports = switch_ports(fabric);
        let switch_of = ports.iter().map(|port| port.map(|port| port.switch));
        let vls = usize::from(config.data_vls);
        let switch = MeteredSwitch::new(switch, switch_of.collect(), vls);
        let adapter = MeteredAdapter::new(adapter, fabric.host_count());
        let environment = scenario.environment(seed);
        let traffic = Traffic::new(scenario.traffic(), &environment)?;
        let network = Network {
            fabric,
            routes: scenario.forwarding(),
            config,
            discards_unroutable: true,
            may_delay_credits: true,
            threads: 1,
            trace: None,
        };
        let mut engine = engines.start_live(network, switch, adapter, traffic)?;
        if !routed {
            let nowhere: Vec<_> = fabric.host_ids().map(|host| (host, None)).collect();
            for switch in fabric.switch_ids() {
                engine.set_routes(fabric.node_of_switch(switch), &nowhere);
            }
        }
        Ok(Self {
            engine,
            environment,
            message: scenario.traffic().message,
            deadlocks: 0,
            deadlock_discards: 0,
        })
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// Simulates to `end`. Packets that block each other in a cycle are discarded, as switches
    /// do whose packets wait too long.
    pub fn step(&mut self, end: Time) -> Result<(), EmulatorError> {
        while let Err(error) = self.engine.step_until(end) {
            let discarded = self.engine.break_deadlock();
            if discarded == 0 {
                return Err(error.into());
            }
            self.deadlocks += 1;
            self.deadlock_discards += discarded as u64;
        }
        Ok(())
    }

    /// Opens or closes the sending side of a port.
    pub fn set_open(&mut self, port: PortId, open: bool, on_wire: OnWire) {
        if open {
            self.engine.open_port(port);
        } else {
            self.engine.close_port(port, on_wire);
        }
    }

    /// A host has lost its connections: it asks for each path before it sends on it.
    pub fn invalidate_paths(&mut self, host: HostId) {
        self.engine.adapter_mut().meter.paths.invalidate(host);
        self.poll_again(host);
    }

    /// A host asks for each path again, and sends on it meanwhile.
    pub fn mark_paths_stale(&mut self, host: HostId) {
        self.engine.adapter_mut().meter.paths.mark_stale(host);
    }

    /// The paths that hosts have come to want.
    pub fn take_wanted_paths(&mut self) -> Vec<(HostId, HostId)> {
        self.engine.adapter_mut().meter.paths.take_wanted()
    }

    /// A host may send to another.
    pub fn open_path(&mut self, source: HostId, destination: HostId) {
        if self
            .engine
            .adapter_mut()
            .meter
            .paths
            .open(source, destination)
        {
            self.poll_again(source);
        }
    }

    /// What held a host's traffic back may be different now.
    fn poll_again(&mut self, host: HostId) {
        self.engine.traffic_mut().on_release_moved(host);
        self.engine.wake(host);
    }

    pub fn counters(&self, port: PortId) -> PortCounters {
        self.engine.port_counters(port)
    }

    /// What a port has sent, by service level.
    pub fn by_sl(&self, port: PortId) -> &BySl {
        &self.engine.switch().meter.by_sl[port.index()]
    }

    fn lane(&self, port: PortId, vl: Vl) -> usize {
        let vls = self.engine.switch().meter.waited.len() / self.engine.ports();
        port.index() * vls + vl.index()
    }

    /// Data lanes that there are.
    pub fn data_vls(&self) -> usize {
        self.engine.switch().meter.waited.len() / self.engine.ports()
    }

    /// Time that a port has waited with a packet of this lane, in ps; 0 for lanes there are not.
    pub fn waited_ps(&self, port: PortId, vl: Vl) -> u64 {
        if vl.index() >= self.data_vls() {
            return 0;
        }
        let lane = self.lane(port, vl);
        self.engine.switch().meter.waited[lane].as_ps()
    }

    /// Time that a switch's Port VL has been in the congestion state, in ps.
    pub fn congested_ps(&self, port: PortId, vl: Vl) -> u64 {
        use silvan_cc::hooks::SwitchControl;
        if vl.index() >= self.data_vls() {
            return 0;
        }
        let lane = PortVl(self.lane(port, vl) as u32);
        self.engine
            .switch()
            .congested_time(self.now(), lane)
            .as_ps()
    }

    /// How often a switch's Port VL has entered the congestion state.
    pub fn congestion_events(&self, port: PortId, vl: Vl) -> u64 {
        if vl.index() >= self.data_vls() {
            return 0;
        }
        let lane = PortVl(self.lane(port, vl) as u32);
        u64::from(self.engine.switch().inner.congestion_events(lane))
    }

    /// Starts a flow and gives its name.
    pub fn start_flow(&mut self, flow: &NewFlow) -> Result<String, EmulatorError> {
        let now = self.now();
        let spec = Flow {
            name: flow.name.clone(),
            bytes: flow.bytes.map_or(Limit::Unlimited, Limit::At),
            load: flow.rate.map_or(Load::Saturating, Load::Rate),
            start: now.since(Time::ZERO),
            sl: flow.sl,
            ..Flow::new(flow.from.into(), flow.to.into())
        };
        let traffic = self.engine.traffic_mut();
        let class = traffic.add_flow(&spec, self.message, &self.environment)?;
        let name = traffic.classes()[usize::from(class)].clone();
        self.engine.wake(flow.from);
        Ok(name)
    }

    fn class_named(&self, name: &str) -> Option<u16> {
        let classes = self.engine.classes();
        let location = classes.iter().position(|class| class == name)?;
        u16::try_from(location).ok()
    }

    /// Stops or resumes what is named so; gives `false` if there is nothing of the name.
    pub fn set_running(&mut self, name: &str, running: bool) -> bool {
        let Some(class) = self.class_named(name) else {
            return false;
        };
        let now = self.now();
        let traffic = self.engine.traffic_mut();
        if running {
            for host in traffic.resume(class, now) {
                self.engine.wake(host);
            }
        } else {
            traffic.stop(class);
        }
        true
    }

    /// Name, whether it runs, and payload delivered, of all that sends.
    pub fn flows(&self) -> Vec<(String, bool, u64)> {
        let traffic = self.engine.traffic();
        (0..)
            .zip(traffic.classes())
            .map(|(class, name)| {
                let bytes = self.engine.class(class).delivered_bytes;
                (name.clone(), traffic.is_running(class), bytes)
            })
            .collect()
    }

    /// Payload delivered to all hosts.
    pub fn delivered_bytes(&self, fabric: &Fabric) -> u64 {
        let hosts = fabric.host_ids();
        hosts
            .map(|host| self.engine.host_counters(host).delivered_bytes)
            .sum()
    }
}

use silvan_cc::dcms::DcmsController;
use silvan_cc::hooks::{PortVl, SettingChange};
use silvan_cc::schemes::SchemeName;
use silvan_cc::workload::Workload;
use silvan_core::document::Limit;
use silvan_core::{Bytes, HostId, PortCounters, PortId, Rate, Sl, Time, Vl};
use silvan_fabric::Fabric;
use silvan_model::OnWire;
use silvan_model::meter::{BySl, MeteredAdapter, MeteredSwitch};
use silvan_model::{EngineConfig, Engines, LiveSimulation, Network};
use silvan_scenario::{Override, Scenario, switch_ports};
use silvan_sim::{EndCheck, RunError, Schedule};
use silvan_workload::programs::{Driver, JobRecord, Programs, Request};
use silvan_workload::traffic::{Environment, Flow, Load};

use crate::error::EmulatorError;

/// In bytes.
const MOST_MTU: u64 = 4096;

#[derive(Clone, Debug)]
pub(crate) struct NewFlow {
    pub name: Option<String>,
    pub from: HostId,
    pub to: HostId,
    pub rate: Option<Rate>,
    pub bytes: Option<Bytes>,
    pub sl: Sl,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sender {
    pub name: String,
    pub is_running: bool,
    pub delivered_bytes: u64,
    pub program: Option<ProgramState>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProgramState {
    Waiting(Time),
    Running,
    Done(Time),
    Failed(String),
}

#[derive(Debug)]
pub(crate) struct DataPlane {
    pub engine: Box<dyn LiveSimulation>,
    schedule: Schedule<DcmsController>,
    environment: Environment,
    message: Option<Bytes>,
    pub deadlocks: u64,
    pub deadlock_discards: u64,
}

/// Adds InfiniBand's congestion control, switched off, if the scenario has no scheme.
pub(crate) fn with_control(scenario: &Scenario) -> Result<Scenario, EmulatorError> {
    if scenario.scheme() != SchemeName::None {
        return Ok(scenario.clone());
    }
    let off = [
        Override::new("control.scheme", "\"ib-cc\""),
        Override::new("control.ib-cc.switch.threshold", "0"),
    ];
    Ok(scenario.with_overrides(&off)?)
}

impl DataPlane {
    pub fn new(
        engines: &dyn Engines,
        scenario: &Scenario,
        routed: bool,
        driver: Option<Box<dyn Driver>>,
    ) -> Result<Self, EmulatorError> {
        let seed = scenario.seed();
        let fabric = scenario.fabric();
        // The timetable of faults begins and ends bit errors.
        let config = &EngineConfig {
            bit_errors: Vec::new(),
            ..scenario.engine_config().clone()
        };
        if config.pfc.is_some() {
            return Err(EmulatorError::Ethernet);
        }
        let mtu = config.packet.mtu.as_u64();
        if mtu > MOST_MTU {
            return Err(EmulatorError::Mtu(mtu));
        }
        let (switch, adapter) = silvan_sim::build_live_control(scenario, seed)?;
        let ports = switch_ports(fabric);
        let switch_of = ports.iter().map(|port| port.map(|port| port.switch));
        let vls = usize::from(config.data_vls);
        let switch = MeteredSwitch::new(switch, switch_of.collect(), vls);
        let adapter = MeteredAdapter::new(adapter, fabric.host_count());
        let load = silvan_sim::build_load(scenario, seed, driver)?;
        let network = Network {
            fabric,
            routes: scenario.forwarding(),
            config,
            discards_unroutable: true,
            may_delay_credits: true,
            changes_fabric: true,
            loses_packets: false,
            threads: 1,
            trace: None,
        };
        let mut engine = engines.start_live(network, switch, adapter, load)?;
        if !routed {
            let nowhere: Vec<_> = fabric.host_ids().map(|host| (host, None)).collect();
            for switch in fabric.switch_ids() {
                engine.set_routes(fabric.node_of_switch(switch), &nowhere);
            }
        }
        let mut plane = Self {
            engine,
            schedule: Schedule::of(scenario).without_faults(),
            environment: scenario.environment(seed),
            message: scenario.traffic().message,
            deadlocks: 0,
            deadlock_discards: 0,
        };
        plane.step(Time::ZERO)?;
        Ok(plane)
    }

    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// The driver may stop earlier. Returns settings changed by the scenario and its DCMS.
    pub fn step(&mut self, end: Time) -> Result<Vec<SettingChange>, EmulatorError> {
        if self.is_stopped() {
            self.engine
                .change_programs(&mut |programs, _| programs.start_call(false));
        }
        let mut changes = Vec::new();
        loop {
            let due = self.schedule.apply(&mut *self.engine);
            changes.extend_from_slice(due.map_err(RunError::Setting)?);
            if self.now() >= end || self.is_stopped() {
                return Ok(changes);
            }
            self.advance(end)?;
            self.engine.settle_losses();
        }
    }

    /// Simulates to `end` or the next due instant; packets in a cycle are discarded, as by switches.
    fn advance(&mut self, end: Time) -> Result<(), EmulatorError> {
        let (schedule, engine) = (&self.schedule, &mut *self.engine);
        while let Err(error) = schedule.advance(engine, end, EndCheck::Periodic) {
            let discarded = engine.break_deadlock();
            if discarded == 0 {
                return Err(error.into());
            }
            self.deadlocks += 1;
            self.deadlock_discards += discarded as u64;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.engine.programs().is_some_and(Programs::is_stopped)
    }

    pub fn request(&mut self, requests: &mut Vec<Request>) -> Result<(), EmulatorError> {
        Ok(silvan_sim::request(&mut *self.engine, requests)?)
    }

    pub fn set_open(&mut self, port: PortId, open: bool, on_wire: OnWire) {
        if open {
            self.engine.open_port(port);
        } else {
            self.engine.close_port(port, on_wire);
        }
    }

    pub fn invalidate_paths(&mut self, host: HostId) {
        self.engine.adapter_mut().meter.paths.invalidate(host);
        self.poll_again(host);
    }

    pub fn mark_paths_stale(&mut self, host: HostId) {
        self.engine.adapter_mut().meter.paths.mark_stale(host);
    }

    pub fn take_wanted_paths(&mut self) -> Vec<(HostId, HostId)> {
        self.engine.adapter_mut().meter.paths.take_wanted()
    }

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

    fn poll_again(&mut self, host: HostId) {
        self.engine.load_mut().on_release_moved(host);
        self.engine.wake(host);
    }

    pub fn counters(&self, port: PortId) -> PortCounters {
        self.engine.port_counters(port)
    }

    pub fn by_sl(&self, port: PortId) -> &BySl {
        &self.engine.switch().meter.by_sl[port.index()]
    }

    fn lane(&self, port: PortId, vl: Vl) -> usize {
        let vls = self.engine.switch().meter.waited.len() / self.engine.ports();
        port.index() * vls + vl.index()
    }

    pub fn data_vls(&self) -> usize {
        self.engine.switch().meter.waited.len() / self.engine.ports()
    }

    /// In ps; 0 for missing lanes.
    pub fn waited_ps(&self, port: PortId, vl: Vl) -> u64 {
        if vl.index() >= self.data_vls() {
            return 0;
        }
        let lane = self.lane(port, vl);
        self.engine.switch().meter.waited[lane].as_ps()
    }

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

    pub fn congestion_events(&self, port: PortId, vl: Vl) -> u64 {
        if vl.index() >= self.data_vls() {
            return 0;
        }
        let lane = PortVl(self.lane(port, vl) as u32);
        u64::from(self.engine.switch().inner.0.congestion_events(lane))
    }

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
        let traffic = self.engine.load_mut().traffic_mut();
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

    pub fn set_running(&mut self, name: &str, running: bool) -> bool {
        let class = self.class_named(name);
        let Some(class) = class.filter(|class| self.program(*class).is_none()) else {
            return false;
        };
        let now = self.now();
        let traffic = self.engine.load_mut().traffic_mut();
        if running {
            for host in traffic.resume(class, now) {
                self.engine.wake(host);
            }
        } else {
            traffic.stop(class);
        }
        true
    }

    pub fn senders(&self) -> Vec<Sender> {
        let classes = (0..).zip(self.engine.classes());
        let programs = self.engine.programs();
        let driver = programs.filter(|programs| programs.is_driven());
        let driver = driver.and_then(|programs| programs.jobs().last());
        let driver = driver.map(|job| job.class);
        let is_shown =
            |class| driver != Some(class) || self.engine.class(class).delivered_bytes > 0;
        classes
            .filter(|(class, _)| is_shown(*class))
            .map(|(class, name)| {
                let program = self.program(class);
                Sender {
                    name: name.clone(),
                    is_running: match &program {
                        Some(state) => *state == ProgramState::Running,
                        None => self.engine.traffic().is_running(class),
                    },
                    delivered_bytes: self.engine.class(class).delivered_bytes,
                    program,
                }
            })
            .collect()
    }

    fn program(&self, class: u16) -> Option<ProgramState> {
        let programs = self.engine.programs()?;
        let job: JobRecord<'_> = programs.jobs().find(|job| job.class == class)?;
        let fault = programs.fault().filter(|fault| fault.job() == job.name);
        Some(match (fault, job.done_at) {
            (Some(fault), _) => ProgramState::Failed(fault.to_string()),
            (None, Some(at)) => ProgramState::Done(at),
            (None, None) if self.now() < job.start => ProgramState::Waiting(job.start),
            (None, None) => ProgramState::Running,
        })
    }

    pub fn delivered_bytes(&self, fabric: &Fabric) -> u64 {
        let hosts = fabric.host_ids();
        hosts
            .map(|host| self.engine.host_counters(host).delivered_bytes)
            .sum()
    }
}

use silvan_cc::hooks::{Chain, Settings};
use silvan_cc::schemes::{Control, Scheme, SchemeError, SchemeName, Separate};
use silvan_core::{Sl, Time};
use silvan_model::meter::{LiveSource, LiveSwitch};
use silvan_model::{EngineConfig, Engines, Network, Simulation};
use silvan_scenario::parsed::Threads;
use silvan_scenario::{Scenario, switch_ports};
use silvan_workload::programs::{Driver, JobPlan, Load, Messaging, Payload, Plan, Programs};
use silvan_workload::traffic::{Traffic, TrafficSection};

use crate::RunError;

pub(crate) fn build_control(scenario: &Scenario, seed: u64) -> Result<Control, RunError> {
    let ports = switch_ports(scenario.fabric());
    let setup = scenario.setup(&ports, seed);
    let parameters = scenario.scheme_parameters();
    let mut control = scenario.scheme().build(parameters, &setup)?;
    apply_initial(scenario, &mut control.switch)?;
    Ok(control)
}

/// Builds the control that a run with this seed starts with; without an InfiniBand part, nothing marks or reacts.
///
/// Errors: [`RunError::Control`] or [`RunError::Setting`] for impossible parameters and for functions of a Python file.
pub fn build_live_control(
    scenario: &Scenario,
    seed: u64,
) -> Result<(LiveSwitch, LiveSource), RunError> {
    let ports = switch_ports(scenario.fabric());
    let setup = scenario.setup(&ports, seed);
    let parameters = scenario.scheme_parameters();
    let mut ib_cc = parameters.ib_cc.clone();
    if !scenario.scheme().includes(SchemeName::IbCc) {
        ib_cc.switch.threshold = 0;
        ib_cc.adapter.ccti_increase = 0;
    }
    let (switch, adapter) = ib_cc.build(&setup)?;
    let rest = scenario.scheme().besides(SchemeName::IbCc);
    let rest = Separate::of(rest.build(parameters, &setup)?).ok_or_else(|| {
        let why = "a live fabric cannot call functions of a Python file";
        let hint = "choose another scheme, e.g. with --set control.scheme=ib-cc";
        SchemeError::new("scheme", why, hint)
    })?;
    let mut switch = Chain(switch, rest.switch);
    apply_initial(scenario, &mut switch)?;
    Ok((switch, Chain(adapter, rest.source)))
}

fn apply_initial(scenario: &Scenario, switch: &mut impl Settings) -> Result<(), RunError> {
    for change in &scenario.scheme_settings().initial {
        switch.apply(Time::ZERO, change)?;
    }
    Ok(())
}

pub(crate) fn assemble_alone(
    engines: &dyn Engines,
    scenario: &Scenario,
    messaging: Messaging,
    job: &JobPlan,
) -> Result<Box<dyn Simulation>, RunError> {
    let hosts = scenario.fabric().host_count();
    let traffic = Traffic::new(&TrafficSection::default(), &scenario.environment(0))?;
    let programs = Programs::new(vec![job.job(0)], messaging, payload(scenario), hosts);
    let load = Load::new(traffic, programs, vec![job.name.clone()], hosts);
    Ok(engines.start(
        network(scenario, scenario.engine_config()),
        Control::NONE,
        load,
    )?)
}

/// Data rate [bit/s] of all hosts that is worth another thread: a lookahead window then has some hundred events.
const RATE_PER_THREAD: f64 = 5e12;

fn threads(scenario: &Scenario) -> usize {
    match scenario.threads() {
        Threads::Count(count) => usize::from(count.get()),
        Threads::Auto(_) => {
            let rate = scenario.file().link.kind().data_rate().bits_per_sec() as f64;
            let hosts = scenario.fabric().host_count() as f64;
            let useful = (hosts * rate / RATE_PER_THREAD) as usize;
            useful.clamp(1, idle_processors())
        }
    }
}

fn idle_processors() -> usize {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let busy = load.map_or(0, |load| load.round() as usize);
    all.saturating_sub(busy).max(1)
}

fn network<'a>(scenario: &'a Scenario, config: &'a EngineConfig) -> Network<'a> {
    Network {
        fabric: scenario.fabric(),
        routes: scenario.forwarding(),
        config,
        discards_unroutable: scenario.discards_unroutable(),
        may_delay_credits: scenario
            .scheme_settings()
            .timed
            .iter()
            .any(|(_, change)| change.concerns_credits()),
        changes_fabric: scenario
            .faults()
            .iter()
            .any(|planned| planned.fault.changes_fabric()),
        loses_packets: scenario.may_lose_packets(),
        threads: threads(scenario),
        trace: scenario.packet_filter(),
    }
}

const DRIVER_CLASS: &str = "external";

/// Traffic, programs and a driver; [`RunError::Traffic`] if the traffic does not work with this seed.
pub fn build_load(
    scenario: &Scenario,
    seed: u64,
    driver: Option<Box<dyn Driver>>,
) -> Result<Load, RunError> {
    let traffic = Traffic::new(scenario.traffic(), &scenario.environment(seed))?;
    let without_jobs;
    let plan = match scenario.programs() {
        Some(plan) => plan,
        None if driver.is_none() => return Ok(Load::of_traffic(traffic)),
        None => {
            without_jobs = Plan {
                messaging: scenario.traffic().messaging.unwrap_or_default(),
                jobs: Vec::new(),
                gpcnet: None,
                hpcc: None,
            };
            &without_jobs
        }
    };
    let start = match scenario.file().probe.messages {
        true => Programs::recorded,
        false => Programs::new,
    };
    let hosts = scenario.fabric().host_count();
    let first = traffic.classes().len() as u16;
    let jobs = plan.jobs(seed, first);
    let mut programs = start(jobs, plan.messaging, payload(scenario), hosts);
    let mut names = plan.classes();
    if let Some(driver) = driver {
        let class = first + names.len() as u16;
        names.push(DRIVER_CLASS.to_owned());
        programs = programs.driven(driver, DRIVER_CLASS.to_owned(), class, Sl::ZERO);
    }
    Ok(Load::new(traffic, programs, names, hosts))
}

fn payload(scenario: &Scenario) -> Payload {
    let packet = &scenario.engine_config().packet;
    Payload::new(packet.mtu, packet.header)
}

pub(crate) fn assemble(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    control: Control,
) -> Result<Box<dyn Simulation>, RunError> {
    let load = build_load(scenario, seed, None)?;
    start(engines, scenario, seed, control, load)
}

pub(crate) fn assemble_driven(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    driver: Box<dyn Driver>,
) -> Result<Box<dyn Simulation>, RunError> {
    let control = build_control(scenario, seed)?;
    let load = build_load(scenario, seed, Some(driver))?;
    start(engines, scenario, seed, control, load)
}

fn start(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    control: Control,
    load: Load,
) -> Result<Box<dyn Simulation>, RunError> {
    let config = EngineConfig {
        seed,
        fast_forward: scenario.fast_forward(),
        ..scenario.engine_config().clone()
    };
    let mut engine = engines.start(network(scenario, &config), control, load)?;
    let flows = engine.traffic().finite_flows().iter();
    let keys: Vec<_> = flows.map(|flow| (flow.class(), flow.source())).collect();
    engine.track_flows(&keys);
    Ok(engine)
}

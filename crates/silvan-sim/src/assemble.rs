//! From a scenario to a simulation: control and workload built, and an engine started with them.

use silvan_cc::hooks::Settings;
use silvan_cc::schemes::{Control, Scheme};
use silvan_core::{Sl, Time};
use silvan_model::{EngineConfig, Engines, Network, Simulation};
use silvan_scenario::parsed::Threads;
use silvan_scenario::{Scenario, switch_ports};
use silvan_workload::programs::{Driver, JobPlan, Load, Messaging, Payload, Plan, Programs};
use silvan_workload::traffic::{Traffic, TrafficSection};

use crate::RunError;

/// The scheme of a scenario, as a run with this seed starts with it.
pub(crate) fn build_control(scenario: &Scenario, seed: u64) -> Result<Control, RunError> {
    let ports = switch_ports(scenario.fabric());
    let setup = scenario.setup(&ports, seed);
    let parameters = scenario.scheme_parameters();
    let mut control = scenario.scheme().build(parameters, &setup)?;
    apply_initial(scenario, &mut control.switch)?;
    Ok(control)
}

/// One scheme of those that are in force, as a run of the scenario with this seed starts with it.
///
/// # Errors
///
/// [`RunError::Control`] or [`RunError::Setting`] for parameters that are not possible.
pub fn build_scheme<S: Scheme>(
    scenario: &Scenario,
    scheme: &S,
    seed: u64,
) -> Result<(S::Switch, S::Source), RunError> {
    let ports = switch_ports(scenario.fabric());
    let setup = scenario.setup(&ports, seed);
    let (mut switch, source) = scheme.build(&setup)?;
    apply_initial(scenario, &mut switch)?;
    Ok((switch, source))
}

/// Applies the settings that are in force from the start.
fn apply_initial(scenario: &Scenario, switch: &mut impl Settings) -> Result<(), RunError> {
    for change in &scenario.scheme_settings().initial {
        switch.apply(Time::ZERO, change)?;
    }
    Ok(())
}

/// The simulation of one job alone in the fabric of a scenario, without congestion control.
pub(crate) fn assemble_alone(
    engines: &dyn Engines,
    scenario: &Scenario,
    messaging: Messaging,
    job: &JobPlan,
) -> Result<Box<dyn Simulation>, RunError> {
    let hosts = scenario.fabric().host_count();
    // The seed draws nothing where there is no traffic.
    let traffic = Traffic::new(&TrafficSection::default(), &scenario.environment(0))?;
    let programs = Programs::new(vec![job.job(0)], messaging, payload(scenario), hosts);
    let load = Load::new(traffic, programs, vec![job.name.clone()], hosts);
    Ok(engines.start(
        network(scenario, scenario.engine_config()),
        Control::NONE,
        load,
    )?)
}

/// Data rate of all hosts together for which another thread is worth its while, in bit/s: at this rate a lookahead
/// window has some hundred events.
const RATE_PER_THREAD: f64 = 5e12;

/// How many threads simulate a scenario.
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

/// Processors that no other process uses, at least one. Where the system does not state its load, it
/// counts as idle.
fn idle_processors() -> usize {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let busy = load.map_or(0, |load| load.round() as usize);
    all.saturating_sub(busy).max(1)
}

/// The fabric of a scenario as an engine takes it, with its parameters for a run.
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
        threads: threads(scenario),
        trace: scenario.packet_filter(),
    }
}

/// The programs of a scenario, whose packets have the classes from `class` on, and the names of these classes.
fn programs(scenario: &Scenario, plan: &Plan, seed: u64, class: u16) -> (Programs, Vec<String>) {
    let start = match scenario.file().probe.messages {
        true => Programs::recorded,
        false => Programs::new,
    };
    let hosts = scenario.fabric().host_count();
    let jobs = plan.jobs(seed, class);
    let programs = start(jobs, plan.messaging, payload(scenario), hosts);
    (programs, plan.classes())
}

fn payload(scenario: &Scenario) -> Payload {
    let packet = &scenario.file().packet;
    Payload::new(packet.mtu, packet.header)
}

/// The simulation of a scenario with this control.
pub(crate) fn assemble(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    control: Control,
) -> Result<Box<dyn Simulation>, RunError> {
    let hosts = scenario.fabric().host_count();
    let traffic = Traffic::new(scenario.traffic(), &scenario.environment(seed))?;
    let load = match scenario.programs() {
        Some(plan) => {
            // The traffic refuses more classes than 16 bits can number.
            let class = traffic.classes().len() as u16;
            let (programs, names) = programs(scenario, plan, seed, class);
            Load::new(traffic, programs, names, hosts)
        }
        None => Load::of_traffic(traffic),
    };
    start(engines, scenario, seed, control, load)
}

/// The same with a driver, whose packets have a class of this name.
pub(crate) fn assemble_driven(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    driver: Box<dyn Driver>,
    name: &str,
) -> Result<Box<dyn Simulation>, RunError> {
    let control = build_control(scenario, seed)?;
    let hosts = scenario.fabric().host_count();
    let traffic = Traffic::new(scenario.traffic(), &scenario.environment(seed))?;
    let plan = scenario.programs().cloned().unwrap_or_else(|| Plan {
        messaging: scenario.traffic().messaging.unwrap_or_default(),
        jobs: Vec::new(),
        gpcnet: None,
        hpcc: None,
    });
    let first = traffic.classes().len() as u16;
    let (programs, mut names) = programs(scenario, &plan, seed, first);
    let class = first + names.len() as u16;
    names.push(name.to_owned());
    let programs = programs.driven(driver, name.to_owned(), class, Sl::ZERO);
    let load = Load::new(traffic, programs, names, hosts);
    start(engines, scenario, seed, control, load)
}

/// Starts an engine with this control and load.
fn start(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    control: Control,
    load: Load,
) -> Result<Box<dyn Simulation>, RunError> {
    let config = EngineConfig {
        seed,
        ..scenario.engine_config().clone()
    };
    let mut engine = engines.start(network(scenario, &config), control, load)?;
    let flows = engine.traffic().finite_flows().iter();
    let keys: Vec<_> = flows.map(|flow| (flow.class(), flow.source())).collect();
    engine.track_flows(&keys);
    Ok(engine)
}

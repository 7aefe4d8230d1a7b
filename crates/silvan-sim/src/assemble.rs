//! From a scenario to a simulation: control and workload built, and an engine started with them.

use silvan_cc::hooks::Chain;
use silvan_cc::hooks::{NoControl, Settings};
use silvan_cc::schemes::Setup;
use silvan_cc::schemes::ecn::{EcnSource, EcnSwitch};
use silvan_cc::schemes::ib_cc::{IbAdapter, IbSwitch};
use silvan_cc::schemes::pft::PftSource;
use silvan_core::Time;
use silvan_model::{AnySource, AnySwitch, Engines, Network, Simulation};
use silvan_scenario::{IbControl, Scenario, switch_ports};
use silvan_workload::programs::{JobPlan, Load, Messaging, Programs};
use silvan_workload::traffic::{Traffic, TrafficSpec};

use crate::RunError;

/// Random streams of different parts must differ although they have the same seed.
const SWITCH_STREAM: u64 = 0x5357_4954_4348;
const ADAPTER_STREAM: u64 = 0x4144_4150_5445;
const THROTTLE_STREAM: u64 = 0x5448_524f_5454;

/// Both parts of a scheme.
pub(crate) type Control = (AnySwitch, AnySource);

/// The scheme of a scenario, as a run with this seed starts with it.
pub(crate) fn build_control(scenario: &Scenario, seed: u64) -> Result<Control, RunError> {
    let fabric = scenario.fabric();
    let hosts = fabric.host_count();
    let data_vls = scenario.engine_config().data_vls;
    let pft = scenario
        .pft_control()
        .map(|parameters| PftSource::new(*parameters, hosts, seed ^ THROTTLE_STREAM));
    if let Some(control) = scenario.ib_control() {
        let (switch, adapter) = build_ib(scenario, control, seed)?;
        let source = match pft {
            Some(pft) => AnySource::IbAndPft(Chain(adapter, pft?)),
            None => AnySource::Ib(adapter),
        };
        return Ok((AnySwitch::Ib(switch), source));
    }
    if let Some(control) = scenario.ecn_control() {
        let switch = EcnSwitch::new(control.marking, fabric.ports.len(), data_vls);
        let source = EcnSource::new(control.source.clone(), hosts)?;
        return Ok((AnySwitch::Ecn(switch), AnySource::Ecn(source)));
    }
    if let Some(pft) = pft {
        return Ok((AnySwitch::None(NoControl), AnySource::Pft(pft?)));
    }
    if let Some((choice, parameters)) = scenario.own_control() {
        let file = scenario.file();
        let (switch, source) = choice.build(
            parameters,
            &Setup {
                ports: &switch_ports(fabric),
                data_vls: usize::from(data_vls),
                hosts,
                link_rate: file.link.kind().data_rate(),
                // The engine has checked that it is at most 4 KiB.
                mtu: file.packet.mtu.as_u64() as u32,
                switch_seed: seed ^ SWITCH_STREAM,
                host_seed: seed ^ ADAPTER_STREAM,
            },
        );
        return Ok((AnySwitch::Own(switch), AnySource::Own(source)));
    }
    if scenario.python_control().is_some() {
        return Err(RunError::PythonScheme {
            name: scenario.name().to_owned(),
        });
    }
    Ok((AnySwitch::None(NoControl), AnySource::None(NoControl)))
}

/// InfiniBand's congestion control as a run of the scenario with this seed starts with it.
///
/// # Errors
///
/// [`RunError::Control`] or [`RunError::Setting`] for parameters that cannot be.
pub fn build_ib(
    scenario: &Scenario,
    control: &IbControl,
    seed: u64,
) -> Result<(IbSwitch, IbAdapter), RunError> {
    let fabric = scenario.fabric();
    let data_vls = scenario.engine_config().data_vls;
    let parameters = &control.parameters;
    let ports = switch_ports(fabric);
    let mut switch = parameters.build_switch(&ports, data_vls, seed ^ SWITCH_STREAM)?;
    for change in &control.initial {
        switch.apply(Time::ZERO, change)?;
    }
    let adapter = parameters.build_adapter(fabric.host_count(), seed ^ ADAPTER_STREAM)?;
    Ok((switch, adapter))
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
    let traffic = Traffic::new(&TrafficSpec::default(), &scenario.environment(0))?;
    let programs = Programs::new(vec![job.job(0)], messaging, hosts);
    let load = Load::new(traffic, programs, vec![job.name.clone()], hosts);
    let (switch, source) = (AnySwitch::None(NoControl), AnySource::None(NoControl));
    Ok(engines.start(network(scenario), switch, source, load)?)
}

/// The fabric of a scenario as an engine takes it.
fn network(scenario: &Scenario) -> Network<'_> {
    Network {
        fabric: scenario.fabric(),
        routes: scenario.forwarding(),
        config: scenario.engine_config(),
        discards_unroutable: scenario.discards_unroutable(),
    }
}

/// The simulation of a scenario with this control.
pub(crate) fn assemble(
    engines: &dyn Engines,
    scenario: &Scenario,
    seed: u64,
    (switch, source): Control,
) -> Result<Box<dyn Simulation>, RunError> {
    let hosts = scenario.fabric().host_count();
    let traffic = Traffic::new(scenario.traffic(), &scenario.environment(seed))?;
    let load = match scenario.programs() {
        Some(plan) => {
            // The traffic refuses more classes than 16 bits can number.
            let jobs = plan.jobs(seed, traffic.classes().len() as u16);
            let programs = Programs::new(jobs, plan.messaging, hosts);
            Load::new(traffic, programs, plan.classes(), hosts)
        }
        None => Load::of_traffic(traffic, hosts),
    };
    let mut engine = engines.start(network(scenario), switch, source, load)?;
    let flows = engine.traffic().finite_flows().iter();
    let keys: Vec<_> = flows.map(|flow| (flow.class(), flow.source())).collect();
    engine.track_flows(&keys);
    Ok(engine)
}

use serde_json::json;
use silvan_cc::dcms::Dcms;
use silvan_cc::schemes::{Changes, SchemeError, SchemeName, Setup, SwitchPort, Switches};
use silvan_core::document::{KeyPath, Override, SourceText};
use silvan_core::{PortId, SwitchId};
use silvan_fabric::Fabric;
use silvan_fabric::routing::Routes;
use silvan_model::{EngineConfig, Queueing};

use super::dcms::build_dcms;
use super::{at, refused_in, switch_named};
use crate::ScenarioError;
use crate::parsed::{ControlSection, ScenarioFile};

#[derive(Debug, Clone)]
pub(crate) struct ControlPlan {
    pub settings: Changes,
    pub dcms: Option<Dcms>,
}

/// Checks the whole section, also the parameters of schemes that are not in force.
pub(crate) fn build_control(
    section: &ControlSection,
    fabric: &Fabric,
) -> Result<ControlPlan, ScenarioError> {
    let switches = NamedSwitches(fabric);
    section.parameters.check(&switches).map_err(scheme_error)?;
    let scheme = section.scheme.scheme();
    let defaults = scheme.defaults();
    if let Some(reason) = defaults.carrier_required {
        if section.feedback.carrier != Some(defaults.carrier) {
            let error = ScenarioError::new(at("control.feedback.carrier"), reason);
            let carrier = json!(defaults.carrier);
            return Err(error.with_hint(format!("write {carrier}, or leave it out")));
        }
    }
    let settings = scheme.settings(&section.parameters, &switches);
    Ok(ControlPlan {
        settings: settings.map_err(scheme_error)?,
        dcms: build_dcms(section, fabric)?,
    })
}

pub(crate) fn warn_of_idle(
    source: &SourceText,
    file: &ScenarioFile,
    overrides: &[Override],
) -> Option<String> {
    const KEY: &str = "control.scheme";
    if overrides.iter().any(|change| change.key == KEY) || file.sweep.vary.contains_key(KEY) {
        return None;
    }
    let choice = file.control.scheme;
    let scheme = choice.scheme();
    if !scheme.acts() {
        return None;
    }
    let parts: Vec<&str> = scheme.parts().iter().map(|part| part.as_str()).collect();
    let idle: Vec<String> = SchemeName::TABLES
        .iter()
        .filter(|table| !parts.contains(*table) && source.has(&at("control").key(table)))
        .map(|table| format!("control.{table}"))
        .collect();
    let verb = if idle.len() == 1 { "has" } else { "have" };
    let message = || {
        let (idle, name) = (idle.join(", "), choice.name());
        format!("{idle} {verb} no effect: control.scheme is {name:?}")
    };
    (!idle.is_empty()).then(message)
}

pub(crate) fn setup<'a>(
    file: &ScenarioFile,
    config: &EngineConfig,
    routes: Routes<'_>,
    ports: &'a [Option<SwitchPort>],
    hosts: usize,
    seed: u64,
) -> Setup<'a> {
    Setup {
        ports,
        data_vls: config.data_vls,
        hosts,
        link_rate: file.link.kind().data_rate(),
        // The engine has checked that it is at most 10 KiB.
        mtu: file.packet.mtu.as_u64() as u32,
        routes_use_lanes: routes.lanes.is_some() || routes.steps.is_some(),
        has_alternatives: routes.alternatives.is_some(),
        waits_once: config.switch.queueing == Queueing::Voq
            && config.switch.output_buffer.is_none(),
        seed,
    }
}

pub(crate) fn check_setup(
    section: &ControlSection,
    setup: &Setup<'_>,
) -> Result<(), ScenarioError> {
    let checked = section
        .scheme
        .scheme()
        .check_setup(&section.parameters, setup);
    checked.map_err(scheme_error)
}

fn scheme_error(error: SchemeError) -> ScenarioError {
    refused_in(&at("control"), error)
}

struct NamedSwitches<'a>(&'a Fabric);

impl Switches for NamedSwitches<'_> {
    fn named(&self, name: &str) -> Result<SwitchId, SchemeError> {
        switch_named(self.0, name, KeyPath::ROOT).map_err(|error| {
            SchemeError::new(
                KeyPath::ROOT,
                error.message(),
                error.hint().unwrap_or_default(),
            )
        })
    }

    fn name(&self, switch: SwitchId) -> &str {
        &self.0.switch(switch).name
    }

    fn count(&self) -> usize {
        self.0.switch_count()
    }

    fn ports(&self, switch: SwitchId) -> Vec<PortId> {
        self.0.switch(switch).ports().collect()
    }
}

/// The position of each port of the fabric.
pub fn switch_ports(fabric: &Fabric) -> Vec<Option<SwitchPort>> {
    let ports = fabric.ports.iter();
    ports
        .map(|port| {
            let to_host = port.peer.is_some_and(|peer| {
                let peer = fabric.ports[peer].node;
                fabric.nodes[peer].as_host().is_some()
            });
            fabric.nodes[port.node]
                .as_switch()
                .map(|switch| SwitchPort {
                    switch,
                    number: port.number,
                    to_host,
                    peer: port.peer,
                })
        })
        .collect()
}

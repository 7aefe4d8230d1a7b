use silvan_cc::dcms::{Dcms, DcmsError, DcmsTopology, Neighbour, SwitchPortInfo};
use silvan_cc::schemes::SchemeName;
use silvan_fabric::Fabric;

use super::at;
use crate::ScenarioError;
use crate::parsed::ControlSection;

pub(crate) fn build_dcms(
    section: &ControlSection,
    fabric: &Fabric,
) -> Result<Option<Dcms>, ScenarioError> {
    let Some(dcms) = &section.dcms else {
        return Ok(None);
    };
    let marking_rate = section.parameters.ib_cc.switch.marking_rate;
    let parameters = dcms.parameters(marking_rate);
    let dcms = Dcms::new(parameters, dcms_topology(fabric)).map_err(|error| refused(&error))?;
    Ok(section
        .scheme
        .scheme()
        .includes(SchemeName::IbCc)
        .then_some(dcms))
}

fn refused(error: &DcmsError) -> ScenarioError {
    let (key, hint) = match error {
        DcmsError::LowNotBelowDefault { .. } => (
            "low-marking-rate",
            "raise control.ib-cc.switch.marking-rate, e.g. to 128; the DCMS restores it",
        ),
        DcmsError::NeverReached {
            parameter: "T_C", ..
        }
        | DcmsError::AlwaysReached { parameter: "T_C" } => (
            "congestion-threshold",
            "thresholds are ticks per interval; scale them with the interval",
        ),
        DcmsError::NeverReached { .. } | DcmsError::AlwaysReached { .. } => (
            "rate-reduction-threshold",
            "thresholds are ticks per interval; scale them with the interval",
        ),
        _ => ("interval", "give every time and count a value above 0"),
    };
    ScenarioError::new(at("control.dcms").key(key), error.to_string()).with_hint(hint)
}

fn dcms_topology(fabric: &Fabric) -> DcmsTopology {
    let switch_of = |port| {
        let node: silvan_core::NodeId = fabric.ports[port].node;
        fabric.nodes[node].as_switch()
    };
    DcmsTopology::new(fabric.ports.iter_enumerated().filter_map(|(id, port)| {
        let switch = switch_of(id)?;
        let peer = port.peer?;
        let neighbour = match switch_of(peer) {
            Some(switch) => Neighbour::Switch { switch, port: peer },
            None => Neighbour::Host,
        };
        Some(SwitchPortInfo {
            port: id,
            switch,
            neighbour,
            controllable: true,
        })
    }))
}

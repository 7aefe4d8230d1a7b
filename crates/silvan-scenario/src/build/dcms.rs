//! The Dynamic Congestion Management System and what it knows of the cables.

use silvan_control::dcms::{
    CongestionTimeReads, Dcms, DcmsError, DcmsParameters, Neighbour, SwitchPortInfo, Topology,
};
use silvan_fabric::Fabric;

use super::at;
use crate::error::ScenarioError;
use crate::parsed::{ControlSection, DcmsSection, Scheme};

/// The manager that the section `control.dcms` describes, `None` if there is none.
pub(crate) fn build_dcms(
    section: &ControlSection,
    fabric: &Fabric,
) -> Result<Option<Dcms>, ScenarioError> {
    let Some(dcms) = &section.dcms else {
        return Ok(None);
    };
    let parameters = parameters(dcms, section.switch.marking_rate);
    let dcms = Dcms::new(parameters, dcms_topology(fabric)).map_err(|error| refused(&error))?;
    Ok(match section.scheme {
        Scheme::None | Scheme::Ecn | Scheme::Pft | Scheme::Own(_) => None,
        Scheme::IbCc | Scheme::IbCcPft => Some(dcms),
    })
}

fn parameters(section: &DcmsSection, default_marking_rate: u16) -> DcmsParameters {
    DcmsParameters {
        interval: section.interval,
        busy_interval: section.busy_interval,
        tick: section.tick,
        congestion_threshold: section.congestion_threshold,
        rate_reduction_threshold: section.rate_reduction_threshold,
        utilization_change_threshold: section.utilization_change_threshold,
        low_duration: section.low_duration,
        low_marking_rate: section.low_marking_rate,
        default_marking_rate,
        congestion_time: match section.rescan {
            1 => CongestionTimeReads::Everywhere,
            rescan => CongestionTimeReads::WhereSeen { rescan },
        },
        max_low_switches: section.max_low_switches.value(),
    }
}

/// The place and a hint for a parameter that cannot be used.
fn refused(error: &DcmsError) -> ScenarioError {
    let (key, hint) = match error {
        DcmsError::LowNotBelowDefault { .. } => (
            "low-marking-rate",
            "raise control.switch.marking-rate, e.g. to 128; the DCMS restores it",
        ),
        DcmsError::NeverReached {
            parameter: "T_C", ..
        } => (
            "congestion-threshold",
            "thresholds are ticks per interval; scale them with the interval",
        ),
        DcmsError::NeverReached { .. } => (
            "rate-reduction-threshold",
            "thresholds are ticks per interval; scale them with the interval",
        ),
        _ => ("interval", "give every time and count a value above 0"),
    };
    ScenarioError::new(at("control.dcms").key(key), error.to_string()).with_hint(hint)
}

/// All cabled switch ports and what they are cabled to. All may be changed.
fn dcms_topology(fabric: &Fabric) -> Topology {
    let switch_of = |port| {
        let node: silvan_units::NodeId = fabric.ports[port].node;
        fabric.nodes[node].as_switch()
    };
    Topology::new(fabric.ports.iter_enumerated().filter_map(|(id, port)| {
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

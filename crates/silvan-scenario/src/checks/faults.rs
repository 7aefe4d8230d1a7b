use silvan_core::{LinkId, PortId};
use silvan_fabric::{Fabric, LinkKind};

use super::{at, refused};
use crate::faults::{Fault, PlannedFault, plan_faults};
use crate::parsed::{FlowControl, ScenarioFile};
use crate::{KeyPath, ScenarioError};

#[derive(Debug, Default)]
pub(crate) struct FabricFaults {
    pub uncut: Option<Fabric>,
    pub degraded: Vec<(LinkId, LinkKind)>,
    pub later: Vec<PlannedFault>,
}

pub(crate) fn build_in(
    file: &ScenarioFile,
    fabric: &mut Fabric,
) -> Result<FabricFaults, ScenarioError> {
    let mut faults = FabricFaults::default();
    let (mut cut, mut degraded) = (Vec::new(), Vec::new());
    let planned = plan_faults(&file.fault, fabric).map_err(refused)?;
    for planned in planned {
        match planned.fault {
            Fault::Cut(port) if planned.is_built_in() => {
                check_between_switches(fabric, port, &key_of(&planned))?;
                cut.push(port);
            }
            Fault::Degrade(port, limit) if planned.is_built_in() => {
                degraded.push((port, limit));
            }
            _ => faults.later.push(planned),
        }
    }
    if !cut.is_empty() {
        let rest = fabric.without_cables(&cut);
        faults.uncut = Some(std::mem::replace(fabric, rest));
    }
    // Cables are numbered again without those that are cut.
    for (port, limit) in degraded {
        if let Some(link) = fabric.ports[port].link {
            let cable = &mut fabric.links[link].kind;
            faults.degraded.push((link, *cable));
            *cable = limit.of(*cable);
        }
    }
    Ok(faults)
}

fn check_between_switches(
    fabric: &Fabric,
    port: PortId,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    let ends = [Some(port), fabric.ports[port].peer];
    let mut nodes = ends.into_iter().flatten().map(|end| fabric.ports[end].node);
    let Some(host) = nodes.find(|node| fabric.nodes[*node].as_host().is_some()) else {
        return Ok(());
    };
    let message = format!(
        "{} would have no cable for the whole run",
        fabric.nodes[host].name
    );
    let hint = "cut it later, such as at = \"1 us\"; or cut a cable between switches";
    Err(ScenarioError::new(key.key("port"), message).with_hint(hint))
}

fn key_of(planned: &PlannedFault) -> KeyPath {
    at("fault").index(planned.entry)
}

/// Refuses faults during the run that other tables of the scenario do not allow.
pub(crate) fn check_later(
    file: &ScenarioFile,
    later: &[PlannedFault],
) -> Result<(), ScenarioError> {
    let has_pfc = file.link.flow_control == FlowControl::Pfc;
    for planned in later {
        let fault = planned.fault;
        let (message, hint) = if fault.changes_links() && has_pfc {
            (
                "a link with PFC cannot change while packets move",
                "leave out at, for and every: the fault lasts for the whole run; or use credits",
            )
        } else if fault.is_bit_errors() && has_pfc {
            (
                "a link with PFC has no bit errors",
                "leave the fault out, or use credits",
            )
        } else if fault.is_bit_errors() && file.host.in_order {
            (
                "hosts that restore order wait for packets that bit errors lose",
                "leave out host.in-order, or the fault",
            )
        } else if fault.concerns_packets() && file.probe.packets.is_some() {
            (
                "packets are recorded hop by hop in fabrics that do not change",
                "leave out the table probe.packets, or the fault",
            )
        } else {
            continue;
        };
        return Err(ScenarioError::new(key_of(planned).key("do"), message).with_hint(hint));
    }
    Ok(())
}

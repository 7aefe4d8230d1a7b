use silvan_core::{LinkId, PortId};
use silvan_fabric::{Fabric, LinkKind};
use silvan_model::EngineConfig;

use super::{at, refused};
use crate::faults::{Fault, PlannedFault, plan_faults};
use crate::parsed::{FlowControl, ScenarioFile};
use crate::{KeyPath, ScenarioError};

#[derive(Debug, Default)]
pub(crate) struct FabricFaults {
    /// The fabric with all its cables, if some are cut from the start to the end.
    pub uncut: Option<Fabric>,
    /// Cables degraded for the whole run, as they are without the fault.
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
    for (index, planned) in planned.into_iter().enumerate() {
        let key = at("fault").index(index);
        match planned.fault {
            Fault::Cut(port) if planned.is_built_in() => {
                check_between_switches(fabric, port, &key)?;
                cut.push(port);
            }
            Fault::Degrade(port, limit) if planned.is_built_in() => {
                degraded.push((port, limit));
            }
            _ => {
                check_later(file, &planned, &key)?;
                faults.later.push(planned);
            }
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

fn check_later(
    file: &ScenarioFile,
    planned: &PlannedFault,
    key: &KeyPath,
) -> Result<(), ScenarioError> {
    if planned.fault.changes_links() && file.link.flow_control == FlowControl::Pfc {
        let message = "a link with PFC cannot change while packets move";
        let hint = "leave out at, for and every: the fault lasts for the whole run; or use credits";
        return Err(ScenarioError::new(key.key("do"), message).with_hint(hint));
    }
    if planned.fault.is_bit_errors() && file.link.flow_control == FlowControl::Pfc {
        let message = "a link with PFC has no bit errors";
        let hint = "leave the fault out, or use credits";
        return Err(ScenarioError::new(key.key("do"), message).with_hint(hint));
    }
    if planned.fault.concerns_packets() && file.probe.packets.is_some() {
        let message = "packets are recorded hop by hop in fabrics that do not change";
        let hint = "leave out the table probe.packets, or the fault";
        return Err(ScenarioError::new(key.key("do"), message).with_hint(hint));
    }
    Ok(())
}

/// Refuses bit errors with hosts that wait for each lost packet; a fabric that is kept is not checked again.
pub(crate) fn check_order(file: &ScenarioFile, engine: &EngineConfig) -> Result<(), ScenarioError> {
    if !file.host.in_order || engine.bit_errors.is_empty() {
        return Ok(());
    }
    let message = "hosts that restore order wait for packets that bit errors lose";
    let hint = "leave out host.in-order, or the fault";
    Err(ScenarioError::new(at("host.in-order"), message).with_hint(hint))
}

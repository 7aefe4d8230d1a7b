use silvan_core::{PortId, PortNumber};
use silvan_fabric::{Fabric, NodeKind};
use silvan_model::PacketFilter;

use super::{at, host_named};
use crate::parsed::PacketsSection;
use crate::{KeyPath, ScenarioError};

pub(crate) fn build_packets(
    section: &PacketsSection,
    fabric: &Fabric,
) -> Result<PacketFilter, ScenarioError> {
    let key = at("probe.packets");
    let mut filter = PacketFilter::default();
    for (index, name) in section.ports.iter().enumerate() {
        filter
            .ports
            .push(port_named(fabric, name, key.key("ports").index(index))?);
    }
    for (index, flow) in section.flows.iter().enumerate() {
        let key = key.key("flows").index(index);
        let from = host_named(fabric, &flow.from, key.key("from"))?;
        let to = host_named(fabric, &flow.to, key.key("to"))?;
        filter.flows.push((from, to));
    }
    Ok(filter)
}

fn port_named(fabric: &Fabric, name: &str, key: KeyPath) -> Result<PortId, ScenarioError> {
    if let Some(node) = fabric.node_by_name(name) {
        if let NodeKind::Host(host) = fabric.nodes[node].kind {
            return Ok(fabric.host_port(host));
        }
    }
    let found = name.rsplit_once(':').and_then(|(node, number)| {
        let node = fabric.node_by_name(node)?;
        fabric.port(node, PortNumber::new(number.parse().ok()?))
    });
    let cabled = found.filter(|&port| fabric.ports[port].link.is_some());
    cabled.ok_or_else(|| {
        let message = match found {
            Some(_) => format!("port {name} has no cable"),
            None => format!("there is no port {name:?}"),
        };
        ScenarioError::new(key, message).with_hint("write \"SWITCH:NUMBER\" or the name of a host")
    })
}

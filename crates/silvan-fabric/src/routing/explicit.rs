use silvan_core::{Lid, NodeId, PortNumber, SwitchId};

use super::{ForwardingTables, RoutingError};
use crate::Fabric;

/// The table of one switch, by names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExplicitTable {
    /// Name of the switch.
    pub switch: String,
    /// Destination, by node name or LID, and the port it leaves by.
    pub routes: Vec<(String, PortNumber)>,
}

/// Makes tables from lists; other destinations have no route, except each switch's own LID.
/// [`check`](crate::check::check) follows them.
///
/// Errors for an unknown name or LID, a port without a cable, or a repeated entry.
pub fn explicit(
    fabric: &Fabric,
    given: &[ExplicitTable],
) -> Result<ForwardingTables, RoutingError> {
    let mut tables = ForwardingTables::new(fabric);
    let mut seen = vec![false; fabric.switch_count()];
    for table in given {
        let switch = switch_named(fabric, &table.switch)?;
        if std::mem::replace(&mut seen[switch.index()], true) {
            return Err(RoutingError::DuplicateTable {
                switch: table.switch.clone(),
            });
        }
        for (destination, port) in &table.routes {
            add_route(fabric, &mut tables, switch, destination, *port)?;
        }
    }
    Ok(tables)
}

fn switch_named(fabric: &Fabric, name: &str) -> Result<SwitchId, RoutingError> {
    fabric
        .node_by_name(name)
        .and_then(|node| fabric.nodes[node].as_switch())
        .ok_or_else(|| RoutingError::UnknownSwitch {
            name: name.to_owned(),
            nearest: fabric.nearest_name(name).map(str::to_owned),
        })
}

fn add_route(
    fabric: &Fabric,
    tables: &mut ForwardingTables,
    switch: SwitchId,
    destination: &str,
    port: PortNumber,
) -> Result<(), RoutingError> {
    let switch_node = fabric.switch(switch);
    let node = node_named(fabric, destination).ok_or_else(|| RoutingError::UnknownDestination {
        switch: switch_node.name.clone(),
        destination: destination.to_owned(),
        nearest: fabric.nearest_name(destination).map(str::to_owned),
    })?;
    let is_own = fabric.node_of_switch(switch) == node;
    let is_cabled = switch_node
        .port(port)
        .is_some_and(|port| fabric.ports[port].peer.is_some());
    if is_own && port.as_u8() != 0 || !is_own && !is_cabled {
        return Err(RoutingError::DeadPort {
            switch: switch_node.name.clone(),
            destination: destination.to_owned(),
            port,
        });
    }
    let known = match fabric.nodes[node].as_host() {
        Some(host) => tables.to_host(switch, host),
        None => tables.get(switch, fabric.nodes[node].lid),
    };
    if !is_own && known.is_some() {
        return Err(RoutingError::DuplicateEntry {
            switch: switch_node.name.clone(),
            destination: destination.to_owned(),
        });
    }
    match fabric.nodes[node].as_host() {
        Some(host) => tables.set_host(switch, host, Some(port)),
        None if fabric.has_lids() => tables.set(switch, fabric.nodes[node].lid, Some(port)),
        None => {}
    }
    Ok(())
}

fn node_named(fabric: &Fabric, text: &str) -> Option<NodeId> {
    fabric
        .node_by_name(text)
        .or_else(|| fabric.node_by_lid(text.parse::<Lid>().ok()?))
}

use std::collections::BTreeMap;
use std::fmt::Write;

use silvan_core::{Guid, NodeId};

use crate::{Fabric, Link, NodeKind, Speed, Width};

/// The fabric as a net file of ibsim, hosts of one node GUID as one adapter.
///
/// ibsim has speeds up to QDR, faster ones become QDR, and no LIDs; quotes, `#` and `@` in ids become `_`.
pub fn ibsim_net(fabric: &Fabric) -> String {
    let mut net = String::new();
    let adapters = adapters(fabric);
    for switch in fabric.switch_ids() {
        let node = fabric.switch(switch);
        let _ = writeln!(net, "switchguid={:#x}", node.guid.as_u64());
        let _ = writeln!(net, "Switch\t{} \"{}\"", node.port_count, id(&node.name));
        write_ports(&mut net, fabric, fabric.node_of_switch(switch), &adapters);
        net.push('\n');
    }
    for (guid, hosts) in &adapters {
        let ports = hosts.iter().map(|&host| adapter_port(fabric, host)).max();
        let _ = writeln!(net, "caguid={:#x}", guid.as_u64());
        let _ = writeln!(
            net,
            "Hca\t{} \"{}\"",
            ports.unwrap_or(1),
            adapter_id(fabric, hosts)
        );
        for &host in hosts {
            write_ports(&mut net, fabric, host, &adapters);
        }
        net.push('\n');
    }
    net
}

fn adapters(fabric: &Fabric) -> BTreeMap<Guid, Vec<NodeId>> {
    let mut adapters: BTreeMap<Guid, Vec<NodeId>> = BTreeMap::new();
    for host in fabric.host_ids() {
        adapters
            .entry(fabric.host(host).guid)
            .or_default()
            .push(fabric.node_of_host(host));
    }
    for hosts in adapters.values_mut() {
        hosts.sort_by_key(|&host| adapter_port(fabric, host));
    }
    adapters
}

fn adapter_port(fabric: &Fabric, host: NodeId) -> u8 {
    fabric.nodes[host]
        .adapter_port
        .map_or(1, |port| port.as_u8())
}

fn adapter_id(fabric: &Fabric, hosts: &[NodeId]) -> String {
    let [first, ..] = hosts else {
        return String::new();
    };
    let name = &fabric.nodes[*first].name;
    let suffix = format!("/P{}", adapter_port(fabric, *first));
    id(match hosts.len() {
        1 => name,
        _ => name.strip_suffix(&suffix).unwrap_or(name),
    })
}

fn write_ports(
    net: &mut String,
    fabric: &Fabric,
    node: NodeId,
    adapters: &BTreeMap<Guid, Vec<NodeId>>,
) {
    for port in fabric.nodes[node].ports() {
        let (Some(peer), Some(link)) = (fabric.ports[port].peer, fabric.ports[port].link) else {
            continue;
        };
        let number = |port, node: NodeId| match fabric.nodes[node].kind {
            NodeKind::Switch(_) => fabric.ports[port].number.as_u8(),
            NodeKind::Host(_) => adapter_port(fabric, node),
        };
        let peer_node = fabric.ports[peer].node;
        let peer_id = match adapters.get(&fabric.nodes[peer_node].guid) {
            Some(hosts) if fabric.nodes[peer_node].as_host().is_some() => adapter_id(fabric, hosts),
            _ => id(&fabric.nodes[peer_node].name),
        };
        let _ = writeln!(
            net,
            "[{}]\t\"{peer_id}\"[{}] {}",
            number(port, node),
            number(peer, peer_node),
            options(&fabric.links[link])
        );
    }
}

fn options(link: &Link) -> String {
    let speed = match link.kind.speed {
        Speed::Sdr => 1,
        Speed::Ddr => 2,
        _ => 4,
    };
    let width = match link.kind.width {
        Width::X1 => 1,
        Width::X2 => 16,
        Width::X4 => 2,
        Width::X8 => 4,
        Width::X12 => 8,
    };
    format!("s={speed} w={width}")
}

fn id(name: &str) -> String {
    name.chars()
        .map(|character| {
            if "\"#@".contains(character) {
                '_'
            } else {
                character
            }
        })
        .collect()
}

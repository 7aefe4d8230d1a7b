use std::collections::BTreeMap;
use std::fmt::Write;

use silvan_core::{HostId, Lid, PortId, PortNumber};
use silvan_fabric::routing::SlToVlTables;
use silvan_fabric::{Node, NodeKind};

use crate::subnet::{Sources, Subnet};

/// With `sources`, each destination has the nonzero service levels of its paths, and SL to VL tables follow if a subnet
/// manager maps these levels to other lanes.
pub(crate) fn dump(subnet: &Subnet, sources: Option<Sources>) -> String {
    let senders = sources.map_or_else(BTreeMap::new, |sources| subnet.senders(sources));
    let mut text = String::new();
    let mut used = 1_u16;
    for switch in subnet.fabric.switch_ids() {
        let node = subnet.fabric.node_of_switch(switch);
        let state = subnet.state(node);
        let Some(record) = &state.switch else {
            continue;
        };
        let senders = senders.get(&switch).map_or(&[][..], Vec::as_slice);
        let top = record.info.linear_fdb_top;
        let _ = writeln!(
            text,
            "Unicast lids [0x0-0x{top:x}] of switch Lid {} guid 0x{:016x} ({}):\n  Lid  Out   Destination\n       Port     Info",
            subnet.lid(node).as_u16(),
            state.info.node_guid.as_u64(),
            state.description.text(),
        );
        let mut valid = 0;
        for lid in 1..=top {
            let Some(port) = record.route(Lid::new(lid)) else {
                continue;
            };
            let Some(target) = subnet.node_of_lid(Lid::new(lid)) else {
                continue;
            };
            let state = subnet.state(target);
            let mut levels = Vec::new();
            let kind = match subnet.fabric.nodes[target].kind {
                NodeKind::Switch(_) => "Switch",
                NodeKind::Host(host) => {
                    levels = levels_to(subnet, senders, host);
                    "Channel Adapter"
                }
            };
            used |= levels.iter().fold(0, |bits, (_, level)| bits | 1 << level);
            let _ = writeln!(
                text,
                "0x{lid:04x} {:03} : ({kind} portguid 0x{:016x}: '{}'){}",
                port.as_u8(),
                state.info.port_guid.as_u64(),
                state.description.text(),
                levels_text(&levels),
            );
            valid += 1;
        }
        let _ = writeln!(text, "{valid} valid lids dumped");
    }
    if sources.is_some() {
        let lanes = set_lanes(subnet);
        if maps_lanes(subnet, &lanes, used) {
            text += "\n";
            text += &silvan_fabric::import::sl_to_vl_dump(&subnet.fabric, &lanes, |node| {
                subnet.lid(node)
            });
        }
    }
    text
}

fn levels_to(subnet: &Subnet, senders: &[HostId], host: HostId) -> Vec<(PortNumber, u8)> {
    let others = senders.iter().filter(|sender| **sender != host);
    let levels = others.map(|&sender| {
        let port = subnet.fabric.host_attachment(sender).1;
        let level = subnet.plane.engine.path_sl(sender, host);
        (subnet.fabric.ports[port].number, level.as_u8())
    });
    levels.collect()
}

fn levels_text(levels: &[(PortNumber, u8)]) -> String {
    let mut counts = [0_usize; 16];
    for (_, level) in levels {
        counts[usize::from(*level)] += 1;
    }
    let common = (0..16_u8)
        .rev()
        .max_by_key(|level| counts[usize::from(*level)]);
    let common = common.unwrap_or(0);
    if levels.iter().all(|(_, level)| *level == 0) {
        return String::new();
    }
    let mut text = format!(" sl {common}");
    for (port, level) in levels.iter().filter(|(_, level)| *level != common) {
        text += &format!(" {port}:{level}");
    }
    text
}

fn set_lanes(subnet: &Subnet) -> SlToVlTables {
    let mut lanes = SlToVlTables::default();
    let fabric = &subnet.fabric;
    let is_set = |switch| {
        let record = &subnet.state(fabric.node_of_switch(switch)).switch;
        record
            .as_ref()
            .is_some_and(|record| !record.first_sl_to_vl.is_empty())
    };
    if !fabric.switch_ids().any(is_set) {
        return lanes;
    }
    for switch in fabric.switch_ids() {
        let node = fabric.node_of_switch(switch);
        for input in cabled_ports(subnet, fabric.switch(switch)) {
            for output in cabled_ports(subnet, fabric.switch(switch)) {
                let pair = (fabric.ports[input].number, fabric.ports[output].number);
                if let Some(vls) = subnet.plane.engine.sl_to_vl(node, pair.0, pair.1) {
                    lanes.set_switch(switch, pair.0, pair.1, vls);
                }
            }
        }
    }
    for host in fabric.host_ids() {
        let node = fabric.node_of_host(host);
        lanes.set_host(host, subnet.own(node).sl_to_vl);
    }
    lanes
}

fn maps_lanes(subnet: &Subnet, lanes: &SlToVlTables, levels: u16) -> bool {
    let differs = |vls: &[u8; 16]| {
        let mut used = (0_u8..).zip(vls).filter(|(sl, _)| levels & 1 << sl != 0);
        used.any(|(sl, vl)| sl != *vl)
    };
    let by_switch = lanes.switches().any(|switch| {
        let groups = lanes.groups(switch);
        groups.iter().any(|group| differs(&group.vls))
    });
    by_switch
        || subnet
            .fabric
            .host_ids()
            .any(|host| lanes.host(host).is_some_and(|vls| vls[0] != 0))
}

fn cabled_ports<'s>(subnet: &'s Subnet, node: &Node) -> impl Iterator<Item = PortId> + use<'s> {
    let ports = &subnet.fabric.ports;
    let all = node.ports();
    all.filter(move |port| ports[*port].peer.is_some())
}

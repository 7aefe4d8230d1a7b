//! The forwarding tables as text, in the form of `dump_lfts`.

use std::collections::BTreeMap;
use std::fmt::Write;

use silvan_fabric::NodeKind;
use silvan_units::{Lid, Sl};

use crate::subnet::Subnet;

/// The linear forwarding tables of all switches. With `levels`, the service level of the path from the
/// first host of the switch stands behind each destination where it is not 0.
pub(crate) fn dump(subnet: &Subnet, levels: bool) -> String {
    let senders = if levels {
        subnet.first_hosts()
    } else {
        BTreeMap::new()
    };
    let mut text = String::new();
    for switch in subnet.fabric.switch_ids() {
        let node = subnet.fabric.node_of_switch(switch);
        let state = subnet.state(node);
        let Some(record) = &state.switch else {
            continue;
        };
        let top = record.info.linear_fdb_top;
        // Writing to a string cannot fail.
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
            let mut level = Sl::ZERO;
            let kind = match subnet.fabric.nodes[target].kind {
                NodeKind::Switch(_) => "Switch",
                NodeKind::Host(host) => {
                    let path = senders.get(&switch).filter(|sender| **sender != host);
                    if let Some(&sender) = path {
                        level = subnet.plane.engine.path_level(sender, host);
                    }
                    "Channel Adapter"
                }
            };
            let _ = write!(
                text,
                "0x{lid:04x} {:03} : ({kind} portguid 0x{:016x}: '{}')",
                port.as_u8(),
                state.info.port_guid.as_u64(),
                state.description.text(),
            );
            let _ = match level {
                Sl::ZERO => writeln!(text),
                level => writeln!(text, " sl {level}"),
            };
            valid += 1;
        }
        let _ = writeln!(text, "{valid} valid lids dumped");
    }
    text
}

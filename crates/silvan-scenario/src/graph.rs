use serde_json::{Value, json};
use silvan_core::PortId;
use silvan_fabric::{Link, LinkKind, Node};

use crate::Scenario;

impl Scenario {
    /// The fabric's nodes and cables, with the keys of lists of switches, hosts and cables.
    pub fn graph(&self) -> Value {
        let fabric = self.fabric();
        let node = |node: &Node| {
            let mut keys = json!({ "name": node.name, "guid": node.guid });
            if fabric.has_lids() {
                keys["lid"] = json!(node.lid);
            }
            if node.as_switch().is_some() {
                keys["ports"] = json!(node.port_count);
            }
            if let Some(number) = node.adapter_port {
                let port_guid = fabric.ports[node.first_port].guid;
                let usual = node.guid.as_u64().wrapping_add(u64::from(number.as_u8()));
                if number.as_u8() != 1 {
                    keys["adapter-port"] = json!(number);
                }
                if port_guid.as_u64() != usual {
                    keys["port-guid"] = json!(port_guid);
                }
            }
            keys
        };
        let cable = |link: &Link| {
            let LinkKind {
                width,
                speed,
                rate,
                length,
                latency,
            } = link.kind;
            let mut keys = json!({ "width": width, "speed": speed, "length": length });
            for (key, given) in [
                ("rate", rate.map(|rate| json!(rate))),
                ("latency", latency.map(|span| json!(span))),
            ] {
                if let Some(given) = given {
                    keys[key] = given;
                }
            }
            let end = |port: PortId| {
                let port = &fabric.ports[port];
                json!([fabric.nodes[port.node].name, port.number])
            };
            json!([end(link.a), end(link.b), keys])
        };
        json!({
            "node": fabric.nodes.iter().map(node).collect::<Vec<_>>(),
            "cable": fabric.links.iter().map(cable).collect::<Vec<_>>(),
        })
    }

    /// The switches, and their output ports switch by switch in the order of the hosts: 0 without an entry, one of
    /// several where switches choose.
    pub fn egress_ports(&self) -> (Vec<&str>, Vec<u8>) {
        let fabric = self.fabric();
        let names = fabric.switch_ids().map(|switch| {
            let node = fabric.node_of_switch(switch);
            fabric.nodes[node].name.as_str()
        });
        let ports = fabric.switch_ids().flat_map(|switch| {
            let hosts = fabric.host_ids();
            hosts.map(move |host| {
                let port = self.forwarding().tables.to_host(switch, host);
                port.map_or(0, |port| port.as_u8())
            })
        });
        (names.collect(), ports.collect())
    }
}

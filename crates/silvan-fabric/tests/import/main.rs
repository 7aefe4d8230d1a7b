//! Files of real tools, files that are wrong, files drawn at random, and ibsim reading what is written.
//!
//! The samples are one network, served by ibsim 0.12 from `ibsim.net`, brought up by OpenSM 3.3.23, and
//! seen by infiniband-diags 44.0.

#![allow(
    clippy::unwrap_used,
    reason = "a file that cannot be read is a failed test"
)]

mod database;
mod drawn;
mod forms;
mod law;
mod real;
mod served;
mod wrong;

use silvan_core::Length;
use silvan_fabric::import::ImportedFabric;
use silvan_fabric::{Fabric, LinkKind, Speed, Width};

const NETWORK: &str = include_str!("../samples/ibnetdiscover.txt");
const LINK: LinkKind = LinkKind::new(Width::X12, Speed::Edr, Length::ZERO);

fn build(import: &ImportedFabric) -> Fabric {
    import.build(LINK).unwrap()
}

/// Nodes by name and cables by their ends, sorted: what must agree between two views of a network.
fn view(fabric: &Fabric, with_lids: bool) -> (Vec<String>, Vec<String>) {
    let mut nodes: Vec<String> = fabric
        .nodes
        .iter()
        .map(|node| {
            let port = fabric.ports[node.first_port];
            let lid = if with_lids { node.lid.as_u16() } else { 0 };
            format!(
                "{} {} {:?} {} {lid}",
                node.name, port.guid, node.adapter_port, node.port_count
            )
        })
        .collect();
    let mut cables: Vec<String> = fabric
        .links
        .iter()
        .map(|link| {
            let mut ends = [link.a, link.b].map(|end| fabric.port_name(end).to_string());
            ends.sort();
            format!(
                "{} - {} {}{}",
                ends[0], ends[1], link.kind.width, link.kind.speed
            )
        })
        .collect();
    nodes.sort();
    cables.sort();
    (nodes, cables)
}

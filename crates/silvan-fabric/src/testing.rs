//! Random fabrics for tests, and a plain way to follow a route.
#![allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use proptest::prelude::*;
use silvan_core::{HostId, IdVec, Length, NodeId, PortId};

use crate::generators::Topology;
use crate::routing::RoutingInput;
use crate::{Fabric, FabricBuilder, ForwardingTables, LinkKind, Speed, Width};

pub(crate) const LINK: LinkKind = LinkKind::new(Width::X4, Speed::Qdr, Length::from_mm(1_000));

pub(crate) fn routing_input<'a>(fabric: &'a Fabric, topology: &'a Topology) -> RoutingInput<'a> {
    RoutingInput {
        fabric,
        topology: Some(topology),
        data_vls: 1,
    }
}

/// `parents[i]` joins switch i + 1 to an earlier one, `extra` adds cables, `hosts[i]` counts hosts. One host is added.
pub(crate) fn fabric_from(parents: &[usize], extra: &[(usize, usize)], hosts: &[usize]) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut next_port = vec![1; parents.len() + 1];
    let switches: Vec<_> = (0..=parents.len())
        .map(|index| builder.add_switch(format!("s{index}"), 64).unwrap())
        .collect();
    let tree = parents
        .iter()
        .enumerate()
        .map(|(index, parent)| (index + 1, parent % (index + 1)));
    let more = extra
        .iter()
        .map(|(a, b)| (a % switches.len(), b % switches.len()));
    let mut take_port = |index: usize| {
        let port = switches[index].port(next_port[index]);
        next_port[index] += 1;
        port
    };
    for (a, b) in tree.chain(more).filter(|(a, b)| a != b) {
        let (a, b) = (take_port(a), take_port(b));
        builder.connect(a, b, LINK).unwrap();
    }
    let places = hosts
        .iter()
        .enumerate()
        .flat_map(|(index, count)| vec![index; *count]);
    for (number, place) in places.chain([0]).enumerate() {
        let host = builder.add_host(format!("h{number}")).unwrap();
        let port = take_port(place % switches.len());
        builder.connect(host.port(1), port, LINK).unwrap();
    }
    builder.build().unwrap()
}

pub(crate) fn any_fabric() -> impl Strategy<Value = Fabric> {
    (
        prop::collection::vec(0_usize..8, 0..8),
        prop::collection::vec((0_usize..8, 0_usize..8), 0..8),
        prop::collection::vec(0_usize..4, 0..8),
    )
        .prop_map(|(parents, extra, hosts)| fabric_from(&parents, &extra, &hosts))
}

/// Tables without loops, neither minimal nor balanced: `seed` selects cables of each tree.
pub(crate) fn wild_tables(fabric: &Fabric, seed: u64) -> ForwardingTables {
    let mut tables = ForwardingTables::new(fabric);
    let mut state = seed;
    let mut pick = |count: usize| {
        // Knuth's MMIX generator; its high bits are good enough here.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    for host in fabric.host_ids() {
        let lid = fabric.host(host).lid;
        let (leaf, port) = fabric.host_attachment(host);
        tables.set(leaf, lid, Some(fabric.ports[port].number));
        loop {
            let joins = |port: &PortId| {
                let switch = fabric.nodes[fabric.ports[*port].node].as_switch()?;
                let (next, _) = fabric.peer_switch(*port)?;
                let is_new = tables.get(switch, lid).is_none() && tables.get(next, lid).is_some();
                is_new.then_some((switch, fabric.ports[*port].number))
            };
            let frontier: Vec<_> = fabric.ports.ids().filter_map(|port| joins(&port)).collect();
            if frontier.is_empty() {
                break;
            }
            let (switch, number) = frontier[pick(frontier.len())];
            tables.set(switch, lid, Some(number));
        }
    }
    tables
}

pub(crate) fn walk(
    fabric: &Fabric,
    tables: &ForwardingTables,
    source: HostId,
    destination: NodeId,
) -> Vec<PortId> {
    let mut ports = vec![fabric.host_port(source)];
    loop {
        let peer = fabric.ports[*ports.last().unwrap()].peer.expect("a cable");
        let node = fabric.ports[peer].node;
        if node == destination {
            return ports;
        }
        assert!(ports.len() <= fabric.nodes.len(), "a loop");
        let switch = fabric.nodes[node].as_switch().expect("a switch on the way");
        let number = tables
            .get(switch, fabric.nodes[destination].lid)
            .expect("a route");
        ports.push(fabric.port(node, number).expect("an external port"));
    }
}

pub(crate) fn all_distances(fabric: &Fabric) -> IdVec<NodeId, IdVec<NodeId, usize>> {
    const FAR: usize = 1 << 20;
    let count = fabric.nodes.len();
    let mut distances = IdVec::filled(IdVec::filled(FAR, count), count);
    for node in fabric.nodes.ids() {
        distances[node][node] = 0;
    }
    for port in fabric.ports.iter() {
        if let Some(peer) = port.peer {
            distances[port.node][fabric.ports[peer].node] = 1;
        }
    }
    for middle in fabric.nodes.ids() {
        for from in fabric.nodes.ids() {
            for to in fabric.nodes.ids() {
                let detour = distances[from][middle] + distances[middle][to];
                distances[from][to] = distances[from][to].min(detour);
            }
        }
    }
    distances
}

pub(crate) fn host_pairs(fabric: &Fabric) -> impl Iterator<Item = (HostId, HostId)> + '_ {
    fabric
        .host_ids()
        .flat_map(|source| {
            fabric
                .host_ids()
                .map(move |destination| (source, destination))
        })
        .filter(|(source, destination)| source != destination)
}

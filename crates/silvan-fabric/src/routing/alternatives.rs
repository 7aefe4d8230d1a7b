use std::collections::HashMap;

use silvan_core::{HostId, IdVec, PortNumber, SwitchId};

use super::RoutingError;
use super::distance::SwitchGraph;
use crate::Fabric;

/// For every switch and host, the ports of shortest paths, or an error for unconnected switches.
///
/// In a fat tree these cannot wait for each other in a cycle; on a ring, mesh or torus they can:
/// [check](crate::check::check) them.
pub fn minimal_alternatives(fabric: &Fabric) -> Result<Alternatives, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let mut collected = CollectedAlternatives::new(fabric);
    let mut ports = Vec::new();
    for (leaf, first) in collected.leaves(fabric) {
        let distances = graph.distances([leaf]);
        for switch in fabric.switch_ids().filter(|switch| *switch != leaf) {
            ports.clear();
            ports.extend(graph.shortest_ports(switch, &distances));
            if ports.is_empty() {
                return Err(RoutingError::Disconnected {
                    from: fabric.switch(switch).name.clone(),
                    to: fabric.host(first).name.clone(),
                });
            }
            collected.set(switch, leaf, &ports);
        }
    }
    Ok(collected.alternatives)
}

pub(super) struct CollectedAlternatives {
    pub(super) alternatives: Alternatives,
    places: HashMap<Vec<PortNumber>, u16>,
    columns: IdVec<SwitchId, Option<usize>>,
}

impl CollectedAlternatives {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let alternatives = Alternatives::new(fabric);
        let mut columns = IdVec::filled(None, fabric.switch_count());
        for (column, host) in alternatives.first_hosts().into_iter().enumerate() {
            columns[fabric.host_attachment(host).0] = Some(column);
        }
        Self {
            alternatives,
            places: HashMap::new(),
            columns,
        }
    }

    pub(super) fn leaves(&self, fabric: &Fabric) -> Vec<(SwitchId, HostId)> {
        let first = self.alternatives.first_hosts().into_iter();
        first
            .map(|host| (fabric.host_attachment(host).0, host))
            .collect()
    }

    pub(super) fn set(&mut self, switch: SwitchId, leaf: SwitchId, ports: &[PortNumber]) {
        // A single port is no alternative.
        let (Some(column), 2..) = (self.columns[leaf], ports.len()) else {
            return;
        };
        let known = self.places.get(ports).copied();
        let groups = &mut self.alternatives.groups;
        let group = known.unwrap_or_else(|| {
            let group = groups.len() as u16;
            assert!(group < NO_GROUP, "a group of ports per port");
            groups.push(ports.to_vec());
            self.places.insert(ports.to_vec(), group);
            group
        });
        let row = switch.index() * self.alternatives.leaves;
        self.alternatives.groups_of[row + column] = group;
    }
}

/// Several ports to one destination, of which a switch may take any for each packet, the same for all hosts of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternatives {
    columns: Vec<u32>,
    leaves: usize,
    groups_of: Vec<u16>,
    groups: Vec<Vec<PortNumber>>,
}

const NO_GROUP: u16 = u16::MAX;

impl Alternatives {
    fn new(fabric: &Fabric) -> Self {
        let mut of_leaves = HashMap::new();
        let mut column = |host| {
            let next = of_leaves.len() as u32;
            let leaf = fabric.host_attachment(host).0;
            *of_leaves.entry(leaf).or_insert(next)
        };
        let columns = fabric.host_ids().map(&mut column).collect();
        let leaves = of_leaves.len();
        Self {
            columns,
            leaves,
            groups_of: vec![NO_GROUP; leaves * fabric.switch_count()],
            groups: Vec::new(),
        }
    }

    fn first_hosts(&self) -> Vec<HostId> {
        let mut first = Vec::with_capacity(self.leaves);
        for (host, column) in self.columns.iter().enumerate() {
            if *column as usize == first.len() {
                first.push(HostId::new(host));
            }
        }
        first
    }

    /// Number of leaves with hosts; each has a column.
    pub fn leaves(&self) -> usize {
        self.leaves
    }

    /// By host, the column of its leaf.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The ports for a host in order; empty if the tables decide. Panics for an unknown switch.
    pub fn get(&self, switch: SwitchId, host: HostId) -> &[PortNumber] {
        let column = self.columns.get(host.index());
        column.map_or(&[], |column| self.of_leaf(switch, *column as usize))
    }

    /// The ports for all hosts of a column's leaf. Panics for an unknown switch or column.
    pub fn of_leaf(&self, switch: SwitchId, column: usize) -> &[PortNumber] {
        assert!(column < self.leaves, "there is a leaf for each column");
        let group = self.groups_of[switch.index() * self.leaves + column];
        let group = self.groups.get(usize::from(group));
        group.map_or(&[], Vec::as_slice)
    }
}

use silvan_core::{IdVec, Lid, PortNumber, SwitchId};

use super::{ForwardingTables, RoutingError};
use crate::Fabric;

pub(super) const UNREACHABLE: u32 = u32::MAX;

/// Cables between switches: by switch, its ports and their neighbours in the order of ports.
pub(crate) struct SwitchGraph {
    neighbours: IdVec<SwitchId, Vec<(PortNumber, SwitchId)>>,
}

impl SwitchGraph {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        let neighbours = fabric
            .switch_ids()
            .map(|switch| {
                let cabled = fabric.switch(switch).ports().filter_map(|port| {
                    let (peer, _) = fabric.peer_switch(port)?;
                    Some((fabric.ports[port].number, peer))
                });
                cabled.collect()
            })
            .collect();
        Self { neighbours }
    }

    pub(super) fn len(&self) -> usize {
        self.neighbours.len()
    }

    pub(crate) fn neighbours(&self, switch: SwitchId) -> &[(PortNumber, SwitchId)] {
        &self.neighbours[switch]
    }

    pub(super) fn distances(
        &self,
        targets: impl IntoIterator<Item = SwitchId>,
    ) -> IdVec<SwitchId, u32> {
        let mut distances = IdVec::filled(UNREACHABLE, self.neighbours.len());
        let mut queue: Vec<SwitchId> = targets.into_iter().collect();
        for target in &queue {
            distances[*target] = 0;
        }
        let mut head = 0;
        while let Some(&switch) = queue.get(head) {
            head += 1;
            for &(_, peer) in self.neighbours(switch) {
                if distances[peer] == UNREACHABLE {
                    distances[peer] = distances[switch] + 1;
                    queue.push(peer);
                }
            }
        }
        distances
    }

    pub(super) fn shortest_ports(
        &self,
        switch: SwitchId,
        distances: &IdVec<SwitchId, u32>,
    ) -> impl Iterator<Item = PortNumber> {
        let here = distances[switch];
        self.neighbours(switch)
            .iter()
            .filter(move |(_, peer)| here != UNREACHABLE && distances[*peer] + 1 == here)
            .map(|(number, _)| *number)
    }
}

/// Adds minimal routes to LIDs of switches, spread by the index of the destination.
pub(super) fn route_to_switches(
    fabric: &Fabric,
    graph: &SwitchGraph,
    tables: &mut ForwardingTables,
) -> Result<(), RoutingError> {
    if !fabric.has_lids() {
        return Ok(());
    }
    let mut ports = Vec::new();
    for destination in fabric.switch_ids() {
        let lid: Lid = fabric.switch(destination).lid;
        let distances = graph.distances([destination]);
        for switch in fabric.switch_ids().filter(|switch| *switch != destination) {
            ports.clear();
            ports.extend(graph.shortest_ports(switch, &distances));
            if ports.is_empty() {
                return Err(RoutingError::Disconnected {
                    from: fabric.switch(switch).name.clone(),
                    to: fabric.switch(destination).name.clone(),
                });
            }
            let port = ports[destination.index() % ports.len()];
            tables.set(switch, lid, Some(port));
        }
    }
    Ok(())
}

use std::cmp::Reverse;

use silvan_core::{HostId, IdVec, PortId, PortNumber, SwitchId};

use super::distance::UNREACHABLE;
use super::{ForwardingTables, RoutingError};
use crate::Fabric;

/// Destinations, by LID, get the port with the fewest pairs of hosts, on a tie the lowest. Errors as `paths_to`.
///
/// Pairs matter from three levels on: a middle switch spreads only destinations that lower switches send to it.
pub(super) fn spread_destinations(
    fabric: &Fabric,
    tables: &mut ForwardingTables,
    paths_to: impl Fn(SwitchId) -> Result<PathsTo, RoutingError>,
) -> Result<(), RoutingError> {
    let mut hosts_at: IdVec<SwitchId, u64> = IdVec::filled(0, fabric.switch_count());
    for host in fabric.host_ids() {
        hosts_at[fabric.host_attachment(host).0] += 1;
    }
    let mut balance = Balance {
        pairs: IdVec::filled(0, fabric.ports.len()),
        sources: hosts_at.clone(),
    };
    let mut paths: Option<PathsTo> = None;
    let mut hosts: Vec<_> = fabric.host_ids().collect();
    hosts.sort_by_key(|host| fabric.host(*host).lid);
    for host in hosts {
        let (leaf, leaf_port) = fabric.host_attachment(host);
        tables.set_host(leaf, host, Some(fabric.ports[leaf_port].number));
        let paths = match &mut paths {
            Some(paths) if paths.leaf == leaf => paths,
            other => other.insert(paths_to(leaf)?),
        };
        balance
            .sources
            .as_mut_slice()
            .copy_from_slice(hosts_at.as_slice());
        balance.spread(paths, host, tables);
    }
    Ok(())
}

struct Candidate {
    port: PortId,
    number: PortNumber,
    next: SwitchId,
}

pub(super) struct PathsTo {
    leaf: SwitchId,
    switches: Vec<(SwitchId, Vec<Candidate>)>,
}

impl PathsTo {
    pub(super) fn new<P: IntoIterator<Item = PortNumber>>(
        fabric: &Fabric,
        leaf: SwitchId,
        distances: &IdVec<SwitchId, u32>,
        ports: impl Fn(SwitchId) -> P,
    ) -> Self {
        let is_before = |switch: &SwitchId| *switch != leaf && distances[*switch] != UNREACHABLE;
        let mut order: Vec<SwitchId> = fabric.switch_ids().filter(is_before).collect();
        order.sort_by_key(|switch| Reverse(distances[*switch]));
        let candidates = |switch: SwitchId| {
            let node = fabric.switch(switch);
            let candidate = |number: PortNumber| {
                let port = node.port(number)?;
                let (next, _) = fabric.peer_switch(port)?;
                Some(Candidate { port, number, next })
            };
            (
                switch,
                ports(switch).into_iter().filter_map(candidate).collect(),
            )
        };
        Self {
            leaf,
            switches: order.into_iter().map(candidates).collect(),
        }
    }
}

struct Balance {
    pairs: IdVec<PortId, u64>,
    sources: IdVec<SwitchId, u64>,
}

impl Balance {
    fn spread(&mut self, paths: &PathsTo, host: HostId, tables: &mut ForwardingTables) {
        for (switch, candidates) in &paths.switches {
            let least = candidates
                .iter()
                .min_by_key(|candidate| self.pairs[candidate.port])
                .expect("a switch with a distance has a port that leads nearer");
            let sources = self.sources[*switch];
            self.pairs[least.port] += sources;
            self.sources[least.next] += sources;
            tables.set_host(*switch, host, Some(least.number));
        }
    }
}

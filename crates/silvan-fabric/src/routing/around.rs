use std::cmp::Reverse;
use std::collections::BinaryHeap;

use silvan_core::{HostId, IdVec, PortNumber, SwitchId};

use super::distance::{SwitchGraph, UNREACHABLE, route_to_switches};
use super::{ForwardingTables, RoutingError};
use crate::Fabric;

/// Leads tables around the cables that `fabric` lacks, or names an unreachable host; other routes stay.
///
/// A lost route goes towards the nearest switch with a route, by the destination's index among equal ports: no loops,
/// but the [check](crate::check::check) looks for deadlocks. Panics for computed routes or another fabric.
pub fn lead_around(tables: &mut ForwardingTables, fabric: &Fabric) -> Result<(), RoutingError> {
    let graph = SwitchGraph::new(fabric);
    for host in fabric.host_ids() {
        let mut ways = Detours::new(tables, fabric, host);
        if !ways.has_lost() {
            continue;
        }
        ways.extend(&graph);
        for switch in fabric.switch_ids() {
            if ways.state[switch] != State::Lost {
                continue;
            }
            let ports = ways.ports(&graph, switch);
            if ports.is_empty() {
                return Err(RoutingError::Disconnected {
                    from: fabric.switch(switch).name.clone(),
                    to: fabric.host(host).name.clone(),
                });
            }
            tables.set_host(switch, host, Some(ports[host.index() % ports.len()]));
        }
    }
    route_to_switches(fabric, &graph, tables)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Kept,
    Lost,
}

struct Detours {
    state: IdVec<SwitchId, State>,
    length: IdVec<SwitchId, u32>,
}

impl Detours {
    fn new(tables: &ForwardingTables, fabric: &Fabric, host: HostId) -> Self {
        let switches = fabric.switch_count();
        let mut ways = Self {
            state: IdVec::filled(State::Unknown, switches),
            length: IdVec::filled(UNREACHABLE, switches),
        };
        let leaf = fabric.host_attachment(host).0;
        ways.state[leaf] = State::Kept;
        ways.length[leaf] = 0;
        let mut path = Vec::new();
        for first in fabric.switch_ids() {
            path.clear();
            let mut at = first;
            let (state, length) = loop {
                if ways.state[at] != State::Unknown {
                    break (ways.state[at], ways.length[at]);
                }
                ways.state[at] = State::Kept;
                path.push(at);
                let Some(number) = tables.to_host(at, host) else {
                    break (State::Kept, UNREACHABLE);
                };
                let port = fabric.switch(at).port(number);
                match port.and_then(|port| fabric.peer_switch(port)) {
                    Some((next, _)) => at = next,
                    None => break (State::Lost, UNREACHABLE),
                }
            };
            for (hops, &switch) in (1..).zip(path.iter().rev()) {
                ways.state[switch] = state;
                ways.length[switch] = match length {
                    UNREACHABLE => UNREACHABLE,
                    length => length + hops,
                };
            }
        }
        ways
    }

    fn has_lost(&self) -> bool {
        self.state.iter().any(|state| *state == State::Lost)
    }

    fn extend(&mut self, graph: &SwitchGraph) {
        let known = self.length.iter_enumerated();
        let known = known.filter(|(_, length)| **length != UNREACHABLE);
        let mut nearest: BinaryHeap<_> = known
            .map(|(switch, length)| Reverse((*length, switch)))
            .collect();
        while let Some(Reverse((length, switch))) = nearest.pop() {
            if length > self.length[switch] {
                continue;
            }
            for &(_, peer) in graph.neighbours(switch) {
                if self.state[peer] == State::Lost && length + 1 < self.length[peer] {
                    self.length[peer] = length + 1;
                    nearest.push(Reverse((length + 1, peer)));
                }
            }
        }
    }

    fn ports(&self, graph: &SwitchGraph, switch: SwitchId) -> Vec<PortNumber> {
        let here = self.length[switch];
        let neighbours = graph.neighbours(switch).iter();
        let closer = neighbours
            .filter(|(_, peer)| here != UNREACHABLE && self.length[*peer] == here - 1)
            .map(|(number, _)| *number);
        closer.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use std::collections::BTreeSet;

    use silvan_core::PortId;

    use super::*;
    use crate::check::{CheckOptions, check};
    use crate::generators::{FatTree648, Generator, KAryNTree};
    use crate::routing::{Routes, d_mod_k, min_hop_balanced};
    use crate::testing::{LINK, walk};

    fn port(fabric: &Fabric, name: &str) -> PortId {
        let (node, number) = name.split_once(':').unwrap();
        let node = fabric.node_by_name(node).unwrap();
        let number = PortNumber::new(number.parse().unwrap());
        fabric.port(node, number).unwrap()
    }

    fn routed(fabric: &Fabric, cut: &[PortId]) -> (Fabric, ForwardingTables, ForwardingTables) {
        let before = d_mod_k(fabric).unwrap();
        let rest = fabric.without_cables(cut);
        let mut after = before.clone();
        lead_around(&mut after, &rest).unwrap();
        let options = CheckOptions {
            allow_cycles: false,
            allow_missing: false,
        };
        check(&rest, Routes::from(&after), options).unwrap();
        (rest, before, after)
    }

    /// Oracle: d-mod-k by hand. Leaf 0 reaches the hosts of place 5 by port 19 + 5, over spine 5. Without that cable, the
    /// routes of leaf 0 to these 35 hosts change, and those of the 35 other leaves to host 5.
    #[test]
    fn routes_over_other_cables_stay() {
        let fabric = FatTree648 {}.build(LINK).unwrap();
        let cut = port(&fabric, "leaf-00:24");
        let (_, before, after) = routed(&fabric, &[cut]);
        let mut changed = BTreeSet::new();
        for switch in fabric.switch_ids() {
            for host in fabric.host_ids() {
                if before.to_host(switch, host) != after.to_host(switch, host) {
                    changed.insert((switch.index(), host.index()));
                }
            }
        }
        let of_leaf = (1..36).map(|leaf| (0, 18 * leaf + 5));
        let of_host = (1..36).map(|leaf| (leaf, 5));
        // Spine 5 is switch 36 + 5; it has lost its port to all hosts of leaf 0.
        let of_spine = (0..18).map(|host| (41, host));
        let expected: BTreeSet<_> = of_leaf.chain(of_host).chain(of_spine).collect();
        assert_eq!(changed, expected);
    }

    /// Connects every pair of hosts for any two missing cables of a tree of three levels. Routes have no loops and no
    /// credit loops, and cross no missing cable.
    #[test]
    fn tree_without_two_cables_is_routed() {
        let fabric = KAryNTree { k: 3, n: 3 }.build(LINK).unwrap();
        let inner = fabric.links.iter().map(|link| link.a);
        let inner: Vec<PortId> = inner
            .filter(|&end| {
                let ends = [end, fabric.ports[end].peer.unwrap()];
                let mut nodes = ends
                    .iter()
                    .map(|end| &fabric.nodes[fabric.ports[*end].node]);
                nodes.all(|node| node.as_switch().is_some())
            })
            .collect();
        for (place, &one) in inner.iter().enumerate() {
            for &other in inner.iter().skip(place + 1).step_by(7) {
                let (rest, _, after) = routed(&fabric, &[one, other]);
                assert_eq!(rest.links.len(), fabric.links.len() - 2);
                for source in rest.host_ids().step_by(4) {
                    for to in rest.host_ids().filter(|to| *to != source) {
                        let node = rest.node_of_host(to);
                        assert!(walk(&rest, &after, source, node).len() <= 8);
                    }
                }
            }
        }
    }

    #[test]
    fn lost_host_is_an_error() {
        let fabric = crate::generators::Chain {
            switches: 3,
            hosts_per_switch: 1,
        };
        let fabric = fabric.build(LINK).unwrap();
        let cut = fabric.links.iter().find(|link| {
            [link.a, link.b]
                .iter()
                .all(|end| fabric.nodes[fabric.ports[*end].node].as_switch().is_some())
        });
        let mut tables = min_hop_balanced(&fabric).unwrap();
        let rest = fabric.without_cables(&[cut.unwrap().a]);
        assert!(matches!(
            lead_around(&mut tables, &rest),
            Err(RoutingError::Disconnected { .. })
        ));
    }
}

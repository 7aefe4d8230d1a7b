//! Aggregation nodes of switches (SHARP): hosts at an additional, internal port, numbered behind all other hosts.
//!
//! R. L. Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COMHPC 2016.

use silvan_core::{HostId, IdVec, SwitchId};

use crate::routing::SwitchGraph;
use crate::{Fabric, FabricBuilder, FabricError, ForwardingTables, HostRole, Identity, LinkKind};

/// End of the names of generated aggregation nodes.
const SUFFIX: &str = "-aggregation";

impl Fabric {
    /// Hosts that are not aggregation nodes, which come last.
    pub fn compute_host_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = HostId> + ExactSizeIterator + use<> {
        let first = self
            .host_ids()
            .rev()
            .take_while(|host| self.host(*host).role == Some(HostRole::Aggregation));
        let count = self.host_count() - first.count();
        (0..count).map(HostId::new)
    }

    /// Switches with an aggregation node, and the node.
    pub fn aggregation_nodes(&self) -> impl Iterator<Item = (SwitchId, HostId)> + '_ {
        let hosts = self.host_ids().skip(self.compute_host_ids().len());
        hosts.map(|host| (self.host_attachment(host).0, host))
    }

    /// Sum of the data rates of a switch's cables, in bit/s.
    pub fn cabled_rate(&self, switch: SwitchId) -> u64 {
        let links = self
            .switch(switch)
            .ports()
            .filter_map(|port| self.ports[port].link);
        let rates = links.map(|link| self.links[link].data_rate().bits_per_sec());
        rates.fold(0, u64::saturating_add)
    }

    /// The fabric with an aggregation node at a new last port of each of these switches.
    ///
    /// # Errors
    /// A switch with 254 ports, a name in use, or more nodes than there are LIDs.
    pub fn with_aggregation(&self, nodes: &[(SwitchId, LinkKind)]) -> Result<Self, FabricError> {
        let mut builder = FabricBuilder::new();
        let mut handles = Vec::with_capacity(self.nodes.len());
        let mut has_node = IdVec::filled(false, self.switch_count());
        for (switch, _) in nodes {
            has_node[*switch] = true;
        }
        let count = self.nodes.len() + nodes.len();
        if self.has_lids() && count > usize::from(silvan_core::Lid::MAX_UNICAST.as_u16()) {
            return Err(FabricError::LidsExhausted { nodes: count });
        }
        for node in self.nodes.iter() {
            let handle = match node.as_switch() {
                Some(switch) => {
                    let ports = usize::from(node.port_count) + usize::from(has_node[switch]);
                    builder.add_switch(node.name.as_str(), ports)?
                }
                None => builder.add_host(node.name.as_str())?,
            };
            let port_guid = self.ports[node.first_port].guid;
            builder.identify(
                handle,
                Identity {
                    lid: self.has_lids().then_some(node.lid),
                    guid: Some(node.guid),
                    port_guid: node.as_host().map(|_| port_guid),
                    adapter_port: node.adapter_port,
                    role: node.role.unwrap_or_default(),
                },
            );
            handles.push(handle);
        }
        for link in self.links.iter() {
            let end = |port| {
                let port = &self.ports[port];
                handles[port.node.index()].port(port.number.as_u8())
            };
            builder.connect(end(link.a), end(link.b), link.kind)?;
        }
        for (switch, kind) in nodes {
            let node = self.switch(*switch);
            let host = builder.add_host(format!("{}{SUFFIX}", node.name))?;
            let role = HostRole::Aggregation;
            builder.identify(
                host,
                Identity {
                    role,
                    ..Identity::default()
                },
            );
            let port = handles[self.node_of_switch(*switch).index()].port(node.port_count + 1);
            builder.connect(host.port(1), port, *kind)?;
        }
        builder.build()
    }

    /// The fabric without aggregation nodes. Their ports stay, so that ids do not change.
    #[must_use]
    pub fn without_aggregation(&self) -> Self {
        let mut fabric = self.clone();
        let hosts = self.compute_host_ids().len();
        for (_, host) in self.aggregation_nodes() {
            let node = self.host(host);
            fabric.nodes_by_name.remove(&node.name);
            if let Some(known) = fabric.nodes_by_lid.get_mut(node.lid.index()) {
                *known = None;
            }
            if let Some(peer) = self.ports[node.first_port].peer {
                fabric.ports[peer].link = None;
                fabric.ports[peer].peer = None;
            }
        }
        let removed = self.host_count() - hosts;
        fabric.hosts = fabric.hosts.into_iter().take(hosts).collect();
        let (nodes, ports) = (self.nodes.len() - removed, self.ports.len() - removed);
        fabric.nodes = fabric.nodes.into_iter().take(nodes).collect();
        fabric.ports = fabric.ports.into_iter().take(ports).collect();
        let links = self.links.len() - removed;
        fabric.links = fabric.links.into_iter().take(links).collect();
        fabric
    }
}

/// Adds routes to aggregation nodes: from their switch and its neighbours only, so that they cannot close a cycle of
/// dependencies.
pub fn route_to_aggregation(fabric: &Fabric, tables: &ForwardingTables) -> ForwardingTables {
    let mut tables = tables.widened(fabric);
    let graph = SwitchGraph::new(fabric);
    for (switch, host) in fabric.aggregation_nodes() {
        let (_, port) = fabric.host_attachment(host);
        tables.set_host(switch, host, Some(fabric.ports[port].number));
        for &(_, neighbour) in graph.neighbours(switch) {
            let ways = graph.neighbours(neighbour).iter();
            let ways: Vec<_> = ways.filter(|(_, peer)| *peer == switch).collect();
            let (number, _) = ways[host.index() % ways.len()];
            tables.set_host(neighbour, host, Some(*number));
        }
    }
    tables
}

/// A switch in an aggregation tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeNode {
    /// The switch.
    pub switch: SwitchId,
    /// Its aggregation node.
    pub host: HostId,
    /// Place of the parent in the tree; `None` for the root.
    pub parent: Option<usize>,
}

/// Switches that reduce data of hosts at some leaves: neighbours are parent and child.
///
/// The root is the switch with the least distance to the farthest leaf. Children come after their parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregationTree {
    /// The switches; the root is the first.
    pub nodes: Vec<TreeNode>,
}

impl AggregationTree {
    /// The tree over these switches; `turn` selects among equally good roots. `None` if switches with aggregation nodes do
    /// not connect them.
    pub fn over(fabric: &Fabric, leaves: &[SwitchId], turn: usize) -> Option<Self> {
        let graph = SwitchGraph::new(fabric);
        let mut hosts: IdVec<SwitchId, Option<HostId>> = IdVec::filled(None, fabric.switch_count());
        for (switch, host) in fabric.aggregation_nodes() {
            hosts[switch] = Some(host);
        }
        let walk = |root: SwitchId| {
            let mut places: IdVec<SwitchId, Option<(u32, SwitchId)>> =
                IdVec::filled(None, fabric.switch_count());
            places[root] = Some((0, root));
            let mut queue = vec![root];
            let mut head = 0;
            while let Some(&switch) = queue.get(head) {
                head += 1;
                let (distance, _) = places[switch].unwrap_or((0, switch));
                for &(_, peer) in graph.neighbours(switch) {
                    if hosts[peer].is_some() && places[peer].is_none() {
                        places[peer] = Some((distance + 1, switch));
                        queue.push(peer);
                    }
                }
            }
            (places, queue)
        };
        let roots = fabric.switch_ids().filter(|root| hosts[*root].is_some());
        let rated = roots.filter_map(|root| {
            let (places, _) = walk(root);
            let distances = leaves.iter().map(|leaf| places[*leaf].map(|place| place.0));
            let distances = distances.collect::<Option<Vec<u32>>>()?;
            let sum: u32 = distances.iter().sum();
            Some(((distances.into_iter().max()?, sum), root))
        });
        let rated: Vec<_> = rated.collect();
        let best = rated.iter().map(|(rating, _)| *rating).min()?;
        let equal: Vec<_> = rated.iter().filter(|(rating, _)| *rating == best).collect();
        let root = equal[turn % equal.len()].1;
        let (places, order) = walk(root);
        let mut is_used = IdVec::filled(false, fabric.switch_count());
        for leaf in leaves {
            let mut at = *leaf;
            while !std::mem::replace(&mut is_used[at], true) {
                at = places[at].map_or(root, |place| place.1);
            }
        }
        let mut numbers: IdVec<SwitchId, Option<usize>> =
            IdVec::filled(None, fabric.switch_count());
        let mut nodes = Vec::new();
        for switch in order.into_iter().filter(|switch| is_used[*switch]) {
            let parent = places[switch].filter(|place| place.0 > 0);
            numbers[switch] = Some(nodes.len());
            nodes.push(TreeNode {
                switch,
                host: hosts[switch]?,
                parent: parent.and_then(|place| numbers[place.1]),
            });
        }
        Some(Self { nodes })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]
mod tests {
    use super::*;
    use crate::generators::{FatTree648, Generator, KAryNTree};
    use crate::routing::d_mod_k;
    use crate::testing::LINK;

    fn all(fabric: &Fabric) -> Fabric {
        let nodes: Vec<_> = fabric.switch_ids().map(|switch| (switch, LINK)).collect();
        fabric.with_aggregation(&nodes).unwrap()
    }

    #[test]
    fn other_nodes_keep_their_numbers_and_addresses() {
        let plain = KAryNTree { k: 3, n: 3 }.build(LINK).unwrap();
        let fabric = all(&plain);
        assert_eq!(fabric.compute_host_ids().len(), plain.host_count());
        assert_eq!(fabric.aggregation_nodes().count(), plain.switch_count());
        for (id, node) in plain.nodes.iter_enumerated() {
            let same = &fabric.nodes[id];
            let key = |node: &crate::Node| (node.name.clone(), node.lid, node.guid, node.kind);
            assert_eq!(key(node), key(same));
        }
        let back = fabric.without_aggregation();
        let tables = d_mod_k(&back).unwrap();
        assert_eq!(tables, d_mod_k(&plain).unwrap());
        let wide = route_to_aggregation(&fabric, &tables);
        for switch in fabric.switch_ids() {
            for host in plain.host_ids() {
                assert_eq!(wide.to_host(switch, host), tables.to_host(switch, host));
            }
        }
    }

    /// A two-level fat tree: a leaf alone is its own root, several leaves meet at a spine, one hop above.
    #[test]
    fn trees_of_a_fat_tree_have_a_spine_as_root() {
        let fabric = all(&FatTree648 {}.build(LINK).unwrap());
        let leaf = |host: usize| fabric.host_attachment(HostId::new(host)).0;
        let one = AggregationTree::over(&fabric, &[leaf(0)], 3).unwrap();
        assert_eq!((one.nodes.len(), one.nodes[0].switch), (1, leaf(0)));
        let leaves = [leaf(0), leaf(18), leaf(647)];
        let mut roots = Vec::new();
        for turn in 0..18 {
            let tree = AggregationTree::over(&fabric, &leaves, turn).unwrap();
            let [root, rest @ ..] = tree.nodes.as_slice() else {
                panic!("a tree has a root");
            };
            assert_eq!(rest.len(), 3);
            assert!(rest.iter().all(|node| node.parent == Some(0)));
            assert!(rest.iter().all(|node| leaves.contains(&node.switch)));
            roots.push(root.switch);
        }
        roots.dedup();
        assert_eq!(roots.len(), 18);
    }
}

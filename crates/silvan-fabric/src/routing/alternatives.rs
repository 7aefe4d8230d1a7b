//! Adaptive routing: the ports that a switch may choose among.

use silvan_core::{HostId, PortNumber, SwitchId};

use super::RoutingError;
use super::distance::SwitchGraph;
use crate::Fabric;

/// Finds, for every switch and destination host, the ports that start a shortest path.
///
/// In a fat tree those are all ports upwards until a switch is reached that the destination lies
/// below, so that no route turns upwards again and none can wait for another in a cycle. On a ring,
/// a mesh or a torus that does not hold: have the alternatives [checked](crate::check::check).
///
/// # Errors
///
/// If two switches are not connected.
pub fn minimal_alternatives(fabric: &Fabric) -> Result<Alternatives, RoutingError> {
    let graph = SwitchGraph::new(fabric);
    let mut alternatives = Alternatives::new(fabric);
    let mut last = None;
    for host in fabric.host_ids() {
        let leaf = fabric.host_attachment(host).0;
        let distances = match &last {
            Some((known, distances)) if *known == leaf => distances,
            _ => &last.insert((leaf, graph.distances([leaf]))).1,
        };
        for switch in fabric.switch_ids().filter(|switch| *switch != leaf) {
            let ports: Vec<_> = graph.shortest_ports(switch, distances).collect();
            if ports.is_empty() {
                return Err(RoutingError::Disconnected {
                    from: fabric.switch(switch).name.clone(),
                    to: fabric.host(host).name.clone(),
                });
            }
            alternatives.set(switch, host, &ports);
        }
    }
    Ok(alternatives)
}

/// Several ports to one destination, of which a switch may take any for each packet.
///
/// They start the shortest paths. Nothing is said of the switches on the way that have only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternatives {
    row_len: usize,
    /// By switch and destination host: a group, or `NO_GROUP`.
    groups_of: Vec<u16>,
    groups: Vec<Vec<PortNumber>>,
}

const NO_GROUP: u16 = u16::MAX;

impl Alternatives {
    /// No alternatives yet.
    pub(crate) fn new(fabric: &Fabric) -> Self {
        let row_len = fabric.host_count();
        Self {
            row_len,
            groups_of: vec![NO_GROUP; row_len * fabric.switch_count()],
            groups: Vec::new(),
        }
    }

    /// Names the ports for a destination; fewer than two are no alternatives.
    pub(crate) fn set(&mut self, switch: SwitchId, host: HostId, ports: &[PortNumber]) {
        if ports.len() < 2 {
            return;
        }
        let known = self.groups.iter().position(|group| group == ports);
        let group = known.unwrap_or_else(|| {
            self.groups.push(ports.to_vec());
            self.groups.len() - 1
        });
        assert!(group < usize::from(NO_GROUP), "a group of ports per port");
        self.groups_of[switch.index() * self.row_len + host.index()] = group as u16;
    }

    /// The ports that packets to a host may leave `switch` by, in the order of their numbers; empty if
    /// the forwarding tables alone decide.
    ///
    /// # Panics
    ///
    /// If the switch is beyond those of the fabric.
    pub fn get(&self, switch: SwitchId, host: HostId) -> &[PortNumber] {
        let group = self.groups_of[switch.index() * self.row_len..][..self.row_len]
            .get(host.index())
            .copied()
            .unwrap_or(NO_GROUP);
        self.groups
            .get(usize::from(group))
            .map_or(&[], Vec::as_slice)
    }
}

use silvan_core::{HostId, IdVec, PortId, PortNumber, SwitchId};

use super::ForwardingTables;
use super::distance::{SwitchGraph, UNREACHABLE};
use super::up_down::Order;
use crate::Fabric;

/// Sets the port of every switch for every host.
///
/// A main path goes from the leaf up over the cables with the fewest pairs of hosts; other switches join it, else take
/// another shortest path. Ties go to the fewest pairs down, the lowest switch and port. Destinations of `is_first` come
/// first and count alone; `ranks` are lower at upper ends.
pub(super) fn spread_main_paths(
    fabric: &Fabric,
    graph: &SwitchGraph,
    order: &Order,
    ranks: &IdVec<SwitchId, u32>,
    is_first: &IdVec<HostId, bool>,
    tables: &mut ForwardingTables,
) {
    let mut loads = Loads::new(fabric, is_first);
    let mut hosts: Vec<HostId> = fabric.host_ids().collect();
    hosts.sort_by_key(|host| (!is_first[*host], fabric.host_attachment(*host)));
    let mut paths: Option<PathsToLeaf> = None;
    for host in hosts {
        let (leaf, leaf_port) = fabric.host_attachment(host);
        if !is_first[host] {
            loads.count_all_hosts(fabric);
        }
        tables.set_host(leaf, host, Some(fabric.ports[leaf_port].number));
        let paths = match &mut paths {
            Some(paths) if paths.leaf == leaf => paths,
            other => other.insert(PathsToLeaf::to(fabric, graph, order, ranks, leaf)),
        };
        for (switch, cable) in loads.route(paths, ranks) {
            tables.set_host(switch, host, Some(cable.number));
        }
    }
}

pub(super) fn hosts_by_switch(
    fabric: &Fabric,
    counts: impl Fn(HostId) -> bool,
) -> IdVec<SwitchId, u64> {
    let mut hosts = IdVec::filled(0, fabric.switch_count());
    for host in fabric.host_ids().filter(|host| counts(*host)) {
        hosts[fabric.host_attachment(host).0] += 1;
    }
    hosts
}

#[derive(Clone, Copy)]
struct Cable {
    port: PortId,
    number: PortNumber,
    next: SwitchId,
}

struct PathsToLeaf {
    leaf: SwitchId,
    cables: IdVec<SwitchId, Vec<Cable>>,
    switches: Vec<SwitchId>,
    above: Vec<(SwitchId, Vec<(SwitchId, Cable)>)>,
}

impl PathsToLeaf {
    fn to(
        fabric: &Fabric,
        graph: &SwitchGraph,
        order: &Order,
        ranks: &IdVec<SwitchId, u32>,
        leaf: SwitchId,
    ) -> Self {
        let paths = order.paths_to(graph, leaf);
        let cables_of = |switch: SwitchId| {
            let node = fabric.switch(switch);
            let cable = |number: PortNumber| {
                let port = node.port(number)?;
                let (next, _) = fabric.peer_switch(port)?;
                Some(Cable { port, number, next })
            };
            match switch == leaf {
                true => Vec::new(),
                false => { paths.ports(order, graph, switch).into_iter() }
                    .filter_map(cable)
                    .collect(),
            }
        };
        let cables: IdVec<SwitchId, Vec<Cable>> = fabric.switch_ids().map(cables_of).collect();
        let is_other = |switch: &SwitchId| *switch != leaf && paths.lengths[*switch] != UNREACHABLE;
        let mut switches: Vec<SwitchId> = fabric.switch_ids().filter(is_other).collect();
        switches.sort_by_key(|switch| paths.lengths[*switch]);
        let mut above = vec![(leaf, Vec::new())];
        let mut is_above = IdVec::filled(false, fabric.switch_count());
        let mut index = 0;
        while index < above.len() {
            let at = above[index].0;
            let mut peers: Vec<SwitchId> = { graph.neighbours(at).iter() }
                .map(|(_, peer)| *peer)
                .filter(|peer| ranks[*peer] < ranks[at])
                .collect();
            peers.sort_unstable();
            peers.dedup();
            for peer in peers {
                let down = cables[peer].iter().filter(|cable| cable.next == at);
                let known = above[index].1.len();
                above[index].1.extend(down.map(|cable| (peer, *cable)));
                if above[index].1.len() > known && !is_above[peer] {
                    is_above[peer] = true;
                    above.push((peer, Vec::new()));
                }
            }
            index += 1;
        }
        above.sort_by_key(|(switch, _)| ranks[*switch]);
        Self {
            leaf,
            cables,
            switches,
            above,
        }
    }
}

/// Pairs by cable, and state of the current destination.
struct Loads {
    pairs: IdVec<PortId, u64>,
    through: IdVec<SwitchId, u64>,
    sources: IdVec<SwitchId, u64>,
    are_all_hosts: bool,
    chosen: IdVec<SwitchId, Option<Cable>>,
    is_main: IdVec<SwitchId, bool>,
    leads_to_main: IdVec<SwitchId, bool>,
    least: IdVec<SwitchId, u64>,
}

impl Loads {
    fn new(fabric: &Fabric, is_first: &IdVec<HostId, bool>) -> Self {
        let count = fabric.switch_count();
        Self {
            pairs: IdVec::filled(0, fabric.ports.len()),
            through: IdVec::filled(0, count),
            sources: hosts_by_switch(fabric, |host| is_first[host]),
            are_all_hosts: false,
            chosen: IdVec::filled(None, count),
            is_main: IdVec::filled(false, count),
            leads_to_main: IdVec::filled(false, count),
            least: IdVec::filled(0, count),
        }
    }

    fn count_all_hosts(&mut self, fabric: &Fabric) {
        if !self.are_all_hosts {
            self.sources = hosts_by_switch(fabric, |_| true);
            self.are_all_hosts = true;
        }
    }

    fn route(
        &mut self,
        paths: &PathsToLeaf,
        ranks: &IdVec<SwitchId, u32>,
    ) -> impl Iterator<Item = (SwitchId, Cable)> + '_ {
        self.chosen.as_mut_slice().fill(None);
        self.is_main.as_mut_slice().fill(false);
        self.leads_to_main.as_mut_slice().fill(false);
        self.choose_main_path(paths);
        for &switch in &paths.switches {
            if self.chosen[switch].is_none() {
                let cable = self.best(&paths.cables[switch]);
                let is_up = ranks[cable.next] < ranks[switch];
                self.leads_to_main[switch] = is_up && self.leads_to_main[cable.next];
                self.chosen[switch] = Some(cable);
            }
            self.count(switch);
        }
        let chosen = self.chosen.iter_enumerated();
        chosen.filter_map(|(switch, cable)| Some((switch, (*cable)?)))
    }

    fn choose_main_path(&mut self, paths: &PathsToLeaf) {
        for (switch, down) in &paths.above {
            let busiest = down
                .iter()
                .map(|(parent, cable)| self.pairs[cable.port].max(self.least[*parent]));
            self.least[*switch] = busiest.min().unwrap_or(0);
        }
        let mut at = paths.leaf;
        self.is_main[at] = true;
        self.leads_to_main[at] = true;
        // Upper switches come first, so one pass from below finds all of the path.
        for (switch, down) in paths.above.iter().rev() {
            if *switch != at {
                continue;
            }
            let key = |(parent, cable): &&(SwitchId, Cable)| {
                let through = self.through[*parent];
                (
                    self.pairs[cable.port],
                    self.least[*parent],
                    through,
                    *parent,
                    cable.number,
                )
            };
            let Some(&(parent, cable)) = down.iter().min_by_key(key) else {
                return;
            };
            self.chosen[parent] = Some(cable);
            self.is_main[parent] = true;
            self.leads_to_main[parent] = true;
            at = parent;
        }
    }

    fn best(&self, cables: &[Cable]) -> Cable {
        let key = |cable: &&Cable| {
            let mut busiest = self.pairs[cable.port];
            let mut at = cable.next;
            while !self.is_main[at] {
                let Some(next) = self.chosen[at] else { break };
                busiest = busiest.max(self.pairs[next.port]);
                at = next.next;
            }
            let leads_elsewhere = !self.leads_to_main[cable.next];
            (
                leads_elsewhere,
                busiest,
                self.pairs[cable.port],
                cable.number,
            )
        };
        let best = cables.iter().min_by_key(key);
        *best.expect("a switch with a path has a cable")
    }

    fn count(&mut self, switch: SwitchId) {
        let sources = self.sources[switch];
        let mut at = switch;
        while let (1.., Some(cable)) = (sources, self.chosen[at]) {
            self.pairs[cable.port] += sources;
            if self.is_main[at] {
                self.through[at] += sources;
            }
            at = cable.next;
        }
    }
}

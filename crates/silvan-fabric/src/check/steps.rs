use silvan_core::{HostId, IdVec, PortId, PortNumber, SwitchId};

use super::dependencies::{Channel, Dependencies};
use crate::Fabric;
use crate::routing::{LaneSteps, PathChoice, Routes};

/// Properties of paths, found by [`check_steps`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepsReport {
    /// Lanes on which no packet has to stay on the last one.
    pub needed: u8,
    /// A cycle of channel dependencies with the available lanes: output ports and their lanes.
    pub cycle: Option<Vec<(PortId, u8)>>,
}

/// Follows all choosable paths of [checked](super::check) routes. Panics without [`LaneSteps`].
pub fn check_steps(fabric: &Fabric, routes: Routes<'_>) -> StepsReport {
    let steps = routes.steps.expect("routes with lanes that go up");
    let mut paths = Paths::new(fabric, routes, steps, u8::MAX);
    paths.follow_all();
    let needed = paths.highest + 1;
    let lanes = steps.lanes().min(needed);
    let mut paths = Paths::new(fabric, routes, steps, lanes);
    paths.dependencies = Some(Dependencies::on_lanes(fabric, lanes));
    paths.follow_all();
    StepsReport {
        needed,
        cycle: paths.dependencies.and_then(|graph| graph.find_cycle()),
    }
}

/// Start of a section: switch, and channel of arrival (`None` from a host).
type Start = (SwitchId, Option<Channel>);

struct Paths<'f> {
    fabric: &'f Fabric,
    routes: Routes<'f>,
    steps: &'f LaneSteps,
    lanes: u8,
    highest: u8,
    leaves: Vec<SwitchId>,
    destinations: Vec<HostId>,
    dependencies: Option<Dependencies<'f>>,
    /// Entered lanes as bits, by entered port, for the present destination.
    visited: IdVec<PortId, u64>,
    entered: Vec<PortId>,
}

impl<'f> Paths<'f> {
    fn new(fabric: &'f Fabric, routes: Routes<'f>, steps: &'f LaneSteps, lanes: u8) -> Self {
        let mut leaves: Vec<SwitchId> = fabric
            .host_ids()
            .map(|host| fabric.host_attachment(host).0)
            .collect();
        leaves.sort_unstable();
        leaves.dedup();
        Self {
            fabric,
            routes,
            steps,
            // There are never more than 64 lanes.
            lanes: lanes.min(64),
            highest: 0,
            leaves,
            destinations: different_ways(fabric, routes),
            dependencies: None,
            visited: IdVec::filled(0, fabric.ports.len()),
            entered: Vec::new(),
        }
    }

    fn follow_all(&mut self) {
        let from_hosts: Vec<Start> = self.leaves.iter().map(|&leaf| (leaf, None)).collect();
        let over_waypoints = match self.routes.waypoints {
            Some(_) => self.arrivals_at_waypoints(&from_hosts),
            None => Vec::new(),
        };
        for number in 0..self.destinations.len() {
            let starts = from_hosts.iter().chain(&over_waypoints);
            self.follow(self.destinations[number], starts.copied());
        }
    }

    fn arrivals_at_waypoints(&mut self, from_hosts: &[Start]) -> Vec<Start> {
        let mut starts = from_hosts.to_vec();
        if self.routes.choice == PathChoice::Par {
            starts.extend(self.second_switches());
        }
        let waypoints = self.routes.waypoints.map_or(&[][..], |all| all.hosts());
        let mut arrivals: Vec<Start> = Vec::new();
        for &waypoint in waypoints {
            let end = self.fabric.host_attachment(waypoint).0;
            self.follow(waypoint, starts.iter().copied());
            for &entry in &self.entered {
                if self.switch_of(entry) != Some(end) {
                    continue;
                }
                let lanes = (0..self.lanes).filter(|lane| self.visited[entry] >> lane & 1 == 1);
                arrivals.extend(lanes.map(|lane| (end, Some((entry, lane)))));
            }
        }
        arrivals.sort_unstable();
        arrivals.dedup();
        arrivals
    }

    fn second_switches(&self) -> Vec<Start> {
        let leaves = self.leaves.iter();
        let ports = leaves.flat_map(|leaf| self.fabric.switch(*leaf).ports());
        let near = ports.filter(|port| self.steps.kind(*port) == 1);
        near.filter_map(|port| {
            let (switch, entry) = self.fabric.peer_switch(port)?;
            Some((switch, Some((entry, 0))))
        })
        .collect()
    }

    fn switch_of(&self, port: PortId) -> Option<SwitchId> {
        self.fabric.nodes[self.fabric.ports[port].node].as_switch()
    }

    /// Follows all paths to a host's switch; `entered` then has their channels.
    fn follow(&mut self, target: HostId, starts: impl Iterator<Item = Start>) {
        for port in self.entered.drain(..) {
            self.visited[port] = 0;
        }
        let end = self.fabric.host_attachment(target).0;
        let mut stack: Vec<Start> = Vec::new();
        for start in starts {
            stack.push(start);
            while let Some((at, channel)) = stack.pop() {
                if at == end {
                    continue;
                }
                for number in ways(self.routes, at, target) {
                    let Some(out) = self.fabric.switch(at).port(number) else {
                        continue;
                    };
                    let Some((next, entry)) = self.fabric.peer_switch(out) else {
                        continue;
                    };
                    let lane = self.lane(channel, out);
                    if let (Some(graph), Some(channel)) = (&mut self.dependencies, channel) {
                        graph.insert(channel, out, lane);
                    }
                    self.highest = self.highest.max(lane);
                    let lanes = &mut self.visited[entry];
                    if *lanes >> lane & 1 == 0 {
                        if *lanes == 0 {
                            self.entered.push(entry);
                        }
                        *lanes |= 1 << lane;
                        stack.push((next, Some((entry, lane))));
                    }
                }
            }
        }
    }

    fn lane(&self, channel: Option<Channel>, out: PortId) -> u8 {
        let Some((entry, lane)) = channel else {
            return 0;
        };
        let peer = self.fabric.ports[entry].peer;
        let entered = peer.map_or(0, |peer| self.steps.kind(peer));
        LaneSteps::next(entered, self.steps.kind(out), lane).min(self.lanes - 1)
    }
}

fn ways(routes: Routes<'_>, at: SwitchId, target: HostId) -> impl Iterator<Item = PortNumber> {
    let several = routes
        .alternatives
        .map_or(&[][..], |all| all.get(at, target));
    let only = match several {
        [] => routes.tables.to_host(at, target),
        _ => None,
    };
    several.iter().copied().chain(only)
}

/// One host for each group at a switch with equal routes from everywhere.
fn different_ways(fabric: &Fabric, routes: Routes<'_>) -> Vec<HostId> {
    let mut found: Vec<HostId> = Vec::new();
    let mut of_leaf: IdVec<SwitchId, Vec<HostId>> =
        IdVec::filled(Vec::new(), fabric.switches.len());
    for host in fabric.host_ids() {
        let leaf = fabric.host_attachment(host).0;
        let is_same = |other: &HostId| {
            let mut others = fabric.switch_ids().filter(|at| *at != leaf);
            others.all(|at| ways(routes, at, host).eq(ways(routes, at, *other)))
        };
        if !of_leaf[leaf].iter().any(is_same) {
            of_leaf[leaf].push(host);
            found.push(host);
        }
    }
    found
}

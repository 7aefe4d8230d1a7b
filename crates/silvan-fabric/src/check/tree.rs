use silvan_core::{HostId, IdVec, PortId, SwitchId};

use super::RouteError;
use crate::{Fabric, ForwardingTables};

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) out: PortId,
    /// Next switch and its input port; `None` at the destination's leaf.
    pub(super) next: Option<(SwitchId, PortId)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    Never,
    OnPath(HostId),
    Done(HostId),
}

#[derive(Debug, Default)]
pub(super) struct Hops {
    pub(super) max: u32,
    pub(super) total: u64,
    pub(super) unreachable: u64,
}

impl Hops {
    pub(super) fn add(&mut self, other: &Self) {
        self.max = self.max.max(other.max);
        self.total += other.total;
        self.unreachable += other.unreachable;
    }
}

const NO_ROUTE: u32 = u32::MAX;

pub(super) struct DestinationTree<'f> {
    fabric: &'f Fabric,
    tables: &'f ForwardingTables,
    hosts_at: Vec<(SwitchId, Vec<HostId>)>,
    destination: HostId,
    target: PortId,
    visits: IdVec<SwitchId, Visit>,
    steps: IdVec<SwitchId, Option<Step>>,
    hops: IdVec<SwitchId, u32>,
    order: Vec<SwitchId>,
    path: Vec<SwitchId>,
    sources: IdVec<SwitchId, u64>,
    pub(super) allow_missing: bool,
    pub(super) first_missing: Option<RouteError>,
}

impl<'f> DestinationTree<'f> {
    pub(super) fn new(fabric: &'f Fabric, tables: &'f ForwardingTables) -> Self {
        let switches = fabric.switch_count();
        let mut hosts_at: IdVec<SwitchId, Vec<HostId>> = IdVec::filled(Vec::new(), switches);
        for host in fabric.host_ids() {
            hosts_at[fabric.host_attachment(host).0].push(host);
        }
        let hosts_at = hosts_at
            .iter_enumerated()
            .filter(|(_, hosts)| !hosts.is_empty())
            .map(|(switch, hosts)| (switch, hosts.clone()))
            .collect();
        Self {
            fabric,
            tables,
            hosts_at,
            destination: HostId::new(0),
            target: fabric.host_port(HostId::new(0)),
            visits: IdVec::filled(Visit::Never, switches),
            steps: IdVec::filled(None, switches),
            hops: IdVec::filled(0, switches),
            order: Vec::with_capacity(switches),
            path: Vec::new(),
            sources: IdVec::filled(0, switches),
            allow_missing: false,
            first_missing: None,
        }
    }

    pub(super) fn follow(&mut self, destination: HostId) -> Result<(), RouteError> {
        self.destination = destination;
        self.target = self.fabric.host_port(destination);
        self.order.clear();
        for index in 0..self.hosts_at.len() {
            let (leaf, hosts) = &self.hosts_at[index];
            let (leaf, source) = (*leaf, hosts.iter().find(|host| **host != destination));
            if let Some(&source) = source {
                self.follow_from(leaf, source)?;
            }
        }
        Ok(())
    }

    fn follow_from(&mut self, leaf: SwitchId, source: HostId) -> Result<(), RouteError> {
        self.path.clear();
        let mut switch = leaf;
        let hops_beyond = loop {
            match self.visits[switch] {
                Visit::Done(host) if host == self.destination => {
                    let hops = self.hops[switch];
                    break (hops != NO_ROUTE).then_some(hops);
                }
                Visit::OnPath(host) if host == self.destination => {
                    return Err(self.loop_error(switch, source));
                }
                _ => {}
            }
            self.visits[switch] = Visit::OnPath(self.destination);
            self.path.push(switch);
            self.steps[switch] = None;
            let step = match self.step(switch, source) {
                Err(error @ RouteError::NoEntry { .. }) if self.allow_missing => {
                    self.first_missing.get_or_insert(error);
                    break None;
                }
                step => step?,
            };
            self.steps[switch] = Some(step);
            match step.next {
                Some((next, _)) => switch = next,
                None => break Some(0),
            }
        };
        for (behind, switch) in (1..).zip(self.path.drain(..).rev()) {
            self.hops[switch] = hops_beyond.map_or(NO_ROUTE, |beyond| beyond + behind);
            self.visits[switch] = Visit::Done(self.destination);
            self.order.push(switch);
        }
        Ok(())
    }

    fn step(&self, switch: SwitchId, source: HostId) -> Result<Step, RouteError> {
        let node = self.fabric.switch(switch);
        let Some(number) = self.tables.to_host(switch, self.destination) else {
            let destination = self.fabric.host(self.destination);
            return Err(RouteError::NoEntry {
                source_host: self.fabric.host(source).name.clone(),
                destination: destination.name.clone(),
                switch: node.name.clone(),
            });
        };
        let out = node.port(number);
        let peer = out.and_then(|port| self.fabric.ports[port].peer);
        if let (Some(out), Some(peer)) = (out, peer) {
            if peer == self.target {
                return Ok(Step { out, next: None });
            }
            if let Some(next) = self.fabric.peer_switch(out) {
                return Ok(Step {
                    out,
                    next: Some(next),
                });
            }
        }
        let leads_to = match (out, peer) {
            (_, Some(peer)) => {
                let node = self.fabric.ports[peer].node;
                format!("{:?}", self.fabric.nodes[node].name)
            }
            (Some(_), None) => "no cable".to_owned(),
            (None, _) if number.as_u8() == 0 => "the switch itself".to_owned(),
            (None, _) => format!("nothing: it has {} ports", node.port_count),
        };
        Err(RouteError::WrongDirection {
            source_host: self.fabric.host(source).name.clone(),
            destination: self.fabric.host(self.destination).name.clone(),
            switch: node.name.clone(),
            port: number,
            leads_to,
        })
    }

    fn loop_error(&self, entered: SwitchId, source: HostId) -> RouteError {
        let name = |switch: &SwitchId| self.fabric.switch(*switch).name.clone();
        let start = self.path.iter().position(|switch| *switch == entered);
        RouteError::Loop {
            source_host: self.fabric.host(source).name.clone(),
            destination: self.fabric.host(self.destination).name.clone(),
            cycle: self.path[start.unwrap_or(0)..].iter().map(name).collect(),
        }
    }

    pub(super) fn destination(&self) -> HostId {
        self.destination
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = (SwitchId, &[HostId])> + '_ {
        let switches = self.hosts_at.iter();
        switches.map(|(switch, hosts)| (*switch, hosts.as_slice()))
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.order.iter().filter_map(|switch| self.steps[*switch])
    }

    /// `switch` must be on a route.
    pub(super) fn step_of(&self, switch: SwitchId) -> Option<Step> {
        self.steps[switch]
    }

    /// Adds each source to `routes` of every port on its route, and to `reached` of every other host at its switches.
    pub(super) fn count_routes(
        &mut self,
        routes: &mut IdVec<PortId, u64>,
        reached: &mut IdVec<SwitchId, u64>,
    ) -> Hops {
        let mut hops = Hops::default();
        let own = self.fabric.host_attachment(self.destination).0;
        for (switch, hosts) in &self.hosts_at {
            let others = hosts.len() as u64 - u64::from(*switch == own);
            let is_reachable = others > 0 && self.hops[*switch] != NO_ROUTE;
            let sources = if is_reachable { others } else { 0 };
            hops.unreachable += others - sources;
            reached[*switch] += u64::from(is_reachable);
            if is_reachable && *switch == own {
                // The destination is no source of its own packets.
                routes[self.target] = routes[self.target].wrapping_sub(1);
            }
            self.sources[*switch] = sources;
            if sources > 0 {
                let from_source = self.hops[*switch] + 1;
                hops.max = hops.max.max(from_source);
                hops.total += sources * u64::from(from_source);
            }
        }
        // Reversed: each switch passes its sources on towards the destination.
        for switch in self.order.iter().rev() {
            let sources = std::mem::take(&mut self.sources[*switch]);
            if let Some(step) = self.steps[*switch] {
                routes[step.out] += sources;
                if let Some((next, _)) = step.next {
                    self.sources[next] += sources;
                }
            }
        }
        hops
    }
}

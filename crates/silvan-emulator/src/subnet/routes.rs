//! Routes: of management packets by ports or LIDs, of data by the forwarding tables.

use std::time::Duration;

use silvan_core::{HostId, Lid, NodeId, PortNumber};
use silvan_mad::smp::DirectedRoute;

use super::{Arrival, Subnet, SwitchRecord};

const MOST_HOPS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Link,
    Active,
}

impl Subnet {
    fn hop(&self, node: NodeId, out: PortNumber, needs: Needs) -> Option<Arrival> {
        let port = self.port_id(node, out)?;
        let peer = self.peer(port)?;
        let (from, to) = (self.record(port), self.record(peer));
        let passes = match needs {
            Needs::Link => from.is_linked() && to.is_linked(),
            Needs::Active => from.sends() && to.receives(),
        };
        let (node, port) = self.location(peer);
        passes.then_some(Arrival { node, port })
    }

    pub fn follow(&self, from: NodeId, route: &mut DirectedRoute) -> Option<Arrival> {
        let own = self.own_port(from);
        let mut at = Arrival {
            node: from,
            port: own,
        };
        route.return_path = [0; 64];
        route.return_path[0] = own.as_u8();
        for hop in 1..=usize::from(route.hop_count()) {
            let is_switch = self.state(at.node).switch.is_some();
            if !is_switch && hop > 1 {
                return None;
            }
            let out = PortNumber::new(route.initial_path[hop]);
            at = self.hop(at.node, out, Needs::Link)?;
            route.return_path[hop] = at.port.as_u8();
        }
        Some(at)
    }

    pub fn owns(&self, node: NodeId, lid: Lid) -> bool {
        let info = &self.own(node).info;
        let lmc = info.lmc.get();
        info.lid.as_u16() != 0 && lid.as_u16() >> lmc == info.lid.as_u16() >> lmc
    }

    pub fn follow_lid(&self, from: NodeId, lid: Lid, needs: Needs) -> Option<Arrival> {
        let mut at = Arrival {
            node: from,
            port: self.own_port(from),
        };
        if lid == DirectedRoute::PERMISSIVE {
            return Some(at);
        }
        for _ in 0..MOST_HOPS {
            if self.owns(at.node, lid) {
                return Some(at);
            }
            let out = match &self.state(at.node).switch {
                Some(switch) => switch.route(lid)?,
                None if at.node == from => self.own_port(from),
                None => return None,
            };
            at = self.hop(at.node, out, needs)?;
        }
        None
    }

    pub fn set_linear(&mut self, node: NodeId, block: usize, ports: &[u8; 64]) {
        let first = block * 64;
        let Some(switch) = &mut self.state_mut(node).switch else {
            return;
        };
        if switch.linear.len() < first + 64 {
            switch.linear.resize(first + 64, u8::MAX);
        }
        let entries = &mut switch.linear[first..first + 64];
        let changed: [bool; 64] = std::array::from_fn(|entry| entries[entry] != ports[entry]);
        entries.copy_from_slice(ports);
        self.has_tables = true;
        if changed.contains(&true) {
            self.note_changed_ways();
        }
        let lids = (first..).zip(changed).filter(|(_, changed)| *changed);
        self.route_lids(node, lids.map(|(lid, _)| Lid::new(lid as u16)));
    }

    pub fn set_linear_top(&mut self, node: NodeId, before: u16, after: u16) {
        self.has_tables = true;
        let linear = |switch: &SwitchRecord| switch.linear.len() as u16;
        let known = self.state(node).switch.as_deref().map_or(0, linear);
        let lids = before.min(after)..before.max(after).saturating_add(1).min(known);
        self.route_lids(node, lids.map(Lid::new));
    }

    pub fn note_changed_ways(&mut self) {
        self.ways_changed = Some(self.uptime);
    }

    pub fn invalidate_paths(&mut self, host: HostId) {
        self.forgot_paths[host.index()] = self.uptime;
        self.plane.invalidate_paths(host);
    }

    /// Lets hosts query paths again if routes have changed since they last did, and not within `settled`.
    pub fn mark_paths_stale(&mut self, settled: Duration) {
        let uptime = self.uptime;
        let changed = self.ways_changed;
        let Some(changed) = changed.filter(|at| uptime.saturating_sub(*at) >= settled) else {
            return;
        };
        self.ways_changed = None;
        for host in self.fabric.host_ids() {
            if self.forgot_paths[host.index()] < changed {
                self.plane.mark_paths_stale(host);
            }
        }
    }

    fn route_lids(&mut self, node: NodeId, lids: impl Iterator<Item = Lid>) {
        let switch = self.state(node).switch.as_deref();
        let routes: Vec<_> = lids
            .filter_map(|lid| {
                let host = self.host_lids[lid.index()]?;
                Some((host, switch.and_then(|switch| switch.route(lid))))
            })
            .collect();
        self.set_routes(node, &routes);
    }

    pub fn set_routes(&mut self, node: NodeId, routes: &[(HostId, Option<PortNumber>)]) {
        self.plane.engine.set_routes(node, routes);
        self.routes_version += u64::from(!routes.is_empty());
    }

    pub fn route_host(&mut self, host: HostId) {
        if !self.has_tables {
            return;
        }
        let lid = self.host_lid(host);
        for switch in self.fabric.switch_ids() {
            let node = self.fabric.node_of_switch(switch);
            let record = self.state(node).switch.as_ref();
            let route = record.and_then(|record| record.route(lid));
            self.set_routes(node, &[(host, route)]);
        }
    }
}

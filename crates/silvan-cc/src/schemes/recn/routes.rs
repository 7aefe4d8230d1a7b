use std::sync::Arc;

use silvan_core::{HostId, PortId};

use crate::hooks::RouteView;
use crate::schemes::SwitchPort;

const NONE: u8 = u8::MAX;

#[derive(Clone, Debug)]
pub(super) struct Paths {
    hosts: usize,
    switches: Arc<[Option<u32>]>,
    first: Arc<[u32]>,
    ports: Arc<Vec<u8>>,
}

impl Paths {
    pub fn new(ports: &[Option<SwitchPort>], hosts: usize) -> Self {
        let switch = |port: &SwitchPort| port.switch.index() as u32;
        let switches: Arc<[_]> = ports.iter().map(|port| port.as_ref().map(switch)).collect();
        let count = switches
            .iter()
            .flatten()
            .max()
            .map_or(0, |&last| last as usize + 1);
        let mut first = vec![u32::MAX; count];
        for (port, switch) in (0..).zip(switches.iter()) {
            let first = switch.map(|switch| &mut first[switch as usize]);
            if let Some(first) = first {
                *first = port.min(*first);
            }
        }
        Self {
            hosts,
            switches,
            first: first.into(),
            ports: Arc::new(Vec::new()),
        }
    }

    pub fn set<R: RouteView>(&mut self, port: PortId, routes: &R) {
        let Some(switch) = self.switches[port.index()] else {
            return;
        };
        let ports = Arc::make_mut(&mut self.ports);
        ports.resize(self.first.len() * self.hosts, NONE);
        let first = self.first[switch as usize];
        let entries = ports[switch as usize * self.hosts..].iter_mut();
        for (host, entry) in entries.take(self.hosts).enumerate() {
            let output = routes.output(port, HostId::new(host));
            *entry = output.map_or(NONE, |output| (output.index() as u32 - first) as u8);
        }
    }

    fn output(&self, port: PortId, to: HostId) -> Option<PortId> {
        let switch = self.switches[port.index()]? as usize;
        let place = *self.ports.get(switch * self.hosts + to.index())?;
        let first = self.first[switch] as usize;
        (place != NONE).then(|| PortId::new(first + usize::from(place)))
    }

    pub fn are_taken(&self, path: &[PortId], to: HostId) -> bool {
        path.iter()
            .all(|&output| self.output(output, to) == Some(output))
    }

    pub fn destinations(&self, path: &[PortId]) -> impl Iterator<Item = HostId> + use<> {
        let mut all = vec![true; self.hosts];
        for output in path {
            let row = self.switches[output.index()].map(|switch| {
                let place = output.index() - self.first[switch as usize] as usize;
                (switch as usize * self.hosts, place as u8)
            });
            let row = row.and_then(|(first, place)| Some((self.ports.get(first..)?, place)));
            match row {
                Some((row, place)) => {
                    let entries = all.iter_mut().zip(row);
                    entries.for_each(|(is_taken, port)| *is_taken &= *port == place);
                }
                None => all.fill(false),
            }
        }
        let hosts = all.into_iter().enumerate();
        let taken = hosts.filter(|(_, is_taken)| *is_taken);
        taken.map(|(host, _)| HostId::new(host))
    }

    /// Path of packets to a host from the end of a cable to a root, if they take it; `peers` are far ends.
    pub fn to_root(
        &self,
        mut entry: PortId,
        to: HostId,
        root: PortId,
        peer: impl Fn(PortId) -> Option<PortId>,
    ) -> Option<Vec<PortId>> {
        let mut path = Vec::new();
        while path.len() < self.first.len() {
            let output = self.output(entry, to)?;
            path.push(output);
            if output == root {
                return Some(path);
            }
            entry = peer(output)?;
        }
        None
    }
}

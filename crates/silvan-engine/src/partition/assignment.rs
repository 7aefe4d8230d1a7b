use std::sync::Arc;

use crate::packet::NONE;
use crate::plane::Plane;
use crate::records::{Next, OutPort};
use silvan_core::PortId;

pub(crate) type PartId = u16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Assignment {
    ports: Arc<[PartId]>,
    hosts: Arc<[PartId]>,
}

impl Assignment {
    pub fn new(plane: &Plane, count: usize) -> Self {
        let switches = plane
            .elements
            .iter()
            .filter(|element| element.table != NONE);
        let count = count
            .min(switches.count())
            .clamp(1, usize::from(PartId::MAX));
        let mut parts: Vec<Option<usize>> = vec![None; plane.elements.len()];
        let hosts: Vec<usize> = (0..plane.elements.len())
            .map(|switch| plane.hosts_at(switch))
            .collect();
        let all: usize = hosts.iter().sum();
        let mut ring = Vec::new();
        let mut before = 0;
        for (switch, &hosts) in hosts.iter().enumerate().filter(|(_, hosts)| **hosts > 0) {
            parts[switch] = Some((before + hosts / 2) * count / all);
            before += hosts;
            ring.push(switch);
        }
        while !ring.is_empty() {
            ring = plane.next_ring(&ring, &mut parts, count);
        }
        let part = |switch: usize| parts[switch].unwrap_or(0) as PartId;
        let of_host = |port: u32| {
            let upstream = plane.ins[port as usize].upstream;
            part(plane.switch_of(upstream) as usize)
        };
        let hosts: Arc<[PartId]> = plane.hosts.iter().map(|host| of_host(host.port)).collect();
        let mut elements: Vec<PartId> = (0..plane.elements.len()).map(part).collect();
        for (host, &part) in plane.hosts.iter().zip(hosts.iter()) {
            elements[plane.ins[host.port as usize].element as usize] = part;
        }
        let ports = 0..plane.ins.len() as u32;
        let ports = ports.map(|port| elements[plane.switch_of(port) as usize]);
        Self {
            ports: ports.collect(),
            hosts,
        }
    }

    pub fn parts(&self) -> usize {
        usize::from(self.ports.iter().copied().max().unwrap_or(0)) + 1
    }

    #[inline]
    pub fn of_port(&self, port: u32) -> PartId {
        self.ports[port as usize]
    }

    #[inline]
    pub fn of_host(&self, host: u32) -> PartId {
        self.hosts[host as usize]
    }
}

impl Plane {
    fn hosts_at(&self, switch: usize) -> usize {
        if self.elements[switch].table == NONE {
            return 0;
        }
        let links = self.links_of(switch);
        links.filter(|out| out.kind == Next::Host).count()
    }

    fn links_of(&self, element: usize) -> impl Iterator<Item = &OutPort> {
        let element = self.elements[element];
        let ports = element.base..element.base + element.ports;
        ports.map(|port| &self.outs[self.link_port(PortId::new(port as usize))])
    }

    fn neighbours(&self, switch: usize) -> impl Iterator<Item = usize> + '_ {
        self.links_of(switch)
            .filter(|out| out.kind == Next::Input)
            .map(|out| out.next_element as usize)
    }

    fn next_ring(&self, ring: &[usize], parts: &mut [Option<usize>], count: usize) -> Vec<usize> {
        let mut next: Vec<usize> = ring
            .iter()
            .flat_map(|&switch| self.neighbours(switch))
            .collect();
        next.sort_unstable();
        next.dedup();
        next.retain(|&switch| parts[switch].is_none());
        let share = next.len().div_ceil(count);
        let mut taken = vec![0; count];
        for &switch in &next {
            let mut near = vec![0; count];
            for part in self.neighbours(switch).filter_map(|switch| parts[switch]) {
                near[part] += 1;
            }
            let open = (0..count).filter(|&part| taken[part] < share);
            let best =
                open.max_by_key(|&part| (near[part], count - taken[part].min(count), count - part));
            if let Some(best) = best {
                parts[switch] = Some(best);
                taken[best] += 1;
            }
        }
        next
    }
}

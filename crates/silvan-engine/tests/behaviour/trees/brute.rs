//! Congestion trees by the definition alone: a list of all waiting packets, all pairs, until nothing
//! changes. Shares no code with the engine beyond the readings of a port.

use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{Bytes, HostId, PortId, Vl};
use silvan_engine::{EngineConfig, HostShare, Member, Queueing, Role, Tree, WaitingPacket};

use crate::common::{PlainEngine, Routed};

type PortVl = (PortId, Vl);

/// A packet, and the Port VL that has to take one from its buffer before it can move.
#[derive(Clone, Copy)]
struct Waiting {
    packet: WaitingPacket,
    place: PortVl,
}

struct Instant<'a> {
    routed: &'a Routed,
    waiting: Vec<Waiting>,
    lacking: BTreeSet<PortVl>,
}

pub fn trees(
    routed: &Routed,
    config: &EngineConfig,
    engine: &PlainEngine,
    threshold: Bytes,
) -> Vec<Tree> {
    let mut waiting: Vec<Waiting> = Vec::new();
    let is_fifo = config.switch.queueing == Queueing::Fifo;
    engine.for_each_waiting(|packet| {
        // Lanes do not change here, so that a packet's lane is that of its buffer.
        let same = |other: &&Waiting| {
            packet.input.is_some()
                && (other.packet.input, other.packet.vl) == (packet.input, packet.vl)
        };
        let first = waiting.iter().find(same).filter(|_| is_fifo);
        let place = first.map_or((packet.output, packet.vl), |first| first.place);
        waiting.push(Waiting { packet, place });
    });
    let mtu = (config.packet.mtu + config.packet.header)
        .as_u64()
        .div_ceil(64);
    let fabric = &routed.fabric;
    let all: Vec<PortVl> = fabric
        .ports
        .ids()
        .filter(|&port| fabric.ports[port].peer.is_some())
        .flat_map(|port| {
            Vl::all()
                .take(usize::from(config.data_vls))
                .map(move |vl| (port, vl))
        })
        .collect();
    let lacks = |&(port, vl): &PortVl| u64::from(engine.credits(port, vl)) < mtu;
    let instant = Instant {
        routed,
        waiting,
        lacking: all.iter().copied().filter(lacks).collect(),
    };
    let roots: Vec<PortVl> = all
        .iter()
        .copied()
        .filter(|&place| {
            let queued = instant.queued(place);
            !instant.is_host(place.0)
                && !queued.is_zero()
                && queued >= threshold
                && (instant.facing(place.0).is_some() || !instant.lacking.contains(&place))
        })
        .collect();
    let depths = instant.depths(&all, &roots);
    let found: Vec<Vec<Member>> = roots
        .iter()
        .map(|&root| {
            let of_root = depths
                .iter()
                .filter(|(place, _)| instant.climb(**place, &depths) == root);
            let mut members: Vec<Member> = of_root
                .map(|(&place, &depth)| instant.member(place, depth, &depths))
                .collect();
            members.sort_by_key(|m| (m.depth, m.port, m.vl));
            members
        })
        .collect();
    let counted = |root| instant.counted(root, &roots, &depths);
    let pairs = roots.iter().zip(found);
    pairs
        .map(|(&root, members)| instant.tree(root, members, &counted(root)))
        .collect()
}

impl Instant<'_> {
    fn is_host(&self, port: PortId) -> bool {
        let fabric = &self.routed.fabric;
        fabric.nodes[fabric.ports[port].node].as_host().is_some()
    }

    fn facing(&self, port: PortId) -> Option<HostId> {
        let fabric = &self.routed.fabric;
        fabric.nodes[fabric.ports[fabric.ports[port].peer?].node].as_host()
    }

    fn queued(&self, (port, vl): PortVl) -> Bytes {
        let own = self.waiting.iter().filter(|p| p.place == (port, vl));
        own.map(|waiting| waiting.packet.wire).sum()
    }

    /// Bytes in the buffer behind `from` that wait for `to`.
    fn between(&self, from: PortVl, to: PortVl) -> Bytes {
        let input = self.routed.fabric.ports[from.0].peer;
        let between = |p: &&Waiting| {
            p.packet.input == input && p.packet.vl == from.1 && p.place == to && input.is_some()
        };
        self.waiting
            .iter()
            .filter(between)
            .map(|waiting| waiting.packet.wire)
            .sum()
    }

    fn waits(&self, place: PortVl) -> bool {
        self.lacking.contains(&place) && (self.is_host(place.0) || !self.queued(place).is_zero())
    }

    /// Smallest number of waits to a root, relaxed until nothing changes.
    fn depths(&self, all: &[PortVl], roots: &[PortVl]) -> BTreeMap<PortVl, u32> {
        let mut depths: BTreeMap<PortVl, u32> = roots.iter().map(|&root| (root, 0)).collect();
        loop {
            let mut changed = false;
            for &from in all.iter().filter(|&&place| self.waits(place)) {
                let reached = depths
                    .iter()
                    .filter(|(to, _)| !self.between(from, **to).is_zero());
                let Some(depth) = reached.map(|(_, depth)| depth + 1).min() else {
                    continue;
                };
                if depths.get(&from).is_none_or(|&known| depth < known) {
                    depths.insert(from, depth);
                    changed = true;
                }
            }
            if !changed {
                return depths;
            }
        }
    }

    fn parent(&self, place: PortVl, depths: &BTreeMap<PortVl, u32>) -> Option<PortVl> {
        let depth = depths[&place].checked_sub(1)?;
        let nearest = depths.iter().filter(|(_, other)| **other == depth);
        // Of equal elements, `max_by_key` takes the last.
        nearest
            .rev()
            .map(|(&to, _)| to)
            .max_by_key(|&to| self.between(place, to))
    }

    fn climb(&self, place: PortVl, depths: &BTreeMap<PortVl, u32>) -> PortVl {
        self.parent(place, depths)
            .map_or(place, |parent| self.climb(parent, depths))
    }

    fn member(&self, place: PortVl, depth: u32, depths: &BTreeMap<PortVl, u32>) -> Member {
        let role = match (depth, self.is_host(place.0)) {
            (0, _) => Role::Root,
            (_, true) => Role::Source,
            (_, false) => Role::Branch,
        };
        Member {
            port: place.0,
            vl: place.1,
            role,
            depth,
            parent: self.parent(place, depths).map(|(port, _)| port),
            queued: self.queued(place),
        }
    }

    /// Output ports on the way of a packet, from the one that it waits for to the last.
    fn way(&self, packet: &WaitingPacket) -> Vec<PortId> {
        let fabric = &self.routed.fabric;
        let mut way = vec![packet.output];
        while let Some((switch, _)) = fabric.peer_switch(way[way.len() - 1]) {
            let lid = fabric.host(packet.destination).lid;
            let number = self.routed.tables.get(switch, lid).unwrap();
            way.push(fabric.switch(switch).port(number).unwrap());
        }
        way
    }

    /// Packets that count to the tree of `root`, and whether each contributes.
    fn counted(
        &self,
        root: PortVl,
        roots: &[PortVl],
        depths: &BTreeMap<PortVl, u32>,
    ) -> Vec<(WaitingPacket, bool)> {
        let in_tree = self
            .waiting
            .iter()
            .filter(|p| depths.contains_key(&p.place));
        in_tree
            .filter_map(|Waiting { packet, place }| {
                let own = self.climb(*place, depths);
                let way = self.way(packet).into_iter().map(|port| (port, packet.vl));
                let on_way: Vec<PortVl> = way.filter(|place| roots.contains(place)).collect();
                let counts_to = match on_way.contains(&own) {
                    true => own,
                    false => on_way.first().copied().unwrap_or(own),
                };
                (counts_to == root).then_some((*packet, !on_way.is_empty()))
            })
            .collect()
    }

    fn tree(&self, root: PortVl, members: Vec<Member>, counted: &[(WaitingPacket, bool)]) -> Tree {
        let bytes = |host: HostId, contributes: bool| -> Bytes {
            let own = counted
                .iter()
                .filter(|(p, c)| p.source == host && *c == contributes);
            own.map(|(packet, _)| packet.wire).sum()
        };
        let flows = |contributes: bool| {
            let of_kind = counted.iter().filter(|(_, c)| *c == contributes);
            let flows: BTreeSet<_> = of_kind
                .map(|(p, _)| (p.source, p.destination, p.sl))
                .collect();
            u32::try_from(flows.len()).unwrap()
        };
        let hosts: BTreeSet<HostId> = counted.iter().map(|(p, _)| p.source).collect();
        let share = |host| HostShare {
            host,
            contributing: bytes(host, true),
            victim: bytes(host, false),
        };
        Tree {
            root: root.0,
            vl: root.1,
            destination: self.facing(root.0),
            members,
            shares: hosts.into_iter().map(share).collect(),
            contributing_flows: flows(true),
            victim_flows: flows(false),
        }
    }
}

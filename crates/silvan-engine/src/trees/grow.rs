use std::cmp::Reverse;

use silvan_core::{Bytes, HostId, PortId, Vl};

use super::waiting::{Alike, Buffer, Waiting, WaitingPackets};
use crate::packet::{NONE, Packet};
use crate::partition::Whole;
use crate::plane::{NO_ROUTE, Plane};
use crate::records::{Next, OutPort};
use silvan_model::{HostShare, Member, Role, Tree};

pub(super) fn trees(whole: &Whole<'_>, now: u64, threshold: Bytes) -> Vec<Tree> {
    let plane = whole.any();
    let mut growth = Growth {
        whole,
        plane,
        now,
        threshold: threshold.as_u64().max(1),
        locations: vec![None; plane.fabric_ports * plane.vls],
        waiting: WaitingPackets::new(),
        paths: vec![Path::default(); plane.hosts.len()],
    };
    let roots = growth.roots();
    if roots.is_empty() {
        return Vec::new();
    }
    let mut ring = roots.clone();
    let mut members: Vec<Vec<Member>> = roots
        .iter()
        .map(|&root| vec![growth.member(root, Role::Root, None)])
        .collect();
    while !ring.is_empty() {
        ring = growth.next_ring(&ring);
        for &lane in &ring {
            if let Some(location) = growth.locations[lane] {
                let role = if growth.is_host(lane) {
                    Role::Source
                } else {
                    Role::Branch
                };
                members[location.tree as usize].push(growth.member(lane, role, location.parent));
            }
        }
    }
    let packets = growth.queued_packets(roots.len());
    members
        .into_iter()
        .zip(packets)
        .map(|(members, packets)| growth.tree(members, &packets))
        .collect()
}

#[derive(Clone, Copy, Debug)]
struct Location {
    tree: u32,
    depth: u32,
    parent: Option<usize>,
}

/// Packets of one flow that a tree holds, or that contribute to it from another tree.
#[derive(Clone, Copy, Debug)]
struct QueuedPackets {
    key: u64,
    bytes: u64,
}

/// Bits of a host's number: LIDs have 16 bits, and no memory holds 2^29 hosts.
const HOST_BITS: u32 = 29;

impl QueuedPackets {
    fn new(is_victim: bool, packets: &Waiting) -> Self {
        let ends = u64::from(packets.source()) << HOST_BITS | u64::from(packets.destination());
        Self {
            key: ends << 5 | u64::from(packets.sl) << 1 | u64::from(is_victim),
            bytes: packets.bytes(),
        }
    }

    fn source(&self) -> usize {
        (self.key >> (HOST_BITS + 5)) as usize
    }

    fn is_victim(&self) -> bool {
        self.key & 1 == 1
    }
}

fn by_source(queued: &[(u32, QueuedPackets)], hosts: usize) -> Vec<(u32, QueuedPackets)> {
    let mut places = vec![0; hosts + 1];
    for (_, packets) in queued {
        places[packets.source() + 1] += 1;
    }
    let mut before = 0;
    for place in &mut places {
        before += *place;
        *place = before;
    }
    let mut sorted = queued.to_vec();
    for packets in queued {
        let place = &mut places[packets.1.source()];
        sorted[*place] = *packets;
        *place += 1;
    }
    sorted
}

#[derive(Clone, Copy, Debug)]
struct Path {
    element: u32,
    vl: Vl,
    first: u32,
    has_more: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            element: NONE,
            vl: Vl::MAX,
            first: NONE,
            has_more: false,
        }
    }
}

struct Growth<'a> {
    whole: &'a Whole<'a>,
    plane: &'a Plane,
    now: u64,
    threshold: u64,
    locations: Vec<Option<Location>>,
    waiting: WaitingPackets,
    /// Last path by destination: almost all packets to a host come by few switches.
    paths: Vec<Path>,
}

impl Growth<'_> {
    fn port(&self, lane: usize) -> u32 {
        (lane / self.plane.vls) as u32
    }

    fn is_host(&self, lane: usize) -> bool {
        !self.plane.outs[lane / self.plane.vls].marks
    }

    fn link_lane(&self, lane: usize) -> usize {
        let port = PortId::new(lane / self.plane.vls);
        self.plane.link_port(port) * self.plane.vls + lane % self.plane.vls
    }

    /// Includes the output buffer. Behind the first packet of a FIFO, all wait for the same Port VL.
    fn queued(&self, lane: usize) -> u64 {
        let bytes = |lane: usize| {
            if self.plane.fifos.is_none() {
                return u64::from(self.whole.of_lane(lane).lanes[lane].queued_bytes);
            }
            let mut bytes = 0;
            let add = |_, _, packet: &Packet| bytes += u64::from(packet.wire());
            self.whole.of_lane(lane).for_each_blocked_by(lane, add);
            bytes
        };
        match self.link_lane(lane) {
            link if link == lane => bytes(lane),
            link => bytes(lane) + bytes(link),
        }
    }

    fn lacks_credits(&self, lane: usize) -> bool {
        let link = self.link_lane(lane);
        let plane = self.whole.of_lane(link);
        let in_hand = plane.credits_at(self.now, link) + plane.withheld_credits(link);
        in_hand < plane.mtu_blocks
    }

    fn faces_host(&self, lane: usize) -> bool {
        self.plane.outs[self.link_lane(lane) / self.plane.vls].kind == Next::Host
    }

    fn roots(&mut self) -> Vec<usize> {
        let plane = self.plane;
        let mut roots = Vec::new();
        for port in (0..plane.fabric_ports).filter(|&port| plane.outs[port].marks) {
            for lane in port * plane.vls..(port + 1) * plane.vls {
                if self.queued(lane) >= self.threshold
                    && (self.faces_host(lane) || !self.lacks_credits(lane))
                {
                    roots.push(lane);
                }
            }
        }
        for (tree, &root) in (0..).zip(&roots) {
            self.locations[root] = Some(Location {
                tree,
                depth: 0,
                parent: None,
            });
        }
        roots
    }

    fn next_ring(&mut self, ring: &[usize]) -> Vec<usize> {
        let plane = self.plane;
        let mut waits: Vec<(usize, Reverse<u64>, usize)> = Vec::new();
        for &lane in ring {
            if self.is_host(lane) {
                continue;
            }
            let found = &mut self.waiting;
            let start = |input| Buffer::new(input);
            let add = |buffer: &mut Buffer, waiting_lane, packet: &Packet| {
                buffer.add(waiting_lane, packet, |run| found.note(lane, run));
            };
            let mut read: Vec<Buffer> = Vec::new();
            self.whole
                .of_lane(lane)
                .for_each_blocked_by_in_turns(lane, start, add, |buffer| read.push(buffer));
            let mut buffers: Vec<Buffer> = Vec::with_capacity(read.len());
            for mut buffer in read {
                buffer.end_run(|run| self.waiting.note(lane, run));
                let mut known = buffers.iter_mut();
                match known.find(|known| known.input == buffer.input) {
                    Some(known) => known.join(&buffer),
                    None => buffers.push(buffer),
                }
            }
            for buffer in buffers {
                let upstream = plane.fabric_port(plane.ins[buffer.input as usize].upstream);
                for (vl, bytes) in buffer.lanes() {
                    let waiting = plane.lane(upstream, vl);
                    if self.locations[waiting].is_none() && self.waits(waiting) {
                        waits.push((waiting, Reverse(bytes), lane));
                    }
                }
            }
        }
        waits.sort_unstable();
        waits.dedup_by_key(|wait| wait.0);
        for &(waiting, _, parent) in &waits {
            self.locations[waiting] = self.locations[parent].map(|location| Location {
                tree: location.tree,
                depth: location.depth + 1,
                parent: Some(parent),
            });
        }
        waits.into_iter().map(|wait| wait.0).collect()
    }

    fn waits(&self, lane: usize) -> bool {
        self.lacks_credits(lane) && (self.is_host(lane) || self.queued(lane) > 0)
    }

    fn member(&self, lane: usize, role: Role, parent: Option<usize>) -> Member {
        Member {
            port: PortId::new(self.port(lane) as usize),
            vl: self.vl(lane),
            role,
            depth: self.locations[lane].map_or(0, |location| location.depth),
            parent: parent.map(|parent| PortId::new(self.port(parent) as usize)),
            queued: Bytes::from_bytes(self.queued(lane)),
        }
    }

    fn vl(&self, lane: usize) -> Vl {
        // Lanes are below the number of data VLs.
        Vl::try_new((lane % self.plane.vls) as u8).unwrap_or(Vl::MAX)
    }

    fn queued_packets(&mut self, trees: usize) -> Vec<Vec<QueuedPackets>> {
        self.add_output_buffers();
        let waiting = std::mem::take(&mut self.waiting.found);
        let mut queued = Vec::with_capacity(waiting.len());
        let mut counts = vec![0; trees];
        for packets in &waiting {
            let Some(home) = self.locations[packets.blocked_by()] else {
                continue;
            };
            let root = self.root_on_path(packets.lane(), packets.destination(), home.tree);
            let tree = root.unwrap_or(home.tree);
            counts[tree as usize] += 1;
            queued.push((tree, QueuedPackets::new(root.is_none(), packets)));
        }
        let mut by_tree: Vec<Vec<_>> = counts.into_iter().map(Vec::with_capacity).collect();
        for (tree, packets) in by_source(&queued, self.plane.hosts.len()) {
            by_tree[tree as usize].push(packets);
        }
        for packets in &mut by_tree {
            for of_source in packets.chunk_by_mut(|one, next| one.source() == next.source()) {
                of_source.sort_unstable_by_key(|packets| packets.key);
            }
        }
        by_tree
    }

    fn add_output_buffers(&mut self) {
        for lane in 0..self.locations.len() {
            let link = self.link_lane(lane);
            if link == lane || self.locations[lane].is_none() {
                continue;
            }
            let (whole, found) = (self.whole, &mut self.waiting);
            whole
                .of_lane(link)
                .for_each_blocked_by(link, |_, _, packet| {
                    found.note(lane, &Alike::new(lane, packet));
                });
        }
    }

    /// The tree of the root on the path to a host: `home` if its root is there, else the first. The path follows the
    /// tables on the lane where it begins.
    fn root_on_path(&mut self, from: usize, destination: u32, home: u32) -> Option<u32> {
        let own = self.root_at(from);
        if own == Some(home) {
            return own;
        }
        let (port, vl) = (self.port(from), self.vl(from));
        let Some(element) = self.link_to_switch(port).map(|out| out.next_element) else {
            return own;
        };
        let mut known = self.paths[destination as usize];
        if (known.element, known.vl) != (element, vl) {
            known = self.walk(port, vl, destination, element);
            self.paths[destination as usize] = known;
        }
        let is_home = |tree| tree == home;
        if is_home(known.first)
            || known.has_more && self.roots_from(port, vl, destination).any(is_home)
        {
            return Some(home);
        }
        own.or((known.first != NONE).then_some(known.first))
    }

    fn walk(&self, port: u32, vl: Vl, destination: u32, element: u32) -> Path {
        let mut roots = self.roots_from(port, vl, destination);
        Path {
            element,
            vl,
            first: roots.next().unwrap_or(NONE),
            has_more: roots.next().is_some(),
        }
    }

    fn root_at(&self, lane: usize) -> Option<u32> {
        match self.locations[lane] {
            Some(Location { tree, depth: 0, .. }) => Some(tree),
            _ => None,
        }
    }

    fn link_to_switch(&self, port: u32) -> Option<&OutPort> {
        let out = &self.plane.outs[self.plane.link_port(PortId::new(port as usize))];
        (out.kind == Next::Input).then_some(out)
    }

    fn roots_from(&self, port: u32, vl: Vl, destination: u32) -> impl Iterator<Item = u32> + '_ {
        let plane = self.plane;
        let next = move |&port: &u32| {
            let out = self.link_to_switch(port)?;
            // Only the part of a switch has its table.
            let there = self.whole.of_port(out.next as usize);
            let element = &there.elements[out.next_element as usize];
            let entry = match element.table {
                NONE => NO_ROUTE,
                _ => there.table_port(out.next_element as usize, destination),
            };
            (entry != NO_ROUTE).then(|| element.base + u32::from(entry))
        };
        // A path is no longer than the number of switches.
        let path = std::iter::successors(next(&port), next).take(plane.elements.len());
        path.filter_map(move |port| self.root_at(plane.lane(port, vl.index())))
    }

    fn tree(&self, members: Vec<Member>, queued: &[QueuedPackets]) -> Tree {
        let root = members[0];
        let lane = self.plane.lane(root.port.index() as u32, root.vl.index());
        let facing = || HostId::new(self.plane.host_behind(root.port.index() as u32) as usize);
        let mut shares: Vec<HostShare> = Vec::new();
        let (mut contributing_flows, mut victim_flows) = (0, 0);
        let mut last = None;
        for packets in queued {
            if last.replace(packets.key) != Some(packets.key) {
                match packets.is_victim() {
                    true => victim_flows += 1,
                    false => contributing_flows += 1,
                }
            }
            let host = HostId::new(packets.source());
            if shares.last().is_none_or(|share| share.host != host) {
                shares.push(HostShare {
                    host,
                    contributing: Bytes::ZERO,
                    victim: Bytes::ZERO,
                });
            }
            if let Some(share) = shares.last_mut() {
                let bytes = match packets.is_victim() {
                    true => &mut share.victim,
                    false => &mut share.contributing,
                };
                *bytes += Bytes::from_bytes(packets.bytes);
            }
        }
        Tree {
            root: root.port,
            vl: root.vl,
            destination: self.faces_host(lane).then(facing),
            members,
            shares,
            contributing_flows,
            victim_flows,
        }
    }
}

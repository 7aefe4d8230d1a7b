//! From the queues and credits of an instant to its trees.

use std::cmp::Reverse;

use silvan_core::{Bytes, HostId, PortId, Vl};

use super::waiting::{Buffer, Waiting, WaitingPackets};
use crate::packet::{NONE, Packet};
use crate::partition::Whole;
use crate::plane::{NO_ROUTE, Plane};
use crate::records::Next;
use silvan_model::{HostShare, Member, Role, Tree};

/// All trees of an instant, by Port VL of their roots.
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
        .map(|(members, mut packets)| {
            packets.sort_unstable_by_key(|packets| packets.key);
            growth.tree(members, &packets)
        })
        .collect()
}

/// Location of a Port VL in the forest.
#[derive(Clone, Copy, Debug)]
struct Location {
    tree: u32,
    depth: u32,
    /// The Port VL that it waits for.
    parent: Option<usize>,
}

/// Packets of one flow that a tree holds, or that contribute to it from within another one.
#[derive(Clone, Copy, Debug)]
struct QueuedPackets {
    /// From the high end: source (29 bits), destination (29), service level (4), whether they are victims (1 bit).
    key: u64,
    bytes: u64,
}

/// Bits of a host's number. No fabric has more hosts: LIDs have 16 bits, and no memory holds 2^29 hosts.
const HOST_BITS: u32 = 29;

impl QueuedPackets {
    fn new(is_victim: bool, packets: &Waiting) -> Self {
        let ends = u64::from(packets.source()) << HOST_BITS | u64::from(packets.destination());
        Self {
            key: ends << 5 | u64::from(packets.sl) << 1 | u64::from(is_victim),
            bytes: packets.bytes,
        }
    }

    fn source(&self) -> usize {
        (self.key >> (HOST_BITS + 5)) as usize
    }

    fn is_victim(&self) -> bool {
        self.key & 1 == 1
    }
}

/// The root on the path of the packets that were seen last on their way to a host.
#[derive(Clone, Copy, Debug)]
struct Path {
    blocked_by: u32,
    lane: u32,
    tree: Option<u32>,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            blocked_by: NONE,
            lane: NONE,
            tree: None,
        }
    }
}

/// The forest as far as it is known. Port VLs have the number of their lane.
struct Growth<'a> {
    whole: &'a Whole<'a>,
    /// Any part of it, for what is the same in all.
    plane: &'a Plane,
    now: u64,
    threshold: u64,
    locations: Vec<Option<Location>>,
    /// The packets that wait for the Port VLs of switches that are known to be in trees.
    waiting: WaitingPackets,
    /// By destination.
    paths: Vec<Path>,
}

impl Growth<'_> {
    fn port(&self, lane: usize) -> u32 {
        (lane / self.plane.vls) as u32
    }

    fn is_host(&self, lane: usize) -> bool {
        !self.plane.outs[lane / self.plane.vls].marks
    }

    /// The lane of the link: that of the output-buffer stage, if the switch has output buffers.
    fn link_lane(&self, lane: usize) -> usize {
        let port = PortId::new(lane / self.plane.vls);
        self.plane.link_port(port) * self.plane.vls + lane % self.plane.vls
    }

    /// Bytes that wait for a Port VL, in its output buffer too. Behind the first packet of a FIFO all
    /// wait for what that one waits for.
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

    /// Finds the roots: one tree for each.
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

    /// The Port VLs that wait for credits because of those of the last ring, and for no closer one.
    fn next_ring(&mut self, ring: &[usize]) -> Vec<usize> {
        let plane = self.plane;
        // Waiting Port VL, bytes that it waits for, and the Port VL that holds them.
        let mut waits: Vec<(usize, Reverse<u64>, usize)> = Vec::new();
        for &lane in ring {
            if self.is_host(lane) {
                continue;
            }
            let found = &mut self.waiting;
            let start = |input| Buffer::new(input);
            let note = |buffer: &mut Buffer, waiting_lane, packet: &Packet| {
                buffer.add(packet);
                found.note(lane, waiting_lane, packet);
            };
            let mut buffers: Vec<Buffer> = Vec::new();
            self.whole
                .of_lane(lane)
                .for_each_blocked_by_in_turns(lane, start, note, |buffer| {
                    let mut known = buffers.iter_mut();
                    match known.find(|known| known.input == buffer.input) {
                        Some(known) => known.join(&buffer),
                        None => buffers.push(buffer),
                    }
                });
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
        // Lanes are numbered below the number of data VLs.
        Vl::try_new((lane % self.plane.vls) as u8).unwrap_or(Vl::MAX)
    }

    /// Every packet that waits for a Port VL of a tree, by the tree to which it counts.
    fn queued_packets(&mut self, trees: usize) -> Vec<Vec<QueuedPackets>> {
        self.add_output_buffers();
        let waiting = std::mem::take(&mut self.waiting.found);
        let mut queued = vec![Vec::new(); trees];
        for packets in &waiting {
            let Some(home) = self.locations[packets.blocked_by()] else {
                continue;
            };
            let lanes = (packets.blocked_by() as u32, packets.lane() as u32);
            let known = &mut self.paths[packets.destination() as usize];
            let tree = if (known.blocked_by, known.lane) == lanes {
                known.tree
            } else {
                let tree = self.root_on_path(packets.lane(), packets.destination(), home.tree);
                self.paths[packets.destination() as usize] = Path {
                    blocked_by: lanes.0,
                    lane: lanes.1,
                    tree,
                };
                tree
            };
            let is_victim = tree.is_none();
            queued[tree.unwrap_or(home.tree) as usize].push(QueuedPackets::new(is_victim, packets));
        }
        queued
    }

    /// Adds what waits in the output buffers of Port VLs in trees. From an output buffer the path begins at
    /// the port before it.
    fn add_output_buffers(&mut self) {
        for lane in 0..self.locations.len() {
            let link = self.link_lane(lane);
            if link == lane || self.locations[lane].is_none() {
                continue;
            }
            let (whole, found) = (self.whole, &mut self.waiting);
            whole
                .of_lane(link)
                .for_each_blocked_by(link, |_, _, packet| found.note(lane, lane, packet));
        }
    }

    /// The tree of the root on the path from here to a host: `home` if its root is there, else that
    /// of the first one. The path is that of the tables, on the lane where it begins.
    fn root_on_path(&self, from: usize, destination: u32, home: u32) -> Option<u32> {
        let (plane, vl) = (self.plane, from % self.plane.vls);
        let mut first = None;
        let mut lane = from;
        // A path is never longer than the number of switches.
        for _ in 0..plane.elements.len() {
            match self.locations[lane] {
                Some(Location { tree, depth: 0, .. }) if tree == home => return Some(home),
                Some(Location { tree, depth: 0, .. }) => first = first.or(Some(tree)),
                _ => {}
            }
            let out = &plane.outs[self.link_lane(lane) / plane.vls];
            if out.kind != Next::Input {
                break;
            }
            // Only the part of a switch has its table.
            let there = self.whole.of_port(out.next as usize);
            let element = &there.elements[out.next_element as usize];
            let entry = match element.table {
                NONE => NO_ROUTE,
                _ => there.table_port(out.next_element as usize, destination),
            };
            if entry == NO_ROUTE {
                break;
            }
            lane = plane.lane(element.base + u32::from(entry), vl);
        }
        first
    }

    /// A tree from its members, root first, and from its packets, sorted by their keys.
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

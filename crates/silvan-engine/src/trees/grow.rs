//! From the queues and credits of an instant to its trees.

use std::cmp::Reverse;

use silvan_core::{Bytes, HostId, PortId, Vl};

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
        waiting: Vec::new(),
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
    let mut queued = growth.queued_packets();
    queued.sort_unstable_by_key(|packets| packets.key);
    let mut rest = queued.as_slice();
    let mut found = Vec::with_capacity(roots.len());
    for (tree, members) in members.into_iter().enumerate() {
        let end = rest.partition_point(|packets| packets.tree() as usize <= tree);
        let (packets, later) = rest.split_at(end);
        rest = later;
        found.push(growth.tree(members, packets));
    }
    found
}

/// Location of a Port VL in the forest.
#[derive(Clone, Copy, Debug)]
struct Location {
    tree: u32,
    depth: u32,
    /// The Port VL that it waits for.
    parent: Option<usize>,
}

/// Packets of one flow that wait next to each other.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The lane that they wait for, or that of the packet before them in their FIFO.
    blocked_by: u32,
    /// The lane that they will leave by.
    lane: u32,
    source: u32,
    destination: u32,
    sl: u8,
    bytes: u32,
}

/// Packets of one flow that a tree holds, or that contribute to it from within another one.
#[derive(Clone, Copy, Debug)]
struct QueuedPackets {
    /// From the high end: tree, source, destination (32 bits each), service level, whether they are
    /// victims (1 bit).
    key: u128,
    bytes: u32,
}

impl QueuedPackets {
    fn new(tree: u32, is_victim: bool, packets: &Waiting) -> Self {
        let flow = u128::from(packets.source) << 32 | u128::from(packets.destination);
        let detail = u128::from(packets.sl) << 1 | u128::from(is_victim);
        Self {
            key: u128::from(tree) << 96 | flow << 32 | detail,
            bytes: packets.bytes,
        }
    }

    fn tree(&self) -> u32 {
        (self.key >> 96) as u32
    }

    fn source(&self) -> u32 {
        (self.key >> 64) as u32
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
    waiting: Vec<Waiting>,
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
        let in_hand =
            plane.credits[link].at(&plane.overflow, self.now) + plane.withheld_credits(link);
        in_hand < plane.mtu_blocks
    }

    fn faces_host(&self, lane: usize) -> bool {
        self.plane.outs[self.link_lane(lane) / self.plane.vls].kind == Next::Host
    }

    /// Finds the roots: one tree for each.
    fn roots(&mut self) -> Vec<usize> {
        let is_root = |lane: &usize| {
            !self.is_host(*lane)
                && self.queued(*lane) >= self.threshold
                && (self.faces_host(*lane) || !self.lacks_credits(*lane))
        };
        let roots: Vec<usize> = (0..self.locations.len()).filter(is_root).collect();
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
            // The buffer that a packet takes space in: its input, and the lane it came on.
            let mut by_buffer: Vec<((u32, usize), u64)> = Vec::new();
            let found = &mut self.waiting;
            let note = |input: u32, waiting_lane: usize, packet: &Packet, last: &mut usize| {
                let buffer = (input, packet.vl());
                let wire = u64::from(packet.wire());
                // Each input has few virtual lanes, and all inputs take turns.
                match by_buffer.iter_mut().rfind(|sum| sum.0 == buffer) {
                    Some((_, bytes)) => *bytes += wire,
                    None => by_buffer.push((buffer, wire)),
                }
                note_waiting(found, lane, waiting_lane, packet, last);
            };
            self.whole
                .of_lane(lane)
                .for_each_blocked_by_in_turns(lane, note);
            for ((input, vl), bytes) in by_buffer {
                let upstream = plane.fabric_port(plane.ins[input as usize].upstream);
                let waiting = plane.lane(upstream, vl);
                if self.locations[waiting].is_none() && self.waits(waiting) {
                    waits.push((waiting, Reverse(bytes), lane));
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

    /// Every packet that waits for a Port VL of a tree, with the tree to which it counts.
    fn queued_packets(&mut self) -> Vec<QueuedPackets> {
        self.add_output_buffers();
        let waiting = std::mem::take(&mut self.waiting);
        let mut queued = Vec::with_capacity(waiting.len());
        for packets in &waiting {
            let Some(home) = self.locations[packets.blocked_by as usize] else {
                continue;
            };
            let known = self.paths[packets.destination as usize];
            let tree = if (known.blocked_by, known.lane) == (packets.blocked_by, packets.lane) {
                known.tree
            } else {
                self.root_on_path(packets.lane as usize, packets.destination, home.tree)
            };
            self.paths[packets.destination as usize] = Path {
                blocked_by: packets.blocked_by,
                lane: packets.lane,
                tree,
            };
            let is_victim = tree.is_none();
            queued.push(QueuedPackets::new(
                tree.unwrap_or(home.tree),
                is_victim,
                packets,
            ));
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
            let (whole, found, mut last) = (self.whole, &mut self.waiting, usize::MAX);
            whole
                .of_lane(link)
                .for_each_blocked_by(link, |_, _, packet| {
                    note_waiting(found, lane, lane, packet, &mut last);
                });
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
                table => there.table_port((table + destination) as usize),
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
            let host = HostId::new(packets.source() as usize);
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
                *bytes += Bytes::from_bytes(u64::from(packets.bytes));
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

/// Notes a packet that waits; `last` is the place of the packets before it in its queue.
fn note_waiting(
    found: &mut Vec<Waiting>,
    blocked_by: usize,
    lane: usize,
    packet: &Packet,
    last: &mut usize,
) {
    let flow = (
        packet.source(),
        packet.destination(),
        packet.sl_bits(),
        lane as u32,
    );
    let wire = u32::from(packet.wire());
    if let Some(before) = found.get_mut(*last) {
        if flow == (before.source, before.destination, before.sl, before.lane) {
            before.bytes += wire;
            return;
        }
    }
    *last = found.len();
    found.push(Waiting {
        blocked_by: blocked_by as u32,
        lane: flow.3,
        source: flow.0,
        destination: flow.1,
        sl: flow.2,
        bytes: wire,
    });
}

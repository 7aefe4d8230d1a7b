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
    queued.sort_unstable_by_key(|packet| packet.key());
    let mut rest = queued.as_slice();
    let mut found = Vec::with_capacity(roots.len());
    for (tree, members) in members.into_iter().enumerate() {
        let end = rest.partition_point(|packet| packet.tree as usize <= tree);
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

/// A packet that a tree holds, or that contributes to it from within another one.
#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    tree: u32,
    source: u32,
    destination: u32,
    sl: u8,
    is_victim: bool,
    wire: u16,
}

impl QueuedPacket {
    fn key(&self) -> (u32, u32, u32, u8, bool) {
        (
            self.tree,
            self.source,
            self.destination,
            self.sl,
            self.is_victim,
        )
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
            self.whole
                .of_lane(lane)
                .for_each_blocked_by(lane, |input, _, packet| {
                    let buffer = (input, packet.vl());
                    match by_buffer.last_mut() {
                        Some((last, bytes)) if *last == buffer => {
                            *bytes += u64::from(packet.wire())
                        }
                        _ => by_buffer.push((buffer, u64::from(packet.wire()))),
                    }
                });
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
    fn queued_packets(&self) -> Vec<QueuedPacket> {
        let mut queued = Vec::new();
        for (lane, location) in self.locations.iter().enumerate() {
            let Some(location) = location else { continue };
            let mut note = |_, waiting_lane, packet: &Packet| {
                let contributes =
                    self.root_on_path(waiting_lane, packet.destination(), location.tree);
                queued.push(QueuedPacket {
                    tree: contributes.unwrap_or(location.tree),
                    source: packet.source(),
                    destination: packet.destination(),
                    sl: packet.service_level().as_u8(),
                    is_victim: contributes.is_none(),
                    wire: packet.wire(),
                });
            };
            self.whole
                .of_lane(lane)
                .for_each_blocked_by(lane, &mut note);
            let link = self.link_lane(lane);
            if link != lane {
                // From an output buffer the path begins at the port before it.
                let mut note = |input, _, packet: &Packet| note(input, lane, packet);
                self.whole
                    .of_lane(link)
                    .for_each_blocked_by(link, &mut note);
            }
        }
        queued
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
    fn tree(&self, members: Vec<Member>, queued: &[QueuedPacket]) -> Tree {
        let root = members[0];
        let lane = self.plane.lane(root.port.index() as u32, root.vl.index());
        let facing = || HostId::new(self.plane.host_behind(root.port.index() as u32) as usize);
        let mut shares: Vec<HostShare> = Vec::new();
        let (mut contributing_flows, mut victim_flows) = (0, 0);
        let mut last = None;
        for packet in queued {
            if last.replace(packet.key()) != Some(packet.key()) {
                match packet.is_victim {
                    true => victim_flows += 1,
                    false => contributing_flows += 1,
                }
            }
            let host = HostId::new(packet.source as usize);
            if shares.last().is_none_or(|share| share.host != host) {
                shares.push(HostShare {
                    host,
                    contributing: Bytes::ZERO,
                    victim: Bytes::ZERO,
                });
            }
            if let Some(share) = shares.last_mut() {
                let bytes = match packet.is_victim {
                    true => &mut share.victim,
                    false => &mut share.contributing,
                };
                *bytes += Bytes::from_bytes(u64::from(packet.wire));
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

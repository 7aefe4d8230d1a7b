use std::ops::ControlFlow;

use silvan_core::{Sl, Vl};

use crate::table::Table;
use silvan_core::prefetch::prefetch;

pub(crate) const NONE: u32 = u32::MAX;

pub(crate) const MARKED: u8 = 1;
pub(crate) const LAST: u8 = 2;
pub(crate) const CONTROL: u8 = 4;
pub(crate) const ACK: u8 = 8;
pub(crate) const BECN: u8 = 16;
/// The control packet is a grant of a receiver; with `ACK`, a negative acknowledgement.
pub(crate) const GRANT: u8 = 32;
/// `born` is the number of the packet's [extension](crate::extension).
pub(crate) const EXTENDED: u8 = 64;
/// With `CONTROL`, an acknowledgement or NAK of a connection; `born` has its PSN.
pub(crate) const RESPONSE: u8 = 128;

/// A packet travels by value inside events until it waits. It has three words, because small fields would be moved one
/// by one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// Data: start of injection in ps, low 56 bits. Notification or grant: payload bytes. Negative acknowledgement:
    /// data of the packet. With `EXTENDED`, the number of the extension. High eight bits: waypoint.
    pub born: u64,
    /// Sending host, and above it the receiving one.
    ends: u64,
    /// From the low end: wire bytes (16 bits), class (16), service level (4), virtual lane (4), flags (8), links
    /// crossed (8), low bits of the waypoint (8).
    rest: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub wire: u16,
    /// Data: traffic class. Notification: service level of the flow it is about.
    pub class: u16,
    /// Service level of the header in the low four bits. In the high four the virtual lane of the
    /// buffer that holds the packet or that it travels to.
    pub lane: u8,
    pub flags: u8,
}

const CLASS_SHIFT: u32 = 16;
const LANE_SHIFT: u32 = 32;
const FLAGS_SHIFT: u32 = 40;
const HOPS_SHIFT: u32 = 48;
const WAYPOINT_SHIFT: u32 = 56;
const BELOW_WAYPOINT: u64 = (1 << WAYPOINT_SHIFT) - 1;

impl Packet {
    #[inline]
    pub fn new(born: u64, source: u32, destination: u32, kind: Kind) -> Self {
        Self {
            born: born & BELOW_WAYPOINT,
            ends: u64::from(destination) << 32 | u64::from(source),
            rest: u64::from(kind.flags) << FLAGS_SHIFT
                | u64::from(kind.lane) << LANE_SHIFT
                | u64::from(kind.class) << CLASS_SHIFT
                | u64::from(kind.wire),
        }
    }

    #[inline]
    pub fn ends(&self) -> u64 {
        self.ends
    }

    #[inline]
    pub fn rest(&self) -> u64 {
        self.rest
    }

    pub fn order(&self) -> (u64, u64, u64) {
        let bytes = if self.is(EXTENDED) { 0 } else { self.born };
        (self.ends, self.rest, bytes)
    }

    #[inline]
    pub fn source(&self) -> u32 {
        self.ends as u32
    }

    #[inline]
    pub fn destination(&self) -> u32 {
        (self.ends >> 32) as u32
    }

    pub fn divert(&mut self, destination: u32) {
        self.ends = u64::from(destination) << 32 | u64::from(self.source());
    }

    pub fn with_nack(mut self, bits: u64, discarded: &Self) -> Self {
        self.born = bits & BELOW_WAYPOINT;
        self.rest &= !(u64::from(u16::MAX) << CLASS_SHIFT);
        self.rest |= u64::from(discarded.class()) << CLASS_SHIFT;
        if discarded.is(LAST) {
            self.set(LAST);
        }
        self
    }

    #[inline]
    pub fn nack(&self) -> Option<u64> {
        let both = u64::from(GRANT | ACK) << FLAGS_SHIFT;
        (self.rest & both == both).then_some(self.born & BELOW_WAYPOINT)
    }

    #[inline]
    pub fn wire(&self) -> u16 {
        self.rest as u16
    }

    #[inline]
    pub fn class(&self) -> u16 {
        (self.rest >> CLASS_SHIFT) as u16
    }

    #[inline]
    pub fn vl(&self) -> usize {
        (self.rest >> (LANE_SHIFT + 4)) as usize & 15
    }

    /// No data packet and no notification is on the management lane.
    #[inline]
    pub fn data_vl(&self) -> Vl {
        Vl::try_new(self.vl() as u8).unwrap_or(Vl::MAX)
    }

    #[inline]
    pub fn lane_bits(&self) -> u8 {
        (self.rest >> LANE_SHIFT) as u8
    }

    #[inline]
    pub fn sl_bits(&self) -> u8 {
        (self.rest >> LANE_SHIFT) as u8 & 15
    }

    #[inline]
    pub fn set_vl(&mut self, vl: usize) {
        let shift = LANE_SHIFT + 4;
        self.rest = self.rest & !(15 << shift) | (vl as u64) << shift;
    }

    #[inline]
    pub fn service_level(&self) -> Sl {
        service_level(self.sl_bits())
    }

    #[inline]
    pub fn blocks(&self) -> i32 {
        (i32::from(self.wire()) + 63) >> 6
    }

    #[inline]
    pub fn is(&self, flag: u8) -> bool {
        self.rest & u64::from(flag) << FLAGS_SHIFT != 0
    }

    #[inline]
    pub fn set(&mut self, flag: u8) {
        self.rest |= u64::from(flag) << FLAGS_SHIFT;
    }

    #[inline]
    pub fn clear(&mut self, flag: u8) {
        self.rest &= !(u64::from(flag) << FLAGS_SHIFT);
    }

    #[inline]
    pub fn hops(&self) -> u8 {
        (self.rest >> HOPS_SHIFT) as u8
    }

    /// Number of the switch that the packet is sent over, from 1, until it is there; 0 for none.
    #[inline]
    pub fn waypoint(&self) -> u16 {
        (self.born >> WAYPOINT_SHIFT << 8 | self.rest >> WAYPOINT_SHIFT) as u16
    }

    /// Returns the time since the start of injection of a data packet without an extension, in ps. No packet takes 20
    /// hours.
    #[inline]
    pub fn age(&self, now: u64) -> u64 {
        now.wrapping_sub(self.born) & BELOW_WAYPOINT
    }

    pub fn set_sent(&mut self, sent: u64) {
        self.born = self.born & !BELOW_WAYPOINT | sent & BELOW_WAYPOINT;
    }

    pub fn shift(&mut self, by: u64) {
        self.set_sent(self.born.wrapping_add(by));
    }

    pub fn set_waypoint(&mut self, waypoint: u16) {
        let waypoint = u64::from(waypoint);
        self.born = self.born & BELOW_WAYPOINT | (waypoint >> 8) << WAYPOINT_SHIFT;
        self.rest = self.rest & BELOW_WAYPOINT | waypoint << WAYPOINT_SHIFT;
    }

    /// Counts a link, up to 255: changing tables can send a packet through a loop.
    #[inline]
    pub fn count_hop(&mut self) {
        self.rest += u64::from(self.hops() != u8::MAX) << HOPS_SHIFT;
    }
}

#[inline]
pub(crate) fn service_level(bits: u8) -> Sl {
    Sl::try_new(bits & 15).unwrap_or(Sl::MAX)
}

#[derive(Clone, Copy, Debug)]
struct Node {
    packet: Packet,
    next: u32,
}

/// First and last node of a queue in the pool. Its owner knows if it is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    pub const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// Waiting packets as lists in one array. Freed nodes are reused, so the array stops growing.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    nodes: Table<Node>,
    eligible: Option<Vec<u64>>,
    /// Free nodes. A list through the nodes would read memory before use.
    free: Vec<u32>,
}

impl Pool {
    pub fn new(with_eligible: bool) -> Self {
        Self {
            nodes: Table::default(),
            eligible: with_eligible.then(Vec::new),
            free: Vec::new(),
        }
    }

    pub fn is_unused(&self) -> bool {
        self.nodes.is_empty()
    }

    /// `was_empty`: the queue has no packet.
    #[inline(always)]
    pub fn push(&mut self, queue: &mut Queue, was_empty: bool, packet: Packet, now: u64) {
        let index = if let Some(index) = self.free.pop() {
            self.nodes[index as usize].packet = packet;
            if let Some(times) = &mut self.eligible {
                times[index as usize] = now;
            }
            index
        } else {
            self.nodes.push(Node { packet, next: NONE });
            if let Some(times) = &mut self.eligible {
                times.push(now);
            }
            (self.nodes.len() - 1) as u32
        };
        if was_empty {
            queue.first = index;
        } else {
            self.nodes[queue.last as usize].next = index;
        }
        queue.last = index;
    }

    pub fn insert(&mut self, queue: &mut Queue, packet: Packet, since: u64) {
        let (mut packet, mut since) = (packet, since);
        let mut index = queue.first;
        if let Some(times) = &mut self.eligible {
            loop {
                let node = &mut self.nodes[index as usize];
                let time = &mut times[index as usize];
                if *time > since {
                    std::mem::swap(&mut node.packet, &mut packet);
                    std::mem::swap(time, &mut since);
                }
                if index == queue.last {
                    break;
                }
                index = node.next;
            }
        }
        self.push(queue, false, packet, since);
    }

    /// The queue is not empty. Also returns true if it is empty now.
    #[inline(always)]
    pub fn pop(&mut self, queue: &mut Queue) -> (Packet, bool) {
        let index = queue.first;
        let Node { packet, next } = self.nodes[index as usize];
        // The last node's successor is undefined.
        queue.first = next;
        self.free.push(index);
        (packet, index == queue.last)
    }

    #[inline]
    pub fn first(&self, queue: Queue) -> u32 {
        queue.first
    }

    #[inline(always)]
    pub fn prefetch(&self, queue: Queue) {
        prefetch(&self.nodes, queue.first as usize);
    }

    #[inline]
    pub fn packet(&self, node: u32) -> &Packet {
        &self.nodes[node as usize].packet
    }

    #[inline]
    pub fn eligible(&self, node: u32) -> u64 {
        self.eligible
            .as_ref()
            .map_or(0, |times| times[node as usize])
    }

    pub fn for_each(&self, queue: Queue, mut each: impl FnMut(&Packet)) {
        let mut index = queue.first;
        loop {
            let node = &self.nodes[index as usize];
            each(&node.packet);
            if index == queue.last {
                return;
            }
            index = node.next;
        }
    }

    pub fn try_for_each(
        &self,
        queue: Queue,
        mut each: impl FnMut(&Packet, Option<u64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut index = queue.first;
        loop {
            let node = &self.nodes[index as usize];
            let since = self.eligible.as_ref().map(|times| times[index as usize]);
            each(&node.packet, since)?;
            if index == queue.last {
                return ControlFlow::Continue(());
            }
            index = node.next;
        }
    }

    pub fn shift(&mut self, queue: Queue, by: u64) {
        let mut index = queue.first;
        loop {
            let node = &mut self.nodes[index as usize];
            node.packet.shift(by);
            if let Some(times) = &mut self.eligible {
                times[index as usize] += by;
            }
            if index == queue.last {
                return;
            }
            index = node.next;
        }
    }

    /// Visits several non-empty queues in turns, so that the next node of each is prefetched. `each` takes the state of
    /// its queue, `done` the final state.
    pub fn for_each_in_turns<T>(
        &self,
        mut open: Vec<(Queue, T)>,
        mut each: impl FnMut(&mut T, &Packet),
        mut done: impl FnMut(T),
    ) {
        for (queue, _) in &open {
            self.prefetch(*queue);
        }
        while !open.is_empty() {
            let mut turn = 0;
            while turn < open.len() {
                let (queue, state) = &mut open[turn];
                let node = &self.nodes[queue.first as usize];
                each(state, &node.packet);
                if queue.first == queue.last {
                    done(open.swap_remove(turn).1);
                } else {
                    queue.first = node.next;
                    self.prefetch(*queue);
                    turn += 1;
                }
            }
        }
    }

    pub fn for_each_mut(&mut self, queue: Queue, mut each: impl FnMut(&mut Packet)) {
        let mut index = queue.first;
        loop {
            let node = &mut self.nodes[index as usize];
            each(&mut node.packet);
            if index == queue.last {
                return;
            }
            index = node.next;
        }
    }

    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.free.capacity() * 4
            + self
                .eligible
                .as_ref()
                .map_or(0, |times| times.capacity() * 8)
    }
}

//! Packets, and the pool in which those that wait are kept.

use silvan_units::Sl;

use crate::prefetch::prefetch;

/// No node, no port, no time: the absent value of the engine's `u32` indices.
pub(crate) const NONE: u32 = u32::MAX;

/// FECN has been set by a switch.
pub(crate) const MARKED: u8 = 1;
/// Last packet of its message.
pub(crate) const LAST: u8 = 2;
/// A notification (CNP or ACK), not data.
pub(crate) const CONTROL: u8 = 4;
/// The notification is an ACK, not a CNP.
pub(crate) const ACK: u8 = 8;
/// The notification carries BECN.
pub(crate) const BECN: u8 = 16;

/// A packet. It travels by value inside events until it has to wait, so an uncontended hop touches
/// no packet memory at all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// Data: when its injection started, in ps. Notification: payload bytes acknowledged.
    pub born: u64,
    /// Sending host.
    pub source: u32,
    /// Receiving host.
    pub destination: u32,
    /// Bytes on the wire.
    pub wire: u16,
    /// Data: traffic class. Notification: service level of the flow it is about.
    pub class: u16,
    /// Service level in the low four bits, virtual lane in the high four.
    pub lane: u8,
    /// `MARKED`, `LAST`, `CONTROL`, `ACK`, `BECN`.
    pub flags: u8,
    /// Links crossed so far.
    pub hops: u8,
}

impl Packet {
    #[inline]
    pub fn vl(&self) -> usize {
        usize::from(self.lane >> 4)
    }

    #[inline]
    pub fn service_level(&self) -> Sl {
        service_level(self.lane)
    }

    /// Flow-control blocks of 64 bytes that the packet takes in a buffer.
    #[inline]
    pub fn blocks(&self) -> i32 {
        i32::from(self.wire).wrapping_add(63) >> 6
    }

    #[inline]
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The service level in the low four bits; no value of four bits is out of its range.
#[inline]
pub(crate) fn service_level(bits: u8) -> Sl {
    Sl::try_new(bits & 15).unwrap_or(Sl::MAX)
}

#[derive(Clone, Copy, Debug)]
struct Node {
    packet: Packet,
    next: u32,
}

/// Waiting packets as circular lists in one array: a queue is the number of its last node, whose
/// successor is the first. A queue that is empty has no meaningful number; its owner knows
/// that it is (a bit in a mask), so that adding to an empty queue reads nothing. Freed nodes are
/// used again, so the array stops growing once the fabric has filled up.
#[derive(Debug)]
pub(crate) struct Pool {
    nodes: Vec<Node>,
    /// When each node's packet became eligible; kept only for oldest-first arbitration.
    eligible: Option<Vec<u64>>,
    free: u32,
}

impl Pool {
    pub fn new(with_eligible: bool) -> Self {
        Self {
            nodes: Vec::new(),
            eligible: with_eligible.then(Vec::new),
            free: NONE,
        }
    }

    /// Appends a packet to the queue, which is empty or not as `was_empty` says.
    #[inline]
    pub fn push(&mut self, queue: &mut u32, was_empty: bool, packet: Packet, now: u64) {
        let index = if self.free == NONE {
            self.nodes.push(Node { packet, next: NONE });
            if let Some(times) = &mut self.eligible {
                times.push(now);
            }
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            let node = &mut self.nodes[index as usize];
            self.free = node.next;
            node.packet = packet;
            if let Some(times) = &mut self.eligible {
                times[index as usize] = now;
            }
            index
        };
        let first = if was_empty {
            index
        } else {
            std::mem::replace(&mut self.nodes[*queue as usize].next, index)
        };
        self.nodes[index as usize].next = first;
        *queue = index;
    }

    /// Takes the first packet of a queue that is not empty; returns it and whether the queue
    /// is empty now.
    #[inline]
    pub fn pop(&mut self, queue: u32) -> (Packet, bool) {
        let index = self.nodes[queue as usize].next;
        let Node { packet, next } = self.nodes[index as usize];
        self.nodes[index as usize].next = self.free;
        self.free = index;
        let empty = index == queue;
        if !empty {
            self.nodes[queue as usize].next = next;
        }
        (packet, empty)
    }

    /// First node of a queue that is not empty.
    #[inline]
    pub fn first(&self, queue: u32) -> u32 {
        self.nodes[queue as usize].next
    }

    /// Asks for a node that will be needed soon.
    #[inline(always)]
    pub fn prefetch(&self, node: u32) {
        prefetch(&self.nodes, node as usize);
    }

    #[inline]
    pub fn packet(&self, node: u32) -> &Packet {
        &self.nodes[node as usize].packet
    }

    /// When the packet became eligible, in ps; 0 unless kept.
    #[inline]
    pub fn eligible(&self, node: u32) -> u64 {
        self.eligible
            .as_ref()
            .map_or(0, |times| times[node as usize])
    }

    /// Calls `each` for every packet of a queue that is not empty, first to last.
    pub fn for_each(&self, queue: u32, mut each: impl FnMut(&Packet)) {
        let mut node = queue;
        loop {
            node = self.nodes[node as usize].next;
            each(&self.nodes[node as usize].packet);
            if node == queue {
                return;
            }
        }
    }

    /// The same, with the right to change the packets.
    pub fn for_each_mut(&mut self, queue: u32, mut each: impl FnMut(&mut Packet)) {
        let mut node = queue;
        loop {
            node = self.nodes[node as usize].next;
            each(&mut self.nodes[node as usize].packet);
            if node == queue {
                return;
            }
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self
                .eligible
                .as_ref()
                .map_or(0, |times| times.capacity() * 8)
    }
}

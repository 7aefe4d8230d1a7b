//! Packets that wait for the Port VLs of trees, and the buffers that they take space in.

use crate::packet::Packet;

/// Packets of one flow that wait for the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Sending host, and above it the receiving one.
    ends: u64,
    /// The lane that they wait for, or that of the packet before them in their FIFO; and above it the lane that
    /// they will leave by.
    lanes: u64,
    pub sl: u8,
    pub bytes: u64,
}

impl Waiting {
    pub fn source(&self) -> u32 {
        self.ends as u32
    }

    pub fn destination(&self) -> u32 {
        (self.ends >> 32) as u32
    }

    pub fn blocked_by(&self) -> usize {
        self.lanes as u32 as usize
    }

    pub fn lane(&self) -> usize {
        (self.lanes >> 32) as usize
    }
}

/// Logarithm of the number of flows that are remembered. A tree has fewer flows by far than packets.
const RECENT_BITS: u32 = 12;

/// All packets that wait, those of a flow together as a rule.
pub(super) struct WaitingPackets {
    pub found: Vec<Waiting>,
    /// Where in `found` a flow was seen last, by its ends; another flow may have taken the place.
    recent: Vec<u32>,
}

impl WaitingPackets {
    pub fn new() -> Self {
        Self {
            found: Vec::with_capacity(1 << RECENT_BITS),
            recent: vec![0; 1 << RECENT_BITS],
        }
    }

    /// Notes a packet that cannot move before `blocked_by` takes one, and that will leave by `lane`.
    #[inline]
    pub fn note(&mut self, blocked_by: usize, lane: usize, packet: &Packet) {
        let ends = packet.ends();
        let lanes = (lane as u64) << 32 | blocked_by as u64;
        let bytes = u64::from(packet.wire());
        // The high bits of a product with an odd number depend on all bits of the other factor.
        let place = (ends.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS)) as usize;
        if let Some(known) = self.found.get_mut(self.recent[place] as usize) {
            if known.ends == ends && known.lanes == lanes && known.sl == packet.sl_bits() {
                known.bytes += bytes;
                return;
            }
        }
        self.add(place, ends, lanes, packet);
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, place: usize, ends: u64, lanes: u64, packet: &Packet) {
        self.recent[place] = self.found.len() as u32;
        self.found.push(Waiting {
            ends,
            lanes,
            sl: packet.sl_bits(),
            bytes: u64::from(packet.wire()),
        });
    }
}

/// Bytes of an input buffer that wait for the same Port VL, by the lane that they came on.
#[derive(Debug)]
pub(super) struct Buffer {
    pub input: u32,
    /// The lane of the last packet, and the bytes that came on it.
    last: (usize, u64),
    others: Vec<(usize, u64)>,
}

impl Buffer {
    pub fn new(input: u32) -> Self {
        Self {
            input,
            last: (0, 0),
            others: Vec::new(),
        }
    }

    /// Adds a packet.
    #[inline]
    pub fn add(&mut self, packet: &Packet) {
        self.add_bytes(packet.vl(), u64::from(packet.wire()));
    }

    /// Adds other packets of the same input.
    pub fn join(&mut self, other: &Self) {
        for (vl, bytes) in other.lanes() {
            self.add_bytes(vl, bytes);
        }
    }

    #[inline]
    fn add_bytes(&mut self, vl: usize, bytes: u64) {
        if vl != self.last.0 {
            self.turn_to(vl);
        }
        self.last.1 += bytes;
    }

    /// An input has few lanes, and a queue rarely packets of more than one.
    #[cold]
    fn turn_to(&mut self, vl: usize) {
        let next = match self.others.iter().position(|other| other.0 == vl) {
            Some(at) => self.others.swap_remove(at),
            None => (vl, 0),
        };
        let last = std::mem::replace(&mut self.last, next);
        if last.1 > 0 {
            self.others.push(last);
        }
    }

    /// The lanes with their bytes, of which there are some.
    pub fn lanes(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let all = self.others.iter().chain(std::iter::once(&self.last));
        all.copied().filter(|&(_, bytes)| bytes > 0)
    }
}

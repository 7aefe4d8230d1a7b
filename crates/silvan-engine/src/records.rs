//! The flat records that the hot loop works on, each at most one cache line.

use crate::packet::NONE;

/// What stands at the far end of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the port is not cabled.
    Nowhere,
    /// An input port of a switch or of an output-buffer stage.
    Input,
    /// A host.
    Host,
}

/// The sending side of a port.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct OutPort {
    /// The current packet's tail leaves then.
    pub free_at: u64,
    /// The arbitration that is scheduled, `u64::MAX` for none. An event at another time is stale.
    pub wake_at: u64,
    /// Wire bytes of all packets started.
    pub xmit_bytes: u64,
    /// Packets started.
    pub xmit_packets: u64,
    /// Since when the port is idle with packets waiting, `u64::MAX` if it is not.
    pub wait_since: u64,
    /// Time so spent before.
    pub wait_total: u64,
    /// Input port (or host) at the far end.
    pub next: u32,
    /// Serialisation time of a packet of MTU size, in ps.
    pub ser_mtu: u32,
    /// Packets that wait for this port, all virtual lanes.
    pub waiting: u32,
    /// Index into the table of link rates.
    pub rate: u8,
    /// Head lane of the event queue.
    pub lane: u8,
    /// What stands at the far end.
    pub kind: Next,
    /// Whether packets leaving here may be marked: a switch output, not a host's nor an output
    /// buffer's.
    pub marks: bool,
}

/// The sending side of one virtual lane of a port: who waits, and the credits for the buffer at the
/// far end.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct OutLane {
    /// Inputs (local numbers) with a packet in their queue.
    pub inputs: [u64; 4],
    /// Wire bytes that wait.
    pub queued_bytes: u32,
    /// First queue of this lane in the table of queues; one per local input.
    pub queues: u32,
    /// Credits in hand, in blocks.
    pub credits: i32,
    /// Credits on their way back: ring in `Returns::entries`.
    pub ring: u32,
    pub ring_head: u32,
    pub ring_len: u32,
    pub ring_log: u8,
    /// Somebody waits for credits that nobody has sent yet.
    pub starved: bool,
    /// Local input that is first in turn.
    pub turn: u8,
    /// Words of `inputs` in use.
    pub words: u8,
}

impl OutLane {
    /// First waiting input in turn that is not blocked.
    #[inline]
    pub fn pick(&self, blocked: Option<&[u64; 4]>) -> Option<u32> {
        let words = usize::from(self.words);
        let word = |index: usize| {
            let bits = self.inputs[index];
            blocked.map_or(bits, |blocked| bits & !blocked[index])
        };
        let turn = usize::from(self.turn);
        if words == 1 {
            let bits = word(0);
            if bits == 0 {
                return None;
            }
            let after = bits & (u64::MAX << (turn % 64));
            let chosen = if after != 0 { after } else { bits };
            return Some(chosen.trailing_zeros());
        }
        let first = turn / 64;
        for step in 0..=words {
            let index = (first + step) % words;
            let mut bits = word(index);
            if step == 0 {
                bits &= u64::MAX << (turn % 64);
            }
            if bits != 0 {
                return Some(index as u32 * 64 + bits.trailing_zeros());
            }
        }
        None
    }

    #[inline]
    pub fn set_input(&mut self, input: u32) {
        self.inputs[(input / 64) as usize] |= 1 << (input % 64);
    }

    #[inline]
    pub fn clear_input(&mut self, input: u32) {
        self.inputs[(input / 64) as usize] &= !(1 << (input % 64));
    }
}

/// The receiving side of a port; never changes.
#[derive(Clone, Debug)]
pub(crate) struct InPort {
    /// From a tail leaving this buffer to the credit being usable upstream, in ps.
    pub credit_delay: u64,
    /// First port of the element (switch or output-buffer stage).
    pub base: u32,
    /// First entry of the element's forwarding table; `NONE` for an output-buffer stage.
    pub table: u32,
    /// Output port that feeds this input.
    pub upstream: u32,
    /// Number of this port within the element.
    pub local: u8,
    /// Whether the feeding output is a host's.
    pub from_host: bool,
    /// Whether some output of the element is faster than this input.
    pub slower: bool,
}

/// Credits on their way back to a sender: a small ring per Port VL, ordered by arrival.
///
/// An entry packs the arrival time in ps (56 bits, 20 hours) and the number of blocks (8 bits).
#[derive(Clone, Debug, Default)]
pub(crate) struct Returns {
    pub entries: Vec<u64>,
}

const BLOCK_BITS: u32 = 8;

/// Latest instant the engine can represent: 2^56 ps, about 20 hours.
pub(crate) const LATEST: u64 = 1 << 56;

impl Returns {
    /// Entries a ring starts with.
    const START_LOG: u8 = 3;

    pub fn new_ring(&mut self) -> (u32, u8) {
        let ring = self.entries.len() as u32;
        self.entries
            .resize(self.entries.len() + (1 << Self::START_LOG), 0);
        (ring, Self::START_LOG)
    }

    #[inline]
    fn at(lane: &OutLane, position: u32) -> usize {
        let mask = (1u32 << lane.ring_log) - 1;
        (lane.ring + ((lane.ring_head + position) & mask)) as usize
    }

    /// Takes in the credits that have arrived by `now`.
    #[inline]
    pub fn settle(&self, lane: &mut OutLane, now: u64) {
        while lane.ring_len > 0 {
            let entry = self.entries[Self::at(lane, 0)];
            if entry >> BLOCK_BITS > now {
                break;
            }
            lane.credits += (entry & ((1 << BLOCK_BITS) - 1)) as i32;
            lane.ring_head = (lane.ring_head + 1) & ((1 << lane.ring_log) - 1);
            lane.ring_len -= 1;
        }
    }

    /// Sends `blocks` credits that arrive at `due`.
    #[inline]
    pub fn push(&mut self, lane: &mut OutLane, now: u64, due: u64, blocks: i32) {
        if lane.ring_len == 1 << lane.ring_log {
            self.settle(lane, now);
            if lane.ring_len == 1 << lane.ring_log {
                self.grow(lane);
            }
        }
        let entry = due << BLOCK_BITS | blocks as u64;
        let at = Self::at(lane, lane.ring_len);
        self.entries[at] = entry;
        lane.ring_len += 1;
        if lane.ring_len > 1 && self.entries[Self::at(lane, lane.ring_len - 2)] > entry {
            self.sort_in(lane);
        }
    }

    /// Moves the last entry to its place: reads of different length can end out of the order of
    /// their start.
    #[cold]
    fn sort_in(&mut self, lane: &OutLane) {
        let mut position = lane.ring_len - 1;
        while position > 0 {
            let (before, at) = (Self::at(lane, position - 1), Self::at(lane, position));
            if self.entries[before] <= self.entries[at] {
                break;
            }
            self.entries.swap(before, at);
            position -= 1;
        }
    }

    /// When the lane will have `blocks` credits, from what is on its way; `None` if it is not enough.
    pub fn when(&self, lane: &OutLane, blocks: i32) -> Option<u64> {
        let mut credits = lane.credits;
        for position in 0..lane.ring_len {
            let entry = self.entries[Self::at(lane, position)];
            credits += (entry & ((1 << BLOCK_BITS) - 1)) as i32;
            if credits >= blocks {
                return Some(entry >> BLOCK_BITS);
            }
        }
        None
    }

    /// Credits on their way.
    pub fn pending(&self, lane: &OutLane) -> i32 {
        (0..lane.ring_len)
            .map(|position| {
                (self.entries[Self::at(lane, position)] & ((1 << BLOCK_BITS) - 1)) as i32
            })
            .sum()
    }

    /// Moves a full ring to twice the room. The old room stays unused: a buffer of n packets makes
    /// its ring double log2(n / 8) times at the most.
    #[cold]
    fn grow(&mut self, lane: &mut OutLane) {
        let moved: Vec<u64> = (0..lane.ring_len)
            .map(|position| self.entries[Self::at(lane, position)])
            .collect();
        lane.ring = self.entries.len() as u32;
        lane.ring_log += 1;
        lane.ring_head = 0;
        self.entries.extend_from_slice(&moved);
        self.entries
            .resize(lane.ring as usize + (1 << lane.ring_log), 0);
    }
}

impl OutPort {
    pub fn unconnected() -> Self {
        Self {
            free_at: 0,
            wake_at: u64::MAX,
            xmit_bytes: 0,
            xmit_packets: 0,
            wait_since: u64::MAX,
            wait_total: 0,
            next: NONE,
            ser_mtu: 0,
            waiting: 0,
            rate: 0,
            lane: 0,
            kind: Next::Nowhere,
            marks: false,
        }
    }
}

use crate::packet::Packet;

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    ends: u64,
    /// Lane that the packets, or the packet before them in their FIFO, wait for; above it the lane that they leave by.
    lanes: u64,
    bytes: u32,
    pub sl: u8,
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

    pub fn bytes(&self) -> u64 {
        self.bytes.into()
    }
}

/// Logarithm of the number of remembered flows: a tree has far fewer flows than packets.
const RECENT_BITS: u32 = 12;

pub(super) struct WaitingPackets {
    pub found: Vec<Waiting>,
    /// Last position of a flow in `found`, by its ends; another flow may replace it.
    recent: Box<[u32; 1 << RECENT_BITS]>,
}

impl WaitingPackets {
    pub fn new() -> Self {
        Self {
            found: Vec::with_capacity(2 << RECENT_BITS),
            recent: Box::new([0; 1 << RECENT_BITS]),
        }
    }

    #[inline]
    pub fn note(&mut self, blocked_by: usize, packets: &Alike) {
        let lanes = u64::from(packets.lane) << 32 | blocked_by as u64;
        // The high bits of a product with an odd number depend on all bits.
        let product = packets.ends.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (product >> (64 - RECENT_BITS)) as usize;
        if let Some(known) = self.found.get_mut(self.recent[place] as usize) {
            let is_known = known.ends == packets.ends && known.lanes == lanes;
            if is_known && known.sl == packets.sl() {
                known.bytes += packets.bytes;
                return;
            }
        }
        self.add(place, lanes, packets);
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, place: usize, lanes: u64, packets: &Alike) {
        if packets.bytes == 0 {
            return;
        }
        self.recent[place] = self.found.len() as u32;
        self.found.push(Waiting {
            ends: packets.ends,
            lanes,
            bytes: packets.bytes,
            sl: packets.sl(),
        });
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Alike {
    ends: u64,
    bytes: u32,
    lane: u32,
    lane_bits: u8,
}

impl Alike {
    const NONE: Self = Self {
        ends: u64::MAX,
        bytes: 0,
        lane: 0,
        lane_bits: 0,
    };

    pub fn new(lane: usize, packet: &Packet) -> Self {
        Self {
            ends: packet.ends(),
            bytes: packet.wire().into(),
            lane: lane as u32,
            lane_bits: packet.lane_bits(),
        }
    }

    fn sl(&self) -> u8 {
        self.lane_bits & 15
    }

    fn vl(&self) -> usize {
        usize::from(self.lane_bits >> 4)
    }
}

#[derive(Debug)]
pub(super) struct Buffer {
    pub input: u32,
    run: Alike,
    last: (usize, u64),
    others: Vec<(usize, u64)>,
}

impl Buffer {
    pub fn new(input: u32) -> Self {
        Self {
            input,
            run: Alike::NONE,
            last: (0, 0),
            others: Vec::new(),
        }
    }

    #[inline]
    pub fn add(&mut self, lane: usize, packet: &Packet, note: impl FnOnce(&Alike)) {
        let run = &mut self.run;
        if packet.ends() == run.ends && packet.lane_bits() == run.lane_bits {
            run.bytes += u32::from(packet.wire());
            return;
        }
        self.end_run(note);
        self.run = Alike::new(lane, packet);
    }

    #[inline]
    pub fn end_run(&mut self, note: impl FnOnce(&Alike)) {
        self.add_bytes(self.run.vl(), self.run.bytes.into());
        note(&self.run);
        self.run = Alike::NONE;
    }

    /// Adds packets of the same input. Both runs must have ended.
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

    /// An input has few lanes, and a queue rarely packets of several.
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

    pub fn lanes(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let all = self.others.iter().chain(std::iter::once(&self.last));
        all.copied().filter(|&(_, bytes)| bytes > 0)
    }
}

use std::cmp::Ordering;

pub(crate) mod phase {
    pub const HEAD: u32 = 0;
    pub const READ_END: u32 = 1;
    pub const ARBITRATE: u32 = 2;
    pub const RECEIVED: u32 = 3;
    pub const DELIVERED: u32 = 4;
    pub const ARRIVED: u32 = 5;
    pub const FEEDBACK: u32 = 6;
    pub const CREDIT: u32 = 7;
    /// The timer of a connection goes off.
    pub const RETRY: u32 = 8;
    pub const CHANGE: u32 = 9;
    pub const HOST: u32 = 10;
}

pub(super) const PHASE_SHIFT: u32 = 28;

/// An event that is not a packet head: two words, because each is moved several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub time: u64,
    /// Phase (high 4 bits), port or host (28), argument (32).
    word: u64,
}

impl Event {
    #[inline]
    pub fn new(time: u64, phase: u32, id: u32, argument: u32) -> Self {
        debug_assert!(id < 1 << PHASE_SHIFT);
        let word = u64::from(phase << PHASE_SHIFT | id) << 32 | u64::from(argument);
        Self { time, word }
    }

    #[inline]
    pub fn phase(&self) -> u32 {
        self.tag() >> PHASE_SHIFT
    }

    #[inline]
    pub fn id(&self) -> u32 {
        self.tag() & ((1 << PHASE_SHIFT) - 1)
    }

    #[inline]
    pub fn argument(&self) -> u32 {
        self.word as u32
    }

    #[inline]
    pub(super) fn tag(&self) -> u32 {
        (self.word >> 32) as u32
    }

    #[inline]
    pub(super) fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.word)
    }
}

impl PartialOrd for Event {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

use silvan_core::{Span, Time};

/// Next operation of a sequential rank; sends and receives last until a [`Wait`](Self::Wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes for this long.
    Compute(Span),
    /// Rests for this long.
    Pause(Span),
    /// Starts to send a message.
    Send {
        /// The receiving rank.
        to: u32,
        /// Size of the message in bytes.
        bytes: u64,
        /// Tag, as MPI has them.
        tag: u32,
    },
    /// Starts to receive a message.
    Receive {
        /// The sending rank; `None` is any.
        from: Option<u32>,
        /// Room for the message in bytes.
        bytes: u64,
        /// Tag; `None` is any.
        tag: Option<u32>,
    },
    /// Starts to write into the memory of another rank, which need not do anything.
    Put {
        /// The rank written to.
        to: u32,
        /// Bytes to write.
        bytes: u64,
    },
    /// Starts to read from the memory of another rank, which need not do anything.
    Get {
        /// The rank read from.
        from: u32,
        /// Bytes to read.
        bytes: u64,
    },
    /// Sends part of a message that the adapter was told to send before: at once, at no cost for the processor.
    Segment {
        /// The receiving rank.
        to: u32,
        /// Size in bytes.
        bytes: u64,
        /// Tag.
        tag: u32,
    },
    /// Waits until everything that this rank has started is complete.
    Wait,
    /// Waits until at most this many of the operations that this rank has started are incomplete.
    WaitFor(u32),
    /// Notes a measurement that has begun earlier and ends now.
    Mark {
        /// Index into the job's [labels](crate::programs::JobSpec::labels).
        label: u16,
        /// Number of the measurement.
        index: u32,
        /// Its begin.
        begin: Time,
    },
    /// Starts a measurement.
    Begin,
    /// Ends a measurement and starts the next one.
    End {
        /// Index into the job's [labels](crate::programs::JobSpec::labels).
        label: u16,
        /// Number of the measurement.
        index: u32,
    },
}

/// Some of a job's ranks, at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The first rank.
    pub first: u32,
    /// Number of ranks.
    pub size: u32,
    /// Distance from one to the next.
    pub stride: u32,
}

impl Group {
    /// All ranks of a job of this size.
    pub const fn all(size: u32) -> Self {
        Self::range(0, size)
    }

    /// `size` ranks side by side.
    pub const fn range(first: u32, size: u32) -> Self {
        let stride = 1;
        Self {
            first,
            size,
            stride,
        }
    }

    /// The rank that is `place` places after the first, wrapping around.
    pub const fn rank(self, place: u32) -> u32 {
        self.first + self.stride * (place % self.size)
    }

    /// Every `step`-th member, `size` of them, the first of which has the place `place`.
    pub const fn part(self, place: u32, step: u32, size: u32) -> Self {
        Self {
            first: self.rank(place),
            size,
            stride: self.stride * step,
        }
    }
}

/// The operations of one rank, made when needed, many at a time.
pub trait Steps: std::fmt::Debug + Send {
    /// Appends step number `step`, from 0, which starts `now`; returns true if another may follow.
    fn step(&mut self, step: u64, now: Time, out: &mut Vec<Op>) -> bool;
}

/// A given list of operations, done some number of times.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// The operations.
    pub ops: Vec<Op>,
    /// Number of repetitions; `None` is without end.
    pub times: Option<u64>,
}

impl Steps for Repeated {
    fn step(&mut self, step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        if self.times.is_some_and(|times| step >= times) {
            return false;
        }
        out.extend_from_slice(&self.ops);
        self.times.is_none_or(|times| step + 1 < times)
    }
}

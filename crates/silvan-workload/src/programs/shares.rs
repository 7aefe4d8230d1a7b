//! Resources that the ranks of a host share besides its adapters: the gap between messages, and the memory.

use silvan_core::{Bytes, HostId, Rate, Span, Time};

/// Bytes of a copy that go through the memory, for each byte of the message: it is read and written.
const COPY: u64 = 2;

/// Host of several ranks.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// Earliest start of the next message.
    next_start: Time,
    /// End of all work that the memory has.
    memory_end: Time,
}

/// Resources that the ranks of each host share.
#[derive(Clone, Debug)]
pub(crate) struct Shares(Vec<Shared>);

impl Shares {
    pub fn new(hosts: usize) -> Self {
        Self(vec![Shared::default(); hosts])
    }

    /// Reserves the start of a message at a host, at `now` or later.
    pub fn start(&mut self, host: HostId, now: Time, gap: Span) -> Time {
        let next = &mut self.0[host.index()].next_start;
        let start = now.max(*next);
        *next = start.saturating_add(gap);
        start
    }

    /// Lets the memory of a host copy a message between two ranks; returns when that is done.
    pub fn copy(&mut self, host: HostId, now: Time, bytes: u64, rate: Rate) -> Time {
        self.go_through(host, now, bytes.saturating_mul(COPY), rate)
    }

    /// Lets the memory of a host send or receive a message; returns when that is done.
    pub fn go_through(&mut self, host: HostId, now: Time, bytes: u64, rate: Rate) -> Time {
        let end = &mut self.0[host.index()].memory_end;
        *end = now
            .max(*end)
            .saturating_add(rate.span_for(Bytes::from_bytes(bytes)));
        *end
    }
}

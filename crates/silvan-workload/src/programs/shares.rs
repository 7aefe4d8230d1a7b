use silvan_core::{Bytes, HostId, Rate, Span, Time};

/// A copy reads and writes each byte.
const COPY: u64 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    next_start: Time,
    memory_end: Time,
}

/// By host: the next start of a message, and the end of the traffic in its memory.
#[derive(Clone, Debug)]
pub(crate) struct Shares(Vec<Shared>);

impl Shares {
    pub fn new(hosts: usize) -> Self {
        Self(vec![Shared::default(); hosts])
    }

    pub fn start(&mut self, host: HostId, now: Time, gap: Span) -> Time {
        let next = &mut self.0[host.index()].next_start;
        let start = now.max(*next);
        *next = start.saturating_add(gap);
        start
    }

    pub fn copy(&mut self, host: HostId, now: Time, bytes: u64, rate: Rate) -> Time {
        self.go_through(host, now, bytes.saturating_mul(COPY), rate)
    }

    pub fn go_through(&mut self, host: HostId, now: Time, bytes: u64, rate: Rate) -> Time {
        let end = &mut self.0[host.index()].memory_end;
        *end = now
            .max(*end)
            .saturating_add(rate.span_for(Bytes::from_bytes(bytes)));
        *end
    }
}

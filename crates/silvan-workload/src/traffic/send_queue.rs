use silvan_cc::workload::{Gate, Offer, Poll};
use silvan_core::{HostId, Sl, Time};

/// The first message of a host's queue; later ones are made when it has left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendQueue(Option<Message>);

#[derive(Clone, Copy, Debug)]
struct Message {
    first: Offer,
    left: u64,
}

/// Allows every message, because the queue holds them back later.
pub(crate) struct OpenGate<'a, G> {
    pub(crate) gate: &'a mut G,
    pub(crate) now: Time,
}

impl<G: Gate> Gate for OpenGate<'_, G> {
    fn release(&mut self, _: HostId, _: Sl) -> Time {
        self.now
    }

    fn begin(&mut self, dst: HostId, sl: Sl) {
        self.gate.begin(dst, sl);
    }

    fn lane_open(&mut self, _: Sl, _: u32) -> bool {
        true
    }
}

impl SendQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The queue must be empty.
    pub(crate) fn push(&mut self, first: Offer, bytes: u64) {
        self.0 = Some(Message { first, left: bytes });
    }

    pub(crate) fn poll<G: Gate>(&mut self, now: Time, gate: &mut G) -> Poll {
        let Some(Message { first, left }) = &mut self.0 else {
            return Poll::Idle;
        };
        let release = gate.release(first.dst, first.sl);
        if release > now {
            return if release == Time::MAX {
                Poll::Idle
            } else {
                Poll::WaitUntil(release)
            };
        }
        let bytes = (*left).min(u64::from(first.bytes)) as u32;
        if !gate.lane_open(first.sl, bytes) {
            return Poll::Idle;
        }
        *left -= u64::from(bytes);
        let last = *left == 0;
        let offer = Offer {
            bytes,
            last,
            behind: Offer::cut_off(*left),
            ..*first
        };
        if last {
            self.0 = None;
        }
        Poll::Send(offer)
    }
}

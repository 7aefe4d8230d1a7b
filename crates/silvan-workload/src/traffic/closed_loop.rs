//! Sources that send a message to each host of a list in turn, each when the one before has arrived.

use silvan_cc::workload::{Gate, Offer};
use silvan_core::{HostId, Sl, Span, Time};

use crate::traffic::spec::Window;

/// Messages of a [`ClosedLoop`], and their times.
#[derive(Clone, Debug)]
pub(crate) struct ClosedLoopPlan {
    /// The receivers, in the order of their messages; at least one.
    pub(crate) to: Vec<HostId>,
    /// Number of rounds through the list; the maximum means without end.
    pub(crate) iterations: u64,
    pub(crate) sl: Sl,
    pub(crate) class: u16,
    /// Payload bytes of a message.
    pub(crate) message: u32,
    /// Largest payload of a packet in bytes.
    pub(crate) mtu: u32,
    /// Time from the delivery of a message to the start of the next one.
    pub(crate) pause: Span,
    pub(crate) window: Window,
}

/// A source of a host with at most one message on its way.
#[derive(Clone, Debug)]
pub(crate) struct ClosedLoop {
    plan: ClosedLoopPlan,
    /// Place of the present or next receiver in the list.
    place: usize,
    /// Bytes of the present message still to send.
    left: u32,
    /// Bytes of the present message not yet delivered; 0: there is none.
    awaited: u32,
    /// Earliest start of the next message, if there is none.
    next_start: Time,
    /// Earliest instant at which congestion control lets the flow send, as it last answered.
    release: Time,
    progress: SequenceProgress,
}

/// Progress of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceProgress {
    /// Messages delivered completely.
    pub messages: u64,
    /// Times that the last message of the list was delivered completely.
    pub iterations: u64,
    /// Time at which the last message so far was delivered completely.
    pub last_delivery: Option<Time>,
    /// Time at which the last requested iteration was complete.
    pub end: Option<Time>,
}

/// A sequence of the description, with what it has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceState {
    /// Statistics class, which no other entry has.
    pub class: u16,
    /// The sender.
    pub source: HostId,
    /// Number of receivers in the list.
    pub receivers: usize,
    /// The first instant at which it may send.
    pub start: Time,
    /// Progress of the sequence.
    pub progress: SequenceProgress,
}

impl ClosedLoop {
    pub(crate) fn plan(&self) -> &ClosedLoopPlan {
        &self.plan
    }

    pub(crate) fn new(plan: ClosedLoopPlan) -> Self {
        Self {
            place: 0,
            left: 0,
            awaited: 0,
            next_start: plan.window.start,
            release: Time::ZERO,
            progress: SequenceProgress::default(),
            plan,
        }
    }

    /// Returns `Ok` if [`emit`](Self::emit) has a packet to start now, else the earliest instant at
    /// which it may have a packet.
    pub(crate) fn ready<G: Gate>(&mut self, now: Time, gate: &mut G) -> Result<(), Time> {
        if self.left == 0 {
            self.next_message_at(now)?;
        }
        if self.release <= now {
            self.release = gate.release(self.destination(), self.plan.sl);
        }
        if self.release > now {
            return Err(self.release);
        }
        let bytes = self.next_left().min(self.plan.mtu);
        if gate.lane_open(self.plan.sl, bytes) {
            Ok(())
        } else {
            Err(Time::MAX)
        }
    }

    /// The next packet. Only after [`ready`](Self::ready) returned `Ok`.
    pub(crate) fn emit(&mut self) -> Offer {
        let left = self.next_left();
        if self.left == 0 {
            self.awaited = left;
        }
        let bytes = left.min(self.plan.mtu);
        self.left = left - bytes;
        Offer {
            dst: self.destination(),
            bytes,
            sl: self.plan.sl,
            class: self.plan.class,
            last: self.left == 0,
            behind: self.left,
        }
    }

    /// Takes note of a delivered packet. Returns whether its message is now complete.
    pub(crate) fn deliver(&mut self, bytes: u32, now: Time) -> bool {
        // Packets may overtake each other where switches choose among ports, so bytes count.
        self.awaited -= bytes;
        if self.awaited > 0 {
            return false;
        }
        let progress = &mut self.progress;
        progress.messages += 1;
        progress.last_delivery = Some(now);
        self.place += 1;
        if self.place == self.plan.to.len() {
            self.place = 0;
            progress.iterations += 1;
            if progress.iterations == self.plan.iterations {
                progress.end = Some(now);
            }
        }
        self.release = Time::ZERO;
        self.next_start = now.saturating_add(self.plan.pause);
        true
    }

    /// Returns true if a host is among the receivers.
    pub(crate) fn sends_to(&self, host: HostId) -> bool {
        self.plan.to.contains(&host)
    }

    pub(crate) fn class(&self) -> u16 {
        self.plan.class
    }

    /// Congestion control may let the flow send earlier than it answered.
    pub(crate) fn invalidate_releases(&mut self) {
        self.release = Time::ZERO;
    }

    /// The state of the sequence, whose sender is `source`.
    pub(crate) fn state(&self, source: HostId) -> SequenceState {
        SequenceState {
            class: self.plan.class,
            source,
            receivers: self.plan.to.len(),
            start: self.plan.window.start,
            progress: self.progress,
        }
    }

    fn destination(&self) -> HostId {
        self.plan.to[self.place]
    }

    /// Bytes to send of the present message, or of the next one if there is none.
    fn next_left(&self) -> u32 {
        if self.left > 0 {
            self.left
        } else {
            self.plan.message
        }
    }

    /// Returns `Ok` if a message may start now, else the earliest start if no delivery comes before.
    fn next_message_at(&self, now: Time) -> Result<(), Time> {
        let end = self.plan.window.end.unwrap_or(Time::MAX);
        if self.awaited > 0 || self.progress.end.is_some() || now >= end {
            return Err(Time::MAX);
        }
        if now >= self.next_start {
            return Ok(());
        }
        let due = self.next_start;
        Err(if due < end { due } else { Time::MAX })
    }
}

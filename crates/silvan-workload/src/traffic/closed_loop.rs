use silvan_cc::workload::{Gate, Offer};
use silvan_core::{HostId, Sl, Span, Time};

use crate::traffic::spec::Window;

#[derive(Clone, Debug)]
pub(crate) struct ClosedLoopPlan {
    /// In the order of messages; not empty.
    pub(crate) to: Vec<HostId>,
    /// Rounds through the list; the maximum means without end.
    pub(crate) iterations: u64,
    pub(crate) sl: Sl,
    pub(crate) class: u16,
    pub(crate) message: u32,
    pub(crate) mtu: u32,
    pub(crate) pause: Span,
    pub(crate) window: Window,
}

#[derive(Clone, Debug)]
pub(crate) struct ClosedLoop {
    plan: ClosedLoopPlan,
    place: usize,
    left: u32,
    /// Undelivered bytes; 0 without a message.
    awaited: u32,
    next_start: Time,
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
            number: 0,
            queue: 0,
        }
    }

    pub(crate) fn deliver(&mut self, bytes: u32, now: Time) -> bool {
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

    pub(crate) fn sends_to(&self, host: HostId) -> bool {
        self.plan.to.contains(&host)
    }

    pub(crate) fn class(&self) -> u16 {
        self.plan.class
    }

    pub(crate) fn invalidate_releases(&mut self) {
        self.release = Time::ZERO;
    }

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

    fn next_left(&self) -> u32 {
        if self.left > 0 {
            self.left
        } else {
            self.plan.message
        }
    }

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

use silvan_core::Time;

use crate::programs::ranks::Programs;

const MOST: usize = 10_000_000;

/// A message that has arrived. Ranks are numbered over all jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// The rank that had the bytes.
    pub source: u32,
    /// The rank that got them.
    pub target: u32,
    /// Tag of the message; 0 for puts and gets.
    pub tag: u32,
    /// Size of the message in bytes.
    pub bytes: u64,
    /// Time at which the rank started to send or request the message.
    pub begin: Time,
    /// Arrival time of the last byte.
    pub end: Time,
}

/// Activity of a rank between two [waits](crate::programs::Op::Wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRecord {
    /// Number of the rank over all jobs.
    pub rank: u32,
    /// Number of the step since the last measurement began, from 0.
    pub step: u32,
    /// Start of its first send or receive.
    pub begin: Time,
    /// End of the wait for all of them.
    pub end: Time,
}

#[derive(Debug, Default)]
pub(crate) struct Detail {
    messages: Vec<MessageRecord>,
    steps: Vec<StepRecord>,
}

impl Detail {
    pub fn add_message(&mut self, message: MessageRecord) {
        if self.messages.len() < MOST {
            self.messages.push(message);
        }
    }

    pub fn add_step(&mut self, step: StepRecord) {
        if self.steps.len() < MOST {
            self.steps.push(step);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    number: u32,
    begin: Option<Time>,
    waits: bool,
}

impl Step {
    pub fn start(&mut self, now: Time) {
        self.begin.get_or_insert(now);
    }

    pub fn wait(&mut self) {
        self.waits = self.begin.is_some();
    }

    pub fn go_on(&mut self, rank: u32, now: Time) -> Option<StepRecord> {
        if !std::mem::take(&mut self.waits) {
            return None;
        }
        let step = self.number;
        self.number += 1;
        Some(StepRecord {
            rank,
            step,
            begin: self.begin.take()?,
            end: now,
        })
    }

    pub fn restart(&mut self) {
        self.number = 0;
    }
}

impl Programs {
    /// The messages that have arrived, in the order of their ends; `None` if they are not recorded.
    pub fn messages(&self) -> Option<&[MessageRecord]> {
        self.detail.as_ref().map(|detail| &detail.messages[..])
    }

    /// The steps that have ended, in the order of their ends; `None` if they are not recorded.
    pub fn steps(&self) -> Option<&[StepRecord]> {
        self.detail.as_ref().map(|detail| &detail.steps[..])
    }

    pub(crate) fn note_message(&mut self, slot: u32, now: Time) {
        let message = *self.message(slot);
        if let Some(detail) = &mut self.detail {
            detail.add_message(MessageRecord {
                source: message.source,
                target: message.target,
                tag: message.tag,
                bytes: message.bytes,
                begin: message.begin,
                end: now,
            });
        }
    }
}

use std::collections::VecDeque;

use crate::abi::structures::WorkCompletion;
use crate::abi::values::Status;
use crate::verbs::ContextId;

pub(crate) const MOST_COMPLETIONS: u32 = 4_194_303;

pub(crate) fn memory(size: u32) -> u64 {
    u64::from(size) * size_of::<WorkCompletion>() as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Notify {
    Never,
    Solicited,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// False if the queue was full.
    pub(crate) is_stored: bool,
    pub(crate) overflows: bool,
    pub(crate) notifies: bool,
    pub(crate) is_first: bool,
}

#[derive(Debug)]
pub(crate) struct CompletionQueue {
    pub(crate) context: ContextId,
    pub(crate) handle: u32,
    pub(crate) user_handle: u64,
    pub(crate) channel: Option<u32>,
    pub(crate) size: u32,
    waiting: VecDeque<WorkCompletion>,
    taken: u32,
    notify: Notify,
    has_overflowed: bool,
    pub(crate) users: u32,
    pub(crate) completion_events: u32,
    pub(crate) async_events: u32,
}

impl CompletionQueue {
    pub(crate) fn new(
        context: ContextId,
        handle: u32,
        user_handle: u64,
        channel: Option<u32>,
        size: u32,
    ) -> Self {
        Self {
            context,
            handle,
            user_handle,
            channel,
            size,
            waiting: VecDeque::new(),
            taken: 0,
            notify: Notify::Never,
            has_overflowed: false,
            users: 0,
            completion_events: 0,
            async_events: 0,
        }
    }

    pub(crate) fn unpolled(&self) -> usize {
        self.waiting.len() + self.taken as usize
    }

    pub(crate) fn add(&mut self, completion: WorkCompletion, is_solicited: bool) -> Added {
        if self.unpolled() >= self.size as usize {
            let overflows = !std::mem::replace(&mut self.has_overflowed, true);
            return Added {
                is_stored: false,
                overflows,
                notifies: false,
                is_first: false,
            };
        }
        let is_first = self.waiting.is_empty();
        let wakes = is_solicited || completion.status != Status::Success.number();
        self.waiting.push_back(completion);
        let notifies = match self.notify {
            Notify::Never => false,
            Notify::Solicited => wakes,
            Notify::All => true,
        };
        if notifies {
            self.notify = Notify::Never;
        }
        Added {
            is_stored: true,
            overflows: false,
            notifies,
            is_first,
        }
    }

    /// A request for all stays one if another for solicited ones follows.
    pub(crate) fn request_notify(&mut self, solicited_only: bool) {
        let wanted = match solicited_only {
            true => Notify::Solicited,
            false => Notify::All,
        };
        self.notify = self.notify.max(wanted);
    }

    pub(crate) fn take(&mut self, most: usize) -> impl Iterator<Item = WorkCompletion> {
        let count = most.min(self.waiting.len());
        self.taken += count as u32;
        self.waiting.drain(..count)
    }

    pub(crate) fn consume(&mut self, count: u32) {
        self.taken = self.taken.saturating_sub(count);
    }
}

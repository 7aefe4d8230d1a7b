//! Messages to an output that have not arrived.

use std::collections::VecDeque;

use silvan_core::Time;

use crate::hooks::PortMessage;

/// The messages that an output expects, in the order in which they arrive.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    messages: VecDeque<PortMessage>,
    /// Arrival time of the first message.
    due: Time,
}

impl Expected {
    pub const fn new() -> Self {
        Self {
            messages: VecDeque::new(),
            due: Time::MAX,
        }
    }

    /// Returns true if a message has arrived.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.due <= now
    }

    /// Keeps a message until it arrives; those of one instant are in the order of what they say.
    pub fn add(&mut self, message: PortMessage) {
        let later = self.messages.iter().rev();
        let later = later.take_while(|other| **other > message).count();
        self.messages.insert(self.messages.len() - later, message);
        self.due = self.messages[0].arrives;
    }

    /// The first message that has arrived.
    #[inline]
    pub fn receive(&mut self, now: Time) -> Option<PortMessage> {
        if !self.is_due(now) {
            return None;
        }
        let message = self.messages.pop_front();
        self.due = self.messages.front().map_or(Time::MAX, |next| next.arrives);
        message
    }
}

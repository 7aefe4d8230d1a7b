use std::collections::VecDeque;

use silvan_core::Time;

use crate::hooks::PortMessage;

#[derive(Clone, Debug)]
pub(super) struct Expected {
    messages: VecDeque<PortMessage>,
    due: Time,
}

impl Expected {
    pub const fn new() -> Self {
        Self {
            messages: VecDeque::new(),
            due: Time::MAX,
        }
    }

    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.due <= now
    }

    pub fn add(&mut self, message: PortMessage) {
        let later = self.messages.iter().rev();
        let later = later.take_while(|other| **other > message).count();
        self.messages.insert(self.messages.len() - later, message);
        self.due = self.messages[0].arrives;
    }

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

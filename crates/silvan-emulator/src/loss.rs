use std::collections::VecDeque;
use std::time::Duration;

use silvan_core::stream::SplitMix64;

use crate::wire::Message;

/// Timeout of a lost datagram, as the kernel returns it to a tool. The tool's own timeout does not reach the server.
const TIMEOUT: Duration = Duration::from_millis(100);
/// Kernel retries of a subnet manager's lost request. The sender's number does not reach the server: OpenSM uses three,
/// tools zero.
pub(crate) const RETRIES: u8 = 3;

#[derive(Clone, Debug)]
pub(crate) struct DelayedRequest {
    pub client: u16,
    pub request: Message,
    pub retries: u8,
}

#[derive(Debug)]
pub(crate) struct Loss {
    share: f64,
    random: SplitMix64,
    delayed: VecDeque<(Duration, DelayedRequest)>,
}

impl Loss {
    pub fn none() -> Self {
        Self {
            share: 0.0,
            random: SplitMix64::new(0),
            delayed: VecDeque::new(),
        }
    }

    pub fn set(&mut self, share: f64, seed: u64) {
        self.share = share;
        self.random = SplitMix64::for_stream(seed, 0);
    }

    pub fn share(&self) -> f64 {
        self.share
    }

    pub fn strikes(&mut self) -> bool {
        self.share > 0.0 && self.random.part() < self.share
    }

    pub fn keep(&mut self, now: Duration, delayed: DelayedRequest) {
        self.delayed.push_back((now + TIMEOUT, delayed));
    }

    pub fn due(&mut self, now: Duration) -> Option<DelayedRequest> {
        let (at, _) = self.delayed.front()?;
        if *at > now {
            return None;
        }
        self.delayed.pop_front().map(|(_, delayed)| delayed)
    }
}

//! Management datagrams that are lost on their way, for those who want to see how a tool bears it.

use std::collections::VecDeque;
use std::time::Duration;

use silvan_core::stream::SplitMix64;

use crate::wire::Message;

/// After how long a datagram that was lost comes back to its sender as timed out, as the kernel hands
/// it back to a tool. The server does not know for how long a tool would wait.
const TIMEOUT: Duration = Duration::from_millis(100);
/// Number of times that the kernel retries a lost request of a subnet manager before it returns the request. The sender
/// sets the number, which does not reach the server: OpenSM uses three, while tools use zero and retry themselves.
pub(crate) const RETRIES: u8 = 3;

/// A request that was lost, or whose answer was.
#[derive(Clone, Debug)]
pub(crate) struct DelayedRequest {
    pub client: u16,
    pub request: Message,
    /// Retries left before the request comes back as timed out.
    pub retries: u8,
}

/// Lost datagrams, and lost requests that come back later.
#[derive(Debug)]
pub(crate) struct Loss {
    /// The part of the datagrams that is lost, 0 to 1.
    share: f64,
    random: SplitMix64,
    /// Lost requests and the ends of their timeouts, in this order.
    delayed: VecDeque<(Duration, DelayedRequest)>,
}

impl Loss {
    /// Nothing is lost.
    pub fn none() -> Self {
        Self {
            share: 0.0,
            random: SplitMix64::new(0),
            delayed: VecDeque::new(),
        }
    }

    /// Loses this part of all datagrams from now on.
    pub fn set(&mut self, share: f64, seed: u64) {
        self.share = share;
        self.random = SplitMix64::for_stream(seed, 0);
    }

    /// The part of the datagrams that is lost.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Returns true if the next datagram is lost.
    pub fn strikes(&mut self) -> bool {
        self.share > 0.0 && self.random.part() < self.share
    }

    /// Keeps a request until it is sent again or comes back.
    pub fn keep(&mut self, now: Duration, delayed: DelayedRequest) {
        self.delayed.push_back((now + TIMEOUT, delayed));
    }

    /// The next request whose time is over.
    pub fn due(&mut self, now: Duration) -> Option<DelayedRequest> {
        let (at, _) = self.delayed.front()?;
        if *at > now {
            return None;
        }
        self.delayed.pop_front().map(|(_, delayed)| delayed)
    }
}

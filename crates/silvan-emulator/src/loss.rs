//! Management datagrams that are lost on their way, for those who want to see how a tool bears it.

use std::collections::VecDeque;
use std::time::Duration;

use silvan_control::stream::SplitMix64;

use crate::wire::Message;

/// After how long a datagram that was lost comes back to its sender as timed out, as the kernel hands
/// it back to a tool. The server does not know for how long a tool would wait.
const TIMEOUT: Duration = Duration::from_millis(100);

/// What is lost, and what comes back later because it was.
#[derive(Debug)]
pub(crate) struct Loss {
    /// The part of the datagrams that is lost, 0 to 1.
    share: f64,
    dice: SplitMix64,
    /// In the order in which it comes back, and for whom.
    late: VecDeque<(Duration, u16, Message)>,
}

impl Loss {
    /// Nothing is lost.
    pub fn none() -> Self {
        Self {
            share: 0.0,
            dice: SplitMix64::new(0),
            late: VecDeque::new(),
        }
    }

    /// Loses this part of all datagrams from now on.
    pub fn set(&mut self, share: f64, seed: u64) {
        self.share = share;
        self.dice = SplitMix64::for_stream(seed, 0);
    }

    /// The part of the datagrams that is lost.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Whether the next datagram is lost.
    pub fn strikes(&mut self) -> bool {
        self.share > 0.0 && self.dice.part() < self.share
    }

    /// Keeps what a client gets when it would have waited long enough.
    pub fn keep(&mut self, now: Duration, client: u16, message: Message) {
        self.late.push_back((now + TIMEOUT, client, message));
    }

    /// The next message that is due, and whom it is for.
    pub fn due(&mut self, now: Duration) -> Option<(u16, Message)> {
        let (at, _, _) = self.late.front()?;
        if *at > now {
            return None;
        }
        let (_, client, message) = self.late.pop_front()?;
        Some((client, message))
    }
}

//! Matching of receives and messages (MPI 4.0, sections 3.2.4 and 3.5).

use std::collections::VecDeque;

/// A receive that waits for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The sending rank; `None` is any.
    pub from: Option<u32>,
    /// Tag; `None` is any.
    pub tag: Option<u32>,
    /// The owner's identifier of the receive.
    pub token: u32,
    /// Room in bytes.
    pub bytes: u64,
}

/// A message that waits for its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The sending rank.
    pub from: u32,
    /// Tag.
    pub tag: u32,
    /// The owner's identifier of the message.
    pub message: u32,
    /// Size in bytes.
    pub bytes: u64,
}

impl Posted {
    fn takes(&self, arrived: &Arrived) -> bool {
        self.from.is_none_or(|from| from == arrived.from)
            && self.tag.is_none_or(|tag| tag == arrived.tag)
    }
}

/// Unmatched receives and messages of a rank, both matched earliest first.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    posted: VecDeque<Posted>,
    arrived: VecDeque<Arrived>,
}

impl Matcher {
    /// Posts a receive; gives its message if it has arrived.
    pub fn post(&mut self, receive: Posted) -> Option<Arrived> {
        let place = self
            .arrived
            .iter()
            .position(|message| receive.takes(message));
        match place {
            Some(place) => self.arrived.remove(place),
            None => {
                self.posted.push_back(receive);
                None
            }
        }
    }

    /// Takes a message in; gives its receive if it has been posted.
    pub fn arrive(&mut self, message: Arrived) -> Option<Posted> {
        let place = self
            .posted
            .iter()
            .position(|receive| receive.takes(&message));
        match place {
            Some(place) => self.posted.remove(place),
            None => {
                self.arrived.push_back(message);
                None
            }
        }
    }

    /// Receives without a message, in the order in which they were posted.
    pub fn posted(&self) -> impl Iterator<Item = &Posted> {
        self.posted.iter()
    }

    /// Messages without a receive, in the order in which they arrived.
    pub fn arrived(&self) -> impl Iterator<Item = &Arrived> {
        self.arrived.iter()
    }
}

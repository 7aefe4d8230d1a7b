//! Identifiers of connections, and their states.

use super::CmFile;
use super::addresses::Address;
use crate::abi::connections::ConnectionParameters;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Bound,
    Addressed,
    Routed,
    Listening,
    /// The initiator has sent its request.
    Requested,
    /// The initiator has the answer.
    Answered,
    /// The responder has a request to answer.
    Incoming,
    /// The responder has answered.
    Accepted,
    Connected,
    Ended,
    /// Membership of a multicast group.
    Joined,
}

/// Way in which a request was accepted.
pub(super) enum Answered {
    Response,
    Established,
}

#[derive(Debug)]
pub(super) struct Id {
    pub file: CmFile,
    pub uid: u64,
    pub space: u16,
    pub state: State,
    pub from: Option<Address>,
    pub to: Option<Address>,
    pub peer: Option<u32>,
    pub offered: ConnectionParameters,
    pub got: ConnectionParameters,
    /// Timeout of the queue pair, if the program has set it.
    pub timeout: Option<u8>,
    /// Identifier to which a membership belongs.
    pub member: Option<u32>,
    /// Events that the program has taken.
    pub reported: u32,
}

impl Id {
    pub fn new(file: CmFile, uid: u64, space: u16) -> Self {
        Self {
            file,
            uid,
            space,
            state: State::Idle,
            from: None,
            to: None,
            peer: None,
            offered: ConnectionParameters::default(),
            got: ConnectionParameters::default(),
            timeout: None,
            member: None,
            reported: 0,
        }
    }

    pub fn is_initiator(&self) -> bool {
        matches!(self.state, State::Requested | State::Answered)
    }
}

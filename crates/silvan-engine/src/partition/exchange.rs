//! What the parts of a fabric send each other.
//!
//! A part collects what it sends in a window ([`Remote`]), hands it over at the end of the window, and receives
//! what the others have sent at the beginning of the next. All of it takes effect later than that: this is
//! how long a lookahead window may be.

use std::sync::{Mutex, PoisonError};

use super::assignment::{Assignment, PartId};
use crate::events::Head;
use crate::packet::Packet;

/// Credits that come back to an output of another part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteCredits {
    /// When they can be used.
    pub due: u64,
    /// The lane of the output.
    pub lane: u32,
    pub output: u32,
    pub blocks: i32,
}

/// What one part sends another in a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parcel {
    pub heads: Vec<Head>,
    pub credits: Vec<RemoteCredits>,
    /// Notifications that travel past the fabric, and when they arrive.
    pub notifications: Vec<(u64, Packet)>,
}

impl Parcel {
    fn is_empty(&self) -> bool {
        self.heads.is_empty() && self.credits.is_empty() && self.notifications.is_empty()
    }
}

/// What a part knows of the others, and what it sends them in the open window. Empty in a fabric that is not
/// partitioned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remote {
    own: PartId,
    assignment: Assignment,
    /// By part.
    parcels: Vec<Parcel>,
}

impl Remote {
    pub fn new(own: PartId, assignment: Assignment) -> Self {
        Self {
            own,
            parcels: vec![Parcel::default(); assignment.parts()],
            assignment,
        }
    }

    /// Whether the state of a host is in another part.
    #[inline]
    pub fn has_host(&self, host: u32) -> bool {
        !self.parcels.is_empty() && self.assignment.of_host(host) != self.own
    }

    /// Whether the state of a port is in another part.
    #[inline]
    pub fn has_port(&self, port: u32) -> bool {
        !self.parcels.is_empty() && self.assignment.of_port(port) != self.own
    }

    /// The part of a port; 0 for all ports of a fabric that is not partitioned.
    pub fn part_of_port(&self, port: u32) -> usize {
        match self.parcels.is_empty() {
            true => 0,
            false => usize::from(self.assignment.of_port(port)),
        }
    }

    /// The part of a host; 0 for all hosts of a fabric that is not partitioned.
    pub fn part_of_host(&self, host: u32) -> usize {
        match self.parcels.is_empty() {
            true => 0,
            false => usize::from(self.assignment.of_host(host)),
        }
    }

    /// Sends a head to an input of another part.
    #[inline(never)]
    pub fn send_head(&mut self, head: Head) {
        let part = self.assignment.of_port(head.port);
        self.parcels[usize::from(part)].heads.push(head);
    }

    /// Returns credits to an output of another part.
    #[inline(never)]
    pub fn send_credits(&mut self, lane: u32, output: u32, due: u64, blocks: i32) {
        let part = self.assignment.of_port(output);
        self.parcels[usize::from(part)].credits.push(RemoteCredits {
            due,
            lane,
            output,
            blocks,
        });
    }

    /// Sends a notification past the fabric to a host of another part.
    pub fn send_notification(&mut self, at: u64, notification: Packet) {
        let part = self.assignment.of_host(notification.destination());
        let parcel = &mut self.parcels[usize::from(part)];
        parcel.notifications.push((at, notification));
    }
}

/// Where parts hand over parcels: one place for each pair of parts and for every other window.
#[derive(Debug)]
pub(super) struct Exchange {
    parts: usize,
    places: [Vec<Mutex<Parcel>>; 2],
}

impl Exchange {
    pub fn new(parts: usize) -> Self {
        let places = || (0..parts * parts).map(|_| Mutex::default()).collect();
        Self {
            parts,
            places: [places(), places()],
        }
    }

    fn place(&self, window: usize, from: usize, to: usize) -> &Mutex<Parcel> {
        &self.places[window % 2][from * self.parts + to]
    }

    /// Hands over what a part has sent in a window.
    pub fn hand_over(&self, window: usize, remote: &mut Remote) {
        let from = usize::from(remote.own);
        for (to, parcel) in remote.parcels.iter_mut().enumerate() {
            if !parcel.is_empty() {
                let place = self.place(window, from, to);
                let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::swap(&mut *place, parcel);
            }
        }
    }

    /// Calls `receive` with what each other part has sent to this one in a window, in the order of the parts; it
    /// empties the parcels.
    pub fn receive(&self, window: usize, to: PartId, mut receive: impl FnMut(&mut Parcel)) {
        let to = usize::from(to);
        for from in (0..self.parts).filter(|&from| from != to) {
            let place = self.place(window, from, to);
            let mut parcel = place.lock().unwrap_or_else(PoisonError::into_inner);
            if !parcel.is_empty() {
                receive(&mut parcel);
            }
        }
    }
}

impl Remote {
    /// The number of this part.
    pub fn own(&self) -> PartId {
        self.own
    }
}

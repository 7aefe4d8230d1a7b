//! Data that the parts of a fabric send each other.
//!
//! A part collects the data from its switches in a window ([`Remote`]) and hands it over after the window at its
//! switches. It receives the data of others before the window at its hosts. All of it takes effect later than the
//! window, or at hosts: this limits the length of a lookahead window.

use super::assignment::{Assignment, PartId};
use super::inboxes::{Contents, Inboxes};
use silvan_cc::hooks::{Messages, PortMessage};

use crate::events::Head;
use crate::extension::{Extension, Extensions};
use crate::packet::Packet;

/// Credits that come back to an output of another part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteCredits {
    /// Time from which the credits can be used.
    pub due: u64,
    pub lane: u32,
    pub output: u32,
    pub blocks: i32,
}

/// A packet that leaves the buffer behind an output of another part, under PFC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteDeparture {
    /// Time at which the tail leaves.
    pub tail: u64,
    pub lane: u32,
    pub output: u32,
    /// Bytes of the packet on the wire.
    pub bytes: u16,
}

/// Data from one part to another in a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parcel {
    pub heads: Vec<Head>,
    pub credits: Vec<RemoteCredits>,
    pub departures: Vec<RemoteDeparture>,
    /// Notifications that travel past the fabric, and when they arrive.
    pub notifications: Vec<(u64, Packet)>,
    /// Delivered packets that the traffic of their sources is notified of, and when they were.
    pub deliveries: Vec<(u64, Packet)>,
    /// Negative acknowledgements that hosts send through the fabric, with these hosts, and when they are ready.
    pub nacks: Vec<(u64, u32, Packet)>,
    /// Extensions of heads and notifications.
    pub extensions: Vec<Extension>,
    /// Messages between switches.
    pub messages: Vec<PortMessage>,
}

/// Knowledge of a part about the others, and its data for them in the open window. Empty in a fabric that is not
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

    /// Returns true if there are other parts.
    pub fn is_part(&self) -> bool {
        !self.parcels.is_empty()
    }

    /// Returns true if the state of a host is in another part.
    #[inline]
    pub fn has_host(&self, host: u32) -> bool {
        !self.parcels.is_empty() && self.assignment.of_host(host) != self.own
    }

    /// Returns true if the state of a port is in another part.
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

    /// Sends a head to an input of another part, with what its packet carries.
    #[inline(never)]
    pub fn send_head(&mut self, mut head: Head, extensions: &mut Extensions) {
        let part = self.assignment.of_port(head.port);
        let parcel = &mut self.parcels[usize::from(part)];
        extensions.send(&mut head.packet, &mut parcel.extensions);
        parcel.heads.push(head);
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

    /// Tells the part of an output that a packet leaves the buffer behind it.
    #[inline(never)]
    pub fn send_departure(&mut self, departure: RemoteDeparture) {
        let part = self.assignment.of_port(departure.output);
        self.parcels[usize::from(part)].departures.push(departure);
    }

    /// Sends a notification past the fabric to a host of another part, with what it carries.
    pub fn send_notification(
        &mut self,
        at: u64,
        mut notification: Packet,
        extensions: &mut Extensions,
    ) {
        let part = self.assignment.of_host(notification.destination());
        let parcel = &mut self.parcels[usize::from(part)];
        extensions.send(&mut notification, &mut parcel.extensions);
        parcel.notifications.push((at, notification));
    }

    /// Notifies the traffic of a packet's source in another part of its delivery.
    pub fn send_delivery(&mut self, done: u64, packet: Packet) {
        let part = self.assignment.of_host(packet.source());
        let deliveries = &mut self.parcels[usize::from(part)].deliveries;
        deliveries.push((done, packet));
    }

    /// Makes a host of another part send a negative acknowledgement through the fabric.
    pub fn send_from(&mut self, host: u32, at: u64, nack: Packet) {
        let part = self.assignment.of_host(host);
        let nacks = &mut self.parcels[usize::from(part)].nacks;
        nacks.push((at, host, nack));
    }
}

impl Contents for Parcel {
    fn is_empty(&self) -> bool {
        self.heads.is_empty()
            && self.credits.is_empty()
            && self.departures.is_empty()
            && self.notifications.is_empty()
            && self.deliveries.is_empty()
            && self.nacks.is_empty()
            && self.messages.is_empty()
    }
}

/// Messages of the switches of a part in a window, and those that have arrived there.
#[derive(Debug)]
pub(crate) struct PartMessages<'a> {
    pub remote: &'a mut Remote,
    /// Messages to outputs of the part.
    pub own: &'a mut Vec<PortMessage>,
}

impl Messages for PartMessages<'_> {
    fn send(&mut self, message: PortMessage) {
        let port = message.to.index() as u32;
        if self.remote.has_port(port) {
            let part = self.remote.assignment.of_port(port);
            self.remote.parcels[usize::from(part)]
                .messages
                .push(message);
        } else {
            self.own.push(message);
        }
    }

    fn receive(&mut self) -> Option<PortMessage> {
        self.own.pop()
    }
}

/// Exchange of parcels between parts.
pub(super) type Exchange = Inboxes<Parcel>;

impl Remote {
    /// Hands over what this part has sent in a window. Returns whether it has sent anything.
    pub fn hand_over(&mut self, exchange: &Exchange, window: usize) -> bool {
        exchange.hand_over(window, usize::from(self.own), &mut self.parcels)
    }

    /// The number of this part.
    pub fn own(&self) -> PartId {
        self.own
    }
}

use super::assignment::{Assignment, PartId};
use super::inboxes::{Contents, Inboxes};
use silvan_cc::hooks::{Messages, PortMessage};

use crate::events::Head;
use crate::extension::{Extension, Extensions};
use crate::packet::Packet;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteCredits {
    pub due: u64,
    pub lane: u32,
    pub output: u32,
    pub blocks: i32,
}

/// A packet that leaves the buffer behind an output of another part, under PFC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteDeparture {
    pub tail: u64,
    pub lane: u32,
    pub output: u32,
    pub bytes: u16,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Parcel {
    pub heads: Vec<Head>,
    pub credits: Vec<RemoteCredits>,
    pub departures: Vec<RemoteDeparture>,
    pub notifications: Vec<(u64, Packet)>,
    pub deliveries: Vec<(u64, Packet)>,
    pub nacks: Vec<(u64, u32, Packet)>,
    pub extensions: Vec<Extension>,
    pub messages: Vec<PortMessage>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Remote {
    own: PartId,
    assignment: Assignment,
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

    pub fn is_part(&self) -> bool {
        !self.parcels.is_empty()
    }

    #[inline]
    pub fn has_host(&self, host: u32) -> bool {
        !self.parcels.is_empty() && self.assignment.of_host(host) != self.own
    }

    #[inline]
    pub fn has_port(&self, port: u32) -> bool {
        !self.parcels.is_empty() && self.assignment.of_port(port) != self.own
    }

    pub fn part_of_port(&self, port: u32) -> usize {
        match self.parcels.is_empty() {
            true => 0,
            false => usize::from(self.assignment.of_port(port)),
        }
    }

    pub fn part_of_host(&self, host: u32) -> usize {
        match self.parcels.is_empty() {
            true => 0,
            false => usize::from(self.assignment.of_host(host)),
        }
    }

    #[inline(never)]
    pub fn send_head(&mut self, mut head: Head, extensions: &mut Extensions) {
        let part = self.assignment.of_port(head.port);
        let parcel = &mut self.parcels[usize::from(part)];
        extensions.send(&mut head.packet, &mut parcel.extensions);
        parcel.heads.push(head);
    }

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

    #[inline(never)]
    pub fn send_departure(&mut self, departure: RemoteDeparture) {
        let part = self.assignment.of_port(departure.output);
        self.parcels[usize::from(part)].departures.push(departure);
    }

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

    pub fn send_delivery(&mut self, done: u64, packet: Packet) {
        let part = self.assignment.of_host(packet.source());
        let deliveries = &mut self.parcels[usize::from(part)].deliveries;
        deliveries.push((done, packet));
    }

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

#[derive(Debug)]
pub(crate) struct PartMessages<'a> {
    pub remote: &'a mut Remote,
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

pub(super) type Exchange = Inboxes<Parcel>;

impl Remote {
    pub fn hand_over(&mut self, exchange: &Exchange, window: usize) -> bool {
        exchange.hand_over(window, usize::from(self.own), &mut self.parcels)
    }

    pub fn own(&self) -> PartId {
        self.own
    }
}

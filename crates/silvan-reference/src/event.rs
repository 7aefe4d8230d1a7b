use std::collections::BTreeSet;

use silvan_core::{HostId, Time, Vl};

use crate::link::{PacketId, ReceiverId, TransmitterId};

/// An event at an instant.
///
/// The variants are in the order in which they happen within an instant:
///
/// 1. Flits arrive and leave, credits come back, and pauses end.
/// 2. Packets become eligible, in the order of the input ports, and may take an output that was idle before.
/// 3. Reads of inputs end, in the same order.
/// 4. Buffers are compared with the thresholds of PFC.
/// 5. All outputs choose in the order of their ports.
/// 6. Hosts start packets.
/// 7. Pauses begin.
///
/// A *boundary* is a position in a packet between two flits: boundary 0 is before the first flit, and boundary `k`
/// after the `k`-th; the last boundary is the end of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A flit boundary of the packet reaches this receiver.
    Arrive {
        at: ReceiverId,
        packet: PacketId,
        boundary: u32,
    },
    /// A flit boundary of the packet passes this transmitter.
    Leave {
        from: TransmitterId,
        packet: PacketId,
        boundary: u32,
    },
    /// The credits of the packet are back at this transmitter.
    Credit { to: TransmitterId, packet: PacketId },
    /// The virtual lane of this transmitter is no longer paused.
    Resume { to: TransmitterId, vl: Vl },
    /// The packet at this input may be sent on from now on.
    Eligible { at: ReceiverId, packet: PacketId },
    /// A read of this input buffer has ended.
    ReadEnd { at: ReceiverId, packet: PacketId },
    /// A host has taken the packet in.
    Deliver { host: HostId, packet: PacketId },
    /// A receiver compares its buffer with the thresholds of PFC.
    Compare { at: ReceiverId },
    /// A switch output looks for a packet to send.
    Arbitrate { output: TransmitterId },
    /// A host looks for a packet to send.
    Inject { host: HostId },
    /// The virtual lane of this transmitter is paused.
    Pause { to: TransmitterId, vl: Vl },
}

/// The events to come, ordered by time and kind: a set, so that no order of insertion has an effect.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    events: BTreeSet<(Time, Event)>,
}

impl Agenda {
    pub(crate) fn add(&mut self, time: Time, event: Event) {
        self.events.insert((time, event));
    }

    /// Takes the first event strictly before `end`.
    pub(crate) fn next_before(&mut self, end: Time) -> Option<(Time, Event)> {
        if self.events.first()?.0 < end {
            self.events.pop_first()
        } else {
            None
        }
    }

    /// The packets of which a flit is about to leave or to arrive.
    pub(crate) fn moving_packets(&self) -> impl Iterator<Item = PacketId> {
        self.events.iter().filter_map(|&(_, event)| match event {
            Event::Arrive { packet, .. } | Event::Leave { packet, .. } => Some(packet),
            _ => None,
        })
    }
}

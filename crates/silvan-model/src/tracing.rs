//! Packets that a run records hop by hop.

use silvan_core::{Bytes, HostId, PortId, Sl, Span, Time, Vl};

/// Which packets are recorded: those that leave one of the ports, and those of one of the flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Output ports of switches and hosts.
    pub ports: Vec<PortId>,
    /// Sending and receiving host.
    pub flows: Vec<(HostId, HostId)>,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Data of a message.
    Data,
    /// A congestion notification packet (CNP).
    Cnp,
    /// An acknowledgement.
    Ack,
    /// A grant of a receiver.
    Grant,
}

/// A packet that leaves a port, and what it has waited for there.
///
/// The time between `arrived` and `at` that is neither credit wait nor pacing nor throttling is, in a switch,
/// the time in which the port sends `sent_before` other packets; at a host there is nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHop {
    /// When its first bit leaves.
    pub at: Time,
    /// When it could have been chosen in its switch; at a host when the packet before it has left.
    pub arrived: Time,
    /// The port that it leaves.
    pub port: PortId,
    /// The port that it came by; `None` at a host.
    pub input: Option<PortId>,
    /// Virtual lane on the link.
    pub vl: Vl,
    /// Service level.
    pub sl: Sl,
    /// Sending host.
    pub source: HostId,
    /// Receiving host.
    pub destination: HostId,
    /// Traffic class of data.
    pub class: u16,
    /// When its injection started; of what is not data, the time of this hop at its host.
    pub born: Time,
    /// Size on the wire.
    pub wire: Bytes,
    /// What it is.
    pub kind: PacketKind,
    /// Whether it is the last of its message.
    pub last: bool,
    /// Whether a switch has set FECN, this one included.
    pub fecn: bool,
    /// Whether it carries BECN.
    pub becn: bool,
    /// Packets that the port has sent since `arrived`.
    pub sent_before: u64,
    /// Time since `arrived` in which the port lacked credits.
    pub credit_wait: Span,
    /// Time since `arrived` in which the injection rate of the host allowed no packet.
    pub pacing: Span,
    /// Time since `arrived` in which congestion control allowed no packet of the flow.
    pub throttling: Span,
    /// When its last byte is in the receiving host; `None` unless this is the last link.
    pub delivered: Option<Time>,
}

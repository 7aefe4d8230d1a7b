use silvan_core::{Bytes, HostId, PortId, Sl, Span, Time, Vl};

/// Filter for recorded packets: packets that leave one of the ports, and packets of one of the flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Output ports of switches and hosts.
    pub ports: Vec<PortId>,
    /// Sending and receiving host.
    pub flows: Vec<(HostId, HostId)>,
}

/// Kinds of packets.
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

/// A packet that leaves a port, with the causes of its waiting time; the rest is time for `sent_before` packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHop {
    /// Time at which the first bit leaves.
    pub at: Time,
    /// Time from which the switch could choose the packet; at a host, the time at which the packet before it has left.
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
    /// Start of injection; for control packets, the time of this hop at its host.
    pub born: Time,
    /// Size on the wire.
    pub wire: Bytes,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// True for the last packet of its message.
    pub last: bool,
    /// True if this switch or an earlier switch has set FECN.
    pub fecn: bool,
    /// True if the packet carries BECN.
    pub becn: bool,
    /// Packets that the port has sent since `arrived`.
    pub sent_before: u64,
    /// Time since `arrived` in which the port lacked credits.
    pub credit_wait: Span,
    /// Time since `arrived` in which the injection rate of the host allowed no packet.
    pub pacing: Span,
    /// Time since `arrived` in which congestion control allowed no packet of the flow.
    pub throttling: Span,
    /// Time at which the last byte is in the receiving host; `None` before the last link.
    pub delivered: Option<Time>,
}

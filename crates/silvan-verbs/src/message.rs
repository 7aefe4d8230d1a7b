//! Messages between adapters.

use silvan_core::{Lid, Sl};

use crate::verbs::DeviceId;

/// A message in flight: one work request, one response, or one acknowledgement.
///
/// The caller carries it through the fabric and gives it back unchanged to [`Verbs::arrived`](crate::Verbs::arrived) or
/// [`Verbs::lost`](crate::Verbs::lost). A multicast message arrives as one clone per destination port.
#[derive(Clone, Debug)]
pub struct Message {
    /// Adapter that sends it.
    pub from: DeviceId,
    /// LID that it states as its source.
    pub source_lid: Lid,
    /// Port or group that it goes to. The sender's own port is possible: such a message never leaves the adapter.
    pub destination: Destination,
    /// Service level.
    pub sl: Sl,
    /// Queue pairs at both ends: congestion control acts on it, and its messages depart in order.
    pub flow: Flow,
    /// Part in the exchange.
    pub kind: MessageKind,
    /// Bytes of data, without headers.
    pub payload_bytes: u64,
    /// Packets that it takes at the path MTU, at least 1.
    pub packets: u32,
    /// Bytes of all its packets on the wire: data, and the headers from LRH to VCRC.
    pub wire_bytes: u64,
}

/// Place that a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The port with this LID.
    Unicast(Lid),
    /// All ports of a multicast group except the sender's.
    Multicast(Lid),
}

/// Queue pairs between which a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Number of the sending queue pair.
    pub source_qp: u32,
    /// Number of the receiving queue pair; `0xffffff` for multicast.
    pub destination_qp: u32,
}

/// Part of a message in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Work request of a sender.
    Request,
    /// Data of an RDMA read, or the value of an atomic operation.
    Response,
    /// Positive or negative acknowledgement, without data.
    Acknowledge,
}

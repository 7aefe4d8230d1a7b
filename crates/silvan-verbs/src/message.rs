use std::sync::Arc;

use silvan_core::{Lid, Sl};

use crate::abi::structures::GlobalRoute;
use crate::abi::values::{QpType, SendOpcode, Status};
use crate::objects::QpKey;
use crate::verbs::DeviceId;

/// A message in flight: a work request, a response, or an acknowledgement.
///
/// The caller carries it and gives it to [`Verbs::arrived`](crate::Verbs::arrived) or
/// [`Verbs::lost`](crate::Verbs::lost); multicast arrives as a clone per port.
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
    pub(crate) pkey: u16,
    pub(crate) sender: QpKey,
    pub(crate) content: Content,
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

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Request(Request),
    Response(Response),
    Acknowledge(Acknowledge),
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) transport: QpType,
    pub(crate) opcode: SendOpcode,
    pub(crate) serial: u64,
    pub(crate) attempt: u32,
    pub(crate) psn: u32,
    pub(crate) length: u64,
    pub(crate) immediate: [u8; 4],
    pub(crate) is_solicited: bool,
    pub(crate) remote_address: u64,
    pub(crate) remote_key: u32,
    pub(crate) operands: (u64, u64),
    pub(crate) data: Option<Arc<[u8]>>,
    pub(crate) qkey: u32,
    pub(crate) route: Option<(GlobalRoute, Arc<[u8]>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) serial: u64,
    pub(crate) psn: u32,
    pub(crate) original: Option<u64>,
    /// False for an answer that is repeated, which takes no resource of the responder.
    pub(crate) is_new: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledge {
    Positive(u32),
    NotReady(u32, u8),
    Sequence(u32),
    Failed(u32, Status),
}

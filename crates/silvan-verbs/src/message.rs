use std::sync::Arc;

use silvan_core::{Lid, Sl};

use crate::abi::structures::GlobalRoute;
use crate::abi::values::{QpType, SendOpcode, Status};
use crate::objects::QpKey;
use crate::transport::wire::{advance, distance};
use crate::verbs::DeviceId;

/// A message in flight: a work request, a response, an acknowledgement, or the rest of a request or a response that
/// is sent again.
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
    /// Path MTU: most data of a packet in bytes.
    pub mtu: u32,
    /// Packets that it takes at the path MTU, at least 1.
    pub packets: u32,
    /// Bytes of all its packets on the wire: data, and the headers from LRH to VCRC.
    pub wire_bytes: u64,
    pub(crate) pkey: u16,
    pub(crate) sender: QpKey,
    pub(crate) content: Content,
}

impl Message {
    /// Returns true if it is of RC.
    pub fn is_reliable(&self) -> bool {
        match &self.content {
            Content::Request(request) => request.transport == QpType::Rc,
            Content::Response(_) | Content::Acknowledge(_) => true,
        }
    }
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
    /// Times that the sender has gone back.
    pub(crate) round: u32,
    /// Sequence number of the whole request, and those that it takes.
    pub(crate) psn: u32,
    pub(crate) packets: u32,
    /// First packet that is sent, or asked for, and the bytes before it.
    pub(crate) first: u32,
    pub(crate) offset: u64,
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

impl Request {
    /// Request of the sender, and attempt.
    pub(crate) fn run(&self) -> (u64, u32) {
        (self.serial, self.attempt)
    }

    /// Sequence number of the first packet that is sent.
    pub(crate) fn first_psn(&self) -> u32 {
        advance(self.psn, self.first)
    }

    /// Returns true if it brings the packet that a responder expects.
    pub(crate) fn brings(&self, expected: u32) -> bool {
        let end = advance(self.psn, self.packets);
        distance(self.first_psn(), expected) <= 0 && distance(end, expected) > 0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) serial: u64,
    pub(crate) attempt: u32,
    /// First packet that is sent.
    pub(crate) first: u32,
    /// Sequence number of the last packet.
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

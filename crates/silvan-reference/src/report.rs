//! What a run has shown.

use silvan_core::{Bytes, Credits, PortId, Span, Time, Vl};

/// One delivered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Index of its flow, in the order in which the flows were given.
    pub flow: usize,
    /// Its place in the flow, from 0.
    pub sequence: u64,
    /// Its payload.
    pub payload: Bytes,
    /// When its first bit left its source host.
    pub injected: Time,
    /// When the destination host had taken it in.
    pub done: Time,
}

impl Delivery {
    /// From the first bit leaving the source to the packet being taken in.
    #[must_use]
    pub fn latency(&self) -> Span {
        self.done.since(self.injected)
    }
}

/// A buffer that held more than its size under PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When.
    pub at: Time,
    /// The input port.
    pub port: PortId,
    /// The virtual lane.
    pub vl: Vl,
    /// By how many bytes.
    pub over: Bytes,
}

/// What a switch knows of one of its input buffers: blocks of the packets that were eligible, or had begun to leave, and whose tail
/// had not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occupancy {
    /// When.
    pub at: Time,
    /// The input port.
    pub port: PortId,
    /// The virtual lane.
    pub vl: Vl,
    /// The blocks.
    pub blocks: Credits,
}

/// What a port has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortReport {
    /// Bytes on the wire (PortXmitData counts the same in words of 4 bytes), flit by flit.
    pub xmit_bytes: Bytes,
    /// Packets sent to their end (PortXmitPkts).
    pub xmit_packets: u64,
    /// PortXmitWait: time in which the port sent nothing although a packet for it was eligible (at a
    /// host: a flow was ready), for want of credits or of reads of its input (IBA 16.1.3).
    pub xmit_wait: Span,
    /// Pause and resume frames of PFC that have taken effect here.
    pub pause_frames: u64,
    /// Time paused by PFC, summed over the virtual lanes.
    pub pause_time: Span,
}

use silvan_core::{Bytes, Credits, PortId, Span, Time, Vl};

/// A delivered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Index of its flow, in the order in which the flows were given.
    pub flow: usize,
    /// Position in the flow, from 0.
    pub sequence: u64,
    /// Payload of the packet.
    pub payload: Bytes,
    /// Time at which the first bit left the source host.
    pub injected: Time,
    /// Time at which the destination host had received the packet.
    pub done: Time,
}

impl Delivery {
    /// Returns the time from the first bit leaving the source to the packet being received.
    #[must_use]
    pub fn latency(&self) -> Span {
        self.done.since(self.injected)
    }
}

/// A buffer that held more than its size under PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Time of the loss.
    pub at: Time,
    /// The input port.
    pub port: PortId,
    /// The virtual lane.
    pub vl: Vl,
    /// By how many bytes.
    pub over: Bytes,
}

/// Occupancy of an input buffer, as its switch counts it: blocks of packets from eligibility to the tail's departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occupancy {
    /// Time of the reading.
    pub at: Time,
    /// The input port.
    pub port: PortId,
    /// The virtual lane.
    pub vl: Vl,
    /// The blocks.
    pub blocks: Credits,
}

/// Traffic sent by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortReport {
    /// Bytes on the wire (PortXmitData counts the same in words of 4 bytes), flit by flit.
    pub xmit_bytes: Bytes,
    /// Packets sent to their end (PortXmitPkts).
    pub xmit_packets: u64,
    /// PortXmitWait (IBA 16.1.3): time without sending although a packet lacked only credits or reads.
    pub xmit_wait: Span,
    /// Pause and resume frames of PFC that have taken effect here.
    pub pause_frames: u64,
    /// Time paused by PFC, summed over the virtual lanes.
    pub pause_time: Span,
}

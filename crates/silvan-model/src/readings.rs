//! What can be read of a running engine, and what closing a port does to it.

use silvan_core::{Span, Time};

/// Counters of one port (IBA 16.1.3 and 16.1.4), in natural units. A packet counts as sent when it
/// starts, and as received when its sender has started it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Wire bytes sent (PortXmitData is this in 4-byte words).
    pub xmit_bytes: u64,
    /// Packets sent.
    pub xmit_packets: u64,
    /// Wire bytes received.
    pub rcv_bytes: u64,
    /// Packets received.
    pub rcv_packets: u64,
    /// Time with packets to send and none sent for want of credits or arbitration (PortXmitWait).
    pub xmit_wait: Span,
    /// Time in the congestion state, summed over the data VLs (PortXmitTimeCong).
    pub xmit_cong: Span,
}

/// What has been delivered of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowProgress {
    /// Payload taken in by its destination.
    pub delivered_bytes: u64,
    /// When the last of it was.
    pub last_delivery: Time,
}

/// Counters of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Payload whose injection has started.
    pub injected_bytes: u64,
    /// Payload taken in.
    pub delivered_bytes: u64,
    /// Data packets taken in.
    pub delivered_packets: u64,
    /// Data packets received with FECN. Known from the last switch on, a little before delivery.
    pub fecn_received: u64,
    /// Notifications received with BECN.
    pub becn_received: u64,
}

/// Packets that a port did not pass on (IBA 16.1.3.5), since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards {
    /// Packets bound for this output that it has not sent (PortXmitDiscards): because it was closed,
    /// but for those of `stale`.
    pub xmit: u64,
    /// Those of `xmit` discarded to end a deadlock (PortSwHOQLifetimeLimitDiscards).
    pub stale: u64,
    /// Packets that were on the cable to this port when it was cut (PortRcvErrors).
    pub rcv_errors: u64,
    /// Packets that arrived here and had no forwarding entry or no virtual lane
    /// (PortRcvSwitchRelayErrors).
    pub relay_errors: u64,
}

/// What happens to packets that are on a port's cable when it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWire {
    /// They arrive: the port leaves its active state, the cable stays.
    Arrive,
    /// They are lost: the cable is cut. A packet whose head has arrived already is kept whole, and so
    /// is one that was on its way to a host.
    Lost,
}

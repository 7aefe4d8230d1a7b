use silvan_core::{HostId, Sl, Time};

/// Delivery progress of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowProgress {
    /// Payload taken in by its destination.
    pub delivered_bytes: u64,
    /// Time of the last delivery.
    pub last_delivery: Time,
    /// Packets with FECN.
    pub marked_packets: u32,
    /// Links on the longest path of its packets; 0 if none was delivered.
    pub hops: u8,
    /// Times that its sender went back to a lost packet.
    pub retries: u64,
    /// True if its connection has failed after the last retry.
    pub has_failed: bool,
}

/// Lost packets of a message, or of all traffic of a class between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostPackets {
    /// The sender.
    pub source: HostId,
    /// The receiver.
    pub destination: HostId,
    /// Service level.
    pub sl: Sl,
    /// Traffic class.
    pub class: u16,
    /// Number of the message, modulo 2^16; 0 for traffic.
    pub number: u16,
    /// Packets lost.
    pub packets: u64,
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
    /// Grants received, of a scheme whose receivers send them.
    pub grants_received: Option<u64>,
    /// Data packets that arrived after later ones of their flow; counted where paths differ from packet to packet.
    pub reordered_packets: u64,
    /// Most payload that waited for earlier packets of its flow at once, where a host delivers in order.
    pub most_held_bytes: u64,
    /// Times that its connections went back to a lost packet.
    pub retries: u64,
    /// Payload of packets sent again.
    pub resent_bytes: u64,
    /// Connections from it that have failed after the last retry.
    pub failed_connections: u64,
}

/// Fate of packets on a port's cable when the port closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWire {
    /// Packets arrive: the port leaves its active state, the cable stays.
    Arrive,
    /// Packets are lost: the cable is cut. A packet survives if its head has arrived, or if it is on its way to a host.
    Lost,
}

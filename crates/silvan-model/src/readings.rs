use silvan_core::Time;

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
}

/// Fate of packets on a port's cable when the port closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWire {
    /// Packets arrive: the port leaves its active state, the cable stays.
    Arrive,
    /// Packets are lost: the cable is cut. A packet survives if its head has arrived, or if it is on its way to a host.
    Lost,
}

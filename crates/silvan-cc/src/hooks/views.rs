use silvan_core::{HostId, PortId, Rate, Sl, Span, Time, Vl};

use crate::flow_table::FlowTable;

/// A virtual lane of a port, as a dense index: `port * data_vls + vl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortVl(pub u32);

/// A flow as adapters distinguish it, a queue pair: source host, destination host, service level and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The host that sends the data.
    pub source: HostId,
    /// The host that receives it.
    pub destination: HostId,
    /// The service level of its data packets.
    pub sl: Sl,
    /// Tells queue pairs of live programs between two hosts apart, below [`Flow::QUEUES`]; 0 for all else.
    pub queue: u16,
}

impl Flow {
    /// Values of [`queue`](Self::queue).
    pub const QUEUES: u16 = 1 << 12;
}

/// A flow that a source control holds below the rate of its link, at some instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowLimit {
    /// The host that receives it; `None` if the limit is of all flows of the service level together.
    pub destination: Option<HostId>,
    /// Service level of the flow.
    pub sl: Sl,
    /// Index of the flow into the Congestion Control Table, above 0; 0 for a scheme without such a table.
    pub ccti: u16,
    /// The rate that the limit leaves to it, as a part of the link's.
    pub rate: f64,
}

/// State of a host's flows, where it can repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurring {
    /// Grows with each notification.
    pub changes: u64,
    /// Equal words, with times relative to now, mean equal futures without notifications, up to `until`.
    pub words: Vec<u64>,
    /// The state changes by itself later than this.
    pub until: Time,
}

impl FlowLimit {
    pub(crate) fn of_table<V: Copy + Default>(
        flows: &FlowTable<V>,
        limit: impl Fn(u32, &V) -> Option<Self>,
    ) -> Vec<Self> {
        let limits = flows.iter().filter_map(|(key, state)| limit(key, state));
        let mut limits: Vec<Self> = limits.collect();
        limits.sort_unstable_by_key(|limit| (limit.destination, limit.sl));
        limits
    }

    pub(crate) fn of_rate(key: u32, rate: f64) -> Option<Self> {
        (rate < 1.0).then_some(Self {
            destination: Some(HostId::new((key >> 4) as usize)),
            sl: Sl::try_new((key & 0xf) as u8).ok()?,
            ccti: 0,
            rate,
        })
    }
}

/// Properties of a packet that is being queued or sent, for a switch control.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Bytes on the wire, headers included.
    pub wire_bytes: u32,
    /// True if FECN is set already: by an earlier switch, or by this switch while the packet waited.
    pub marked: bool,
    /// Input port at this switch.
    pub input: PortId,
    /// The virtual lane on which it came, whose buffer it takes (Rust only).
    pub vl: Vl,
}

/// A packet as it starts on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// The host that sends it.
    pub source: HostId,
    /// The host that it is for.
    pub destination: HostId,
    /// Service level of the packet.
    pub sl: Sl,
    /// Bytes on the wire, headers included.
    pub wire_bytes: u32,
    /// True if the packet carries FECN.
    pub fecn: bool,
    /// True if the packet carries BECN.
    pub becn: bool,
    /// True if this port has set the packet's FECN.
    pub marked_here: bool,
    /// Idle time of the port with packets to send, until it started this packet.
    pub waited: Span,
}

/// The queue state of one output Port VL at the instant of a call.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// Bytes (on the wire) in the switch's input buffers for this Port VL, with this packet.
    pub queued_bytes: u32,
    /// True if credits for a packet of MTU size remain after the packet of the call.
    pub has_credit: bool,
}

/// The resident packets of a switch, for schemes that inspect or mark packets other than the one at hand.
pub trait Resident {
    /// Occupied 64-byte blocks of the input buffer, from a packet's eligibility to its tail's departure.
    fn occupied_blocks(&self, input: PortId, vl: Vl) -> u32;
    /// Capacity of that buffer in blocks.
    fn capacity_blocks(&self, input: PortId, vl: Vl) -> u32;
    /// Packets in the switch that wait for this output Port VL.
    fn queued_packets(&self, output: PortId, vl: Vl) -> u32;
    /// Calls `each` for every output port with a packet in this input's buffer.
    fn outputs_of(&self, input: PortId, vl: Vl, each: &mut dyn FnMut(PortId));
    /// Calls `each` for every output port of the switch of `input` that is sending: the tail of its last packet has not left.
    fn sending_outputs(&self, input: PortId, each: &mut dyn FnMut(PortId));
    /// Marks every waiting packet of this input buffer.
    fn mark_input(&mut self, input: PortId, vl: Vl);
    /// Marks every packet that waits anywhere in the switch for this output Port VL.
    fn mark_output(&mut self, output: PortId, vl: Vl);
}

/// A notification that reaches the source of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// A congestion notification packet: always carries BECN.
    Cnp,
    /// An acknowledgement of `bytes` of payload, with or without BECN.
    Ack {
        /// Payload bytes acknowledged.
        bytes: u32,
        /// True if the acknowledgement carries BECN (the ECN echo).
        becn: bool,
    },
}

/// Record that a switch writes into a departing packet (in-band network telemetry, INT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The output port and lane by which it left.
    pub output: PortVl,
    /// Departure time of the packet's head.
    pub at: Time,
    /// Bytes on the wire that waited for this output Port VL behind it.
    pub queued_bytes: u32,
    /// Bytes that the port has sent since the start of the run, this packet included.
    pub xmit_bytes: u64,
    /// Data rate of the link.
    pub rate: Rate,
}

/// An acknowledgement with what it says of the packet that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Payload bytes acknowledged.
    pub bytes: u32,
    /// True if the acknowledgement carries BECN (the ECN echo).
    pub becn: bool,
    /// Send time of the packet. With one acknowledgement per message, the send time of the last packet.
    pub sent: Time,
    /// Time of the packet in the destination's sink, including the wait for the sink.
    pub endpoint: Span,
    /// The path that [`select_path`](super::SourceControl::select_path) chose for the packet.
    pub path: Option<u32>,
    /// Records of the packet's switches, from the first that [stamps](super::SwitchControl::stamps).
    pub hops: &'a [Hop],
}

/// A data packet that its destination has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Payload of the packet in bytes.
    pub payload: u32,
    /// True if the packet carries FECN.
    pub marked: bool,
    /// True for the last packet of its message.
    pub last: bool,
    /// Send time of the packet.
    pub sent: Time,
    /// Payload of its flow behind it then, in bytes, as far as known; at most 2³² - 1.
    pub behind: u32,
    /// Time that the receiver needs for such a packet, on its link or in its sink, whichever is longer.
    pub takes: Span,
}

/// A grant that a receiver sends: a packet of its own, which travels as notifications do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The host that may send. The receiver is the one that the call is for.
    pub source: HostId,
    /// The service level of the flow that may send.
    pub sl: Sl,
    /// Content of the grant; the engine does not interpret it.
    pub bytes: u32,
    /// Send time at the receiver; an instant not later than now means now.
    pub at: Time,
}

/// The grants that a receiver sends after a packet.
#[derive(Clone, Debug, Default)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// Adds a grant.
    #[inline]
    pub fn send(&mut self, grant: Grant) {
        self.0.push(grant);
    }

    /// Removes all grants, in the order in which they were added.
    pub fn drain(&mut self) -> impl Iterator<Item = Grant> + '_ {
        self.0.drain(..)
    }
}

/// An output port that a switch may choose for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The port.
    pub output: PortId,
    /// Bytes ahead of the packet on its lane, at the port and, by the credits, behind its cable.
    pub bytes_ahead: u64,
}

/// Place of a packet, for the choice of its next virtual lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// The input port whose buffer holds it; `None` at the host that sends it.
    pub input: Option<PortId>,
    /// The output port, of a switch or a host, that it will leave by.
    pub output: PortId,
    /// The input port at the end of the link; `None` if a host is there.
    pub next_input: Option<PortId>,
    /// Its output at the next switch; `None` at a host, or without a route or with several.
    pub next_output: Option<PortId>,
}

/// A message of a switch to the output at the other end of the cable that leads into one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortMessage {
    /// Arrival time of the message.
    pub arrives: Time,
    /// Output that receives the message.
    pub to: PortId,
    /// The flow that it is about.
    pub flow: Flow,
    /// Further content of the message; the engine does not interpret it.
    pub content: [u32; 3],
}

/// The routes of a fabric.
pub trait RouteView {
    /// The output by which the switch of a port sends packets to a host; `None` without a route.
    fn output(&self, port: PortId, to: HostId) -> Option<PortId>;
}

/// Transport of switches' messages between parts of a fabric.
pub trait Messages {
    /// Sends a message.
    fn send(&mut self, message: PortMessage);

    /// The next message that has been sent to a switch of this part.
    fn receive(&mut self) -> Option<PortMessage>;
}

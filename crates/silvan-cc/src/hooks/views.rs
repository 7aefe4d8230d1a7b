//! What hooks get to see, and what they return.

use silvan_core::{HostId, PortId, Rate, Sl, Span, Time, Vl};

use crate::flow_table::FlowTable;

/// One virtual lane of one port, as a dense index: `port * data_vls + vl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortVl(pub u32);

/// A flow as a channel adapter tells them apart: source host, destination host and service level
/// (one queue pair in each direction between two hosts on each SL).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The host that sends the data.
    pub source: HostId,
    /// The host that receives it.
    pub destination: HostId,
    /// The service level of its data packets.
    pub sl: Sl,
}

/// A flow that a source control holds below the rate of its link, at some instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowLimit {
    /// The host that receives it; `None` if the limit is of all flows of the service level together.
    pub destination: Option<HostId>,
    /// Its service level.
    pub sl: Sl,
    /// Its index into the Congestion Control Table, above 0; 0 for a scheme without such a table.
    pub ccti: u16,
    /// The rate that the limit leaves to it, as a part of the link's.
    pub rate: f64,
}

impl FlowLimit {
    /// Limits by destination and service level, in the order of both. The key of a flow in the table of its host
    /// is its destination, shifted by four bits, and its service level.
    pub(crate) fn of_table<V: Copy + Default>(
        flows: &FlowTable<V>,
        limit: impl Fn(u32, &V) -> Option<Self>,
    ) -> Vec<Self> {
        let limits = flows.iter().filter_map(|(key, state)| limit(key, state));
        let mut limits: Vec<Self> = limits.collect();
        limits.sort_unstable_by_key(|limit| (limit.destination, limit.sl));
        limits
    }

    /// A flow of a scheme that limits rates, by its key.
    pub(crate) fn of_rate(key: u32, rate: f64) -> Option<Self> {
        (rate < 1.0).then_some(Self {
            destination: Some(HostId::new((key >> 4) as usize)),
            sl: Sl::try_new((key & 0xf) as u8).ok()?,
            ccti: 0,
            rate,
        })
    }
}

/// What a switch control may know of a packet that is being queued or sent.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Bytes on the wire, headers included.
    pub wire_bytes: u32,
    /// Whether FECN is set already: by a switch before this one, or by this one while it waited.
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
    /// Its service level.
    pub sl: Sl,
    /// Bytes on the wire, headers included.
    pub wire_bytes: u32,
    /// Whether it carries FECN.
    pub fecn: bool,
    /// Whether it carries BECN.
    pub becn: bool,
    /// Whether this very port has set its FECN.
    pub marked_here: bool,
    /// How long the port has been idle for want of credits or arbitration, with packets to send,
    /// until it started this one.
    pub waited: Span,
}

/// The queue state of one output Port VL at the instant of a call.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// Bytes (on the wire) that wait in all input buffers of the switch for this output Port VL,
    /// the packet of the call included.
    pub queued_bytes: u32,
    /// Whether credits for one packet of MTU size are left, after the packet of the call has
    /// taken its own.
    pub has_credit: bool,
}

/// The resident packets of a switch, for schemes that inspect or mark packets other than the one
/// at hand.
pub trait Resident {
    /// Blocks (64 bytes) occupied in the input buffer of this port and VL, as the switch knows: by packets whose head is eligible
    /// and whose tail has not left.
    fn occupied_blocks(&self, input: PortId, vl: Vl) -> u32;
    /// Capacity of that buffer in blocks.
    fn capacity_blocks(&self, input: PortId, vl: Vl) -> u32;
    /// Packets in the switch that wait for this output Port VL.
    fn queued_packets(&self, output: PortId, vl: Vl) -> u32;
    /// Calls `each` for every output port of the switch for which at least one packet waits in
    /// the buffer of this input.
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
        /// Whether the acknowledgement carries BECN (the ECN echo).
        becn: bool,
    },
}

/// What a switch has written into a packet as it left (in-band network telemetry, INT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The output port and lane by which it left.
    pub output: PortVl,
    /// When it started to leave.
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
    /// Whether the acknowledgement carries BECN (the ECN echo).
    pub becn: bool,
    /// When the packet was sent. With one acknowledgement per message, its last packet.
    pub sent: Time,
    /// How long the packet waited for the sink of its destination and was in it.
    pub endpoint: Span,
    /// The path that [`select_path`](super::SourceControl::select_path) chose for the packet.
    pub path: Option<u32>,
    /// What the switches have written into the packet, from the first that [stamps](super::SwitchControl::stamps)
    /// to the last.
    pub hops: &'a [Hop],
}

/// A data packet that its destination has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its payload in bytes.
    pub payload: u32,
    /// Whether it carries FECN.
    pub marked: bool,
    /// Whether it is the last of its message.
    pub last: bool,
    /// When it was sent.
    pub sent: Time,
    /// Payload of its flow that waited behind it then, in bytes, as far as the traffic is known; 4 GiB and more
    /// are 2³² - 1.
    pub behind: u32,
    /// How long the receiver takes for such a packet: on its link, or in its sink if that takes longer.
    pub takes: Span,
}

/// A grant that a receiver sends: a packet of its own, which travels as notifications do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The host that may send. The receiver is the one that the call is for.
    pub source: HostId,
    /// The service level of the flow that may send.
    pub sl: Sl,
    /// What it grants; the engine does not interpret it.
    pub bytes: u32,
    /// When the receiver sends it; an instant not later than now means now.
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
    /// Bytes ahead of the packet on its lane: those that wait for the port, and those in the buffer
    /// behind its cable or on their way into it, as the credits tell.
    pub bytes_ahead: u64,
}

/// Where a packet is and will be, for the choice of its next virtual lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// The input port whose buffer holds it; `None` at the host that sends it.
    pub input: Option<PortId>,
    /// The output port, of a switch or a host, that it will leave by.
    pub output: PortId,
    /// The input port at the end of the link; `None` if a host is there.
    pub next_input: Option<PortId>,
    /// The output port by which it will leave the next switch; `None` if a host is there, or that switch has no
    /// route or several.
    pub next_output: Option<PortId>,
}

/// A message of a switch to the output at the other end of the cable that leads into one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortMessage {
    /// When it arrives.
    pub arrives: Time,
    /// That output.
    pub to: PortId,
    /// The flow that it is about.
    pub flow: Flow,
    /// What else it says; the engine does not interpret it.
    pub content: [u32; 3],
}

/// The routes of a fabric.
pub trait RouteView {
    /// The output by which the switch of a port sends packets to a host; `None` without a route.
    fn output(&self, port: PortId, to: HostId) -> Option<PortId>;
}

/// Where the messages of switches go that several parts of a fabric run.
pub trait Messages {
    /// Sends a message.
    fn send(&mut self, message: PortMessage);

    /// The next message that has been sent to a switch of this part.
    fn receive(&mut self) -> Option<PortMessage>;
}

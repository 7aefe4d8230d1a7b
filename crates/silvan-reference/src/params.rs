use silvan_core::{Bytes, HostId, Rate, Sl, Span, Time, Vl};
use silvan_fabric::routing::SlToVlTables;

/// Every parameter of the data plane, without defaults: a test states each value that it depends on.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Number of data virtual lanes of every port, 1 to 15.
    pub data_vls: u8,
    /// Virtual lane of each service level (IBA 7.6.6). Switches keep the lane that a packet came by.
    pub sl_to_vl: [u8; 16],
    /// Lanes by input port, output port and level; without tables `sl_to_vl` holds.
    pub tables: Option<SlToVlTables>,
    /// Bytes on the wire beyond the payload of every packet.
    pub header: Bytes,
    /// Priority-based flow control of all links, each virtual lane a priority; `None` for credits.
    pub pfc: Option<Pfc>,
    /// Switches.
    pub switch: SwitchParameters,
    /// Channel adapters.
    pub host: HostParameters,
}

/// Priority-based flow control (IEEE 802.1Qbb), the same for all links.
#[derive(Clone, Copy, Debug)]
pub struct Pfc {
    /// A receiver pauses its sender when a lane of its buffer holds more bytes than this.
    pub xoff: Bytes,
    /// The sender resumes when it holds no more than this.
    pub xon: Bytes,
    /// Size of each lane of a buffer.
    pub buffer: Bytes,
    /// The frame in the other direction that a pause frame waits for, on the wire.
    pub max_frame: Bytes,
    /// A pause frame on the wire.
    pub pause_frame: Bytes,
    /// Time of a frame in the interfaces of a link in one direction.
    pub interface_delay: Span,
    /// Time from the arrival of a pause frame to its effect.
    pub response: Span,
}

/// Switch parameters, the same for all switches.
#[derive(Clone, Debug)]
pub struct SwitchParameters {
    /// Time from the head of a packet at the input to its being eligible for arbitration.
    pub latency: Span,
    /// From the tail's departure to usable credits upstream, beyond propagation.
    pub credit_delay: Span,
    /// Input buffer of each port and virtual lane; only whole 64-byte blocks count.
    pub buffer: Bytes,
    /// Most concurrent reads of an input; `None`: no limit. At a read's end waiting outputs are tried in turn.
    pub read_limit: Option<u8>,
    /// Rate of a read over the link's [%], rounded up to ps; space is freed with the tail.
    pub read_speedup_percent: u32,
    /// Packets of an input buffer and virtual lane that an output may pick.
    pub queueing: Queueing,
    /// Order in which an output serves its inputs, inside a virtual lane.
    pub arbitration: Arbitration,
    /// A FIFO buffer between crossbar and link.
    pub output_buffer: Option<OutputBuffer>,
    /// The virtual-lane arbitration tables of every switch port.
    pub vl_arbitration: VlArbitration,
}

/// Packets of an input buffer and virtual lane that an output may pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The first for each output.
    Voq,
    /// The first of all, in the order in which their heads arrived.
    Fifo,
}

/// Order in which an output serves its inputs, inside a virtual lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// The next input after the last winner that has an eligible packet.
    RoundRobin,
    /// The input whose packet became eligible first; of several, the lowest port.
    OldestFirst,
}

/// A FIFO buffer between crossbar and link: a switch of one input and one output, without latency.
#[derive(Clone, Copy, Debug)]
pub struct OutputBuffer {
    /// Size per port and virtual lane; only whole 64-byte blocks count.
    pub size: Bytes,
    /// Crossbar rate over link rate, in per cent; the product is rounded up to whole bit/s.
    pub speedup_percent: u32,
    /// True if packets pass the crossbar flit by flit instead of at its rate.
    pub cut_through: bool,
}

/// Virtual-lane arbitration tables (IBA 7.6.9); every lane in use needs an entry with a weight.
#[derive(Clone, Debug)]
pub struct VlArbitration {
    /// High-priority table: virtual lane and weight in blocks of 64 bytes; weight 0 skips it.
    pub high: Vec<(Vl, u8)>,
    /// Low-priority table.
    pub low: Vec<(Vl, u8)>,
    /// Limit of High Priority in 4096-byte units; 0 means one packet, 255 for no limit.
    pub limit_high: u8,
}

impl VlArbitration {
    /// Low-priority table only, every lane with the same `weight`.
    #[must_use]
    pub fn equal(data_vls: u8, weight: u8) -> Self {
        Self {
            high: Vec::new(),
            low: Vl::all()
                .take(usize::from(data_vls))
                .map(|vl| (vl, weight))
                .collect(),
            limit_high: 0,
        }
    }
}

/// Start of a packet's consumption by the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    /// After the last flit has arrived.
    StoreAndForward,
    /// After the first flit has arrived; the last flit is received after its arrival.
    CutThrough,
}

/// Other packets of a host while a chosen packet lacks credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostArbitration {
    /// Packets of its virtual lane wait behind it.
    HeadOfLine,
    /// Packets with credits go.
    WorkConserving,
}

/// Channel-adapter parameters, the same for all hosts.
#[derive(Clone, Debug)]
pub struct HostParameters {
    /// Payload rate that paces the starts of a host's packets; `None` for the link alone.
    pub injection_rate: Option<Rate>,
    /// Other packets of a host while a chosen packet lacks credits.
    pub arbitration: HostArbitration,
    /// Payload rate at which a host takes packets in; `None` for at once.
    pub sink_rate: Option<Rate>,
    /// Start of a packet's consumption by the sink.
    pub sink: Sink,
    /// Receive buffer per virtual lane; only whole 64-byte blocks count.
    pub receive_buffer: Bytes,
    /// From a packet's reception to usable credits at the switch, beyond propagation.
    pub credit_delay: Span,
}

/// Equal packets from host to host. A host takes ready flows in turn, see [`HostArbitration`].
#[derive(Clone, Debug)]
pub struct Flow {
    /// The host that sends.
    pub source: HostId,
    /// The host that receives; a different one.
    pub destination: HostId,
    /// Service level.
    pub sl: Sl,
    /// The first packet starts at this instant or later.
    pub start: Time,
    /// Number of packets; `None` for packets without end.
    pub packets: Option<u64>,
    /// Payload of each packet, at least one byte.
    pub payload: Bytes,
    /// Least time between starts; zero for a flow that always has something to send.
    pub gap: Span,
}

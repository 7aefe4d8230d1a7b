//! Links, switches, channel adapters, packets and virtual lanes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Length, Rate, Span};
use silvan_fabric::{LinkKind, Speed, Width};

use silvan_model::{
    Arbitration, HostParams, PacketParams, PfcParams, Queueing, Sink, SwitchParams,
};

use super::{Limit, SendQueue};
use crate::schema;

/// What keeps a sender from filling a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControl {
    /// Credits of InfiniBand: a sender starts a packet only if the buffer has room for it.
    #[default]
    Credits,
    /// Priority-based flow control of Ethernet (IEEE 802.1Qbb): a buffer pauses its sender, and has headroom for what still arrives.
    /// `switch.buffer`, `switch.credit-delay`, `host.receive-buffer` and `host.credit-delay` have no effect then.
    Pfc,
}

/// Priority-based flow control (PFC) of all links, the same for each priority. A virtual lane is a priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PfcSection {
    /// Bytes in a buffer above which it pauses its sender. Default: `buffer` less the headroom, or as many as keep the link at full load.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub xoff: Option<Bytes>,
    /// Bytes in a buffer at which its sender resumes. Default: two of the largest frames below `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub xon: Option<Bytes>,
    /// Bytes of a buffer above `xoff`, for what arrives before a pause takes effect. Default: those of the standard's formula, by rate and
    /// length of the cable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub headroom: Option<Bytes>,
    /// Size of a buffer per port and priority, at switches and hosts. Default: `xoff` and headroom.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub buffer: Option<Bytes>,
    /// Time from the arrival of a pause frame to its effect; 614.4 ns by IEEE 802.1Q, 36.1.3.3.
    #[schemars(with = "schema::SpanText")]
    pub response: Span,
    /// Time that a frame needs through the two interfaces of a link, in one direction.
    #[schemars(with = "schema::SpanText")]
    pub interface_delay: Span,
    /// Size of a pause frame on the wire: 64 B, preamble and gap.
    #[schemars(with = "schema::BytesText")]
    pub pause_frame: Bytes,
    /// Size of the largest frame on the wire, for which a pause frame can have to wait. Default: a packet of MTU size.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub max_frame: Option<Bytes>,
}

impl Default for PfcSection {
    fn default() -> Self {
        let params = PfcParams::default();
        Self {
            xoff: params.xoff,
            xon: params.xon,
            headroom: params.headroom,
            buffer: params.buffer,
            response: params.response,
            interface_delay: params.interface_delay,
            pause_frame: params.pause_frame,
            max_frame: params.max_frame,
        }
    }
}

impl PfcSection {
    /// The engine's parameters.
    pub fn params(&self) -> PfcParams {
        PfcParams {
            xoff: self.xoff,
            xon: self.xon,
            headroom: self.headroom,
            buffer: self.buffer,
            response: self.response,
            interface_delay: self.interface_delay,
            pause_frame: self.pause_frame,
            max_frame: self.max_frame,
        }
    }
}

/// Cables that say nothing else. Schemes that compute windows, thresholds or rates from the rate of a link use the rate of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LinkSection {
    /// Number of lanes.
    pub width: Width,
    /// Speed of each lane, which also decides the line coding.
    pub speed: Speed,
    /// Rate of data in each direction. Default: that of width and speed. InfiniBand's tools show width and speed all the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub rate: Option<Rate>,
    /// Length of a cable; a signal needs 5 ns per metre.
    #[schemars(with = "schema::LengthText")]
    pub length: Length,
    /// Time that a signal needs from one end of a cable to the other. Default: that of the length.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub latency: Option<Span>,
    /// What keeps a sender from filling a buffer, on all links.
    #[serde(skip_serializing_if = "is_credits")]
    pub flow_control: FlowControl,
    /// With `flow-control = "pfc"`: thresholds and delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<PfcSection>,
}

fn is_credits(flow_control: &FlowControl) -> bool {
    *flow_control == FlowControl::Credits
}

impl LinkSection {
    /// Priority-based flow control, if links have it.
    pub fn pfc_params(&self) -> Option<PfcParams> {
        let section = || self.pfc.clone().unwrap_or_default();
        (self.flow_control == FlowControl::Pfc).then(|| section().params())
    }

    /// What a cable is that says nothing itself.
    pub fn kind(&self) -> LinkKind {
        LinkKind {
            width: self.width,
            speed: self.speed,
            rate: self.rate,
            length: self.length,
            latency: self.latency,
        }
    }
}

impl Default for LinkSection {
    fn default() -> Self {
        Self {
            width: Width::X4,
            speed: Speed::Ddr,
            rate: None,
            length: Length::from_mm(2_000),
            latency: None,
            flow_control: FlowControl::default(),
            pfc: None,
        }
    }
}

/// How a packet passes a crossbar that is faster than the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrossbarFeed {
    /// At the whole rate of the crossbar: it waits until so much of it has arrived that it can.
    #[default]
    FullRate,
    /// As it arrives; the crossbar output is busy until its tail has passed.
    CutThrough,
}

/// A buffer between crossbar and link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OutputBufferSection {
    /// Size per port and virtual lane.
    #[schemars(with = "schema::BytesText")]
    pub size: Bytes,
    /// Rate of the crossbar over that of the link; at least 1, in steps of 0.01.
    #[serde(default = "OutputBufferSection::default_speedup")]
    pub speedup: f64,
    /// How a packet passes the crossbar.
    #[serde(default)]
    pub crossbar: CrossbarFeed,
}

impl OutputBufferSection {
    fn default_speedup() -> f64 {
        1.0
    }
}

/// All switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwitchSection {
    /// Time from the head of a packet at an input to its being eligible for an output.
    #[schemars(with = "schema::SpanText")]
    pub latency: Span,
    /// Time from a packet's tail leaving an input buffer to its credits being usable at the other
    /// end of the link, beyond the propagation of the link.
    #[schemars(with = "schema::SpanText")]
    pub credit_delay: Span,
    /// Input buffer per port and virtual lane; whole 64-byte credits of it count.
    #[schemars(with = "schema::BytesText")]
    pub buffer: Bytes,
    /// Most outputs that the buffer of one input port may feed at once.
    pub read_limit: Limit<u8>,
    /// Rate at which an input buffer is read over that of the link; at least 1, in steps of 0.01. A
    /// packet occupies one of the `read-limit` reads for its time on the link divided by this.
    pub read_speedup: f64,
    /// Which packets of an input buffer and virtual lane an output may choose.
    pub queueing: Queueing,
    /// Which input an output serves next, within a virtual lane.
    pub arbitration: Arbitration,
    /// With `queueing = "voq"`, how often the packet that has waited longest in an input buffer may be overtaken by others of
    /// its buffer and virtual lane that can go; then none of them leaves before it has left
    /// (santos2003, footnote 6).
    pub bypass_limit: Limit<u8>,
    /// A buffer between crossbar and link: `{ size = "8 KiB", speedup = 1.5 }`. None unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_buffer: Option<OutputBufferSection>,
}

impl Default for SwitchSection {
    fn default() -> Self {
        let params = SwitchParams::default();
        Self {
            latency: params.latency,
            credit_delay: params.credit_delay,
            buffer: params.buffer,
            read_limit: params.read_limit.into(),
            read_speedup: f64::from(params.read_speedup_percent) / 100.0,
            queueing: params.queueing,
            arbitration: params.arbitration,
            bypass_limit: params.bypass_limit.into(),
            output_buffer: None,
        }
    }
}

/// All channel adapters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HostSection {
    /// Most payload that a host injects; the link bounds it as well.
    #[schemars(with = "Limit<schema::RateText>")]
    pub injection_rate: Limit<Rate>,
    /// In which order a host sends its messages. Those of programs have their own queues.
    pub send_queue: SendQueue,
    /// Maximum rate of payload that a host receives.
    #[schemars(with = "Limit<schema::RateText>")]
    pub sink_rate: Limit<Rate>,
    /// When the sink begins to receive a packet.
    pub sink: Sink,
    /// Whether packets of a flow, what one host sends to another in one traffic class, are delivered in the order in which they
    /// were sent: where paths differ from packet to packet (`fabric.path-choice`), a packet waits for earlier ones. Its
    /// credits return, and notifications are sent, when it arrives.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_order: bool,
    /// Receive buffer per virtual lane; whole 64-byte credits of it count.
    #[schemars(with = "schema::BytesText")]
    pub receive_buffer: Bytes,
    /// Time from a packet being taken in to its credits being usable at the switch, beyond the
    /// propagation of the link.
    #[schemars(with = "schema::SpanText")]
    pub credit_delay: Span,
}

impl Default for HostSection {
    fn default() -> Self {
        let params = HostParams::default();
        Self {
            injection_rate: params.injection_rate.into(),
            send_queue: SendQueue::default(),
            sink_rate: params.sink_rate.into(),
            sink: params.sink,
            in_order: params.in_order,
            receive_buffer: params.receive_buffer,
            credit_delay: params.credit_delay,
        }
    }
}

/// Packet sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PacketSection {
    /// Largest payload of a packet, 1 B to 10 KiB. InfiniBand has at most 4 KiB, and so has the live fabric.
    #[schemars(with = "schema::BytesText")]
    pub mtu: Bytes,
    /// Header and trailer of every packet on the wire, at most 256 B. The default is LRH, BTH,
    /// ICRC and VCRC (8 + 12 + 4 + 2 B). With `link.flow-control = "pfc"` it is what RoCE v2 adds, 82 B: preamble 8, Ethernet 14,
    /// IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12.
    #[schemars(with = "schema::BytesText")]
    pub header: Bytes,
}

impl Default for PacketSection {
    fn default() -> Self {
        let PacketParams { mtu, header } = PacketParams::default();
        Self { mtu, header }
    }
}

/// An entry of a VL arbitration table: `[vl, weight]`, the weight in units of 64 bytes.
pub type VlWeight = (u8, u8);

/// Virtual lanes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct VlSection {
    /// Number of data virtual lanes of every port, 1 to 15.
    pub data_vls: u8,
    /// Virtual lane of each of the 16 service levels. Default: the service level modulo the number
    /// of lanes. On a torus with datelines each service level has two lanes, the one given, which is
    /// even, and the next; the default counts pairs then. The lower bits of the service level in
    /// a packet's header are taken, one per dimension, so that 16 / 2^dimensions service levels
    /// are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sl_to_vl: Option<Vec<u8>>,
    /// High-priority VL arbitration table (IBA 7.6.9): pairs of VL and weight in 64-byte units.
    pub high: Vec<VlWeight>,
    /// Low-priority VL arbitration table. With both tables empty, all lanes have the same weight
    /// here.
    pub low: Vec<VlWeight>,
    /// Limit of High Priority: units of 4096 bytes that may go from the high table before a waiting
    /// low-priority packet has its turn; 0 is one packet, 255 no limit.
    pub limit_high: u8,
}

impl Default for VlSection {
    fn default() -> Self {
        Self {
            data_vls: 1,
            sl_to_vl: None,
            high: Vec::new(),
            low: Vec::new(),
            limit_high: 0,
        }
    }
}

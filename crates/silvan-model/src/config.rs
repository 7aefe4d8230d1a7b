//! Parameters of the data plane, and the errors of values that cannot be simulated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_cc::notification::BecnCarrier;
use silvan_core::{Bytes, Rate, Sl, Span, Vl};
use silvan_fabric::Link;
use silvan_fabric::routing::{PathChoice, Routes};

use crate::pfc::{PRIORITIES, PfcCable, PfcLimits, PfcParams};

/// Everything that the engine must know besides fabric, tables, control and traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// Number of data virtual lanes of every port, 1 to 15.
    pub data_vls: u8,
    /// Virtual lane of each service level (SLtoVLMappingTable, IBA 7.6.6), the same at every port;
    /// with lanes that change along the way the first of those that a class of service has.
    pub sl_to_vl: [u8; 16],
    /// Switches.
    pub switch: SwitchParams,
    /// Channel adapters.
    pub host: HostParams,
    /// Packet sizes.
    pub packet: PacketParams,
    /// Priority-based flow control of all links; `None` for credits.
    pub pfc: Option<PfcParams>,
    /// How congestion notifications travel back.
    pub feedback: FeedbackParams,
    /// Which latency histograms are kept.
    pub latency: LatencyStats,
    /// Seed of the random choices of switches.
    pub seed: u64,
}

impl Default for EngineConfig {
    /// One virtual lane, 2 KiB packets, input buffers of 64 KiB, 100 ns per switch.
    fn default() -> Self {
        Self {
            data_vls: 1,
            sl_to_vl: [0; 16],
            switch: SwitchParams::default(),
            host: HostParams::default(),
            packet: PacketParams::default(),
            pfc: None,
            feedback: FeedbackParams::default(),
            latency: LatencyStats::Class,
            seed: 1,
        }
    }
}

/// Switch parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchParams {
    /// From the head of a packet at the input to its being eligible for an output.
    pub latency: Span,
    /// From the tail leaving the input buffer to the credit being usable upstream, beyond the
    /// propagation of the link.
    pub credit_delay: Span,
    /// Input buffer of each port and virtual lane; counted in whole 64-byte credits.
    pub buffer: Bytes,
    /// Most outputs that one input port may feed at once; `None` for no limit.
    pub read_limit: Option<u8>,
    /// Rate at which an input buffer is read over that of the link, in per cent; at least 100. A
    /// packet takes one of the reads for so much less than its time on the link.
    pub read_speedup_percent: u32,
    /// Which packets of an input buffer an output may choose.
    pub queueing: Queueing,
    /// Which input an output serves next.
    pub arbitration: Arbitration,
    /// How often the oldest packet of an input buffer and virtual lane may be overtaken by others of
    /// that buffer before none of them starts until it has left (santos2003, footnote 6); `None`
    /// for no limit.
    pub bypass_limit: Option<u8>,
    /// A buffer between crossbar and link, per port and virtual lane.
    pub output_buffer: Option<OutputBuffer>,
    /// Virtual-lane arbitration tables of every output, switches and hosts alike.
    pub vl_arbitration: VlArbitration,
}

impl Default for SwitchParams {
    fn default() -> Self {
        Self {
            latency: Span::from_ns(100),
            credit_delay: Span::from_ns(100),
            buffer: Bytes::from_bytes(64 << 10),
            read_limit: None,
            read_speedup_percent: 100,
            queueing: Queueing::Voq,
            arbitration: Arbitration::RoundRobin,
            bypass_limit: None,
            output_buffer: None,
            vl_arbitration: VlArbitration::default(),
        }
    }
}

/// Which packets of an input buffer and virtual lane an output may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queueing {
    /// Virtual output queues: the first packet for each output.
    #[default]
    Voq,
    /// The first packet of the buffer alone: packets leave in the order in which they arrived, and one
    /// that cannot leave blocks all behind it (head-of-line blocking).
    Fifo,
}

/// Which input an output serves next, within a virtual lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The next input after the last winner that has a packet.
    #[default]
    RoundRobin,
    /// The packet that could have left first; of several, that of the lowest input port.
    OldestFirst,
}

/// A buffer between crossbar and link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBuffer {
    /// Size per port and virtual lane.
    pub size: Bytes,
    /// Crossbar rate over link rate, in per cent; at least 100.
    pub speedup_percent: u32,
    /// Whether a packet passes the crossbar as it arrives, and holds the crossbar's output until its tail
    /// has passed, instead of waiting until it can pass at the whole rate of the crossbar.
    pub cut_through: bool,
}

/// Virtual-lane arbitration (IBA 7.6.9).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VlArbitration {
    /// High-priority table: virtual lane and weight in 64-byte units; 0 skips the entry.
    pub high: Vec<(Vl, u8)>,
    /// Low-priority table. When both tables are empty, every data VL has the same weight here.
    pub low: Vec<(Vl, u8)>,
    /// Limit of High Priority: 4096-byte units that may go from the high table before a waiting
    /// low-priority packet gets its turn; 0 means one packet, 255 no limit.
    pub limit_high: u8,
}

/// When the sink of a host begins to take in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sink {
    /// When the packet has arrived completely.
    #[default]
    StoreAndForward,
    /// When its first 64 bytes have arrived. It receives no byte before it has arrived, the last ones as
    /// a block of up to 64 bytes.
    CutThrough,
}

/// Channel-adapter parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct HostParams {
    /// Most payload per second that a host injects; `None` for the link's own rate.
    pub injection_rate: Option<Rate>,
    /// Most payload per second that a host takes in; `None` for at once.
    pub sink_rate: Option<Rate>,
    /// When the sink begins to receive a packet.
    pub sink: Sink,
    /// Whether packets of a flow are delivered in the order in which they were sent.
    pub in_order: bool,
    /// Receive buffer per virtual lane; counted in whole 64-byte credits.
    pub receive_buffer: Bytes,
    /// From a packet being taken in to the credit being usable at the switch, beyond the propagation
    /// of the link.
    pub credit_delay: Span,
}

impl Default for HostParams {
    fn default() -> Self {
        Self {
            injection_rate: None,
            sink_rate: None,
            sink: Sink::StoreAndForward,
            in_order: false,
            receive_buffer: Bytes::from_bytes(16 << 10),
            credit_delay: Span::from_ns(100),
        }
    }
}

/// Packet sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketParams {
    /// Largest payload of one packet.
    pub mtu: Bytes,
    /// Header and trailer bytes of every packet on the wire.
    pub header: Bytes,
}

impl Default for PacketParams {
    /// 2 KiB of payload behind LRH, BTH, ICRC and VCRC (8 + 12 + 4 + 2 bytes, IBA 5.2).
    fn default() -> Self {
        Self {
            mtu: Bytes::from_bytes(2048),
            header: Bytes::from_bytes(26),
        }
    }
}

/// Path of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BecnPath {
    /// Past the fabric: it arrives a constant time after delivery.
    OutOfBand {
        /// From delivery to arrival at the source.
        delay: Span,
    },
    /// As a packet of its own through the fabric.
    InBand {
        /// Service level; `None` for that of the data.
        sl: Option<Sl>,
        /// Bytes on the wire.
        bytes: Bytes,
        /// Whether it leaves the host before any waiting data packet.
        priority: bool,
    },
}

/// How congestion notifications travel back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackParams {
    /// Carrier.
    pub carrier: BecnCarrier,
    /// Path.
    pub path: BecnPath,
    /// At most one CNP per flow in this time; `None` for no limit.
    pub coalesce: Option<Span>,
    /// Bytes that each CNP uses of the injection rate of the host that sends it, and of the sink rate
    /// of the host that receives it; 0 for none.
    pub charge: Bytes,
}

impl FeedbackParams {
    /// Largest charge of a CNP.
    pub const MAX_CHARGE: u64 = 4096;
}

impl Default for FeedbackParams {
    fn default() -> Self {
        Self {
            carrier: BecnCarrier::Cnp,
            path: BecnPath::OutOfBand {
                delay: Span::from_us(2),
            },
            coalesce: None,
            charge: Bytes::from_bytes(64),
        }
    }
}

/// Which latency histograms are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyStats {
    /// None.
    Off,
    /// One per traffic class; each flow is one.
    #[default]
    Class,
    /// One per traffic class and one per receiving host.
    Host,
    /// One per traffic class, and one with four intervals per power of two per receiving host: for a fraction of the
    /// cost, as these stay in the processor's cache. Hosts have no percentiles then.
    HostCoarse,
}

impl LatencyStats {
    /// Whether latencies are kept by host.
    pub fn by_host(self) -> bool {
        matches!(self, Self::Host | Self::HostCoarse)
    }
}

/// A configuration that cannot be simulated. Nothing has been built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Not between 1 and 15 data virtual lanes.
    #[error("{0} data virtual lanes; a port has 1 to 15")]
    DataVls(u8),
    /// A service level maps to a virtual lane that does not exist.
    #[error("SL {sl} maps to VL {vl}, but there are {data_vls} data VLs (0 to {})", data_vls - 1)]
    SlToVl {
        /// Service level.
        sl: u8,
        /// Its virtual lane.
        vl: u8,
        /// How many there are.
        data_vls: u8,
    },
    /// The MTU is zero or larger than 10 KiB.
    #[error("MTU of {0} bytes; it must be between 1 and 10240")]
    Mtu(u64),
    /// The header is larger than 256 bytes.
    #[error("packet header of {0} bytes; it must be at most 256")]
    Header(u64),
    /// A buffer cannot hold one packet of MTU size.
    #[error("{which} of {bytes} bytes cannot hold one packet of {packet} bytes on the wire")]
    BufferTooSmall {
        /// Which buffer.
        which: &'static str,
        /// Its size.
        bytes: u64,
        /// Wire bytes of one packet of MTU size.
        packet: u64,
    },
    /// A buffer is larger than 16 MiB, so that those of a switch together stay within 32 bits.
    #[error("{which} of {bytes} bytes; at most 16 MiB is supported")]
    BufferTooLarge {
        /// Which buffer.
        which: &'static str,
        /// Its size.
        bytes: u64,
    },
    /// The read limit is zero.
    #[error("a read limit of 0 would never let a packet through")]
    ReadLimit,
    /// The bypass limit is zero.
    #[error("a bypass limit of 0 is not supported")]
    BypassLimit,
    /// Packets that leave in order are not overtaken.
    #[error("a bypass limit with FIFO queueing, where no packet overtakes another")]
    BypassInFifo,
    /// An input buffer is read more slowly than the link sends, or more than 1000 times as fast.
    #[error("read speedup of {0} %; it must be between 100 % and 100000 %")]
    ReadSpeedup(u32),
    /// A read takes less time, but any number of them is possible at once.
    #[error("a read speedup without a limit on simultaneous reads has no effect")]
    ReadSpeedupAlone,
    /// The crossbar is slower than the link.
    #[error("crossbar speedup of {0} %; it must be at least 100 %")]
    Speedup(u32),
    /// A data virtual lane is in neither arbitration table.
    #[error("VL {0} is in neither arbitration table with a weight above 0, so it would never send")]
    VlNeverServed(u8),
    /// An arbitration table names a virtual lane that does not exist.
    #[error("the VL arbitration table names VL {vl}, but there are {data_vls} data VLs")]
    VlArbitration {
        /// The lane.
        vl: u8,
        /// How many there are.
        data_vls: u8,
    },
    /// An in-band notification packet has an impossible size.
    #[error("a notification of {0} bytes on the wire; it must be between 1 byte and a data packet")]
    NotificationBytes(u64),
    /// A notification takes more of the adapters' rates than the largest packet.
    #[error("a charge of {0} bytes per CNP; it must be at most 4096")]
    NotificationCharge(u64),
    /// More of something than the engine can number.
    #[error("{found} {which}; at most {most} are supported")]
    TooMany {
        /// What there is too much of.
        which: &'static str,
        /// How many there are.
        found: u64,
        /// How many are supported.
        most: u64,
    },
    /// A switch or host has no cable at all, or a host has not exactly one cabled port.
    #[error("host {0} must have exactly one cabled port")]
    HostPorts(String),
    /// The virtual lanes of a class of service are not there, or not its own.
    #[error(
        "class {sl} starts at VL {vl}, but its routes need {lanes} VLs from a multiple of {lanes} on, \
         and there are {data_vls} data VLs"
    )]
    PathLanes {
        /// The class, which is the service level of its traffic.
        sl: u8,
        /// The first of its virtual lanes.
        vl: u8,
        /// How many it needs.
        lanes: u8,
        /// How many there are.
        data_vls: u8,
    },
    /// Lanes belong to a path, so that switches cannot choose another.
    #[error("routes whose lanes depend on the path leave nothing to choose to the switches")]
    LanesAndAlternatives,
    /// The last packet of a message need not arrive last.
    #[error("one ACK per message needs packets in order, which adaptive routing does not keep")]
    MessagesOutOfOrder,
    /// A scheme reads the credits of hosts, or delays credits, and PFC has none.
    #[error("the scheme reads or delays credits, and links with PFC have none")]
    PfcScheme,
    /// More virtual lanes than PFC has priorities.
    #[error("{0} data virtual lanes; PFC has {PRIORITIES} priorities")]
    PfcPriorities(u8),
    /// PFC would let a sender resume at more bytes than it pauses it at.
    #[error("xon of {xon} bytes is above xoff, {xoff} bytes")]
    PfcThresholds {
        /// Resume at so many bytes.
        xon: u64,
        /// Pause above so many bytes.
        xoff: u64,
    },
    /// A buffer has no room for threshold and headroom.
    #[error(
        "a PFC buffer of {buffer} bytes; xoff ({xoff}) and headroom ({headroom}) take {} bytes",
        xoff.saturating_add(*headroom)
    )]
    PfcBuffer {
        /// Size of the buffer.
        buffer: u64,
        /// Pause above so many bytes.
        xoff: u64,
        /// Bytes above that.
        headroom: u64,
    },
    /// A frame is empty or larger than any link carries.
    #[error("{which} of {bytes} bytes; it must be between 1 and 65536")]
    PfcFrame {
        /// Which frame.
        which: &'static str,
        /// Its size.
        bytes: u64,
    },
    /// Something delays by more than the engine's clock can order.
    #[error("{which} of {span} is longer than 1 s")]
    DelayTooLong {
        /// Which parameter.
        which: &'static str,
        /// Its value.
        span: Span,
    },
}

impl EngineConfig {
    /// Checks every value that does not depend on the fabric.
    ///
    /// # Errors
    /// The first impossible value found.
    pub fn validate(&self) -> Result<(), BuildError> {
        if !(1..=15).contains(&self.data_vls) {
            return Err(BuildError::DataVls(self.data_vls));
        }
        for (sl, &vl) in self.sl_to_vl.iter().enumerate() {
            if vl >= self.data_vls {
                return Err(BuildError::SlToVl {
                    sl: sl as u8,
                    vl,
                    data_vls: self.data_vls,
                });
            }
        }
        let mtu = self.packet.mtu.as_u64();
        if !(1..=10_240).contains(&mtu) {
            return Err(BuildError::Mtu(mtu));
        }
        let header = self.packet.header.as_u64();
        if header > 256 {
            return Err(BuildError::Header(header));
        }
        self.validate_buffers(mtu + header)?;
        if let Some(pfc) = &self.pfc {
            pfc.validate(self.data_vls)?;
        }
        for (which, span) in [
            ("switch latency", self.switch.latency),
            ("switch credit delay", self.switch.credit_delay),
            ("host credit delay", self.host.credit_delay),
        ] {
            if span > Span::from_secs(1) {
                return Err(BuildError::DelayTooLong { which, span });
            }
        }
        if self.switch.read_limit == Some(0) {
            return Err(BuildError::ReadLimit);
        }
        if self.switch.bypass_limit == Some(0) {
            return Err(BuildError::BypassLimit);
        }
        self.validate_reads()?;
        if let BecnPath::InBand { bytes, .. } = self.feedback.path {
            if !(1..=mtu + header).contains(&bytes.as_u64()) {
                return Err(BuildError::NotificationBytes(bytes.as_u64()));
            }
        }
        let charge = self.feedback.charge.as_u64();
        if charge > FeedbackParams::MAX_CHARGE {
            return Err(BuildError::NotificationCharge(charge));
        }
        self.validate_vl_arbitration()
    }

    /// Limits of PFC at either direction of a link; `None` with credits.
    ///
    /// # Errors
    /// As [`PfcParams::at`].
    pub fn pfc_limits(&self, link: &Link) -> Result<Option<PfcLimits>, BuildError> {
        let cable = PfcCable {
            rate: link.data_rate(),
            propagation: link.propagation(),
            mtu_wire: self.packet.mtu + self.packet.header,
            latency: self.switch.latency,
        };
        self.pfc.as_ref().map(|pfc| pfc.at(cable)).transpose()
    }

    /// Checks that there are virtual lanes for these routes, and that nothing relies on the order of
    /// packets that they do not keep.
    ///
    /// # Errors
    /// The first thing in the way.
    pub fn validate_routes(&self, routes: Routes<'_>) -> Result<(), BuildError> {
        if routes.choice != PathChoice::Table {
            if routes.lanes.is_some() {
                return Err(BuildError::LanesAndAlternatives);
            }
            if routes.choice.reorders() && self.feedback.carrier == BecnCarrier::AckPerMessage {
                return Err(BuildError::MessagesOutOfOrder);
            }
        }
        if let Some(steps) = routes.steps {
            let lanes = steps.lanes();
            let first = self.sl_to_vl.iter().enumerate();
            let beyond = first.filter(|(_, vl)| **vl + lanes > self.data_vls);
            if let Some((sl, &vl)) = beyond.min() {
                return Err(BuildError::PathLanes {
                    sl: sl as u8,
                    vl,
                    lanes,
                    data_vls: self.data_vls,
                });
            }
        }
        // Those of a subnet manager's tables have been checked with the routes.
        let Some(path_lanes) = routes.lanes.filter(|lanes| !lanes.is_by_tables()) else {
            return Ok(());
        };
        let lanes = path_lanes.lanes();
        for (sl, &vl) in (0..path_lanes.classes()).zip(&self.sl_to_vl) {
            if vl % lanes != 0 || vl + lanes > self.data_vls {
                return Err(BuildError::PathLanes {
                    sl,
                    vl,
                    lanes,
                    data_vls: self.data_vls,
                });
            }
        }
        Ok(())
    }

    fn validate_reads(&self) -> Result<(), BuildError> {
        let switch = &self.switch;
        if switch.queueing == Queueing::Fifo && switch.bypass_limit.is_some() {
            return Err(BuildError::BypassInFifo);
        }
        let percent = switch.read_speedup_percent;
        if !(100..=100_000).contains(&percent) {
            return Err(BuildError::ReadSpeedup(percent));
        }
        if percent > 100 && switch.read_limit.is_none() {
            return Err(BuildError::ReadSpeedupAlone);
        }
        Ok(())
    }

    fn validate_buffers(&self, packet: u64) -> Result<(), BuildError> {
        let output = self.switch.output_buffer;
        if let Some(buffer) = output {
            if buffer.speedup_percent < 100 {
                return Err(BuildError::Speedup(buffer.speedup_percent));
            }
        }
        let packet_blocks = packet.div_ceil(64);
        for (which, bytes) in [
            ("switch input buffer", Some(self.switch.buffer)),
            ("host receive buffer", Some(self.host.receive_buffer)),
            ("switch output buffer", output.map(|buffer| buffer.size)),
        ] {
            let Some(bytes) = bytes.map(Bytes::as_u64) else {
                continue;
            };
            if bytes / 64 < packet_blocks {
                return Err(BuildError::BufferTooSmall {
                    which,
                    bytes,
                    packet,
                });
            }
            if bytes > 16 << 20 {
                return Err(BuildError::BufferTooLarge { which, bytes });
            }
        }
        Ok(())
    }

    fn validate_vl_arbitration(&self) -> Result<(), BuildError> {
        let tables = &self.switch.vl_arbitration;
        let both = || tables.high.iter().chain(&tables.low);
        for &(vl, _) in both() {
            if vl.as_u8() >= self.data_vls {
                return Err(BuildError::VlArbitration {
                    vl: vl.as_u8(),
                    data_vls: self.data_vls,
                });
            }
        }
        if both().next().is_none() {
            return Ok(());
        }
        for vl in 0..self.data_vls {
            if !both().any(|&(named, weight)| named.as_u8() == vl && weight > 0) {
                return Err(BuildError::VlNeverServed(vl));
            }
        }
        Ok(())
    }
}

//! Parameters of the data plane. The sections of a scenario are these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_cc::notification::BecnCarrier;
use silvan_core::document::{Limit, bound};
use silvan_core::{Bytes, Rate, Sl, Span, Vl, schema};
use silvan_fabric::Link;
use silvan_fabric::routing::{PathChoice, Routes};
use silvan_workload::traffic::SendQueue;

use crate::bit_errors::PlannedBitErrors;
use crate::buffers::MOST_BUFFER;
use crate::build_error::BuildError;
use crate::pfc::{PfcCable, PfcLimits, PfcParams};

/// Parameters of the engine, apart from fabric, tables, control and traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// Number of data virtual lanes of every port, 1 to 15.
    pub data_vls: u8,
    /// Lane of each service level at every port (SLtoVLMappingTable, IBA 7.6.6), the first of a class of service.
    pub sl_to_vl: [u8; 16],
    /// Virtual-lane arbitration tables of every output, switches and hosts alike.
    pub vl_arbitration: VlArbitration,
    /// Switches.
    pub switch: SwitchParams,
    /// Channel adapters.
    pub host: HostParams,
    /// Packet sizes.
    pub packet: PacketParams,
    /// Priority-based flow control of all links; `None` for credits.
    pub pfc: Option<PfcParams>,
    /// Path of congestion notifications back to the sender.
    pub feedback: FeedbackParams,
    /// Granularity of latency histograms.
    pub latency: LatencyStats,
    /// Seed of the random choices of switches.
    pub seed: u64,
    /// Leaps over repeating states. No result depends on it.
    pub fast_forward: FastForward,
    /// Bit errors of links.
    pub bit_errors: Vec<PlannedBitErrors>,
}

impl Default for EngineConfig {
    /// One lane, 4 KiB packets, buffers that suit cables, 100 ns per switch.
    fn default() -> Self {
        Self {
            data_vls: 1,
            sl_to_vl: [0; 16],
            vl_arbitration: VlArbitration::default(),
            switch: SwitchParams::default(),
            host: HostParams::default(),
            packet: PacketParams::default(),
            pfc: None,
            feedback: FeedbackParams::default(),
            latency: LatencyStats::Class,
            seed: 1,
            fast_forward: FastForward::default(),
            bit_errors: Vec::new(),
        }
    }
}

/// All switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SwitchSection")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SwitchParams {
    /// Time from the head of a packet at an input to its being eligible for an output.
    #[schemars(with = "schema::SpanText")]
    pub latency: Span,
    /// Time from a packet's tail leaving an input buffer to its credits being usable at the sender, without the
    /// propagation of the link.
    #[schemars(with = "schema::SpanText")]
    pub credit_delay: Span,
    /// Input buffer per port and virtual lane; whole 64-byte credits of it count. Default: by cable, for twice what it carries in the
    /// round trip of a credit and four packets, at least 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub buffer: Option<Bytes>,
    /// Data VLs that share an input buffer in equal parts; with 1, each VL has its own buffer.
    #[serde(skip, default = "one_lane")]
    pub lanes_per_buffer: u8,
    /// Most outputs that the buffer of one input port may feed at once.
    #[serde(with = "bound")]
    #[schemars(with = "Limit<u8>")]
    pub read_limit: Option<u8>,
    /// Rate at which an input buffer is read over that of the link; at least 1, in steps of 0.01. A
    /// packet occupies one of the `read-limit` reads for its time on the link divided by this.
    #[serde(rename = "read-speedup", with = "percent")]
    #[schemars(with = "f64")]
    pub read_speedup_percent: u32,
    /// Packets of an input buffer and virtual lane that an output may choose.
    pub queueing: Queueing,
    /// Order in which an output serves its inputs, within a virtual lane.
    pub arbitration: Arbitration,
    /// Times that the longest-waiting packet of an input buffer may be overtaken, with `queueing = "voq"`.
    ///
    /// Overtaking packets are of the same buffer and virtual lane. At the limit, none of them leaves before the
    /// longest-waiting packet (santos2003, footnote 6).
    #[serde(with = "bound")]
    #[schemars(with = "Limit<u8>")]
    pub bypass_limit: Option<u8>,
    /// A buffer between crossbar and link: `{ size = "8 KiB", speedup = 1.5 }`. None unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_buffer: Option<OutputBuffer>,
}

fn one_lane() -> u8 {
    1
}

impl Default for SwitchParams {
    fn default() -> Self {
        Self {
            latency: Span::from_ns(100),
            credit_delay: Span::from_ns(100),
            buffer: None,
            lanes_per_buffer: one_lane(),
            read_limit: None,
            read_speedup_percent: percent::ONE,
            queueing: Queueing::Voq,
            arbitration: Arbitration::RoundRobin,
            bypass_limit: None,
            output_buffer: None,
        }
    }
}

/// A rate relative to a link's in per cent; scenarios write a factor.
mod percent {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use silvan_core::advice::Advised;

    pub const ONE: u32 = 100;
    /// A thousand times as fast.
    pub const MOST: u32 = 100_000;

    pub fn one() -> u32 {
        ONE
    }

    pub fn serialize<S: Serializer>(percent: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        (f64::from(*percent) / 100.0).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let speedup = f64::deserialize(deserializer)?;
        let percent = speedup * 100.0;
        let rounded = percent.round();
        let is_exact = (percent - rounded).abs() < 1e-6;
        match is_exact && (f64::from(ONE)..=f64::from(MOST)).contains(&rounded) {
            true => Ok(rounded as u32),
            false => Err(D::Error::custom(Advised {
                message: format_args!("a speedup of {speedup} is not 1 to 1000 in steps of 0.01"),
                hint: "write 1 for as fast as the links, or e.g. 1.5",
            })),
        }
    }
}

/// Packets of an input buffer and virtual lane that an output may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queueing {
    /// Virtual output queues: the first packet for each output.
    #[default]
    Voq,
    /// The first packet of the buffer alone: a blocked packet blocks all packets behind it (head-of-line blocking).
    Fifo,
}

/// Order in which an output serves its inputs, within a virtual lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The next input after the last winner that has a packet.
    #[default]
    RoundRobin,
    /// The packet that could have left first; of several, that of the lowest input port.
    OldestFirst,
}

/// Passage of a packet through a crossbar that is faster than the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrossbarFeed {
    /// At the full rate of the crossbar: a packet waits until enough of it has arrived.
    #[default]
    FullRate,
    /// As the packet arrives; the crossbar output is busy until the tail has passed.
    CutThrough,
}

/// A buffer between crossbar and link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OutputBufferSection")]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OutputBuffer {
    /// Size per port and virtual lane.
    #[schemars(with = "schema::BytesText")]
    pub size: Bytes,
    /// Rate of the crossbar over that of the link; at least 1, in steps of 0.01.
    #[serde(rename = "speedup", with = "percent", default = "percent::one")]
    #[schemars(with = "f64")]
    pub speedup_percent: u32,
    /// Passage of packets through the crossbar.
    #[serde(default)]
    pub crossbar: CrossbarFeed,
}

/// Virtual-lane arbitration (IBA 7.6.9).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VlArbitration {
    /// High-priority table: virtual lane and weight in 64-byte units; 0 skips the entry.
    pub high: Vec<(Vl, u8)>,
    /// Low-priority table. When both tables are empty, every data VL has the same weight here.
    pub low: Vec<(Vl, u8)>,
    /// Limit of High Priority: 4096-byte units before a waiting low-priority packet; 0 is a packet, 255 no limit.
    pub limit_high: u8,
}

impl VlArbitration {
    /// Checks that lanes exist, or returns [`BuildError::VlArbitration`] with the first that does not.
    pub fn check_lanes(&self, data_vls: u8) -> Result<(), BuildError> {
        for (table, entries) in [("high", &self.high), ("low", &self.low)] {
            let beyond = |&(vl, _): &(Vl, u8)| vl.as_u8() >= data_vls;
            if let Some(index) = entries.iter().position(beyond) {
                let vl = entries[index].0.as_u8();
                return Err(BuildError::VlArbitration {
                    table,
                    index,
                    vl,
                    data_vls,
                });
            }
        }
        Ok(())
    }
}

/// Start of a packet's consumption by the sink of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sink {
    /// After the complete packet has arrived.
    #[default]
    StoreAndForward,
    /// After the first 64 bytes have arrived. The sink receives no byte before its arrival; the last bytes come in
    /// blocks of up to 64.
    CutThrough,
}

/// Other packets of a host while a chosen packet lacks credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostArbitration {
    /// The packet waits for credits, and others of its virtual lane wait behind it (head-of-line blocking). Packets of other
    /// lanes go on. So each entry of traffic gets its turn.
    #[default]
    HeadOfLine,
    /// Others that have credits go first. With a small buffer at the switch, small packets can take all credits that a
    /// large one needs.
    WorkConserving,
}

/// All channel adapters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HostSection")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HostParams {
    /// Most payload that a host injects; the link bounds it as well.
    #[serde(with = "bound")]
    #[schemars(with = "Limit<schema::RateText>")]
    pub injection_rate: Option<Rate>,
    /// Order in which a host sends its messages. Messages of programs have their own queues.
    pub send_queue: SendQueue,
    /// Other packets of a host while a chosen packet lacks credits. Without effect if the scheme chooses lanes.
    pub arbitration: HostArbitration,
    /// Maximum rate of payload that a host receives.
    #[serde(with = "bound")]
    #[schemars(with = "Limit<schema::RateText>")]
    pub sink_rate: Option<Rate>,
    /// Start of a packet's consumption by the sink.
    pub sink: Sink,
    /// True if packets of a flow are delivered in the order of sending.
    ///
    /// A flow is the traffic from one host to another in one traffic class. With paths that differ by packet
    /// (`fabric.path-choice`), a packet waits for earlier packets. Its credits return, and notifications are sent, at
    /// its arrival.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_order: bool,
    /// Receive buffer per virtual lane; whole 64-byte credits of it count. Default: by cable as `switch.buffer`, at least 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub receive_buffer: Option<Bytes>,
    /// Time from a packet being taken in to its credits being usable at the switch, beyond the
    /// propagation of the link.
    #[schemars(with = "schema::SpanText")]
    pub credit_delay: Span,
    /// Retries of lost packets, `{ timeout = 14, retry-count = 7 }`. None unless given.
    ///
    /// Such a run takes one thread, without fast-forward, because responses act at once. Paths must not depend on the
    /// packet (`fabric.path-choice`), and the scheme must not choose lanes, choose paths or discard packets. A live fabric
    /// ignores this key: its queue pairs have retries of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryParams>,
}

/// Retries of reliable connections (RC, IBA 9.7): one connection per sender, receiver and service level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RetrySection")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RetryParams {
    /// Local ACK Timeout: a packet without acknowledgement is sent again after 4.096 us times 2^timeout, 1 to 31; 0 for never.
    pub timeout: u8,
    /// Retries in a row, 0 to 7, before the connection fails.
    pub retry_count: u8,
    /// Packets of a connection without acknowledgement, 1 to 16384.
    pub window: u16,
}

impl RetryParams {
    /// Most packets without acknowledgement.
    pub const MOST_WINDOW: u16 = 1 << 14;

    /// Time to wait for an acknowledgement (IBA 9.7.6.1.3); `None` without end.
    pub fn wait(&self) -> Option<Span> {
        (self.timeout > 0).then(|| Span::from_ps(4_096_000 << self.timeout.min(31)))
    }

    fn validate(&self) -> Result<(), BuildError> {
        let limits = [
            ("timeout", u64::from(self.timeout), 0, 31),
            ("retry-count", u64::from(self.retry_count), 0, 7),
            (
                "window",
                u64::from(self.window),
                1,
                u64::from(Self::MOST_WINDOW),
            ),
        ];
        for (key, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(BuildError::Retry {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

impl Default for RetryParams {
    /// Timeout and retries as in `perftest`: 67.1 ms, 7.
    fn default() -> Self {
        Self {
            timeout: 14,
            retry_count: 7,
            window: 1024,
        }
    }
}

impl Default for HostParams {
    fn default() -> Self {
        Self {
            injection_rate: None,
            send_queue: SendQueue::default(),
            arbitration: HostArbitration::default(),
            sink_rate: None,
            sink: Sink::StoreAndForward,
            in_order: false,
            receive_buffer: None,
            credit_delay: Span::from_ns(100),
            retry: None,
        }
    }
}

/// Packet sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PacketSection")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PacketParams {
    /// Largest payload of a packet, 1 B to 10 KiB. InfiniBand has at most 4 KiB, and so has the live fabric.
    #[schemars(with = "schema::BytesText")]
    pub mtu: Bytes,
    /// Header and trailer of every packet on the wire, at most 256 B.
    ///
    /// The default is LRH, BTH, ICRC and VCRC (8 + 12 + 4 + 2 B). With `link.flow-control = "pfc"`, the default is the
    /// overhead of RoCE v2, 82 B: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12.
    #[schemars(with = "schema::BytesText")]
    pub header: Bytes,
}

impl Default for PacketParams {
    /// 4 KiB of payload, the largest MTU, behind LRH, BTH, ICRC and VCRC (8 + 12 + 4 + 2 bytes, IBA 5.2).
    fn default() -> Self {
        Self {
            mtu: Bytes::from_bytes(4096),
            header: Bytes::from_bytes(26),
        }
    }
}

/// Leaps over repeating states of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FastForward {
    /// Leaps if possible.
    #[default]
    Auto,
    /// Leaps if possible; otherwise the reason is reported.
    On,
    /// Never.
    Off,
}

impl FastForward {
    /// Returns true for the default.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Path of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackPath {
    /// Past the fabric: it arrives a constant time after delivery.
    #[default]
    OutOfBand,
    /// A separate packet through the fabric.
    InBand,
}

/// Parameters of notifications from the receiver back to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FeedbackSection")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FeedbackParams {
    /// Carrier of notifications. Default: what the scheme needs, else `cnp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier: Option<BecnCarrier>,
    /// Path of notifications.
    pub path: FeedbackPath,
    /// Time from delivery to arrival at the source (`out-of-band`).
    #[schemars(with = "schema::SpanText")]
    pub delay: Span,
    /// Service level of the notification (`in-band`). Default: that of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SlNumber>")]
    pub sl: Option<Sl>,
    /// Size of the notification on the wire (`in-band`).
    #[schemars(with = "schema::BytesText")]
    pub bytes: Bytes,
    /// True if a notification leaves the host before any waiting data packet (`in-band`).
    pub priority: bool,
    /// A flow gets at most one notification in this time. Default: what the scheme needs, else
    /// `"unlimited"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Limit<schema::SpanText>>")]
    pub coalesce: Option<Limit<Span>>,
    /// Bytes that each CNP takes of the adapters' rates, at most 4 KiB; 0 for none.
    ///
    /// The sending host's `host.injection-rate` and the receiving host's `host.sink-rate` carry them. Acknowledgements
    /// take none.
    #[schemars(with = "schema::BytesText")]
    pub charge: Bytes,
}

impl FeedbackParams {
    /// Largest charge of a CNP.
    pub const MAX_CHARGE: u64 = 4096;

    /// Carrier of notifications.
    pub fn carrier(&self) -> BecnCarrier {
        self.carrier.unwrap_or_default()
    }

    /// Shortest time between two CNPs of a flow; `None` for no limit.
    pub fn coalesce(&self) -> Option<Span> {
        self.coalesce.and_then(Limit::value)
    }

    /// The delay of notifications that pass the fabric by; `None` if they go through it.
    pub fn delay_past_fabric(&self) -> Option<Span> {
        (self.path == FeedbackPath::OutOfBand).then_some(self.delay)
    }
}

impl Default for FeedbackParams {
    fn default() -> Self {
        Self {
            carrier: None,
            path: FeedbackPath::default(),
            delay: Span::from_us(2),
            sl: None,
            // LRH, BTH, 16 bytes of payload, ICRC, VCRC (IBA annex A10, CNP format).
            bytes: Bytes::from_bytes(42),
            priority: true,
            coalesce: None,
            charge: Bytes::from_bytes(64),
        }
    }
}

/// Granularity of latency histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyStats {
    /// None.
    Off,
    /// One histogram per traffic class.
    #[default]
    Class,
    /// One histogram per traffic class and one per receiving host.
    Host,
    /// One histogram per traffic class, and a coarse one per receiving host.
    ///
    /// A coarse histogram has four intervals per power of two, so it stays in the processor's cache and costs less.
    /// Hosts have no percentiles with it.
    HostCoarse,
}

impl LatencyStats {
    /// Returns true if latencies are recorded per host.
    pub fn by_host(self) -> bool {
        matches!(self, Self::Host | Self::HostCoarse)
    }
}

impl EngineConfig {
    /// Checks every value that does not depend on the fabric. Errors: the first impossible value found.
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
        for (which, key, span) in [
            ("switch latency", "switch.latency", self.switch.latency),
            (
                "switch credit delay",
                "switch.credit-delay",
                self.switch.credit_delay,
            ),
            (
                "host credit delay",
                "host.credit-delay",
                self.host.credit_delay,
            ),
        ] {
            if span > Span::from_secs(1) {
                return Err(BuildError::DelayTooLong { which, key, span });
            }
        }
        if self.switch.read_limit == Some(0) {
            return Err(BuildError::ReadLimit);
        }
        if self.switch.bypass_limit == Some(0) {
            return Err(BuildError::BypassLimit);
        }
        self.validate_reads()?;
        if let Some(retry) = &self.host.retry {
            retry.validate()?;
        }
        let notification = self.feedback.bytes.as_u64();
        let is_packet = self.feedback.path == FeedbackPath::InBand;
        if is_packet && !(1..=mtu + header).contains(&notification) {
            return Err(BuildError::NotificationBytes(notification));
        }
        let charge = self.feedback.charge.as_u64();
        if charge > FeedbackParams::MAX_CHARGE {
            return Err(BuildError::NotificationCharge(charge));
        }
        self.validate_vl_arbitration()
    }

    /// Limits of PFC at either direction of a link; `None` with credits. Errors as [`PfcParams::at`].
    pub fn pfc_limits(&self, link: &Link) -> Result<Option<PfcLimits>, BuildError> {
        let cable = PfcCable {
            rate: link.data_rate(),
            propagation: link.propagation(),
            mtu_wire: self.packet.mtu + self.packet.header,
            latency: self.switch.latency,
        };
        self.pfc.as_ref().map(|pfc| pfc.at(cable)).transpose()
    }

    /// Checks the lanes of these routes, and that nothing relies on an order of packets that they do not keep.
    pub fn validate_routes(&self, routes: Routes<'_>) -> Result<(), BuildError> {
        let reorders = routes.choice.reorders() || routes.waypoints.is_some();
        if reorders && self.host.retry.is_some() {
            return Err(BuildError::RetryOutOfOrder);
        }
        if routes.choice != PathChoice::Table {
            if routes.lanes.is_some() {
                return Err(BuildError::LanesAndAlternatives);
            }
            if routes.choice.reorders() && self.feedback.carrier() == BecnCarrier::AckPerMessage {
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
        // The lanes of a subnet manager's tables have been checked with the routes.
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
        if !(percent::ONE..=percent::MOST).contains(&percent) {
            return Err(BuildError::ReadSpeedup(percent));
        }
        if percent > percent::ONE && switch.read_limit.is_none() {
            return Err(BuildError::ReadSpeedupAlone);
        }
        Ok(())
    }

    fn validate_buffers(&self, packet: u64) -> Result<(), BuildError> {
        let output = self.switch.output_buffer;
        if let Some(buffer) = output {
            if buffer.speedup_percent < percent::ONE {
                return Err(BuildError::Speedup(buffer.speedup_percent));
            }
        }
        let packet_blocks = packet.div_ceil(64);
        for (which, key, bytes) in [
            (
                "switch input buffer",
                "switch.buffer",
                self.switch
                    .buffer
                    .map(|buffer| self.switch.lane_part(buffer)),
            ),
            (
                "host receive buffer",
                "host.receive-buffer",
                self.host.receive_buffer,
            ),
            (
                "switch output buffer",
                "switch.output-buffer.size",
                output.map(|buffer| buffer.size),
            ),
        ] {
            let Some(bytes) = bytes.map(Bytes::as_u64) else {
                continue;
            };
            if bytes / 64 < packet_blocks {
                return Err(BuildError::BufferTooSmall {
                    which,
                    key,
                    bytes,
                    packet,
                });
            }
            if bytes > MOST_BUFFER.as_u64() {
                return Err(BuildError::BufferTooLarge { which, key, bytes });
            }
        }
        Ok(())
    }

    fn validate_vl_arbitration(&self) -> Result<(), BuildError> {
        let tables = &self.vl_arbitration;
        tables.check_lanes(self.data_vls)?;
        let both = || tables.high.iter().chain(&tables.low);
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

use silvan_core::document::{KeyPath, Refusal};
use silvan_core::{Credits, Span};

use crate::pfc::PRIORITIES;

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
        /// Virtual lane of the service level.
        vl: u8,
        /// Number of data virtual lanes.
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
        /// Name of the buffer.
        which: &'static str,
        /// Key of the buffer in a scenario.
        key: &'static str,
        /// Size of the buffer.
        bytes: u64,
        /// Wire bytes of one packet of MTU size.
        packet: u64,
    },
    /// A buffer is larger than 16 MiB, so that those of a switch together stay within 32 bits.
    #[error("{which} of {bytes} bytes; at most 16 MiB is supported")]
    BufferTooLarge {
        /// Name of the buffer.
        which: &'static str,
        /// Key of the buffer in a scenario.
        key: &'static str,
        /// Size of the buffer.
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
        /// The key of the table.
        table: &'static str,
        /// The place of the entry in it, from 0.
        index: usize,
        /// The lane.
        vl: u8,
        /// Number of data virtual lanes.
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
        /// Name of the items.
        which: &'static str,
        /// Number of items found.
        found: u64,
        /// Largest supported number.
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
        /// Number of virtual lanes that the class needs.
        lanes: u8,
        /// Number of data virtual lanes.
        data_vls: u8,
    },
    /// Lanes belong to a path, so that switches cannot choose another.
    #[error("routes whose lanes depend on the path leave nothing to choose to the switches")]
    LanesAndAlternatives,
    /// The last packet of a message need not arrive last.
    #[error("one ACK per message needs packets in order, which adaptive routing does not keep")]
    MessagesOutOfOrder,
    /// A value of the retries is out of its range.
    #[error("{key} of {value}: {least} to {most} are supported")]
    Retry {
        /// The key within `host.retry`.
        key: &'static str,
        /// Its value.
        value: u64,
        /// Smallest value.
        least: u64,
        /// Largest value.
        most: u64,
    },
    /// A receiver of a reliable connection discards packets out of order.
    #[error("retries need packets in order, which routes with a choice do not keep")]
    RetryOutOfOrder,
    /// Retries and a scheme that sends packets again or chooses their lanes.
    #[error("the scheme chooses lanes or paths, or discards packets, and retries need both fixed")]
    RetryScheme,
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
        /// Name of the frame.
        which: &'static str,
        /// Key of the frame in a scenario.
        key: &'static str,
        /// Size of the frame.
        bytes: u64,
    },
    /// Something delays by more than the engine's clock can order.
    #[error("{which} of {span} is longer than 1 s")]
    DelayTooLong {
        /// Name of the parameter.
        which: &'static str,
        /// Key of the parameter in a scenario.
        key: &'static str,
        /// Value of the parameter.
        span: Span,
    },
}

/// Data lanes that a port can have (IBA volume 1, section 7.6.1).
const MOST_LANES: u8 = 15;

impl From<&BuildError> for Refusal {
    fn from(error: &BuildError) -> Self {
        use BuildError as E;
        let level = |sl: &u8| KeyPath::from("vl.sl-to-vl").index(usize::from(*sl));
        let (key, hint): (KeyPath, String) = match error {
            E::DataVls(_) => (
                "vl.data-vls".into(),
                "1 is usual; write e.g. 2 for two traffic classes".into(),
            ),
            E::SlToVl { sl, vl, .. } => {
                let needed = u16::from(*vl) + 1;
                let hint =
                    format!("map it to a data VL that is there, or set vl.data-vls to {needed}");
                (level(sl), hint)
            }
            E::Mtu(_) => (
                "packet.mtu".into(),
                "InfiniBand MTUs are 256 B to 4 KiB; 4 KiB is usual".into(),
            ),
            E::Header(_) => (
                "packet.header".into(),
                "26 B are usual: LRH, BTH, ICRC and VCRC".into(),
            ),
            E::BufferTooSmall { key, packet, .. } => {
                let whole_credits = packet.next_multiple_of(Credits::BLOCK_BYTES);
                let hint = format!("make it at least {whole_credits} B, or lower packet.mtu");
                ((*key).into(), hint)
            }
            E::BufferTooLarge { key, .. } => ((*key).into(), "write e.g. \"64 KiB\"".into()),
            E::ReadLimit => (
                "switch.read-limit".into(),
                "write 1 or more, or \"unlimited\"".into(),
            ),
            E::BypassLimit => (
                "switch.bypass-limit".into(),
                "write e.g. 4, or \"unlimited\"".into(),
            ),
            E::BypassInFifo => (
                "switch.bypass-limit".into(),
                "leave it out, or set switch.queueing to \"voq\"".into(),
            ),
            E::ReadSpeedup(_) => (
                "switch.read-speedup".into(),
                "write 1 for as fast as the links, or e.g. 1.5".into(),
            ),
            E::ReadSpeedupAlone => (
                "switch.read-speedup".into(),
                "set switch.read-limit, e.g. to 1, or leave it out".into(),
            ),
            E::Speedup(_) => (
                "switch.output-buffer.speedup".into(),
                "write 1 for as fast as the links, or e.g. 1.5".into(),
            ),
            E::VlNeverServed(vl) => ("vl.low".into(), format!("add [{vl}, 1] to vl.low")),
            E::VlArbitration {
                table, index, vl, ..
            } => {
                let needed = u16::from(*vl) + 1;
                let hint = format!("leave the entry out, or set vl.data-vls to {needed}");
                (KeyPath::from("vl").key(table).index(*index), hint)
            }
            E::NotificationBytes(_) => (
                "control.feedback.bytes".into(),
                "42 B are usual, the size of a CNP".into(),
            ),
            E::NotificationCharge(_) => (
                "control.feedback.charge".into(),
                "64 B is the default; 0 turns the charge off".into(),
            ),
            E::TooMany { .. } => (
                "fabric".into(),
                "make the fabric smaller, or use fewer virtual lanes".into(),
            ),
            E::HostPorts(_) => ("fabric".into(), "plug one cable into each host".into()),
            E::PathLanes {
                sl,
                data_vls,
                lanes,
                ..
            } => {
                let most = MOST_LANES - MOST_LANES % lanes;
                let whole = data_vls.next_multiple_of(*lanes).min(most);
                let hint = format!("leave vl.sl-to-vl out, and set vl.data-vls to {whole}");
                (level(sl), hint)
            }
            E::LanesAndAlternatives => (
                "fabric.path-choice".into(),
                "leave it out, or choose another fabric.routing".into(),
            ),
            E::MessagesOutOfOrder => (
                "control.feedback.carrier".into(),
                "use ack-per-packet, or leave fabric.path-choice out".into(),
            ),
            E::Retry { key, .. } => (
                KeyPath::from("host.retry").key(key),
                "write e.g. { timeout = 14, retry-count = 7 }".into(),
            ),
            E::RetryOutOfOrder => (
                "host.retry".into(),
                "leave it out, or fabric.path-choice".into(),
            ),
            E::RetryScheme => (
                "control.scheme".into(),
                "choose another scheme, or leave host.retry out".into(),
            ),
            E::PfcScheme => (
                "control.scheme".into(),
                "choose another scheme, or set link.flow-control to \"credits\"".into(),
            ),
            E::PfcPriorities(lanes) => {
                let fewer = lanes.saturating_sub(PRIORITIES);
                let hint = format!("use at most {PRIORITIES} virtual lanes, {fewer} fewer");
                ("vl.data-vls".into(), hint)
            }
            E::PfcThresholds { xoff, .. } => (
                "link.pfc.xon".into(),
                format!("make it at most {xoff} B, or leave it out"),
            ),
            E::PfcBuffer { xoff, headroom, .. } => {
                let needed = xoff.saturating_add(*headroom);
                let hint = format!("make it at least {needed} B, or leave it out");
                ("link.pfc.buffer".into(), hint)
            }
            E::PfcFrame { key, .. } => (
                (*key).into(),
                "84 B are usual for a pause frame; leave the largest frame out".into(),
            ),
            E::DelayTooLong { key, .. } => ((*key).into(), "write e.g. \"100 ns\"".into()),
        };
        Self::new(key, error.to_string(), hint)
    }
}

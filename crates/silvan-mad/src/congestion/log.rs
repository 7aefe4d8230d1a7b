//! CongestionLog, with the layouts of Linux's libibmad: the specification's tables leave gaps.

use std::fmt;

use silvan_core::{Lid, Sl};

use super::settings::PortBits;
use crate::field::attribute;
use crate::{Bits, Field};

attribute! {
    /// A marked packet.
    pub struct SwitchLogEvent[12] {
        /// SLID of the packet.
        pub source_lid: Lid = 0,
        /// DLID of the packet.
        pub destination_lid: Lid = 16,
        /// SL of the packet.
        pub sl: Sl = 32,
        /// Timestamp, in units of 1.024 us.
        pub timestamp: u32 = 64,
    }
}

attribute! {
    /// The log of a switch.
    pub struct SwitchLog[224] {
        /// CongestionFlags.
        pub flags: u8 = 8 hex,
        /// LogEventsCounter: events since the log was last read.
        pub events: u16 = 16,
        /// CurrentTimeStamp, in units of 1.024 us.
        pub current_timestamp: u32 = 32,
        /// PortMap: ports that marked since the log was last read.
        pub port_map: PortBits = 64,
        /// The last events.
        pub entries: [SwitchLogEvent; 15] = 320,
    }
}

attribute! {
    /// A notification that made an adapter throttle a flow.
    pub struct CaLogEvent[16] {
        /// Local_QP_CN_Entry.
        pub local_qp: Bits<24> = 0,
        /// SL_CN_Entry.
        pub sl: Sl = 24,
        /// Service_Type_CN_Entry: 0 RC, 1 UC, 2 RD, 3 UD.
        pub service_type: Bits<4> = 28,
        /// Remote_QP_Number_CN_Entry.
        pub remote_qp: Bits<24> = 32,
        /// Local_LID_CN.
        pub local_lid: Lid = 64,
        /// Remote_LID_CN_Entry.
        pub remote_lid: Lid = 80,
        /// Timestamp_CN_Entry, in units of 1.024 us.
        pub timestamp: u32 = 96,
    }
}

attribute! {
    /// The log of an adapter port.
    pub struct CaLog[224] {
        /// CongestionFlags.
        pub flags: u8 = 8 hex,
        /// ThresholdEventCounter: how often an index reached its Trigger_Threshold.
        pub events: u16 = 16,
        /// ThresholdCongestionEventMap: the service levels of these events, a bit each.
        pub event_map: u16 = 32 hex,
        /// CurrentTimeStamp, in units of 1.024 us.
        pub current_timestamp: u32 = 64,
        /// The last events.
        pub entries: [CaLogEvent; 13] = 96,
    }
}

/// CongestionLog (annex A10): the log of a switch or of an adapter port. Its modifier is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionLog {
    /// LogType 1.
    Switch(SwitchLog),
    /// LogType 2.
    Ca(CaLog),
    /// Any other LogType, among them the 0 of requests, as it came.
    Unknown(UnknownLog),
}

/// A log of a type that is neither a switch's nor an adapter's; made by parsing only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLog([u8; CongestionLog::LEN]);

impl UnknownLog {
    /// An empty log of type 0, which is what requests carry.
    pub const EMPTY: Self = Self([0; CongestionLog::LEN]);

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; CongestionLog::LEN] {
        &self.0
    }
}

impl CongestionLog {
    /// The attribute id.
    pub const ID: u16 = 0x13;
    /// The length in bytes.
    pub const LEN: usize = 224;

    const SWITCH: u8 = 1;
    const CA: u8 = 2;

    /// Reads the bytes; reserved bits are ignored.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Self {
        match bytes[0] {
            Self::SWITCH => Self::Switch(SwitchLog::parse(bytes)),
            Self::CA => Self::Ca(CaLog::parse(bytes)),
            _ => Self::Unknown(UnknownLog(*bytes)),
        }
    }

    /// The bytes, reserved bits zero.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let (log_type, mut bytes) = match self {
            Self::Switch(log) => (Self::SWITCH, log.emit()),
            Self::Ca(log) => (Self::CA, log.emit()),
            Self::Unknown(log) => return log.0,
        };
        bytes[0] = log_type;
        bytes
    }
}

impl fmt::Display for CongestionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(log) => write!(f, "switch {log}"),
            Self::Ca(log) => write!(f, "CA {log}"),
            Self::Unknown(log) => log.0.show(f, true),
        }
    }
}

//! Congestion control (annex A10): what switches mark, what adapters do about it, and their logs.

mod log;
mod settings;

use std::borrow::Borrow;
use std::fmt;

use crate::field::attributes;
use crate::packet::field;
use crate::{ClassPortInfo, Field, MAD_LEN, Packet};

pub use log::{CaLog, CaLogEvent, CongestionLog, SwitchLog, SwitchLogEvent, UnknownLog};
pub use settings::{
    CaCongestionEntry, CaCongestionSetting, CongestionControlTable, CongestionControlTableEntry,
    CongestionInfo, CongestionKeyInfo, PortBits, SwitchCongestionSetting,
    SwitchPortCongestionElement, SwitchPortCongestionSetting, TimeStamp, switch_control_map,
};

/// A congestion control datagram (annex A10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionControl {
    /// CC_Key: must match that of the node for what it protects.
    pub cc_key: u64,
    /// Attribute of the datagram.
    pub attribute: CongestionAttribute,
}

/// The attribute of a congestion control datagram: most are in the management data, the log does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, on the stack; a box would allocate"
)]
pub enum CongestionAttribute {
    /// Attributes in the management data.
    Management(ManagementAttribute),
    /// Attributes in the log data.
    Log(CongestionLog),
}

attributes! {
    /// An attribute in the management data of a congestion control datagram.
    pub enum ManagementAttribute[192] {
        ClassPortInfo,
        CongestionInfo,
        CongestionKeyInfo,
        SwitchCongestionSetting,
        SwitchPortCongestionSetting,
        CaCongestionSetting,
        CongestionControlTable,
        TimeStamp,
    }
}

impl CongestionAttribute {
    /// The attribute id.
    pub const fn id(&self) -> u16 {
        match self {
            Self::Management(attribute) => attribute.id(),
            Self::Log(_) => CongestionLog::ID,
        }
    }
}

impl<T: Into<ManagementAttribute>> From<T> for CongestionAttribute {
    fn from(attribute: T) -> Self {
        Self::Management(attribute.into())
    }
}

impl From<CongestionLog> for CongestionAttribute {
    fn from(log: CongestionLog) -> Self {
        Self::Log(log)
    }
}

impl CongestionControl {
    /// The name of the attribute with this id, `None` if it is unknown.
    pub const fn name_of(id: u16) -> Option<&'static str> {
        match id {
            CongestionLog::ID => Some("CongestionLog"),
            _ => ManagementAttribute::name_of(id),
        }
    }

    pub(crate) fn parse<B: Borrow<[u8; MAD_LEN]>>(packet: &Packet<B>) -> Self {
        let bytes = packet.bytes();
        let attribute = match packet.attribute_id() {
            CongestionLog::ID => CongestionLog::parse(&Field::read(bytes, field::LOG_DATA)).into(),
            id => CongestionAttribute::Management(ManagementAttribute::parse(
                id,
                &Field::read(bytes, field::DATA),
            )),
        };
        Self {
            cc_key: packet.key(),
            attribute,
        }
    }

    pub(crate) fn emit(&self, bytes: &mut [u8; MAD_LEN]) {
        self.cc_key.write(bytes, field::KEY);
        match &self.attribute {
            CongestionAttribute::Management(attribute) => {
                let mut data = [0; ManagementAttribute::DATA_LEN];
                attribute.emit(&mut data);
                data.write(bytes, field::DATA);
            }
            CongestionAttribute::Log(log) => log.emit().write(bytes, field::LOG_DATA),
        }
    }
}

impl fmt::Display for CongestionAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Management(attribute) => attribute.fmt(f),
            Self::Log(log) => log.fmt(f),
        }
    }
}

use std::fmt;

use silvan_core::{DeviceId, Guid, PortNumber};
use thiserror::Error;

use crate::field::{attribute, code_points};
use crate::{Bits, Field};

code_points! {
    /// The kind of a node (NodeInfo.NodeType).
    pub struct NodeType: 8 {
        /// A host's adapter.
        CHANNEL_ADAPTER = 1 "CA",
        /// A switch.
        SWITCH = 2 "switch",
        /// A router.
        ROUTER = 3 "router",
    }
}

attribute! {
    /// NodeInfo: what a node is (volume 1, section 14.2.5.3). Its modifier is 0.
    pub struct NodeInfo[40] = 0x11 {
        /// BaseVersion: of the management datagrams understood, 1.
        pub base_version: u8 = 0,
        /// ClassVersion: of the subnet management class, 1.
        pub class_version: u8 = 8,
        /// NodeType.
        pub node_type: NodeType = 16,
        /// NumPorts: physical ports, without a switch's port 0.
        pub num_ports: u8 = 24,
        /// SystemImageGUID: common to all nodes of one system.
        pub system_image_guid: Guid = 32,
        /// NodeGUID.
        pub node_guid: Guid = 96,
        /// PortGUID: of the port by which the request came; a switch has one for all ports.
        pub port_guid: Guid = 160,
        /// PartitionCap: entries in the P_Key table of each adapter port or of switch port 0.
        pub partition_cap: u16 = 224,
        /// DeviceID, by the manufacturer.
        pub device_id: u16 = 240 hex,
        /// Revision, by the manufacturer.
        pub revision: u32 = 256 hex,
        /// LocalPortNum: the port by which the request came.
        pub local_port: PortNumber = 288,
        /// VendorID: the manufacturer's OUI.
        pub vendor_id: Bits<24> = 296 hex,
    }
}

impl NodeInfo {
    /// Vendor and device.
    pub fn device(&self) -> DeviceId {
        DeviceId {
            vendor: self.vendor_id.get(),
            device: self.device_id.into(),
        }
    }
}

attribute! {
    /// SwitchInfo: what a switch can do and how it forwards (volume 1, section 14.2.5.4). Its modifier is 0.
    pub struct SwitchInfo[20] = 0x12 {
        /// LinearFDBCap: entries that the linear forwarding table can hold.
        pub linear_fdb_cap: u16 = 0,
        /// RandomFDBCap: entries that the random forwarding table can hold.
        pub random_fdb_cap: u16 = 16,
        /// MulticastFDBCap: entries that the multicast forwarding table can hold.
        pub multicast_fdb_cap: u16 = 32,
        /// LinearFDBTop: the last LID that is looked up; packets to LIDs above are discarded.
        pub linear_fdb_top: u16 = 48,
        /// DefaultPort: for LIDs that a random forwarding table has not.
        pub default_port: PortNumber = 64,
        /// DefaultMulticastPrimaryPort.
        pub default_multicast_primary_port: PortNumber = 72,
        /// DefaultMulticastNotPrimaryPort.
        pub default_multicast_not_primary_port: PortNumber = 80,
        /// LifeTimeValue: packets are kept for at most 4.096 us times 2 to this power; above 19 for ever.
        pub life_time: Bits<5> = 88,
        /// PortStateChange: some port's state has changed since the subnet manager cleared this.
        pub port_state_change: bool = 93,
        /// OptimizedSLtoVLMappingProgramming: which wildcards the SL to VL tables take.
        pub optimized_sl_to_vl_mapping: Bits<2> = 94,
        /// LIDsPerPort, for random forwarding tables.
        pub lids_per_port: u16 = 96,
        /// PartitionEnforcementCap: entries in each port's P_Key table.
        pub partition_enforcement_cap: u16 = 112,
        /// InboundEnforcementCap.
        pub inbound_enforcement_cap: bool = 128,
        /// OutboundEnforcementCap.
        pub outbound_enforcement_cap: bool = 129,
        /// FilterRawInboundCap.
        pub filter_raw_inbound_cap: bool = 130,
        /// FilterRawOutboundCap.
        pub filter_raw_outbound_cap: bool = 131,
        /// EnhancedPort0: port 0 has a link's worth of features.
        pub enhanced_port_0: bool = 132,
        /// MulticastFDBTop: the last multicast LID that is looked up.
        pub multicast_fdb_top: u16 = 144 hex,
    }
}

/// A text too long for a NodeDescription.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "node description of {len} bytes, at most {} fit",
    NodeDescription::LEN
)]
pub struct DescriptionTooLong {
    /// The text's length in bytes.
    pub len: usize,
}

/// NodeDescription (volume 1, section 14.2.5.2): UTF-8 text, then zeros; other bytes of a device are preserved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NodeDescription([u8; 64]);

impl NodeDescription {
    /// The attribute id.
    pub const ID: u16 = 0x10;
    /// The length in bytes.
    pub const LEN: usize = 64;
    /// The attribute has no fields.
    pub const FIELDS: &'static [crate::FieldLocation] = &[];

    /// The description with this text. Errors: [`DescriptionTooLong`] if the text is longer than 64 bytes.
    pub fn new(text: &str) -> Result<Self, DescriptionTooLong> {
        let mut bytes = [0; Self::LEN];
        bytes
            .get_mut(..text.len())
            .ok_or(DescriptionTooLong { len: text.len() })?
            .copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }

    /// The description with these bytes.
    pub const fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self(*bytes)
    }

    /// The bytes.
    pub const fn emit(&self) -> [u8; Self::LEN] {
        self.0
    }

    /// The text up to the first zero; bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        let end = self
            .0
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(Self::LEN);
        String::from_utf8_lossy(&self.0[..end])
    }
}

/// The text in quotes, control characters escaped.
impl fmt::Display for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl fmt::Debug for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeDescription({self})")
    }
}

impl Field for NodeDescription {
    const WIDTH: usize = Self::LEN * 8;

    fn read(bytes: &[u8], at: usize) -> Self {
        Self(Field::read(bytes, at))
    }

    fn write(&self, bytes: &mut [u8], at: usize) {
        self.0.write(bytes, at);
    }

    fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, _hex: bool) -> fmt::Result {
        write!(f, "{self}")
    }
}

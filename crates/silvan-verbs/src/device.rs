//! Attributes of an adapter and of its port.

use silvan_core::{Guid, Lid};

/// Attributes of an adapter that do not change.
#[derive(Clone, Debug)]
pub struct DeviceAttributes {
    /// GUID of the node.
    pub node_guid: Guid,
    /// GUID of the system.
    pub system_guid: Guid,
    /// Vendor of the PCI device.
    pub vendor_id: u32,
    /// PCI device.
    pub vendor_part_id: u32,
    /// Revision of the hardware.
    pub hw_version: u32,
    /// Version of the firmware: major, minor, subminor.
    pub firmware: (u16, u16, u16),
}

/// State of a port's logical link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PortState {
    /// No physical link.
    Down = 1,
    /// Physical link; only management packets pass.
    Initialize = 2,
    /// Configured, not yet in use.
    Armed = 3,
    /// In use.
    Active = 4,
}

/// Attributes of an adapter's port that the subnet manager sets, as QUERY_PORT shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAttributes {
    /// State of the link.
    pub state: PortState,
    /// Physical state: 2 polling, 3 disabled, 5 link up.
    pub physical_state: u8,
    /// Base LID; 0 before a subnet manager assigns one.
    pub lid: Lid,
    /// LID mask control: the port answers to 2^lmc LIDs.
    pub lmc: u8,
    /// LID of the subnet manager.
    pub sm_lid: Lid,
    /// Service level to reach the subnet manager.
    pub sm_sl: u8,
    /// Largest MTU of the port: 1 to 5 for 256 to 4096 bytes.
    pub max_mtu: u8,
    /// MTU in use, in the code of `max_mtu`.
    pub active_mtu: u8,
    /// VLs of the port, as a code: 1 to 5 for 1, 2, 4, 8 and 15.
    pub max_vl: u8,
    /// Width in use: 1, 2, 4, 8 for 1x, 4x, 8x, 12x.
    pub active_width: u8,
    /// Speed in use, in the code of the header `ib_user_verbs.h`.
    pub active_speed: u8,
    /// CapabilityMask.
    pub capabilities: u32,
    /// SubnetTimeOut.
    pub subnet_timeout: u8,
    /// Table of P_Keys; 0 is an empty entry.
    pub pkeys: Vec<u16>,
    /// Table of GIDs.
    pub gids: Vec<[u8; 16]>,
}

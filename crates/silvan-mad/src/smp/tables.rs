use silvan_core::{Guid, PortNumber, Sl};

use crate::Bits;
use crate::field::attribute;

attribute! {
    /// GUIDInfo: a block of a port's GUIDs (volume 1, section 14.2.5.5). Its modifier is the block.
    pub struct GuidInfo[64] = 0x14 {
        /// GUIDs, from 8 times the block on.
        pub guids: [Guid; 8] = 0,
    }
}

attribute! {
    /// P_KeyTable: a block of a port's partition keys (volume 1, section 14.2.5.7). Its modifier is
    /// [`PKeyBlock`].
    pub struct PKeyTable[64] = 0x16 {
        /// P_Keys, from 32 times the block on: bit 15 is full membership.
        pub p_keys: [u16; 32] = 0 hex,
    }
}

attribute! {
    /// SLtoVLMappingTable (volume 1, section 14.2.5.8). On a switch its modifier is [`PortPair`], on an adapter 0.
    pub struct SlToVlMappingTable[8] = 0x17 {
        /// The lane of each service level; 15 discards the packet.
        pub vls: [Bits<4>; Sl::COUNT] = 0,
    }
}

attribute! {
    /// An entry of a VL arbitration table.
    pub struct VlArbitrationEntry[2] {
        /// VL: the lane, 0 to 14; 15 is skipped.
        pub vl: Bits<4> = 4,
        /// Weight, in units of 64 bytes; 0 skips the entry.
        pub weight: u8 = 8,
    }
}

attribute! {
    /// VLArbitrationTable: half a table (volume 1, section 14.2.5.9). Its modifier is
    /// [`VlArbitrationBlock`].
    pub struct VlArbitrationTable[64] = 0x18 {
        /// Entries, in the order of their turns.
        pub entries: [VlArbitrationEntry; 32] = 0,
    }
}

attribute! {
    /// LinearForwardingTable: a block of a switch's table (volume 1, section 14.2.5.10). Its modifier is the block.
    pub struct LinearForwardingTable[64] = 0x19 {
        /// The port for each LID from 64 times the block on; [`NO_ROUTE`](Self::NO_ROUTE) discards.
        pub ports: [PortNumber; 64] = 0,
    }
}

impl LinearForwardingTable {
    /// The entry of a LID without a route.
    pub const NO_ROUTE: PortNumber = PortNumber::new(255);
}

attribute! {
    /// MulticastForwardingTable: a block of a switch's table (volume 1, section 14.2.5.12). Its
    /// modifier is [`MulticastBlock`].
    pub struct MulticastForwardingTable[64] = 0x1b {
        /// The ports for each multicast LID from 0xc000 + 32 times the block on, a bit each: bit 0 is
        /// port 16 times the position.
        pub port_masks: [u16; 32] = 0 hex,
    }
}

/// The modifier of P_KeyTable: `port << 16 | block`; the port is 0 on adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PKeyBlock {
    /// The switch port.
    pub port: PortNumber,
    /// The block of 32 keys.
    pub block: u16,
}

impl PKeyBlock {
    /// The block that the modifier names.
    pub const fn from_modifier(modifier: u32) -> Self {
        Self {
            port: PortNumber::new((modifier >> 16) as u8),
            block: modifier as u16,
        }
    }

    /// The modifier.
    pub const fn to_modifier(self) -> u32 {
        (self.port.as_u8() as u32) << 16 | self.block as u32
    }
}

/// The modifier of SLtoVLMappingTable on a switch: `input << 8 | output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPair {
    /// The port by which packets come.
    pub input: PortNumber,
    /// The port by which they leave.
    pub output: PortNumber,
}

impl PortPair {
    /// The ports that the modifier names.
    pub const fn from_modifier(modifier: u32) -> Self {
        Self {
            input: PortNumber::new((modifier >> 8) as u8),
            output: PortNumber::new(modifier as u8),
        }
    }

    /// The modifier.
    pub const fn to_modifier(self) -> u32 {
        (self.input.as_u8() as u32) << 8 | self.output.as_u8() as u32
    }
}

/// VLArbitrationTable, modifier `block << 16 | port`: blocks 1 and 2 have low priority, 3 and 4 high priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlArbitrationBlock {
    /// Table, and half of it.
    pub block: u8,
    /// The output port; ignored by adapters.
    pub port: PortNumber,
}

impl VlArbitrationBlock {
    /// The block that the modifier names.
    pub const fn from_modifier(modifier: u32) -> Self {
        Self {
            block: (modifier >> 16) as u8,
            port: PortNumber::new(modifier as u8),
        }
    }

    /// The modifier.
    pub const fn to_modifier(self) -> u32 {
        (self.block as u32) << 16 | self.port.as_u8() as u32
    }
}

/// The modifier of MulticastForwardingTable: `position << 28 | block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticastBlock {
    /// Number of the group of 16 ports.
    pub position: Bits<4>,
    /// Number of the group of 32 multicast LIDs.
    pub block: Bits<9>,
}

impl MulticastBlock {
    /// The block that the modifier names.
    pub const fn from_modifier(modifier: u32) -> Self {
        Self {
            position: Bits::saturating((modifier >> 28) as u64),
            block: Bits::saturating((modifier & Bits::<9>::MAX.get()) as u64),
        }
    }

    /// The modifier.
    pub const fn to_modifier(self) -> u32 {
        self.position.get() << 28 | self.block.get()
    }
}

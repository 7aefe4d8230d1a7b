use std::fmt;

use silvan_core::{PortNumber, Sl};

use crate::field::attribute;
use crate::{Bits, Field};

/// A set of ports of a switch, as in Victim_Mask: port `p` is bit `p`, bit 0 being the last bit of the last byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortBits([u8; 32]);

impl PortBits {
    /// Returns true if the port is in the set.
    pub const fn contains(&self, port: PortNumber) -> bool {
        let port = port.as_u8();
        self.0[31 - port as usize / 8] >> (port % 8) & 1 != 0
    }

    /// Puts the port into the set or takes it out.
    pub const fn set(&mut self, port: PortNumber, member: bool) {
        let port = port.as_u8();
        let byte = &mut self.0[31 - port as usize / 8];
        *byte = *byte & !(1 << (port % 8)) | (member as u8) << (port % 8);
    }

    /// The ports of the set in order.
    pub fn iter(&self) -> impl Iterator<Item = PortNumber> + '_ {
        (0..=u8::MAX)
            .map(PortNumber::new)
            .filter(|&port| self.contains(port))
    }
}

impl FromIterator<PortNumber> for PortBits {
    fn from_iter<I: IntoIterator<Item = PortNumber>>(ports: I) -> Self {
        let mut set = Self::default();
        for port in ports {
            set.set(port, true);
        }
        set
    }
}

impl Field for PortBits {
    const WIDTH: usize = 256;

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
        f.debug_set()
            .entries(self.iter().map(PortNumber::as_u8))
            .finish()
    }
}

attribute! {
    /// CongestionInfo: what a node can do. Its modifier is 0.
    pub struct CongestionInfo[4] = 0x11 {
        /// CongestionInfo flags: bit 0, the switch can starve its neighbours of credits.
        pub flags: u16 = 0 hex,
        /// ControlTableCap: an adapter's Congestion Control Table holds 64 times as many entries.
        pub control_table_cap: u8 = 16,
    }
}

attribute! {
    /// CongestionKeyInfo: who may change settings. Its modifier is 0.
    pub struct CongestionKeyInfo[16] = 0x12 {
        /// CC_Key.
        pub cc_key: u64 = 0 hex,
        /// CC_KeyProtectBit: without the key, the key itself cannot be read either.
        pub protect: bool = 64,
        /// CC_KeyLeasePeriod, in seconds; 0: it never ends.
        pub lease_period: u16 = 80,
        /// CC_KeyViolations: requests with a wrong key.
        pub violations: u16 = 96,
    }
}

/// Bits of SwitchCongestionSetting.Control_Map: which parts a Set changes.
pub mod switch_control_map {
    /// Victim_Mask.
    pub const VICTIM_MASK: u32 = 1;
    /// Credit_Mask.
    pub const CREDIT_MASK: u32 = 2;
    /// Threshold and Packet_Size.
    pub const THRESHOLD: u32 = 4;
    /// CS_Threshold and CS_ReturnDelay.
    pub const CREDIT_STARVATION: u32 = 8;
    /// Marking_Rate.
    pub const MARKING_RATE: u32 = 16;
}

attribute! {
    /// SwitchCongestionSetting: what a switch does at ports without a setting of their own. Its modifier is 0.
    pub struct SwitchCongestionSetting[76] = 0x14 {
        /// Control_Map, of bits in [`switch_control_map`].
        pub control_map: u32 = 0 hex,
        /// Victim_Mask: ports that may be in the congestion state without credits.
        pub victim_mask: PortBits = 32,
        /// Credit_Mask: ports that apply credit starvation.
        pub credit_mask: PortBits = 288,
        /// Threshold: 0 never to mark, 15 to mark earliest.
        pub threshold: Bits<4> = 544,
        /// Packet_Size: smaller packets are not marked, in units of 64 bytes.
        pub packet_size: u8 = 552,
        /// CS_Threshold, coded as Threshold.
        pub cs_threshold: Bits<4> = 560,
        /// CS_ReturnDelay: by how much credits return later.
        pub cs_return_delay: CongestionControlTableEntry = 576,
        /// Marking_Rate: the mean number of eligible packets between two that are marked.
        pub marking_rate: u16 = 592,
    }
}

attribute! {
    /// The setting of one port in SwitchPortCongestionSetting.
    pub struct SwitchPortCongestionElement[4] {
        /// Valid: the port has a setting of its own.
        pub valid: bool = 0,
        /// Control_Type: congestion control (false) or credit starvation (true).
        pub credit_starvation: bool = 1,
        /// Threshold, or CS_Threshold.
        pub threshold: Bits<4> = 4,
        /// Packet_Size, in units of 64 bytes.
        pub packet_size: u8 = 8,
        /// Marking_Rate, or CS_ReturnDelay as in [`CongestionControlTableEntry`].
        pub marking_rate: u16 = 16,
    }
}

attribute! {
    /// SwitchPortCongestionSetting: settings of single ports, 48 to a block. Its modifier is the block.
    pub struct SwitchPortCongestionSetting[192] = 0x15 {
        /// The ports from 48 times the block on.
        pub ports: [SwitchPortCongestionElement; 48] = 0,
    }
}

attribute! {
    /// Setting of an adapter port for one service level.
    pub struct CaCongestionEntry[8] {
        /// CCTI_Timer: how often the index falls by one, in units of 1.024 us.
        pub ccti_timer: u16 = 0,
        /// CCTI_Increase: by how much a notification raises the index.
        pub ccti_increase: u8 = 16,
        /// Trigger_Threshold: the index at which events are logged.
        pub trigger_threshold: u8 = 24,
        /// CCTI_Min: the index never falls below it.
        pub ccti_min: u8 = 32,
    }
}

attribute! {
    /// CACongestionSetting: what an adapter port does about notifications. Its modifier is 0.
    pub struct CaCongestionSetting[132] = 0x16 {
        /// Port_Control: bit 0, control by service level instead of by queue pair.
        pub port_control: u16 = 0 hex,
        /// Control_Map: the service levels that a Set changes, a bit each.
        pub control_map: u16 = 16 hex,
        /// The entry of each service level.
        pub entries: [CaCongestionEntry; Sl::COUNT] = 32,
    }
}

attribute! {
    /// An entry of the Congestion Control Table: packets wait for `multiplier / 2^shift` of their own length.
    pub struct CongestionControlTableEntry[2] {
        /// CCT_Shift.
        pub shift: Bits<2> = 0,
        /// CCT_Multiplier.
        pub multiplier: Bits<14> = 2,
    }
}

attribute! {
    /// CongestionControlTable: a block of an adapter port's table. Its modifier is the block.
    pub struct CongestionControlTable[132] = 0x17 {
        /// CCTI_Limit: the last index of the table in use.
        pub ccti_limit: u16 = 0,
        /// Entries, from 64 times the block on.
        pub entries: [CongestionControlTableEntry; 64] = 32,
    }
}

attribute! {
    /// TimeStamp: the clock of the node's log. Its modifier is 0.
    pub struct TimeStamp[4] = 0x18 {
        /// TimeStamp, in units of 1.024 us.
        pub time_stamp: u32 = 0,
    }
}

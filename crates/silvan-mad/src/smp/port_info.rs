use silvan_core::{Lid, PortNumber, Sl};

use crate::Bits;
use crate::field::{attribute, code_points};

code_points! {
    /// The logical state of a port (PortInfo.PortState).
    pub struct PortState: 4 {
        /// In a Set: keeps the state.
        NO_CHANGE = 0 "no-change",
        /// No link.
        DOWN = 1 "Down",
        /// Linked, not yet set up: only management packets pass.
        INITIALIZE = 2 "Init",
        /// Set up, waiting to be activated.
        ARMED = 3 "Armed",
        /// The port is in use.
        ACTIVE = 4 "Active",
    }
}

code_points! {
    /// The state of a port's physical layer (PortInfo.PortPhysicalState).
    pub struct PhysicalState: 4 {
        /// In a Set: keeps the state.
        NO_CHANGE = 0 "no-change",
        /// Sleeping until the other end polls.
        SLEEP = 1 "Sleep",
        /// Looking for another end.
        POLLING = 2 "Polling",
        /// Switched off.
        DISABLED = 3 "Disabled",
        /// Training.
        TRAINING = 4 "Training",
        /// Linked.
        LINK_UP = 5 "LinkUp",
        /// Recovering from an error.
        LINK_ERROR_RECOVERY = 6 "LinkErrorRecovery",
        /// Under test.
        PHY_TEST = 7 "PhyTest",
    }
}

code_points! {
    /// A maximum transfer unit (PortInfo.NeighborMTU and MTUCap).
    pub struct Mtu: 4 {
        /// 256 bytes.
        B256 = 1 "256",
        /// 512 bytes.
        B512 = 2 "512",
        /// 1024 bytes.
        B1024 = 3 "1024",
        /// 2048 bytes.
        B2048 = 4 "2048",
        /// 4096 bytes.
        B4096 = 5 "4096",
    }
}

impl Mtu {
    /// The payload of the largest packet in bytes, `None` for codes without a meaning.
    pub const fn bytes(self) -> Option<u32> {
        match self.code() {
            code @ 1..=5 => Some(128 << code),
            _ => None,
        }
    }
}

/// Bits of PortInfo.LinkWidthEnabled, LinkWidthSupported and LinkWidthActive.
pub mod link_width {
    /// One lane.
    pub const X1: u8 = 1;
    /// Four lanes.
    pub const X4: u8 = 2;
    /// Eight lanes.
    pub const X8: u8 = 4;
    /// Twelve lanes.
    pub const X12: u8 = 8;
    /// Two lanes.
    pub const X2: u8 = 16;
}

/// Bits of PortInfo.LinkSpeedSupported, LinkSpeedEnabled and LinkSpeedActive, in Gbit/s of signalling per lane.
pub mod link_speed {
    /// 2.5 Gbit/s.
    pub const SDR: u32 = 1;
    /// 5 Gbit/s.
    pub const DDR: u32 = 2;
    /// 10 Gbit/s; links faster than this say so in LinkSpeedExtActive, too.
    pub const QDR: u32 = 4;
}

/// LinkSpeedExtSupported, -Enabled and -Active, in Gbit/s of signalling per lane.
pub mod link_speed_ext {
    /// 14.0625 Gbit/s.
    pub const FDR: u32 = 1;
    /// 25.78125 Gbit/s.
    pub const EDR: u32 = 2;
    /// 53.125 Gbit/s.
    pub const HDR: u32 = 4;
    /// 106.25 Gbit/s.
    pub const NDR: u32 = 8;
}

/// LinkSpeedExtSupported2, -Enabled2 and -Active2, in Gbit/s of signalling per lane.
pub mod link_speed_ext2 {
    /// 212.5 Gbit/s.
    pub const XDR: u32 = 1;
}

/// Bits of PortInfo.CapabilityMask.
pub mod capability {
    /// IsSM: a subnet manager runs here.
    pub const IS_SM: u32 = 1 << 1;
    /// IsNoticeSupported.
    pub const IS_NOTICE_SUPPORTED: u32 = 1 << 2;
    /// IsTrapSupported.
    pub const IS_TRAP_SUPPORTED: u32 = 1 << 3;
    /// IsAutomaticMigrationSupported.
    pub const IS_AUTOMATIC_MIGRATION_SUPPORTED: u32 = 1 << 5;
    /// IsSLMappingSupported.
    pub const IS_SL_MAPPING_SUPPORTED: u32 = 1 << 6;
    /// IsSystemImageGUIDSupported.
    pub const IS_SYSTEM_IMAGE_GUID_SUPPORTED: u32 = 1 << 11;
    /// IsExtendedSpeedsSupported: the LinkSpeedExt fields count.
    pub const IS_EXTENDED_SPEEDS_SUPPORTED: u32 = 1 << 14;
    /// IsCapabilityMask2Supported.
    pub const IS_CAPABILITY_MASK2_SUPPORTED: u32 = 1 << 15;
}

attribute! {
    /// PortInfo (volume 1, section 14.2.5.6). Its modifier is the port number; bit 31 requests extended speeds.
    ///
    /// Port 0 is the port of the request on an adapter, and the management port on a switch.
    pub struct PortInfo[64] = 0x15 {
        /// M_Key: what subnet managers must know to manage the port.
        pub m_key: u64 = 0 hex,
        /// GidPrefix.
        pub gid_prefix: u64 = 64 hex,
        /// LID: the base LID.
        pub lid: Lid = 128,
        /// MasterSMLID.
        pub master_sm_lid: Lid = 144,
        /// CapabilityMask, of bits in [`capability`].
        pub capability_mask: u32 = 160 hex,
        /// DiagCode.
        pub diag_code: u16 = 192 hex,
        /// M_KeyLeasePeriod, in seconds; 0: it never ends.
        pub m_key_lease_period: u16 = 208,
        /// LocalPortNum: the port by which the request came.
        pub local_port: PortNumber = 224,
        /// LinkWidthEnabled, of bits in [`link_width`].
        pub link_width_enabled: u8 = 232,
        /// LinkWidthSupported, of bits in [`link_width`].
        pub link_width_supported: u8 = 240,
        /// LinkWidthActive, one bit of [`link_width`].
        pub link_width_active: u8 = 248,
        /// LinkSpeedSupported, of bits in [`link_speed`].
        pub link_speed_supported: Bits<4> = 256,
        /// PortState.
        pub port_state: PortState = 260,
        /// PortPhysicalState.
        pub physical_state: PhysicalState = 264,
        /// LinkDownDefaultState: sleeping (1) or polling (2).
        pub link_down_default_state: PhysicalState = 268,
        /// M_KeyProtectBits.
        pub m_key_protect: Bits<2> = 272,
        /// LMC: how many low bits of the LID are any.
        pub lmc: Bits<3> = 277,
        /// LinkSpeedActive, one bit of [`link_speed`].
        pub link_speed_active: Bits<4> = 280,
        /// LinkSpeedEnabled, of bits in [`link_speed`].
        pub link_speed_enabled: Bits<4> = 284,
        /// NeighborMTU: what may be sent.
        pub neighbor_mtu: Mtu = 288,
        /// MasterSMSL: the service level towards the subnet manager.
        pub master_sm_sl: Sl = 292,
        /// VLCap: data lanes present; 1 to 4 for 1, 2, 4, 8 and 5 for 15.
        pub vl_cap: Bits<4> = 296,
        /// InitType.
        pub init_type: Bits<4> = 300 hex,
        /// VLHighLimit: of bytes of high priority before one of low, in units of 4096 bytes.
        pub vl_high_limit: u8 = 304,
        /// VLArbitrationHighCap: entries in the table of high priority.
        pub vl_arbitration_high_cap: u8 = 312,
        /// VLArbitrationLowCap: entries in the table of low priority.
        pub vl_arbitration_low_cap: u8 = 320,
        /// InitTypeReply.
        pub init_type_reply: Bits<4> = 328 hex,
        /// MTUCap: what can be sent and received.
        pub mtu_cap: Mtu = 332,
        /// VLStallCount: packets discarded for age before the lane counts as stalled.
        pub vl_stall_count: Bits<3> = 336,
        /// HOQLife: packets wait at the head of a queue for at most 4.096 us times 2 to this power; above 19 unlimited.
        pub hoq_life: Bits<5> = 339,
        /// OperationalVLs: data lanes in use, coded as VLCap.
        pub operational_vls: Bits<4> = 344,
        /// PartitionEnforcementInbound.
        pub partition_enforcement_inbound: bool = 348,
        /// PartitionEnforcementOutbound.
        pub partition_enforcement_outbound: bool = 349,
        /// FilterRawInbound.
        pub filter_raw_inbound: bool = 350,
        /// FilterRawOutbound.
        pub filter_raw_outbound: bool = 351,
        /// M_KeyViolations.
        pub m_key_violations: u16 = 352,
        /// P_KeyViolations.
        pub p_key_violations: u16 = 368,
        /// Q_KeyViolations.
        pub q_key_violations: u16 = 384,
        /// GUIDCap: entries in the GUIDInfo table.
        pub guid_cap: u8 = 400,
        /// ClientReregister: clients must subscribe again.
        pub client_reregister: bool = 408,
        /// MulticastPKeyTrapSuppressionEnabled.
        pub multicast_p_key_trap_suppression: Bits<2> = 409,
        /// SubnetTimeOut: packets travel for at most 4.096 us times 2 to this power.
        pub subnet_timeout: Bits<5> = 411,
        /// RespTimeValue: answers take at most 4.096 us times 2 to this power.
        pub response_time: Bits<5> = 419,
        /// LocalPhyErrors: threshold of errors for a trap.
        pub local_phy_errors: Bits<4> = 424,
        /// OverrunErrors: threshold of errors for a trap.
        pub overrun_errors: Bits<4> = 428,
        /// MaxCreditHint.
        pub max_credit_hint: u16 = 432,
        /// LinkSpeedExtActive2: XDR and faster.
        pub link_speed_ext2_active: Bits<2> = 449,
        /// LinkSpeedExtSupported2: XDR and faster.
        pub link_speed_ext2_supported: Bits<2> = 451,
        /// LinkSpeedExtEnabled2: XDR and faster.
        pub link_speed_ext2_enabled: Bits<3> = 453,
        /// LinkRoundTripLatency, as the port measured it.
        pub link_round_trip_latency: Bits<24> = 456,
        /// CapabilityMask2.
        pub capability_mask2: u16 = 480 hex,
        /// LinkSpeedExtActive, one bit of [`link_speed_ext`].
        pub link_speed_ext_active: Bits<4> = 496,
        /// LinkSpeedExtSupported, of bits in [`link_speed_ext`].
        pub link_speed_ext_supported: Bits<4> = 500,
        /// LinkSpeedExtEnabled, of bits in [`link_speed_ext`].
        pub link_speed_ext_enabled: Bits<5> = 507,
    }
}

/// Width and speed at which a link runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActiveLink {
    /// Number of lanes.
    pub lanes: u64,
    /// Bits per second of a lane on the wire, line coding included.
    pub lane_bits_per_second: u64,
    /// The part of the bits that is data, as numerator and denominator.
    pub coding: (u64, u64),
}

impl ActiveLink {
    /// Bits per second on the wire.
    pub fn signalling_bits_per_second(self) -> u64 {
        self.lanes * self.lane_bits_per_second
    }

    /// Bits of data per second.
    pub fn data_bits_per_second(self) -> u64 {
        let (data, coded) = self.coding;
        self.signalling_bits_per_second() * data / coded
    }
}

impl PortInfo {
    /// The active link. The line code is 8b/10b to QDR and 64b/66b to EDR; error correction makes 17 of 16 bits from
    /// HDR on.
    pub fn active_link(&self) -> ActiveLink {
        let lanes = match self.link_width_active {
            link_width::X1 => 1,
            link_width::X2 => 2,
            link_width::X4 => 4,
            link_width::X8 => 8,
            _ => 12,
        };
        let (lane_bits_per_second, coding) = match self.link_speed_ext_active.get() {
            _ if self.link_speed_ext2_active.get() == link_speed_ext2::XDR => {
                (212_500_000_000, (16, 17))
            }
            0 => match self.link_speed_active.get() {
                link_speed::SDR => (2_500_000_000, (8, 10)),
                link_speed::DDR => (5_000_000_000, (8, 10)),
                _ => (10_000_000_000, (8, 10)),
            },
            link_speed_ext::FDR => (14_062_500_000, (64, 66)),
            link_speed_ext::EDR => (25_781_250_000, (64, 66)),
            link_speed_ext::HDR => (53_125_000_000, (16, 17)),
            _ => (106_250_000_000, (16, 17)),
        };
        ActiveLink {
            lanes,
            lane_bits_per_second,
            coding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the rates by which the speeds are sold.
    #[test]
    fn links_carry_the_data_that_they_are_named_for() {
        let four = |speed: u32, extended: u32, second: u32| {
            let info = PortInfo {
                link_width_active: link_width::X4,
                link_speed_active: Bits::saturating(speed.into()),
                link_speed_ext_active: Bits::saturating(extended.into()),
                link_speed_ext2_active: Bits::saturating(second.into()),
                ..PortInfo::default()
            };
            info.active_link().data_bits_per_second() / 1_000_000_000
        };
        assert_eq!(four(link_speed::SDR, 0, 0), 8);
        assert_eq!(four(link_speed::QDR, 0, 0), 32);
        assert_eq!(four(link_speed::QDR, link_speed_ext::FDR, 0), 54);
        assert_eq!(four(link_speed::QDR, link_speed_ext::EDR, 0), 100);
        assert_eq!(four(link_speed::QDR, link_speed_ext::HDR, 0), 200);
        assert_eq!(four(link_speed::QDR, link_speed_ext::NDR, 0), 400);
        assert_eq!(four(link_speed::QDR, 0, link_speed_ext2::XDR), 800);
    }
}

use silvan_core::{Lid, Sl};

use crate::Bits;
use crate::field::attribute;

/// Bits of ClassPortInfo.CapabilityMask in performance management (volume 1, section 16.1.3).
pub mod performance_capability {
    /// AllPortSelect: port 255 means all ports.
    pub const ALL_PORT_SELECT: u16 = 0x0100;
    /// IsExtendedWidthSupported: PortCountersExtended is there.
    pub const EXTENDED_WIDTH: u16 = 0x0200;
    /// IsExtendedWidthSupportedNoIETF: the same without unicast and multicast counters.
    pub const EXTENDED_WIDTH_NO_IETF: u16 = 0x0400;
    /// SamplesOnlySupported.
    pub const SAMPLES_ONLY: u16 = 0x0800;
    /// PortCountersXmitWaitSupported.
    pub const XMIT_WAIT: u16 = 0x1000;
}

/// Bits of ClassPortInfo.CapabilityMask2 in performance management (volume 1, section 16.1.3).
pub mod performance_capability2 {
    /// IsAdditionalPortCountersExtendedSupported: PortCountersExtended has PortXmitWait and the counters of
    /// errors, too.
    pub const ADDITIONAL_EXTENDED: u32 = 0x2;
}

/// Counters that a device has, by the capability masks of performance management (volume 1, section 16.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterCapabilities {
    /// PortCounters has PortXmitWait.
    pub wait: bool,
    /// PortCountersExtended has data and packets.
    pub extended: bool,
    /// PortCountersExtended has PortXmitWait and the counters of errors, too.
    pub additional: bool,
}

impl CounterCapabilities {
    /// Capabilities of a device that has not answered: those of all but old devices.
    pub const UNKNOWN: Self = Self {
        wait: true,
        extended: true,
        additional: false,
    };

    /// Capabilities by CapabilityMask and CapabilityMask2.
    pub const fn of_masks(mask: u16, mask2: u32) -> Self {
        use performance_capability::{EXTENDED_WIDTH, EXTENDED_WIDTH_NO_IETF, XMIT_WAIT};
        let extended = mask & (EXTENDED_WIDTH | EXTENDED_WIDTH_NO_IETF) != 0;
        Self {
            wait: mask & XMIT_WAIT != 0,
            extended,
            additional: extended && mask2 & performance_capability2::ADDITIONAL_EXTENDED != 0,
        }
    }
}

impl Default for CounterCapabilities {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl From<&ClassPortInfo> for CounterCapabilities {
    fn from(info: &ClassPortInfo) -> Self {
        Self::of_masks(info.capability_mask, info.capability_mask2.get())
    }
}

attribute! {
    /// ClassPortInfo: what an agent of a class can do, and where it sends who asks and what it tells
    /// (volume 1, section 13.4.8.1). Its modifier is 0.
    pub struct ClassPortInfo[72] = 0x01 {
        /// BaseVersion.
        pub base_version: u8 = 0,
        /// ClassVersion.
        pub class_version: u8 = 8,
        /// CapabilityMask: bit 0 traps, bit 1 Get and Set of Notice, from bit 8 on by class.
        pub capability_mask: u16 = 16 hex,
        /// CapabilityMask2, by class.
        pub capability_mask2: Bits<27> = 32 hex,
        /// RespTimeValue: answers take at most 4.096 us times 2 to this power.
        pub response_time: Bits<5> = 59,
        /// RedirectGID.
        pub redirect_gid: [u8; 16] = 64 hex,
        /// RedirectTC.
        pub redirect_traffic_class: u8 = 192,
        /// RedirectSL.
        pub redirect_sl: Sl = 200,
        /// RedirectFL.
        pub redirect_flow_label: Bits<20> = 204 hex,
        /// RedirectLID.
        pub redirect_lid: Lid = 224,
        /// RedirectP_Key.
        pub redirect_p_key: u16 = 240 hex,
        /// RedirectQP.
        pub redirect_qp: Bits<24> = 264,
        /// RedirectQ_Key.
        pub redirect_q_key: u32 = 288 hex,
        /// TrapGID.
        pub trap_gid: [u8; 16] = 320 hex,
        /// TrapTC.
        pub trap_traffic_class: u8 = 448,
        /// TrapSL.
        pub trap_sl: Sl = 456,
        /// TrapFL.
        pub trap_flow_label: Bits<20> = 460 hex,
        /// TrapLID.
        pub trap_lid: Lid = 480,
        /// TrapP_Key.
        pub trap_p_key: u16 = 496 hex,
        /// TrapHL.
        pub trap_hop_limit: u8 = 512,
        /// TrapQP.
        pub trap_qp: Bits<24> = 520,
        /// TrapQ_Key.
        pub trap_q_key: u32 = 544 hex,
    }
}

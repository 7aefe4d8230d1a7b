use silvan_core::{PortNumber, Sl};

use crate::field::attribute;

attribute! {
    /// SwPortVLCongestion: packets marked at a switch port.
    pub struct SwPortVlCongestion[36] = 0x30 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// SWPortVLCongestion, by virtual lane.
        pub congestion: [u16; 16] = 32 select 0,
    }
}

attribute! {
    /// PortRcvConCtrl: notifications received.
    pub struct PortRcvConCtrl[12] = 0x31 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortPktRcvFECN.
        pub fecn: u32 = 32 select 0,
        /// PortPktRcvBECN.
        pub becn: u32 = 64 select 1,
    }
}

attribute! {
    /// PortSLRcvFECN: forward notifications received.
    pub struct PortSlRcvFecn[68] = 0x32 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortSLRcvFECN, by service level.
        pub fecn: [u32; Sl::COUNT] = 32 select 0,
    }
}

attribute! {
    /// PortSLRcvBECN: backward notifications received.
    pub struct PortSlRcvBecn[68] = 0x33 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortSLRcvBECN, by service level.
        pub becn: [u32; Sl::COUNT] = 32 select 0,
    }
}

attribute! {
    /// PortXmitConCtrl: time in the congestion state.
    pub struct PortXmitConCtrl[8] = 0x34 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortXmitTimeCong, in ticks.
        pub time_cong: u32 = 32 select 0,
    }
}

attribute! {
    /// PortVLXmitTimeCong: time in the congestion state.
    pub struct PortVlXmitTimeCong[64] = 0x35 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortVLXmitTimeCong, in ticks, by data lane.
        pub time_cong: [u32; 15] = 32 select 0,
    }
}

//! Counters per virtual lane and service level; lane 15 is the management lane.

use silvan_core::{PortNumber, Sl};

use crate::Bits;
use crate::field::attribute;

const LANES: usize = 16;

attribute! {
    /// PortVLOpPackets: packets of a chosen operation code (volume 1, section 16.1.4).
    pub struct PortVlOpPackets[36] = 0x19 {
        /// OpCode: the operation code that is counted.
        pub op_code: u8 = 0 hex,
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortVLOpPackets, by lane.
        pub packets: [u16; LANES] = 32 select 0,
    }
}

attribute! {
    /// PortVLOpData: data of a chosen operation code (volume 1, section 16.1.4).
    pub struct PortVlOpData[68] = 0x1a {
        /// OpCode: the operation code that is counted.
        pub op_code: u8 = 0 hex,
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortVLOpData, in words of four bytes, by lane.
        pub data: [u32; LANES] = 32 select 0,
    }
}

attribute! {
    /// PortVLXmitFlowCtlUpdateErrors: credits that came too late (volume 1, section 16.1.4).
    pub struct PortVlXmitFlowCtlUpdateErrors[8] = 0x1b {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortVLXmitFlowCtlUpdateErrors, by lane.
        pub errors: [Bits<2>; LANES] = 32 select 0,
    }
}

attribute! {
    /// PortVLXmitWaitCounters: time without credits (volume 1, section 16.1.4).
    pub struct PortVlXmitWaitCounters[36] = 0x1c {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortVLXmitWait, in ticks, by lane.
        pub wait: [u16; LANES] = 32 select 0,
    }
}

attribute! {
    /// PortXmitDataSL: data sent.
    pub struct PortXmitDataSl[68] = 0x36 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// XmtDataSL, in words of four bytes, by service level.
        pub data: [u32; Sl::COUNT] = 32 select 0,
    }
}

attribute! {
    /// PortRcvDataSL: data received.
    pub struct PortRcvDataSl[68] = 0x37 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// RcvDataSL, in words of four bytes, by service level.
        pub data: [u32; Sl::COUNT] = 32 select 0,
    }
}

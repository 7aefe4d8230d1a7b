use silvan_core::PortNumber;

use crate::Bits;
use crate::field::attribute;

attribute! {
    /// PortCounters: errors and traffic (volume 1, section 16.1.3).
    pub struct PortCounters[44] = 0x12 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// SymbolErrorCounter.
        pub symbol_errors: u16 = 32 select 0,
        /// LinkErrorRecoveryCounter.
        pub link_error_recovery: u8 = 48 select 1,
        /// LinkDownedCounter.
        pub link_downed: u8 = 56 select 2,
        /// PortRcvErrors.
        pub rcv_errors: u16 = 64 select 3,
        /// PortRcvRemotePhysicalErrors.
        pub rcv_remote_physical_errors: u16 = 80 select 4,
        /// PortRcvSwitchRelayErrors.
        pub rcv_switch_relay_errors: u16 = 96 select 5,
        /// PortXmitDiscards.
        pub xmit_discards: u16 = 112 select 6,
        /// PortXmitConstraintErrors.
        pub xmit_constraint_errors: u8 = 128 select 7,
        /// PortRcvConstraintErrors.
        pub rcv_constraint_errors: u8 = 136 select 8,
        /// CounterSelect2: bit 0 selects PortXmitWait.
        pub counter_select2: u8 = 144 hex,
        /// LocalLinkIntegrityErrors.
        pub local_link_integrity_errors: Bits<4> = 152 select 9,
        /// ExcessiveBufferOverrunErrors.
        pub excessive_buffer_overrun_errors: Bits<4> = 156 select 10,
        /// QP1Dropped.
        pub qp1_dropped: u16 = 160 select 17,
        /// VL15Dropped.
        pub vl15_dropped: u16 = 176 select 11,
        /// PortXmitData, in words of four bytes.
        pub xmit_data: u32 = 192 select 12,
        /// PortRcvData, in words of four bytes.
        pub rcv_data: u32 = 224 select 13,
        /// PortXmitPkts.
        pub xmit_pkts: u32 = 256 select 14,
        /// PortRcvPkts.
        pub rcv_pkts: u32 = 288 select 15,
        /// PortXmitWait, in ticks during which data waited and could not be sent.
        pub xmit_wait: u32 = 320 select 16,
    }
}

attribute! {
    /// PortCountersExtended: the same with 64 bits (volume 1, section 16.1.4). Counters from
    /// `symbol_errors` on count only where the agent has additional extended counters.
    pub struct PortCountersExtended[184] = 0x1d {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// CounterSelect2, for the additional counters: its bits are those from 16 on.
        pub counter_select2: u32 = 32 hex,
        /// PortXmitData, in words of four bytes.
        pub xmit_data: u64 = 64 select 0,
        /// PortRcvData, in words of four bytes.
        pub rcv_data: u64 = 128 select 1,
        /// PortXmitPkts.
        pub xmit_pkts: u64 = 192 select 2,
        /// PortRcvPkts.
        pub rcv_pkts: u64 = 256 select 3,
        /// PortUnicastXmitPkts.
        pub unicast_xmit_pkts: u64 = 320 select 4,
        /// PortUnicastRcvPkts.
        pub unicast_rcv_pkts: u64 = 384 select 5,
        /// PortMulticastXmitPkts.
        pub multicast_xmit_pkts: u64 = 448 select 6,
        /// PortMulticastRcvPkts.
        pub multicast_rcv_pkts: u64 = 512 select 7,
        /// SymbolErrorCounter.
        pub symbol_errors: u64 = 576 select 16,
        /// LinkErrorRecoveryCounter.
        pub link_error_recovery: u64 = 640 select 17,
        /// LinkDownedCounter.
        pub link_downed: u64 = 704 select 18,
        /// PortRcvErrors.
        pub rcv_errors: u64 = 768 select 19,
        /// PortRcvRemotePhysicalErrors.
        pub rcv_remote_physical_errors: u64 = 832 select 20,
        /// PortRcvSwitchRelayErrors.
        pub rcv_switch_relay_errors: u64 = 896 select 21,
        /// PortXmitDiscards.
        pub xmit_discards: u64 = 960 select 22,
        /// PortXmitConstraintErrors.
        pub xmit_constraint_errors: u64 = 1024 select 23,
        /// PortRcvConstraintErrors.
        pub rcv_constraint_errors: u64 = 1088 select 24,
        /// LocalLinkIntegrityErrors.
        pub local_link_integrity_errors: u64 = 1152 select 25,
        /// ExcessiveBufferOverrunErrors.
        pub excessive_buffer_overrun_errors: u64 = 1216 select 26,
        /// VL15Dropped.
        pub vl15_dropped: u64 = 1280 select 27,
        /// PortXmitWait, in ticks.
        pub xmit_wait: u64 = 1344 select 28,
        /// QP1Dropped.
        pub qp1_dropped: u64 = 1408 select 29,
    }
}

attribute! {
    /// PortRcvErrorDetails: why packets that came were bad (volume 1, section 16.1.4).
    pub struct PortRcvErrorDetails[16] = 0x15 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortLocalPhysicalErrors.
        pub local_physical_errors: u16 = 32 select 0,
        /// PortMalformedPacketErrors.
        pub malformed_packet_errors: u16 = 48 select 1,
        /// PortBufferOverrunErrors.
        pub buffer_overrun_errors: u16 = 64 select 2,
        /// PortDLIDMappingErrors.
        pub dlid_mapping_errors: u16 = 80 select 3,
        /// PortVLMappingErrors.
        pub vl_mapping_errors: u16 = 96 select 4,
        /// PortLoopingErrors.
        pub looping_errors: u16 = 112 select 5,
    }
}

attribute! {
    /// PortXmitDiscardDetails: why packets were not sent (volume 1, section 16.1.4).
    pub struct PortXmitDiscardDetails[12] = 0x16 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortInactiveDiscards.
        pub inactive_discards: u16 = 32 select 0,
        /// PortNeighborMTUDiscards.
        pub neighbor_mtu_discards: u16 = 48 select 1,
        /// PortSwLifetimeLimitDiscards.
        pub sw_lifetime_limit_discards: u16 = 64 select 2,
        /// PortSwHOQLifetimeLimitDiscards.
        pub sw_hoq_lifetime_limit_discards: u16 = 80 select 3,
    }
}

attribute! {
    /// PortOpRcvCounters: what came with a chosen operation code (volume 1, section 16.1.4).
    pub struct PortOpRcvCounters[12] = 0x17 {
        /// OpCode: the operation code that is counted.
        pub op_code: u8 = 0 hex,
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortOpRcvPkts.
        pub op_rcv_pkts: u32 = 32 select 0,
        /// PortOpRcvData, in words of four bytes.
        pub op_rcv_data: u32 = 64 select 1,
    }
}

attribute! {
    /// PortFlowCtlCounters: flow control packets (volume 1, section 16.1.4).
    pub struct PortFlowCtlCounters[12] = 0x18 {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u16 = 16 hex,
        /// PortXmitFlowPkts.
        pub xmit_flow_pkts: u32 = 32 select 0,
        /// PortRcvFlowPkts.
        pub rcv_flow_pkts: u32 = 64 select 1,
    }
}

attribute! {
    /// PortExtendedSpeedsCounters: errors of links from FDR on (volume 1, section 16.1.4). On links
    /// with Reed-Solomon error correction the counters per lane count symbols instead of blocks.
    pub struct PortExtendedSpeedsCounters[152] = 0x1f {
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// CounterSelect.
        pub counter_select: u64 = 64 hex,
        /// SyncHeaderErrorCounter.
        pub sync_header_errors: u16 = 128,
        /// UnknownBlockCounter.
        pub unknown_blocks: u16 = 144,
        /// ErrorDetectionCounterLane.
        pub error_detection: [u16; 12] = 160,
        /// FECCorrectableBlockCtrLane, or FECCorrectableSymbolCtrLane.
        pub fec_correctable: [u32; 12] = 352,
        /// FECUncorrectableBlockCtrLane.
        pub fec_uncorrectable: [u32; 12] = 736,
        /// PortFECCorrectableBlockCtr.
        pub port_fec_correctable: u32 = 1120,
        /// PortFECUncorrectableBlockCtr.
        pub port_fec_uncorrectable: u32 = 1152,
        /// PortFECCorrectedSymbolCtr.
        pub port_fec_corrected_symbols: u32 = 1184,
    }
}

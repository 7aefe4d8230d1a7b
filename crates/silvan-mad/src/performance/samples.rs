use silvan_core::PortNumber;

use crate::Bits;
use crate::field::attribute;

attribute! {
    /// PortSamplesControl: what to sample, when (volume 1, section 16.1.3). A port that can only report
    /// that it samples nothing has SampleStatus 0; Tick is also the unit of PortXmitWait.
    pub struct PortSamplesControl[80] = 0x10 {
        /// OpCode, for counters by operation code.
        pub op_code: u8 = 0 hex,
        /// PortSelect.
        pub port_select: PortNumber = 8,
        /// Tick: the length of a tick, coded.
        pub tick: u8 = 16,
        /// CounterWidth: 0 for 16 bits and so on up to 4 for 32.
        pub counter_width: Bits<3> = 29,
        /// CounterMask0.
        pub counter_mask_0: Bits<3> = 34 hex,
        /// CounterMasks1to9.
        pub counter_masks_1_to_9: Bits<27> = 37 hex,
        /// CounterMasks10to14.
        pub counter_masks_10_to_14: Bits<15> = 65 hex,
        /// SampleMechanisms.
        pub sample_mechanisms: u8 = 80 hex,
        /// SampleStatus: 0 done, 1 started, 2 running.
        pub sample_status: Bits<2> = 94,
        /// OptionMask.
        pub option_mask: u64 = 96 hex,
        /// VendorMask.
        pub vendor_mask: u64 = 160 hex,
        /// SampleStart, in ticks.
        pub sample_start: u32 = 224,
        /// SampleInterval, in ticks.
        pub sample_interval: u32 = 256,
        /// Tag.
        pub tag: u16 = 288 hex,
        /// CounterSelect, of counters 0 to 14.
        pub counter_select: [u16; 15] = 304 hex,
        /// SamplesOnlyOptionMask.
        pub samples_only_option_mask: u64 = 576 hex,
    }
}

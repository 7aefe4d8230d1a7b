//! Performance management (volume 1, chapter 16): counters of a port.
//!
//! PortSelect names the port (255: all), CounterSelect has a bit for each counter that a Set writes. Counters of up to
//! 32 bits saturate, those of 64 bits wrap around. Data is counted in words of four bytes, waiting in ticks.

mod congestion;
mod counters;
mod lanes;
mod samples;

use crate::ClassPortInfo;
use crate::field::attributes;

pub use congestion::{
    PortRcvConCtrl, PortSlRcvBecn, PortSlRcvFecn, PortVlXmitTimeCong, PortXmitConCtrl,
    SwPortVlCongestion,
};
pub use counters::{
    PortCounters, PortCountersExtended, PortExtendedSpeedsCounters, PortFlowCtlCounters,
    PortOpRcvCounters, PortRcvErrorDetails, PortXmitDiscardDetails,
};
pub use lanes::{
    PortRcvDataSl, PortVlOpData, PortVlOpPackets, PortVlXmitFlowCtlUpdateErrors,
    PortVlXmitWaitCounters, PortXmitDataSl,
};
pub use samples::PortSamplesControl;

attributes! {
    /// The attribute of a performance management datagram (volume 1, section 16.1.3, and annex A10 from 0x30 to 0x35).
    pub enum PerformanceAttribute[192] {
        ClassPortInfo,
        PortSamplesControl,
        PortCounters,
        PortRcvErrorDetails,
        PortXmitDiscardDetails,
        PortOpRcvCounters,
        PortFlowCtlCounters,
        PortVlOpPackets,
        PortVlOpData,
        PortVlXmitFlowCtlUpdateErrors,
        PortVlXmitWaitCounters,
        PortCountersExtended,
        PortExtendedSpeedsCounters,
        SwPortVlCongestion,
        PortRcvConCtrl,
        PortSlRcvFecn,
        PortSlRcvBecn,
        PortXmitConCtrl,
        PortVlXmitTimeCong,
        PortXmitDataSl,
        PortRcvDataSl,
    }
}

const _: () = {
    let mut counters = silvan_core::PortCounters::ALL;
    while let [counter, more @ ..] = counters {
        let mut slots = counter.fields;
        while let [slot, rest @ ..] = slots {
            match PerformanceAttribute::find_field(slot.attribute, slot.field) {
                Some(location) if location.select.is_some() && location.elements == 1 => {}
                _ => panic!("a port counter names a field that no attribute has, or no counter"),
            }
            slots = rest;
        }
        counters = more;
    }
};

//! The counters that are exported, each with its metric.

use crate::sweep::RawPort;
use silvan_core::counters::DATA_WORD;
use silvan_mad::performance::{PortCounters, PortCountersExtended};

/// A counter and its metric, which has the name that the common exporter of InfiniBand switches gives it.
pub(super) struct ExportedCounter {
    /// The name, without prefix, unit and `_total`.
    pub name: &'static str,
    /// The name in the specification.
    pub field: &'static str,
    /// Whether it counts words of four bytes; the metric has bytes.
    pub is_data: bool,
    /// Reads it; `None` if the port has not answered with it.
    pub read: fn(&RawPort) -> Option<u64>,
}

/// A counter of PortCountersExtended, or else of PortCounters.
fn widest(
    raw: &RawPort,
    wide: fn(&PortCountersExtended) -> u64,
    narrow: fn(&PortCounters) -> u32,
) -> Option<u64> {
    let narrow = || {
        raw.counters
            .as_ref()
            .map(|counters| narrow(counters).into())
    };
    raw.extended.as_ref().map(wide).or_else(narrow)
}

macro_rules! exported {
    ($($name:literal $field:literal $(is $unit:ident)? = $read:expr;)*) => {
        /// All of them, in the order in which they are served.
        pub(super) const EXPORTED: &[ExportedCounter] = &[$(ExportedCounter {
            name: $name,
            field: $field,
            is_data: exported!(unit $($unit)?),
            read: $read,
        },)*];
    };
    (unit bytes) => { true };
    (unit) => { false };
}

/// A counter that PortCountersExtended has on some devices only, and else PortCounters.
macro_rules! additional {
    ($field:ident) => {
        |raw| match raw.has_additional {
            true => raw.extended.as_ref().map(|counters| counters.$field),
            false => raw.counters.as_ref().map(|counters| counters.$field.into()),
        }
    };
    ($field:ident of few bits) => {
        |raw| match raw.has_additional {
            true => raw.extended.as_ref().map(|counters| counters.$field),
            false => raw
                .counters
                .as_ref()
                .map(|counters| counters.$field.get().into()),
        }
    };
}

macro_rules! wide {
    ($field:ident) => {
        |raw| raw.extended.as_ref().map(|counters| counters.$field)
    };
}

exported! {
    "port_transmit_data" "PortXmitData" is bytes = |raw| {
        Some(DATA_WORD.wrapping_mul(widest(raw, |wide| wide.xmit_data, |narrow| narrow.xmit_data)?))
    };
    "port_receive_data" "PortRcvData" is bytes = |raw| {
        Some(DATA_WORD.wrapping_mul(widest(raw, |wide| wide.rcv_data, |narrow| narrow.rcv_data)?))
    };
    "port_transmit_packets" "PortXmitPkts" = |raw| {
        widest(raw, |wide| wide.xmit_pkts, |narrow| narrow.xmit_pkts)
    };
    "port_receive_packets" "PortRcvPkts" = |raw| {
        widest(raw, |wide| wide.rcv_pkts, |narrow| narrow.rcv_pkts)
    };
    "port_unicast_transmit_packets" "PortUnicastXmitPkts" = wide!(unicast_xmit_pkts);
    "port_unicast_receive_packets" "PortUnicastRcvPkts" = wide!(unicast_rcv_pkts);
    "port_multicast_transmit_packets" "PortMulticastXmitPkts" = wide!(multicast_xmit_pkts);
    "port_multicast_receive_packets" "PortMulticastRcvPkts" = wide!(multicast_rcv_pkts);
    "port_symbol_error" "SymbolErrorCounter" = additional!(symbol_errors);
    "port_link_error_recovery" "LinkErrorRecoveryCounter" = additional!(link_error_recovery);
    "port_link_downed" "LinkDownedCounter" = additional!(link_downed);
    "port_receive_errors" "PortRcvErrors" = additional!(rcv_errors);
    "port_receive_remote_physical_errors" "PortRcvRemotePhysicalErrors" =
        additional!(rcv_remote_physical_errors);
    "port_receive_switch_relay_errors" "PortRcvSwitchRelayErrors" = additional!(rcv_switch_relay_errors);
    "port_transmit_discards" "PortXmitDiscards" = additional!(xmit_discards);
    "port_transmit_constraint_errors" "PortXmitConstraintErrors" = additional!(xmit_constraint_errors);
    "port_receive_constraint_errors" "PortRcvConstraintErrors" = additional!(rcv_constraint_errors);
    "port_local_link_integrity_errors" "LocalLinkIntegrityErrors" =
        additional!(local_link_integrity_errors of few bits);
    "port_excessive_buffer_overrun_errors" "ExcessiveBufferOverrunErrors" =
        additional!(excessive_buffer_overrun_errors of few bits);
    "port_vl15_dropped" "VL15Dropped" = additional!(vl15_dropped);
    "port_qp1_dropped" "QP1Dropped" = additional!(qp1_dropped);
    "port_transmit_wait" "PortXmitWait" = additional!(xmit_wait);
    "port_transmit_time_congested" "PortXmitTimeCong" = |raw| Some(raw.congestion?.time_cong.into());
    "port_receive_fecn" "PortPktRcvFECN" = |raw| Some(raw.notifications?.fecn.into());
    "port_receive_becn" "PortPktRcvBECN" = |raw| Some(raw.notifications?.becn.into());
}

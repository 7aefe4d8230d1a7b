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

macro_rules! narrow {
    ($field:ident) => {
        |raw| raw.counters.as_ref().map(|counters| counters.$field.into())
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
    "port_symbol_error" "SymbolErrorCounter" = narrow!(symbol_errors);
    "port_link_error_recovery" "LinkErrorRecoveryCounter" = narrow!(link_error_recovery);
    "port_link_downed" "LinkDownedCounter" = narrow!(link_downed);
    "port_receive_errors" "PortRcvErrors" = narrow!(rcv_errors);
    "port_receive_remote_physical_errors" "PortRcvRemotePhysicalErrors" =
        narrow!(rcv_remote_physical_errors);
    "port_receive_switch_relay_errors" "PortRcvSwitchRelayErrors" = narrow!(rcv_switch_relay_errors);
    "port_transmit_discards" "PortXmitDiscards" = narrow!(xmit_discards);
    "port_transmit_constraint_errors" "PortXmitConstraintErrors" = narrow!(xmit_constraint_errors);
    "port_receive_constraint_errors" "PortRcvConstraintErrors" = narrow!(rcv_constraint_errors);
    "port_local_link_integrity_errors" "LocalLinkIntegrityErrors" = |raw| {
        Some(raw.counters?.local_link_integrity_errors.get().into())
    };
    "port_excessive_buffer_overrun_errors" "ExcessiveBufferOverrunErrors" = |raw| {
        Some(raw.counters?.excessive_buffer_overrun_errors.get().into())
    };
    "port_vl15_dropped" "VL15Dropped" = narrow!(vl15_dropped);
    "port_qp1_dropped" "QP1Dropped" = narrow!(qp1_dropped);
    "port_transmit_wait" "PortXmitWait" = narrow!(xmit_wait);
    "port_transmit_time_congested" "PortXmitTimeCong" = |raw| Some(raw.congestion?.time_cong.into());
    "port_receive_fecn" "PortPktRcvFECN" = |raw| Some(raw.notifications?.fecn.into());
    "port_receive_becn" "PortPktRcvBECN" = |raw| Some(raw.notifications?.becn.into());
}

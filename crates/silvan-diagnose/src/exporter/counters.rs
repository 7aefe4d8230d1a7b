use silvan_core::counters::DATA_WORD;
use silvan_subnet::sweep::{CounterSource, PortAnswers};

/// A counter, and its metric as the common exporter of InfiniBand switches names it.
pub(super) struct ExportedCounter {
    /// The name, without prefix, unit and `_total`.
    pub name: &'static str,
    pub field: &'static str,
    pub is_data: bool,
    source: CounterSource,
}

impl ExportedCounter {
    pub fn read(&self, answers: &PortAnswers) -> Option<u64> {
        let value = answers.counter(&self.source)?.value;
        Some(match self.is_data {
            true => DATA_WORD.wrapping_mul(value),
            false => value,
        })
    }
}

macro_rules! exported {
    ($($name:literal $field:literal $(in $unit:ident)? = $source:ident;)*) => {
        /// All of them, in the order in which they are served.
        pub(super) const EXPORTED: &[ExportedCounter] = &[$(ExportedCounter {
            name: $name,
            field: $field,
            is_data: exported!(unit $($unit)?),
            source: CounterSource::of_field(stringify!($source)),
        },)*];
    };
    (unit words) => { true };
    (unit) => { false };
}

exported! {
    "port_transmit_data" "PortXmitData" in words = xmit_data;
    "port_receive_data" "PortRcvData" in words = rcv_data;
    "port_transmit_packets" "PortXmitPkts" = xmit_pkts;
    "port_receive_packets" "PortRcvPkts" = rcv_pkts;
    "port_unicast_transmit_packets" "PortUnicastXmitPkts" = unicast_xmit_pkts;
    "port_unicast_receive_packets" "PortUnicastRcvPkts" = unicast_rcv_pkts;
    "port_multicast_transmit_packets" "PortMulticastXmitPkts" = multicast_xmit_pkts;
    "port_multicast_receive_packets" "PortMulticastRcvPkts" = multicast_rcv_pkts;
    "port_symbol_error" "SymbolErrorCounter" = symbol_errors;
    "port_link_error_recovery" "LinkErrorRecoveryCounter" = link_error_recovery;
    "port_link_downed" "LinkDownedCounter" = link_downed;
    "port_receive_errors" "PortRcvErrors" = rcv_errors;
    "port_receive_remote_physical_errors" "PortRcvRemotePhysicalErrors" = rcv_remote_physical_errors;
    "port_receive_switch_relay_errors" "PortRcvSwitchRelayErrors" = rcv_switch_relay_errors;
    "port_transmit_discards" "PortXmitDiscards" = xmit_discards;
    "port_transmit_constraint_errors" "PortXmitConstraintErrors" = xmit_constraint_errors;
    "port_receive_constraint_errors" "PortRcvConstraintErrors" = rcv_constraint_errors;
    "port_local_link_integrity_errors" "LocalLinkIntegrityErrors" = local_link_integrity_errors;
    "port_excessive_buffer_overrun_errors" "ExcessiveBufferOverrunErrors" = excessive_buffer_overrun_errors;
    "port_vl15_dropped" "VL15Dropped" = vl15_dropped;
    "port_qp1_dropped" "QP1Dropped" = qp1_dropped;
    "port_transmit_wait" "PortXmitWait" = xmit_wait;
    "port_transmit_time_congested" "PortXmitTimeCong" = time_cong;
    "port_receive_fecn" "PortPktRcvFECN" = fecn;
    "port_receive_becn" "PortPktRcvBECN" = becn;
}

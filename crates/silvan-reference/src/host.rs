use std::collections::BTreeMap;

use silvan_core::{Bytes, HostId, Sl, Span, Time, Vl};

use crate::link::{ReceiverId, TransmitterId};
use crate::params::Flow;

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) transmitter: TransmitterId,
    pub(crate) receiver: ReceiverId,
    pub(crate) flows: Vec<usize>,
    pub(crate) first: usize,
    pub(crate) chosen: BTreeMap<Vl, usize>,
    pub(crate) paced_until: Time,
    pub(crate) sink_free: Time,
}

#[derive(Debug)]
pub(crate) struct FlowState {
    pub(crate) destination: HostId,
    pub(crate) sl: Sl,
    pub(crate) vl: Vl,
    pub(crate) payload: Bytes,
    pub(crate) gap: Span,
    pub(crate) packets: Option<u64>,
    pub(crate) injected: u64,
    pub(crate) ready: Time,
}

impl FlowState {
    pub(crate) fn new(flow: &Flow, vl: Vl) -> Self {
        assert_ne!(flow.source, flow.destination, "a flow between two hosts");
        assert!(!flow.payload.is_zero(), "a packet has at least one byte");
        Self {
            destination: flow.destination,
            sl: flow.sl,
            vl,
            payload: flow.payload,
            gap: flow.gap,
            packets: flow.packets,
            injected: 0,
            ready: flow.start,
        }
    }

    pub(crate) fn is_ready(&self, now: Time) -> bool {
        let left = self.packets.is_none_or(|packets| self.injected < packets);
        left && self.ready <= now
    }
}

//! Notifications of congestion from the destination to the source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Span, Time};

use crate::flow_table::FlowTable;
use crate::hooks::Flow;

/// Carrier of a congestion notification (BECN) back to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BecnCarrier {
    /// A congestion notification packet for each marked packet.
    #[default]
    Cnp,
    /// The acknowledgement of each packet; it carries BECN if the packet was marked.
    AckPerPacket,
    /// The acknowledgement of each message; it carries BECN if any of its packets was marked.
    AckPerMessage,
    /// Nothing: for schemes whose receivers act on marks by themselves.
    None,
}

/// Joins notifications of a flow within an interval, as adapters do (the specification has no limit).
#[derive(Clone, Debug)]
pub struct Coalescer {
    interval: Span,
    again: Vec<FlowTable<Time>>,
}

impl Coalescer {
    /// A coalescer for that many hosts with at most one notification per flow in `interval`.
    pub fn new(hosts: usize, interval: Span) -> Self {
        Self {
            interval,
            again: vec![FlowTable::new(); hosts],
        }
    }

    /// Returns true if the destination of `flow` may notify now, which starts the interval; `now` never goes back.
    pub fn permit(&mut self, now: Time, flow: Flow) -> bool {
        let key = (flow.source.index() as u32) << 4 | flow.sl.index() as u32;
        let table = &mut self.again[flow.destination.index()];
        let next = now.saturating_add(self.interval);
        match table.get_mut(key) {
            Some(again) if now < *again => false,
            Some(again) => {
                *again = next;
                true
            }
            None => {
                table.insert(key, next, |_, again| now < *again);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use silvan_core::{HostId, Sl};

    use super::*;

    fn flow(source: usize, destination: usize, sl: u8) -> Flow {
        Flow {
            source: HostId::new(source),
            destination: HostId::new(destination),
            sl: Sl::try_new(sl).unwrap(),
            queue: 0,
        }
    }

    #[test]
    fn one_per_interval_and_flow() {
        let mut coalescer = Coalescer::new(3, Span::from_us(1));
        let at = |ns: u64| Time::from_ps(ns * 1_000);
        assert!(coalescer.permit(at(100), flow(0, 1, 0)));
        assert!(!coalescer.permit(at(100), flow(0, 1, 0)));
        assert!(!coalescer.permit(at(1_099), flow(0, 1, 0)));
        // Another source, SL or destination is another flow.
        assert!(coalescer.permit(at(1_099), flow(2, 1, 0)));
        assert!(coalescer.permit(at(1_099), flow(0, 1, 1)));
        assert!(coalescer.permit(at(1_099), flow(0, 2, 0)));
        // The interval is counted from the last one sent, and ends with its last instant.
        assert!(coalescer.permit(at(1_100), flow(0, 1, 0)));
        assert!(!coalescer.permit(at(2_099), flow(0, 1, 0)));
    }

    proptest! {
        /// Oracle: the last permitted instant of every flow, never forgotten.
        #[test]
        fn forgetting_is_invisible(
            calls in prop::collection::vec((0u64..400, 0usize..60, 0usize..2, 0u8..2), 0..500),
            interval in 0u64..3_000,
        ) {
            let interval = Span::from_ps(interval);
            let mut coalescer = Coalescer::new(2, interval);
            let mut last = BTreeMap::new();
            let mut now = Time::ZERO;
            for (wait, source, destination, sl) in calls {
                now += Span::from_ps(wait);
                let flow = flow(source, destination, sl);
                let key = (source, destination, sl);
                let expected = last.get(&key).is_none_or(|&at: &Time| now.since(at) >= interval);
                if expected {
                    last.insert(key, now);
                }
                prop_assert_eq!(coalescer.permit(now, flow), expected);
            }
        }
    }
}

//! Evidence about flows beside the loads of ports: waiting ports, and flows of marked packets.

use std::collections::BTreeMap;

use silvan_core::{HostId, IdVec, PortId};

use crate::logs::Logs;

/// Mean sightings of each flow from which a host's list counts as complete.
const LEAST_SEEN: u32 = 4;

/// Waiting ports, and the outputs that they may wait for.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Outputs of switches that are busy or wait themselves.
    pub busy: IdVec<PortId, bool>,
    /// Ports that wait.
    pub held_up: IdVec<PortId, bool>,
    /// Ports that send or wait all the time.
    pub full: IdVec<PortId, bool>,
}

/// Evidence of notifications: traffic of each source through the marking ports.
pub struct Marks<'a> {
    /// By source, in bit/s; `None` where it is not known.
    pub through: &'a IdVec<HostId, Option<f64>>,
    /// Marked traffic by destination.
    pub arriving: &'a IdVec<HostId, Option<f64>>,
    /// Ports that mark.
    pub is_marking: &'a dyn Fn(PortId) -> bool,
    /// Marked packets that were seen.
    pub seen: &'a Seen,
    /// A source with less sends nothing through them.
    pub least: f64,
    /// Marks in proportion to packets: an unseen flow is absent. Else marks are a sample, and a seen flow is there.
    pub are_complete: bool,
}

/// Marked packets that switches have logged.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pairs: BTreeMap<(HostId, HostId), u32>,
    by_source: BTreeMap<HostId, (u32, u32)>,
}

impl Seen {
    /// Counts them by sender.
    pub fn new(logs: &Logs) -> Self {
        let mut seen = Self::default();
        for ((source, destination), count) in logs.pairs() {
            seen.pairs.insert((source, destination), count);
            let sum = seen.by_source.entry(source).or_default();
            *sum = (sum.0 + count, sum.1 + 1);
        }
        seen
    }

    /// True if marks would have shown this flow: many packets of its sender were seen, of few flows.
    pub(crate) fn excludes(&self, source: HostId, destination: HostId) -> bool {
        let sum = self.by_source.get(&source);
        let is_enough = sum.is_some_and(|&(count, flows)| count >= LEAST_SEEN * flows);
        is_enough && !self.pairs.contains_key(&(source, destination))
    }

    /// True if all seen packets of the sender are of this flow.
    pub(crate) fn is_only(&self, source: HostId, destination: HostId) -> bool {
        self.pairs.contains_key(&(source, destination))
            && self
                .by_source
                .get(&source)
                .is_some_and(|&(_, flows)| flows == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

impl Marks<'_> {
    pub(crate) fn known(&self, source: HostId) -> Option<f64> {
        self.through[source]
    }
}

use silvan_core::{IdVec, PortId, Rate};
use silvan_fabric::{Fabric, ForwardingTables};

use crate::observation::{Observation, PortLoad};

/// A port is blocked if it waits for at least this part of the time.
pub(super) const BLOCKED: f64 = 0.04;
/// A port that sends for at least this part of the time may be a root.
pub(super) const BUSY: f64 = 0.95;
/// Least part of the time that a branch waits, if it sends or waits nearly all the time.
const HARDLY: f64 = 0.005;

/// A blocked port that sends or waits for at least this part of the time always has packets.
const ALWAYS: f64 = 0.97;

/// Facts about a subnet.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Nodes and cables.
    pub fabric: &'a Fabric,
    /// Forwarding tables.
    pub tables: &'a ForwardingTables,
    /// True if the tables are assumed, because the subnet's tables are unknown.
    pub assumed_tables: bool,
    /// The rate of data that both ends of each port's link support, where that is known.
    pub capable: &'a IdVec<PortId, Option<Rate>>,
    /// Loads and waiting times.
    pub observation: &'a Observation,
}

pub(super) fn is_blocked(facts: &Facts<'_>, port: PortId) -> bool {
    let PortLoad { load, wait, .. } = facts.observation.ports[port];
    let always = |wait: f64| wait >= HARDLY && load.is_some_and(|load| load + wait >= BUSY);
    wait.is_some_and(|wait| wait >= BLOCKED || always(wait))
}

pub(super) fn is_full(facts: &Facts<'_>, port: PortId) -> bool {
    let PortLoad { load, wait, .. } = facts.observation.ports[port];
    let sum = load.zip(wait).map(|(load, wait)| load + wait);
    is_blocked(facts, port) && sum.is_some_and(|sum| sum >= ALWAYS)
}

pub(super) fn is_busy(facts: &Facts<'_>, port: PortId) -> bool {
    let Some(load) = facts.observation.ports[port].load else {
        return false;
    };
    let faces_host =
        facts.fabric.ports[port].peer.is_some() && facts.fabric.peer_switch(port).is_none();
    match (faces_host, is_blocked(facts, port)) {
        (true, true) => true,
        (false, true) => false,
        (_, false) => load >= BUSY,
    }
}

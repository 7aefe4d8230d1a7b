use silvan_core::{IdVec, PortId, Rate};
use silvan_fabric::{Fabric, ForwardingTables};

use crate::observation::{Observation, PortLoad, data_rate};

/// A port is blocked if it waits for at least this part of the time.
pub(super) const BLOCKED: f64 = 0.04;
/// A port that sends for at least this part of the time may be a root.
pub(super) const BUSY: f64 = 0.95;
/// Least part of the time that a branch waits, if it sends or waits nearly all the time.
const HARDLY: f64 = 0.005;

/// A blocked port that sends or waits for at least this part of the time always has packets.
const ALWAYS: f64 = 0.97;

/// Wire bytes of a large packet, and the time from its end to its replay in seconds: what a bit error costs a link.
const REPLAYED_BITS: f64 = 8.0 * 4122.0;
const REPLAY_LATENCY: f64 = 3e-7;
/// Packets and latencies differ by this factor from the assumed ones.
const REPLAY_FACTOR: f64 = 3.0;

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
        (_, false) => load >= BUSY || is_bad_cable(facts, port),
    }
}

/// Returns true if replays of bad packets may take the time that a port does not send.
pub(super) fn is_bad_cable(facts: &Facts<'_>, port: PortId) -> bool {
    let fabric = facts.fabric;
    let errors = fabric.ports[port]
        .peer
        .and_then(|peer| facts.observation.link_errors(fabric, peer));
    let (Some(errors), Some(rate), Some(load)) = (
        errors,
        data_rate(fabric, port),
        facts.observation.ports[port].load,
    ) else {
        return false;
    };
    let replay = REPLAYED_BITS / rate.bits_per_sec() as f64 + REPLAY_LATENCY;
    let lost = errors.symbol_errors_per_s * replay;
    load < BUSY && load + REPLAY_FACTOR * lost >= BUSY
}

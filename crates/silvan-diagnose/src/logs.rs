//! What the logs of switches say of the packets that they have marked (CongestionLog, IBA annex A10).
//!
//! A log has the last 15 marked packets with their senders and receivers, and the ports that have marked since
//! it was read before. It is read several times in a row, so that a flow that marks seldom is seen, too.

use std::collections::BTreeMap;

use silvan_core::{HostId, Lid, NodeId, PortId, Span};
use silvan_dcms::client::{Client, Query};
use silvan_dcms::transport::{Transport, TransportError};
use silvan_fabric::Fabric;
use silvan_mad::congestion::{CongestionControl, CongestionLog, SwitchLog, UnknownLog};
use silvan_mad::{Body, Method};

/// Each log is read once to start with, and so often more.
const ROUNDS: u32 = 8;
/// From one reading of a log to the next.
const PAUSE: Span = Span::from_ms(5);

/// Packets that switches have marked, and the ports that have marked them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// By switch, how often its log was read.
    rounds: BTreeMap<NodeId, u32>,
    /// By port, in how many of these rounds it had marked.
    ports: BTreeMap<PortId, u32>,
    /// Marked packets that were in a log, by sender and receiver.
    pairs: BTreeMap<(HostId, HostId), u32>,
}

impl Logs {
    /// Reads the logs of these switches.
    pub(crate) fn read<T: Transport>(
        client: &mut Client<T>,
        fabric: &Fabric,
        switches: &[NodeId],
    ) -> Result<Self, TransportError> {
        let mut logs = Self::default();
        if switches.is_empty() {
            return Ok(logs);
        }
        let hosts: BTreeMap<Lid, HostId> = fabric
            .host_ids()
            .map(|host| (fabric.host(host).lid, host))
            .collect();
        let queries: Vec<Query> = (0..)
            .zip(switches)
            .map(|(number, &switch)| {
                let body = Body::CongestionControl(CongestionControl {
                    cc_key: 0,
                    attribute: CongestionLog::Unknown(UnknownLog::EMPTY).into(),
                });
                Query::new(number, fabric.nodes[switch].lid, Method::GET, body, 0)
            })
            .collect();
        let mut seen: BTreeMap<NodeId, u32> = BTreeMap::new();
        for round in 0..=ROUNDS {
            if round > 0 {
                client.transport().pause(PAUSE);
            }
            for (&switch, result) in switches.iter().zip(client.ask(&queries)?) {
                let Ok(answer) = result else { continue };
                let CongestionLog::Switch(log) = answer.congestion_log() else {
                    continue;
                };
                // What was marked before the first reading may be hours old.
                if let Some(since) = seen.insert(switch, log.current_timestamp) {
                    logs.learn(fabric, &hosts, switch, &log, since);
                }
            }
        }
        Ok(logs)
    }

    /// Takes over what a log has had since a time stamp.
    fn learn(
        &mut self,
        fabric: &Fabric,
        hosts: &BTreeMap<Lid, HostId>,
        switch: NodeId,
        log: &SwitchLog,
        since: u32,
    ) {
        *self.rounds.entry(switch).or_default() += 1;
        for number in log.port_map.iter() {
            if let Some(port) = fabric.port(switch, number) {
                *self.ports.entry(port).or_default() += 1;
            }
        }
        // The clock of 32 bits wraps around, after 73 minutes.
        let passed = log.current_timestamp.wrapping_sub(since);
        for event in &log.entries {
            let age = log.current_timestamp.wrapping_sub(event.timestamp);
            let ends = [event.source_lid, event.destination_lid].map(|lid| hosts.get(&lid));
            if let ([Some(&source), Some(&destination)], true) = (ends, age < passed) {
                *self.pairs.entry((source, destination)).or_default() += 1;
            }
        }
    }

    /// Adds what other logs have.
    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.rounds, &other.rounds);
        add(&mut self.ports, &other.ports);
        add(&mut self.pairs, &other.pairs);
    }

    /// In which part of the rounds a port had marked packets; `None` if the log of its switch is not known.
    pub fn marking(&self, fabric: &Fabric, port: PortId) -> Option<f64> {
        let rounds = *self.rounds.get(&fabric.ports[port].node)?;
        let marked = self.ports.get(&port).copied().unwrap_or(0);
        Some(f64::from(marked) / f64::from(rounds))
    }

    /// Marked packets that were in a log, by sender and receiver.
    pub fn pairs(&self) -> impl Iterator<Item = ((HostId, HostId), u32)> + '_ {
        self.pairs.iter().map(|(&pair, &count)| (pair, count))
    }
}

fn add<K: Ord + Copy>(to: &mut BTreeMap<K, u32>, from: &BTreeMap<K, u32>) {
    for (&key, &count) in from {
        *to.entry(key).or_default() += count;
    }
}

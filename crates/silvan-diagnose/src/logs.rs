//! Logs of marked packets at switches and adapters (CongestionLog, IBA annex A10).
//!
//! A switch has its last 15 marked packets and the ports that marked since the last reading; several readings show rare
//! flows. An adapter has its last 13 notifications; those from before the first sweep are skipped.

use std::collections::{BTreeMap, BTreeSet};

use silvan_core::{HostId, Lid, NodeId, PortId, Span};
use silvan_fabric::Fabric;
use silvan_mad::Method;
use silvan_mad::congestion::{CongestionLog, SwitchLog, UnknownLog};
use silvan_subnet::client::{Client, Query};
use silvan_subnet::transport::{Transport, TransportError};

const ROUNDS: u32 = 8;
const PAUSE: Span = Span::from_ms(5);

/// Packets that switches have marked, and the ports that have marked them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    rounds: BTreeMap<NodeId, u32>,
    ports: BTreeMap<PortId, u32>,
    pairs: BTreeMap<(HostId, HostId), u32>,
    throttled: BTreeSet<(HostId, HostId)>,
    adapter_times: BTreeMap<HostId, u32>,
}

impl Logs {
    /// Reads these switches' logs and, if there are any, all adapters'.
    pub(crate) fn read<T: Transport>(
        client: &mut Client<T>,
        fabric: &Fabric,
        switches: &[NodeId],
        before: Option<&Self>,
    ) -> Result<Self, TransportError> {
        let mut logs = Self::default();
        if switches.is_empty() {
            return Ok(logs);
        }
        let hosts: BTreeMap<Lid, HostId> = fabric
            .host_ids()
            .map(|host| (fabric.host(host).lid, host))
            .collect();
        let lids = switches.iter().map(|&switch| fabric.nodes[switch].lid);
        let queries: Vec<Query> = (0..).zip(lids).map(log_query).collect();
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
                // Marks from before the first reading may be hours old.
                if let Some(since) = seen.insert(switch, log.current_timestamp) {
                    logs.learn(fabric, &hosts, switch, &log, since);
                }
            }
        }
        logs.read_adapters(client, fabric, &hosts, before)?;
        Ok(logs)
    }

    fn read_adapters<T: Transport>(
        &mut self,
        client: &mut Client<T>,
        fabric: &Fabric,
        hosts: &BTreeMap<Lid, HostId>,
        before: Option<&Self>,
    ) -> Result<(), TransportError> {
        let lids = fabric.host_ids().map(|host| fabric.host(host).lid);
        let queries: Vec<Query> = (0..).zip(lids).map(log_query).collect();
        for (host, result) in fabric.host_ids().zip(client.ask(&queries)?) {
            let Ok(answer) = result else { continue };
            let CongestionLog::Ca(log) = answer.congestion_log() else {
                continue;
            };
            self.adapter_times.insert(host, log.current_timestamp);
            let Some(since) = before.and_then(|before| before.adapter_times.get(&host)) else {
                continue;
            };
            let passed = log.current_timestamp.wrapping_sub(*since);
            for event in &log.entries {
                let age = log.current_timestamp.wrapping_sub(event.timestamp);
                // Empty entries have no LID.
                if let (Some(&receiver), true) = (hosts.get(&event.remote_lid), age < passed) {
                    self.throttled.insert((host, receiver));
                }
            }
        }
        Ok(())
    }

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

    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.rounds, &other.rounds);
        add(&mut self.ports, &other.ports);
        add(&mut self.pairs, &other.pairs);
        self.throttled.extend(&other.throttled);
    }

    /// Returns the part of the rounds in which a port had marked packets; `None` if the log of its switch is unknown.
    pub fn marking(&self, fabric: &Fabric, port: PortId) -> Option<f64> {
        let rounds = *self.rounds.get(&fabric.ports[port].node)?;
        let marked = self.ports.get(&port).copied().unwrap_or(0);
        Some(f64::from(marked) / f64::from(rounds))
    }

    /// Marked packets in switches' logs, by sender and receiver; one for each other flow that an adapter throttled.
    pub fn pairs(&self) -> impl Iterator<Item = ((HostId, HostId), u32)> + '_ {
        let marked = self.pairs.iter().map(|(&pair, &count)| (pair, count));
        let throttled = self.throttled.iter().copied();
        let others = throttled.filter(|pair| !self.pairs.contains_key(pair));
        marked.chain(others.map(|pair| (pair, 1)))
    }

    /// Adapters whose logs were read.
    pub fn adapters(&self) -> usize {
        self.adapter_times.len()
    }
}

fn log_query((number, lid): (u32, Lid)) -> Query {
    let log = CongestionLog::Unknown(UnknownLog::EMPTY);
    Query::congestion(number, lid, Method::GET, 0, log, 0)
}

fn add<K: Ord + Copy>(to: &mut BTreeMap<K, u32>, from: &BTreeMap<K, u32>) {
    for (&key, &count) in from {
        *to.entry(key).or_default() += count;
    }
}
